/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affine_maps.h: compose maps x -> m x + c: associative, not commutative.
 *
 * An element is a row of maps, modulo 2^64, so that results are exact in every order of composition.
 */
#ifndef TESTS_COLL_AFFINE_MAPS_H
#define TESTS_COLL_AFFINE_MAPS_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>

struct affine_map {
    uint64_t m, c;
};

/* What the operation checks in each call, and counts. */
struct affine_op {
    int64_t maps;       /* in an element */
    rank_dtype_t dtype;
    bool swap;          /* compose in the other order: an operation of its own */
    long calls, wrong;
};

static inline uint64_t affine_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Map number i of a rank's input. */
static inline struct affine_map affine_input(uint64_t seed, int rank, int64_t i)
{
    uint64_t x = affine_mix(seed + 0x9e3779b97f4a7c15u * ((uint64_t)i * 4096 + (uint64_t)rank + 1));

    return (struct affine_map){x | 1, affine_mix(x + 1)};
}

/* Apply first, then second. */
static inline struct affine_map affine_then(struct affine_map first, struct affine_map second)
{
    return (struct affine_map){second.m * first.m, second.m * first.c + second.c};
}

/* A rank_op_fn_t. */
static inline void affine_compose(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg)
{
    struct affine_op *op = arg;
    const struct affine_map *a = in;
    struct affine_map *b = inout;

    op->calls++;
    op->wrong += dtype != op->dtype || count < 1 || (uintptr_t)in % 8 || (uintptr_t)inout % 8;
    for (int64_t i = 0; i < count * op->maps; i++)
        b[i] = op->swap ? affine_then(b[i], a[i]) : affine_then(a[i], b[i]);
}

/* Result of map i over ranks first to last. */
static inline struct affine_map affine_result(uint64_t seed, int first, int last, int64_t i, bool swap)
{
    struct affine_map sum = affine_input(seed, first, i);

    for (int r = first + 1; r <= last; r++) {
        struct affine_map next = affine_input(seed, r, i);
        sum = swap ? affine_then(next, sum) : affine_then(sum, next);
    }
    return sum;
}

#endif
