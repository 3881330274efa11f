/* SPDX-License-Identifier: BSD-3-Clause */
/* reference_values.c: see reference_values.h. */
#include "tests/coll/reference_values.h"

#include <math.h>
#include <string.h>

const rank_dtype_t value_dtypes[VALUE_DTYPES] = {
    RANK_BYTE, RANK_INT8, RANK_INT16, RANK_INT32, RANK_INT64, RANK_UINT8, RANK_UINT16, RANK_UINT32, RANK_UINT64, RANK_F16,
    RANK_BF16, RANK_F32, RANK_F64, RANK_F32_COMPLEX, RANK_F64_COMPLEX, RANK_PAIR_INT32, RANK_PAIR_INT64, RANK_PAIR_F32,
    RANK_PAIR_F64,
};
const rank_op_t value_ops[VALUE_OPS] = {
    RANK_SUM, RANK_PROD, RANK_MIN, RANK_MAX, RANK_AVG, RANK_LAND, RANK_LOR, RANK_LXOR, RANK_BAND, RANK_BOR, RANK_BXOR,
    RANK_MINLOC, RANK_MAXLOC,
};

size_t value_size(rank_dtype_t dtype)
{
    switch (dtype) {
    case RANK_BYTE:
    case RANK_INT8:
    case RANK_UINT8:
        return 1;
    case RANK_INT16:
    case RANK_UINT16:
    case RANK_F16:
    case RANK_BF16:
        return 2;
    case RANK_INT32:
    case RANK_UINT32:
    case RANK_F32:
        return 4;
    case RANK_INT64:
    case RANK_UINT64:
    case RANK_F64:
        return 8;
    case RANK_F32_COMPLEX:
        return 2 * sizeof(float);
    case RANK_F64_COMPLEX:
        return 2 * sizeof(double);
    case RANK_PAIR_INT32:
        return sizeof(rank_pair_int32_t);
    case RANK_PAIR_INT64:
        return sizeof(rank_pair_int64_t);
    case RANK_PAIR_F32:
        return sizeof(rank_pair_f32_t);
    case RANK_PAIR_F64:
        return sizeof(rank_pair_f64_t);
    default:
        return 0;
    }
}

static bool is_complex(rank_dtype_t d)
{
    return d == RANK_F32_COMPLEX || d == RANK_F64_COMPLEX;
}

static bool is_pair(rank_dtype_t d)
{
    return d >= RANK_PAIR_INT32 && d <= RANK_PAIR_F64;
}

bool value_is_float(rank_dtype_t d)
{
    return (d >= RANK_F16 && d <= RANK_F64) || is_complex(d);
}

static bool is_float_inside(rank_dtype_t d)
{
    return value_is_float(d) || d == RANK_PAIR_F32 || d == RANK_PAIR_F64;
}

static bool is_signed(rank_dtype_t d)
{
    return (d >= RANK_INT8 && d <= RANK_INT64) || is_float_inside(d) || is_pair(d);
}

bool value_defined(rank_op_t op, rank_dtype_t d)
{
    bool integer = d >= RANK_INT8 && d <= RANK_UINT64;

    switch (op) {
    case RANK_SUM:
    case RANK_PROD:
        return integer || value_is_float(d);
    case RANK_MIN:
    case RANK_MAX:
        return integer || (value_is_float(d) && !is_complex(d));
    case RANK_AVG:
        return value_is_float(d);
    case RANK_LAND:
    case RANK_LOR:
    case RANK_LXOR:
        return integer;
    case RANK_BAND:
    case RANK_BOR:
    case RANK_BXOR:
        return integer || d == RANK_BYTE;
    case RANK_MINLOC:
    case RANK_MAXLOC:
        return is_pair(d);
    default:
        return false;
    }
}

/* ---------------------------------------------------------------- 16-bit numbers */

/* sign, exponent of ebits, mantissa of mbits; the value is one that can be represented, or is
 * rounded to the nearest, even, by rint. */
static uint16_t encode16(double x, int ebits, int mbits)
{
    int bias = (1 << (ebits - 1)) - 1, e;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int inf = ((1 << ebits) - 1) << mbits, bits;
    double m;

    x = fabs(x);
    if (x == 0)
        return sign;
    if (isnan(x))
        return (uint16_t)(sign | (0x7fff & ~((1 << (mbits - 1)) - 1)));
    if (isinf(x) || x >= ldexp(1, bias + 1))
        return (uint16_t)(sign | inf);
    frexp(x, &e);
    e--; /* x = 1.f * 2^e */
    if (e < 1 - bias)
        e = 1 - bias;
    m = rint(ldexp(x, mbits - e)); /* with the leading 1, unless it is subnormal */
    /* A mantissa that rounds up to the next power of two carries into the exponent by itself. */
    bits = ((e + bias - 1) << mbits) + (int)m;
    return (uint16_t)(sign | (bits < inf ? bits : inf));
}

