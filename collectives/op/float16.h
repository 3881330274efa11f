/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * float16.h: convert the two 16-bit floating point types, in software.
 *
 * Arithmetic goes through float, with one rounding (to nearest even) an operation. The conversions have no
 * branches, so that loops vectorize, and avoid denormal floats, which some FPU settings flush.
 */
#ifndef RK_COLLECTIVES_FLOAT16_H
#define RK_COLLECTIVES_FLOAT16_H

#include "lib/base/compiler.h"

#include <stdbool.h>
#include <string.h>

RK_INLINE float rk_bits_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

RK_INLINE uint32_t rk_float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* yes, or no. Of a conditional operator with floats gcc makes a branch, which floats that trap could need. */
RK_INLINE uint32_t rk_choose_bits(bool condition, uint32_t yes, uint32_t no)
{
    return no ^ ((no ^ yes) & (0u - (uint32_t)condition));
}

RK_INLINE float rk_f16_to_f32(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t normal = magnitude + (112u << 23);
    /* Add a subnormal to 2^-14, which gives a normal number, and subtract 2^-14. */
    uint32_t small = rk_float_bits(rk_bits_float(magnitude + (113u << 23)) - 0x1p-14f);
    uint32_t special = magnitude | 0x7f800000u;
    uint32_t r = rk_choose_bits((h & 0x7c00) == 0, small, normal);

    r = rk_choose_bits((h & 0x7c00) == 0x7c00, special, r);
    return rk_bits_float(r | (uint32_t)(h & 0x8000) << 16);
}

RK_INLINE uint16_t rk_f32_to_f16(float f)
{
    uint32_t x = rk_float_bits(f), magnitude = x & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    /* Near 0.5 the last place of a float is that of a subnormal half: the FPU rounds. */
    uint32_t small = rk_float_bits(rk_bits_float(magnitude) + 0.5f) -
                     0x3f000000u;
    uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    uint32_t r = rk_choose_bits(magnitude < 0x38800000u, small, normal);

    r = rk_choose_bits(magnitude >= 0x477ff000u, 0x7c00u, r); /* from here on it rounds to infinity */
    r = rk_choose_bits(magnitude > 0x7f800000u, nan, r);
    return (uint16_t)(r | (x >> 16 & 0x8000u));
}

RK_INLINE float rk_bf16_to_f32(uint16_t h)
{
    return rk_bits_float((uint32_t)h << 16);
}

RK_INLINE uint16_t rk_f32_to_bf16(float f)
{
    uint32_t x = rk_float_bits(f);
    uint32_t rounded = (x + 0x7fffu + (x >> 16 & 1)) >> 16;
    uint32_t nan = x >> 16 | 0x40u;

    return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

#endif
