/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elements.c: make inputs of reductions, and compute their results one by one.
 *
 * Inputs are the numbers 0 to 3, which every datatype holds exactly, chosen by
 * rank and place; a result is computed in double and compared in the
 * datatype's own precision. Products take 1 and 2 only, from few ranks. Of many
 * ranks only some have other than 0 or 1 at a place, each at another one. So
 * sums and products are at most 256, which bf16 holds exactly, too, and a right
 * result does not depend on the order of the operations.
 */
#include "bench/bench.h"

#include <math.h>
#include <string.h>

struct value {
    double re, im;
    int64_t index;
};

static bool is_logical(rank_op_t op)
{
    return op == RANK_LAND || op == RANK_LOR || op == RANK_LXOR;
}

enum { SUMMED = 64, DOUBLED = 8 }; /* ranks that count at a place: 64 times 3, 2 to the 8 */

/* Of rank r, one of n. */
static struct value input(const struct bench_run *run, int n, int r, int64_t i)
{
    int64_t apart = n > SUMMED ? (n + SUMMED - 1) / SUMMED : 1;
    uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15ull + (uint64_t)r * 0xbf58476d1ce4e5b9ull +
                 run->turn;
    int digit;

    /* Neighbours must differ, or a result one place off seems right. */
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    digit = (int)((h ^ h >> 32) >> 7 & 3);
    if (run->op == RANK_PROD)
        digit = (r + i) % (SUMMED / DOUBLED * apart) == 0 ? 2 : 1;
    else if ((run->op == RANK_SUM || run->op == RANK_AVG) && (r + i) % apart != 0)
        digit = 0;
    else if (is_logical(run->op))
        digit &= 1;
    return (struct value){digit, 0, r};
}

static struct value combine(rank_op_t op, struct value a, struct value b)
{
    int64_t x = (int64_t)a.re, y = (int64_t)b.re;

    switch (op) {
    case RANK_SUM:
    case RANK_AVG:
        a.re += b.re;
        break;
    case RANK_PROD:
        a.re *= b.re;
        break;
    case RANK_MIN:
        a.re = fmin(a.re, b.re);
        break;
    case RANK_MAX:
        a.re = fmax(a.re, b.re);
        break;
    case RANK_LAND:
        a.re = x && y;
        break;
    case RANK_LOR:
        a.re = x || y;
        break;
    case RANK_LXOR:
        a.re = !x != !y;
        break;
    case RANK_BAND:
        a.re = (double)(x & y);
        break;
    case RANK_BOR:
        a.re = (double)(x | y);
        break;
    case RANK_BXOR:
        a.re = (double)(x ^ y);
        break;
    case RANK_MINLOC:
        return b.re < a.re ? b : a; /* ranks come in order: the lower index stays */
    case RANK_MAXLOC:
        return b.re > a.re ? b : a;
    }
    return a;
}

static double half_value(uint16_t h)
{
    int exp = h >> 10 & 31, frac = h & 1023;
    double v = exp == 0 ? ldexp(frac, -24) : exp == 31 ? NAN : ldexp(1024 + frac, exp - 25);

    return h & 0x8000 ? -v : v;
}

static double bfloat_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

#define AS(type) ((const type *)at)[i]

static struct value elements_load(rank_dtype_t dtype, const void *at, int64_t i)
{
    struct value v = {0, 0, 0};

    switch (dtype) {
    case RANK_BYTE:
    case RANK_UINT8: v.re = AS(uint8_t); break;
    case RANK_INT8: v.re = AS(int8_t); break;
    case RANK_INT16: v.re = AS(int16_t); break;
    case RANK_INT32: v.re = AS(int32_t); break;
    case RANK_INT64: v.re = (double)AS(int64_t); break;
    case RANK_UINT16: v.re = AS(uint16_t); break;
    case RANK_UINT32: v.re = AS(uint32_t); break;
    case RANK_UINT64: v.re = (double)AS(uint64_t); break;
    case RANK_F16: v.re = half_value(AS(uint16_t)); break;
    case RANK_BF16: v.re = bfloat_value(AS(uint16_t)); break;
    case RANK_F32: v.re = AS(float); break;
    case RANK_F64: v.re = AS(double); break;
    case RANK_F32_COMPLEX: v.re = ((const float *)at)[2 * i], v.im = ((const float *)at)[2 * i + 1]; break;
    case RANK_F64_COMPLEX: v.re = ((const double *)at)[2 * i], v.im = ((const double *)at)[2 * i + 1]; break;
    case RANK_PAIR_INT32: v.re = AS(rank_pair_int32_t).value, v.index = AS(rank_pair_int32_t).index; break;
    case RANK_PAIR_INT64: v.re = (double)AS(rank_pair_int64_t).value, v.index = AS(rank_pair_int64_t).index; break;
    case RANK_PAIR_F32: v.re = AS(rank_pair_f32_t).value, v.index = AS(rank_pair_f32_t).index; break;
    case RANK_PAIR_F64: v.re = AS(rank_pair_f64_t).value, v.index = AS(rank_pair_f64_t).index; break;
    }
    return v;
}