static double decode16(uint16_t h, int ebits, int mbits)
{
    int bias = (1 << (ebits - 1)) - 1, e = (h & 0x7fff) >> mbits, m = h & ((1 << mbits) - 1);
    double x;

    if (e == (1 << ebits) - 1)
        x = m ? NAN : INFINITY;
    else if (e == 0)
        x = ldexp(m, 1 - bias - mbits);
    else
        x = ldexp(m + (1 << mbits), e - bias - mbits);
    return h & 0x8000 ? -x : x;
}

/* --------------------------------------------------------------- load and store */

#define LOAD(type, field)                                                                          \
    do {                                                                                           \
        type x_;                                                                                   \
        memcpy(&x_, at, sizeof(x_));                                                               \
        v.field = x_;                                                                              \
    } while (0)
#define LOAD_PAIR(type, field)                                                                     \
    do {                                                                                           \
        type x_;                                                                                   \
        memcpy(&x_, at, sizeof(x_));                                                               \
        v.field = x_.value;                                                                        \
        v.index = x_.index;                                                                        \
    } while (0)
#define LOAD_COMPLEX(type)                                                                         \
    do {                                                                                           \
        type x_[2];                                                                                \
        memcpy(x_, at, sizeof(x_));                                                                \
        v.re = x_[0];                                                                              \
        v.im = x_[1];                                                                              \
    } while (0)

struct value value_load(rank_dtype_t dtype, const void *at)
{
    struct value v = {0, 0, 0, 0};
    uint16_t h;

    switch (dtype) {
    case RANK_BYTE:
    case RANK_UINT8:
        LOAD(uint8_t, n);
        break;
    case RANK_INT8:
        LOAD(int8_t, n);
        break;
    case RANK_INT16:
        LOAD(int16_t, n);
        break;
    case RANK_UINT16:
        LOAD(uint16_t, n);
        break;
    case RANK_INT32:
        LOAD(int32_t, n);
        break;
    case RANK_UINT32:
        LOAD(uint32_t, n);
        break;
    case RANK_INT64:
    case RANK_UINT64:
        LOAD(int64_t, n);
        break;
    case RANK_F16:
        memcpy(&h, at, sizeof(h));
        v.re = decode16(h, 5, 10);
        break;
    case RANK_BF16:
        memcpy(&h, at, sizeof(h));
        v.re = decode16(h, 8, 7);
        break;
    case RANK_F32:
        LOAD(float, re);
        break;
    case RANK_F64:
        LOAD(double, re);
        break;
    case RANK_F32_COMPLEX:
        LOAD_COMPLEX(float);
        break;
    case RANK_F64_COMPLEX:
        LOAD_COMPLEX(double);
        break;
    case RANK_PAIR_INT32:
        LOAD_PAIR(rank_pair_int32_t, n);
        break;
    case RANK_PAIR_INT64:
        LOAD_PAIR(rank_pair_int64_t, n);
        break;
    case RANK_PAIR_F32:
        LOAD_PAIR(rank_pair_f32_t, re);
        break;
    case RANK_PAIR_F64:
        LOAD_PAIR(rank_pair_f64_t, re);
        break;
    default:
        break;
    }
    return v;
}

#define STORE(type, from)                                                                          \
    do {                                                                                           \
        type x_ = (type)(from);                                                                    \
        memcpy(at, &x_, sizeof(x_));                                                               \
    } while (0)
#define STORE_PAIR(type, vtype, itype, from)                                                       \
    do {                                                                                           \
        type x_ = {(vtype)(from), (itype)v.index};                                                 \
        memcpy(at, &x_, sizeof(x_));                                                               \
    } while (0)
#define STORE_COMPLEX(type)                                                                        \
    do {                                                                                           \
        type x_[2] = {(type)v.re, (type)v.im};                                                     \
        memcpy(at, x_, sizeof(x_));                                                                \
    } while (0)

void value_store(rank_dtype_t dtype, void *at, struct value v)
{
    switch (dtype) {
    case RANK_BYTE:
    case RANK_INT8:
    case RANK_UINT8:
        STORE(uint8_t, v.n);
        break;
    case RANK_INT16:
    case RANK_UINT16:
        STORE(uint16_t, v.n);
        break;
    case RANK_INT32:
    case RANK_UINT32:
        STORE(uint32_t, v.n);
        break;
    case RANK_INT64:
    case RANK_UINT64:
        STORE(int64_t, v.n);
        break;
    case RANK_F16:
        STORE(uint16_t, encode16(v.re, 5, 10));
        break;
    case RANK_BF16:
        STORE(uint16_t, encode16(v.re, 8, 7));
        break;
    case RANK_F32:
        STORE(float, v.re);
        break;
    case RANK_F64:
        STORE(double, v.re);
        break;
    case RANK_F32_COMPLEX:
        STORE_COMPLEX(float);
        break;
    case RANK_F64_COMPLEX:
        STORE_COMPLEX(double);
        break;
    case RANK_PAIR_INT32:
        STORE_PAIR(rank_pair_int32_t, int32_t, int32_t, v.n);
        break;
    case RANK_PAIR_INT64:
        STORE_PAIR(rank_pair_int64_t, int64_t, int64_t, v.n);
        break;
    case RANK_PAIR_F32:
        STORE_PAIR(rank_pair_f32_t, float, int32_t, v.re);
        break;
    case RANK_PAIR_F64:
        STORE_PAIR(rank_pair_f64_t, double, int64_t, v.re);
        break;
    default:
        break;
    }
}

bool value_equal(struct value a, struct value b)
{
    bool nan = isnan(a.re) && isnan(b.re); /* of any sign and payload */

    return a.n == b.n && (nan || a.re == b.re) && a.im == b.im && a.index == b.index;
}

/* -------------------------------------------------------------------- reductions */

struct value value_op(rank_dtype_t dtype, rank_op_t op, struct value a, struct value b)
{
    struct value v = a;
    bool less = is_float_inside(dtype)   ? b.re < a.re
                : dtype == RANK_UINT64 ? (uint64_t)b.n < (uint64_t)a.n
                                       : b.n < a.n;
    bool same = a.re == b.re && a.n == b.n;

    if (isnan(a.re) || isnan(b.re)) {
        if (op == RANK_MIN || op == RANK_MAX || op == RANK_MINLOC || op == RANK_MAXLOC)
            return isnan(a.re) && isnan(b.re) ? (b.index < a.index ? b : a) : isnan(a.re) ? a : b;
    }
    switch (op) {
    case RANK_SUM:
    case RANK_AVG:
        v.n = (int64_t)((uint64_t)a.n + (uint64_t)b.n);
        v.re = a.re + b.re;
        v.im = a.im + b.im;
        break;
    case RANK_PROD:
        v.n = (int64_t)((uint64_t)a.n * (uint64_t)b.n);
        v.re = is_complex(dtype) ? a.re * b.re - a.im * b.im : a.re * b.re;
        v.im = a.re * b.im + a.im * b.re;
        break;
    case RANK_MIN:
        v = less ? b : a;
        break;
    case RANK_MAX:
        v = less || same ? a : b;
        break;
    case RANK_LAND:
        v.n = a.n && b.n;
        break;
    case RANK_LOR:
        v.n = a.n || b.n;
        break;
    case RANK_LXOR:
        v.n = !a.n != !b.n;
        break;
    case RANK_BAND:
        v.n = a.n & b.n;
        break;
    case RANK_BOR:
        v.n = a.n | b.n;
        break;
    case RANK_BXOR:
        v.n = a.n ^ b.n;
        break;
    case RANK_MINLOC:
        v = same ? (b.index < a.index ? b : a) : less ? b : a;
        break;
    case RANK_MAXLOC:
        v = same ? (b.index < a.index ? b : a) : less ? a : b;
        break;
    default:
        break;
    }
    return v;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd6e8feb86659fd93u + 0x94d049bb133111ebu;

    z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 29);
}

/* To the width of the datatype, as a store and a load would. */
static struct value narrowed(rank_dtype_t dtype, struct value v)
{
    unsigned char cell[16];

    value_store(dtype, cell, v);
    return value_load(dtype, cell);
}

struct value value_input(rank_dtype_t dtype, rank_op_t op, int rank, int size, int64_t i)
{
    uint64_t h = mix((uint64_t)rank + 1, (uint64_t)i);
    struct value v = {0, 0, 0, 0};
    int64_t small = (int64_t)(h % 7) - 3, other = (int64_t)(h >> 16) % 5 - 2;
    bool nan = false;