#undef AS
#define AS(type) ((type *)at)[i]

static void store(rank_dtype_t dtype, void *at, int64_t i, struct value v)
{
    static const uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200}, bfloat[] = {0, 0x3f80, 0x4000, 0x4040};

    switch (dtype) {
    case RANK_BYTE:
    case RANK_UINT8: AS(uint8_t) = (uint8_t)v.re; break;
    case RANK_INT8: AS(int8_t) = (int8_t)v.re; break;
    case RANK_INT16: AS(int16_t) = (int16_t)v.re; break;
    case RANK_INT32: AS(int32_t) = (int32_t)v.re; break;
    case RANK_INT64: AS(int64_t) = (int64_t)v.re; break;
    case RANK_UINT16: AS(uint16_t) = (uint16_t)v.re; break;
    case RANK_UINT32: AS(uint32_t) = (uint32_t)v.re; break;
    case RANK_UINT64: AS(uint64_t) = (uint64_t)v.re; break;
    case RANK_F16: AS(uint16_t) = half[(int)v.re]; break;
    case RANK_BF16: AS(uint16_t) = bfloat[(int)v.re]; break;
    case RANK_F32: AS(float) = (float)v.re; break;
    case RANK_F64: AS(double) = v.re; break;
    case RANK_F32_COMPLEX: ((float *)at)[2 * i] = (float)v.re, ((float *)at)[2 * i + 1] = (float)v.im; break;
    case RANK_F64_COMPLEX: ((double *)at)[2 * i] = v.re, ((double *)at)[2 * i + 1] = v.im; break;
    case RANK_PAIR_INT32: AS(rank_pair_int32_t) = (rank_pair_int32_t){(int32_t)v.re, (int32_t)v.index}; break;
    case RANK_PAIR_INT64: AS(rank_pair_int64_t) = (rank_pair_int64_t){(int64_t)v.re, v.index}; break;
    case RANK_PAIR_F32: AS(rank_pair_f32_t) = (rank_pair_f32_t){(float)v.re, (int32_t)v.index}; break;
    case RANK_PAIR_F64: AS(rank_pair_f64_t) = (rank_pair_f64_t){v.re, v.index}; break;
    }
}

void bench_fill(const struct bench_run *run, int n, int r, void *buf, int64_t first, int64_t count)
{
    int64_t bytes = count * rank_dtype_size(run->dtype);
    char *host = bench_host_begin(run, buf, bytes);

    for (int64_t i = 0; i < count; i++)
        store(run->dtype, host, i, input(run, n, r, first + i));
    bench_host_end(run, buf, host, bytes, true);
}

static double tolerance(rank_dtype_t dtype)
{
    switch (dtype) {
    case RANK_F16: return 4e-3;
    case RANK_BF16: return 3e-2;
    case RANK_F32:
    case RANK_F32_COMPLEX: return 1e-5;
    case RANK_F64:
    case RANK_F64_COMPLEX: return 1e-13;
    default: return 0;
    }
}

/* Integers wrap: compared by their low bits. */
static bool same_integer(rank_dtype_t dtype, double got, double want)
{
    int bits = (int)rank_dtype_size(dtype) * 8;
    uint64_t mask = bits >= 52 ? ~0ull : (1ull << bits) - 1;

    return (((uint64_t)(int64_t)got ^ (uint64_t)(int64_t)want) & mask) == 0;
}

int64_t bench_wrong(const struct bench_run *run, int n, const void *buf, int64_t first,
                    int64_t count)
{
    return bench_wrong_prefix(run, n, n, buf, first, count);
}

int64_t bench_wrong_prefix(const struct bench_run *run, int ranks, int n, const void *buf, int64_t first, int64_t count)
{
    double tol = tolerance(run->dtype);
    bool pair = run->dtype >= RANK_PAIR_INT32;
    int64_t wrong = 0, bytes = count * rank_dtype_size(run->dtype);
    char *host = bench_host_begin(run, buf, bytes);

    for (int64_t i = 0; i < count; i++) {
        struct value want = input(run, n, 0, first + i), got = elements_load(run->dtype, host, i);

        for (int r = 1; r < ranks; r++)
            want = combine(run->op, want, input(run, n, r, first + i));
        if (run->op == RANK_AVG)
            want.re /= n;
        if (tol == 0 && !pair)
            wrong += !same_integer(run->dtype, got.re, want.re);
        else
            wrong += !(fabs(got.re - want.re) <= tol * fmax(1, fabs(want.re))) || got.im != want.im ||
                     (pair && got.index != want.index);
    }
    bench_host_end(run, (void *)(uintptr_t)buf, host, bytes, false);
    return wrong;
}