    switch (op) {
    case RANK_SUM:
        break;
    case RANK_AVG: /* the sum is a multiple of size */
        small = (int64_t)(h % (size > 9 ? 2 : 4)) * size; /* and fits in the 8 bits of bf16 */
        other = (int64_t)(h >> 16 & 1) * size;
        if (size > 16 && rank >= 4)
            small = other = 0;
        break;
    case RANK_PROD: /* a few twos, a few signs; never 0, which has a sign of its own */
        small = ((rank + i) % 5 == 0 && rank < 20 ? 2 : 1) * (h & 1 ? -1 : 1);
        other = 0;
        break;
    case RANK_MIN:
    case RANK_MAX:
        small = (int64_t)(h % 201) - 100;
        nan = (h >> 32 & 63) == 0;
        break;
    case RANK_LAND:
    case RANK_LOR:
    case RANK_LXOR:
        small = h % 3 == 0 ? 0 : (int64_t)(h >> 8 & 0x7f);
        small = op == RANK_LAND && h % 17 ? small | 1 : op == RANK_LOR && h % 17 ? 0 : small;
        break;
    case RANK_BAND:
        small = (int64_t)(h | h << 7 | h >> 9);
        break;
    case RANK_BOR:
        small = (int64_t)(h & h << 7 & h >> 9);
        break;
    case RANK_BXOR:
        small = (int64_t)h;
        break;
    default: /* pairs: few values, so that there are ties */
        small = (int64_t)(h % 4) - 1;
        v.index = (int64_t)(h >> 20) % 100 + (int64_t)(rank * 3 % 7);
        nan = (h >> 32 & 63) == 0;
        break;
    }
    if (is_float_inside(dtype)) {
        v.re = nan ? NAN : (double)small;
        v.im = is_complex(dtype) ? (double)other : 0;
        if (op == RANK_PROD && is_complex(dtype) && (h >> 1 & 1)) { /* turn by a quarter */
            v.im = v.re;
            v.re = 0;
        }
    } else {
        v.n = !is_signed(dtype) && op <= RANK_AVG && small < 0 ? -small : small;
    }
    return narrowed(dtype, v);
}

/* Of the inputs of the first ranks, among size. */
static struct value expected_of(rank_dtype_t dtype, rank_op_t op, int ranks, int size, int64_t i)
{
    struct value v = value_input(dtype, op, 0, size, i);

    for (int r = 1; r < ranks; r++)
        v = narrowed(dtype, value_op(dtype, op, v, value_input(dtype, op, r, size, i)));
    if (op == RANK_AVG) {
        v.re /= size;
        v.im /= size;
    }
    if (size == 1 && (op == RANK_LAND || op == RANK_LOR || op == RANK_LXOR))
        v.n = v.n != 0; /* as of several ranks */
    return narrowed(dtype, v);
}

struct value value_expected(rank_dtype_t dtype, rank_op_t op, int size, int64_t i)
{
    return expected_of(dtype, op, size, size, i);
}

/* Element i of the pattern is element i % PERIOD of value_input: long buffers in little time. */
enum { PERIOD = 509 };

void value_fill(void *buf, rank_dtype_t dtype, rank_op_t op, int rank, int size, int64_t first,
                int64_t count)
{
    size_t n = value_size(dtype), done = 0, bytes = (size_t)count * n;

    for (int64_t i = 0; i < count && i < PERIOD; i++, done += n)
        value_store(dtype, (char *)buf + done,
                    value_input(dtype, op, rank, size, (first + i) % PERIOD));
    while (done < bytes) {
        size_t more = done < bytes - done ? done : bytes - done; /* doubles whole periods */
        memcpy((char *)buf + done, buf, more);
        done += more;
    }
}

int64_t value_check(const void *buf, rank_dtype_t dtype, rank_op_t op, int size, int64_t first,
                    int64_t count)
{
    return value_check_prefix(buf, dtype, op, size, size, first, count);
}

int64_t value_check_prefix(const void *buf, rank_dtype_t dtype, rank_op_t op, int ranks, int size, int64_t first,
                           int64_t count)
{
    size_t n = value_size(dtype);
    unsigned char want[PERIOD * 16];

    for (int64_t i = 0; i < count && i < PERIOD; i++)
        value_store(dtype, want + (size_t)i * n,
                    expected_of(dtype, op, ranks, size, (first + i) % PERIOD));
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *got = (const unsigned char *)buf + (size_t)i * n;
        const unsigned char *w = want + (size_t)(i % PERIOD) * n;
        if (memcmp(got, w, n) != 0 && /* zeros have signs */
            !value_equal(value_load(dtype, got), value_load(dtype, w)))
            return i;
    }
    return -1;
}
