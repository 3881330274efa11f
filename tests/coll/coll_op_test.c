/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_op_test.c: compare reduction kernels with reference_values.c. */
/* The 16-bit types bit by bit. */
#include "tests/unit/unit.h"

#include "collectives/op/float16.h"
#include "collectives/op/kernel_set.h"
#include "tests/coll/affine_maps.h"
#include "tests/coll/reference_values.h"

#include <math.h>

enum { MAX = 70 };

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void table_is_as_documented(void **state)
{
    int n = 0;

    (void)state;
    for (int op = 0; op < VALUE_OPS; op++) {
        for (int d = 0; d < VALUE_DTYPES; d++) {
            bool want = value_defined(value_ops[op], value_dtypes[d]);
            assert_int_equal(rank_op_defined(value_ops[op], value_dtypes[d]), want);
            n += want;
            assert_int_equal(rank_op_defined(value_dtypes[d], value_ops[op]), 0);
        }
    }
    assert_int_equal(rank_op_defined(0, RANK_INT32), 0);
    assert_int_equal(rank_op_defined(RANK_SUM, 0), 0);
    assert_int_equal(n, 8 * 10 + 3 + 4 * 5 + 2 * 3 + 4 * 2);
    for (int d = 0; d < VALUE_DTYPES; d++)
        assert_int_equal(rank_dtype_size(value_dtypes[d]), value_size(value_dtypes[d]));
    assert_int_equal(rank_dtype_size(0), RANK_ERR_DTYPE);
    assert_int_equal(rank_dtype_size(RANK_SUM), RANK_ERR_DTYPE);
    assert_int_equal(rank_dtype_size(RANK_PAIR_F64 + 0x100), RANK_ERR_DTYPE);
    assert_int_equal(rank_dtype_size((rank_dtype_t)-1), RANK_ERR_DTYPE);
}

/* Any bits for integers; for floats numbers that are not too far apart, and halves as they come. */
static void random_element(rank_dtype_t d, char *at)
{
    struct value v = {(int64_t)next_random(), 0, 0, (int64_t)(next_random() % 100)};
    unsigned shape = (unsigned)(next_random() % 8);

    v.re = ldexp((double)(int64_t)next_random() * 0x1p-63, (int)(next_random() % 20) - 10);
    v.im = ldexp((double)(int64_t)next_random() * 0x1p-63, (int)(next_random() % 20) - 10);
    if (shape == 0)
        v.n = v.n % 3;
    if (shape == 1)
        v.re = v.im = (double)(v.n % 4);
    value_store(d, at, v);
}

/* The same, and sometimes a NaN where it is the result. */
static void random_operand(rank_dtype_t d, rank_op_t op, char *at)
{
    bool has_nan = op == RANK_MIN || op == RANK_MAX || op == RANK_MINLOC || op == RANK_MAXLOC;
    struct value v;

    random_element(d, at);
    if (!has_nan || next_random() % 8)
        return;
    v = value_load(d, at);
    v.re = NAN; /* nothing to an integer */
    value_store(d, at, v);
}

/* Equal bits, or two NaNs: its payload depends on the order in which an instruction takes its operands. */
static bool same_element(rank_dtype_t d, const char *a, const char *b)
{
    size_t n = value_size(d);
    struct value x = value_load(d, a), y = value_load(d, b);

    return memcmp(a, b, n) == 0 || (isnan(x.re) && isnan(y.re) && x.index == y.index);
}

/* One operation, as the kernels define it: 16-bit and f32 arithmetic rounds once. */
static void reference(rank_dtype_t d, rank_op_t op, const char *a, const char *b, char *out)
{
    struct value x = value_load(d, a), y = value_load(d, b), v;

    if (d == RANK_F32_COMPLEX || d == RANK_F64_COMPLEX || d == RANK_F32) { /* each step rounds to the type */
        v = x;
        if (d == RANK_F64_COMPLEX) {
            v.re = op == RANK_PROD ? x.re * y.re - x.im * y.im : x.re + y.re;
            v.im = op == RANK_PROD ? x.re * y.im + x.im * y.re : x.im + y.im;
        } else if (d == RANK_F32_COMPLEX) {
            float p = (float)x.re * (float)y.re, q = (float)x.im * (float)y.im;
            float r = (float)x.re * (float)y.im, s = (float)x.im * (float)y.re;
            v.re = op == RANK_PROD ? p - q : (float)x.re + (float)y.re;
            v.im = op == RANK_PROD ? r + s : (float)x.im + (float)y.im;
        } else {
            v = value_op(d, op, x, y);
        }
    } else {
        v = value_op(d, op, x, y);
    }
    value_store(d, out, v);
}

static bool same_elements(rank_dtype_t d, const char *a, const char *b, int n)
{
    size_t size = value_size(d);

    for (size_t i = 0; i < (size_t)n; i++) {
        if (!same_element(d, a + i * size, b + i * size))
            return false;
    }
    return true;
}

static void compare_kernels(void)
{
    static const int lengths[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 67};
    char a[MAX * 16 + 1], b[MAX * 16 + 1], want[MAX * 16], got[MAX * 16 + 32];

    for (int d = 0; d < VALUE_DTYPES; d++) {
        size_t n = value_size(value_dtypes[d]);
        for (int op = 0; op < VALUE_OPS; op++) {
            rk_op_fn fn = rk_op_kernel(value_ops[op], value_dtypes[d]);
            for (int round = 0; fn && round < 60; round++) {
                int len = lengths[round % 14];
                size_t odd = (size_t)(round & 1); /* anywhere in memory */
                char *x = a + odd, *y = b + odd, *out = got + odd;

                for (int i = 0; i < len; i++) {
                    random_operand(value_dtypes[d], value_ops[op], x + (size_t)i * n);
                    random_operand(value_dtypes[d], value_ops[op], y + (size_t)i * n);
                    reference(value_dtypes[d], value_ops[op], x + (size_t)i * n,
                              y + (size_t)i * n, want + (size_t)i * n);
                }
                memset(got, 0x5a, sizeof(got));
                fn(out, x, y, (size_t)len);
                assert_true(same_elements(value_dtypes[d], out, want, len));
                assert_int_equal(out[(size_t)len * n], 0x5a);
                memcpy(out, x, (size_t)len * n);
                fn(out, out, y, (size_t)len); /* onto the first */
                assert_true(same_elements(value_dtypes[d], out, want, len));
                memcpy(out, y, (size_t)len * n);
                fn(out, x, out, (size_t)len); /* onto the second */
                assert_true(same_elements(value_dtypes[d], out, want, len));
            }
        }
    }
}

/* Element i of k arrays by a kernel for pairs; 16-bit sums in float. */
static void reference_many(const struct rk_reducer *r, bool sum16, char *const *src, int k, size_t at, char *out)
{
    uint16_t h;
    float sum = 0;

    memcpy(out, src[0] + at, value_size(r->dtype));
    for (int j = 1; j < k && !sum16; j++)
        r->fn(out, out, src[j] + at, 1);
    for (int j = 0; j < k && sum16; j++) {
        memcpy(&h, src[j] + at, sizeof(h));
        float x = r->dtype == RANK_F16 ? rk_f16_to_f32(h) : rk_bf16_to_f32(h);
        sum = j ? sum + x : x;
        h = r->dtype == RANK_F16 ? rk_f32_to_f16(sum) : rk_f32_to_bf16(sum);
        memcpy(out, &h, sizeof(h));
    }
}

/* Any bits: NaN, infinities and subnormals too. */
enum { MANY_MAX = 9, MANY_LEN = 300 };

static void check_many(const struct rk_kernel_set *set, rank_dtype_t d, rank_op_t op)
{
    static char mem[MANY_MAX][MANY_LEN * 16 + 64], got[MANY_LEN * 16 + 64], want[16];
    size_t size = value_size(d), n = (size_t)next_random() % MANY_LEN, off = (size_t)next_random() % 64;
    int k = 2 + (int)(next_random() % (MANY_MAX - 1)), onto = (int)(next_random() % (uint64_t)(2 * k));
    struct rk_reducer base = {.dtype = d}, r = {.dtype = d};
    bool raw = next_random() % 4 == 0 && d != RANK_F32_COMPLEX && d != RANK_F64_COMPLEX && d != RANK_PAIR_F32 && d != RANK_PAIR_F64;
    char *src[MANY_MAX], *dst = got + off;

    rk_kernels_use(rk_kernel_sets[0]);
    base.fn = rk_op_kernel(op, d);
    rk_kernels_use(set);
    r.fn = rk_op_kernel(op, d);
    for (int j = 0; j < k; j++) {
        src[j] = mem[j] + (off + (size_t)next_random()) % 64;
        for (size_t i = 0; i < n; i++)
            random_operand(d, op, src[j] + i * size);
        for (size_t i = 0; i < n * size && raw; i++)
            src[j][i] = (char)next_random();
    }
    memset(got, 0x5a, sizeof(got));
    if (onto < k)
        memcpy(dst, src[onto], n * size);
    const void *from[MANY_MAX];
    for (int j = 0; j < k; j++)
        from[j] = j == onto ? dst : src[j];
    rk_reduce_many(&r, dst, from, k, n);
    for (size_t i = 0; i < n; i++) {
        reference_many(&base, (d == RANK_F16 || d == RANK_BF16) && (op == RANK_SUM || op == RANK_AVG), src, k, i * size, want);
        if (!same_element(d, dst + i * size, want))
            fail_msg("%s: dtype %llx, op %llx, element %zu of %zu, %d arrays", set->name, (unsigned long long)d,
                     (unsigned long long)op, i, n, k);
    }
    assert_int_equal(dst[n * size], 0x5a);
}

static void many_agree(void **state)
{
    (void)state;
    for (int i = 0; i < RK_KERNEL_SETS && rk_kernel_sets[i]->runs(); i++) {
        for (int d = 0; d < VALUE_DTYPES; d++) {
            for (int op = 0; op < VALUE_OPS; op++) {
                for (int round = 0; round < 40 && value_defined(value_ops[op], value_dtypes[d]); round++)
                    check_many(rk_kernel_sets[i], value_dtypes[d], value_ops[op]);
            }
        }
    }
    rk_kernels_use(rk_kernel_sets[0]);
}

static void compare_divide(void)
{
    static const rank_dtype_t types[] = {RANK_F16, RANK_BF16, RANK_F32, RANK_F64, RANK_F32_COMPLEX, RANK_F64_COMPLEX};
    char buf[MAX * 16], want[MAX * 16];

    for (int t = 0; t < 6; t++) {
        size_t n = value_size(types[t]);
        for (int by = 1; by < 20; by++) {
            for (int i = 0; i < MAX; i++) {
                struct value v;
                random_element(types[t], buf + (size_t)i * n);
                v = value_load(types[t], buf + (size_t)i * n);
                for (int scale = 1; types[t] == RANK_F16 && scale < by; scale *= 2) /* of a scaled sum */
                    v.re *= 2;
                v.re = types[t] == RANK_F64 || types[t] == RANK_F64_COMPLEX ? v.re / by
                                                                      : (float)v.re / (float)by;
                v.im = types[t] == RANK_F64_COMPLEX ? v.im / by : (float)v.im / (float)by;
                value_store(types[t], want + (size_t)i * n, v);
            }
            rk_op_divide(types[t], buf, MAX, by);
            assert_memory_equal(buf, want, MAX * n);
        }
    }
}

/* by inputs of F16, scaled and summed in a row or by halves, average without overflow, and exactly. */
static void compare_average(void)
{
    static const uint16_t inputs[] = {0, 0x8000, 0x70e2 /* 10,000 */, 0x7b53, 0x7bff /* the greatest */, 0xfbff, 0x7c00};
    uint16_t part[20], sum;

    for (int by = 2; by <= 20; by++) {
        for (int i = 0; i < 7; i++) {
            for (int j = 0; j < by; j++)
                rk_op_scale(&part[j], &inputs[i], 1, by);
            sum = part[0];
            for (int j = 1; j < by; j++)
                rk_op_kernel(RANK_AVG, RANK_F16)(&sum, &sum, &part[j], 1);
            rk_op_divide(RANK_F16, &sum, 1, by);
            assert_true(abs((sum & 0x7fff) - (inputs[i] & 0x7fff)) <= (inputs[i] == 0x7c00 || !rk_f16_to_f32(inputs[i]) ? 0 : by / 3));
            assert_int_equal(sum >> 15, inputs[i] >> 15);
            assert_int_equal(sum == 0x7c00, inputs[i] == 0x7c00);
        }
    }
}

/* Every half, with factors that overflow and underflow: all sets give the bits of the plainest. */
static void compare_conversions(void)
{
    enum { ALL = 65536 };
    static uint16_t in[ALL], out[ALL + 1], want[ALL];
    static float wide[ALL], wide_want[ALL];
    static const float factors[][2] = {{1, 1}, {1, 3}, {1, 8}, {8, 7}, {16, 9}, {1, 1024}, {64, 1}};

    for (int t = 0; t < 2; t++) {
        const struct rk_half_kernels *k = t ? &rk_kernels_used()->bf16 : &rk_kernels_used()->f16;
        const struct rk_half_kernels *base = t ? &rk_kernel_sets[0]->bf16 : &rk_kernel_sets[0]->f16;
        for (int f = 0; f < 7; f++) {
            size_t n = ALL - (size_t)f;
            for (size_t i = 0; i < n; i++)
                in[i] = (uint16_t)(i * 40503u);
            base->scale(want, in, n, factors[f][0], factors[f][1]);
            out[n] = 0x5a5a;
            k->scale(out, in, n, factors[f][0], factors[f][1]);
            assert_memory_equal(out, want, 2 * n);
            base->widen(wide_want, in, n);
            k->widen(wide, in, n);
            for (size_t i = 0; i < n; i++)
                assert_true(wide[i] == wide_want[i] || (isnan(wide[i]) && isnan(wide_want[i])));
            for (size_t i = 0; i < n; i++)
                wide[i] = rk_bits_float((uint32_t)next_random());
            base->narrow(want, wide, n, factors[f][1]);
            k->narrow(out, wide, n, factors[f][1]);
            assert_memory_equal(out, want, 2 * n);
            assert_int_equal(out[n], 0x5a5a);
        }
    }
}

static void with_each_set(void (*compare)(void))
{
    for (int i = 0; i < RK_KERNEL_SETS && rk_kernel_sets[i]->runs(); i++) {
        rk_kernels_use(rk_kernel_sets[i]);
        compare();
    }
    rk_kernels_use(rk_kernel_sets[0]);
}

static void kernels(void **state)
{
    (void)state;
    with_each_set(compare_kernels);
}

static void averages(void **state)
{
    (void)state;
    with_each_set(compare_divide);
    with_each_set(compare_average);
    with_each_set(compare_conversions);
}

/* All 65536 of each: to float and back. */
static void halves_widen(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t bits = (uint16_t)h;
        double f16 = value_load(RANK_F16, &bits).re, bf16 = value_load(RANK_BF16, &bits).re;

        if (isnan(f16)) {
            assert_true(isnan(rk_f16_to_f32(bits)));
            assert_true(isnan(rk_f16_to_f32(rk_f32_to_f16(rk_f16_to_f32(bits)))));
        } else {
            assert_true(rk_f16_to_f32(bits) == f16);
            assert_int_equal(signbit(rk_f16_to_f32(bits)) != 0, bits >> 15);
            assert_int_equal(rk_f32_to_f16(rk_f16_to_f32(bits)), bits);
        }
        if (isnan(bf16)) {
            assert_true(isnan(rk_bf16_to_f32(bits)));
            assert_true(isnan(rk_bf16_to_f32(rk_f32_to_bf16(rk_bf16_to_f32(bits)))));
        } else {
            assert_true(rk_bf16_to_f32(bits) == bf16);
            assert_int_equal(rk_f32_to_bf16(rk_bf16_to_f32(bits)), bits);
        }
    }
}

static void check_narrow(float f)
{
    struct value v = {0, f, 0, 0};
    uint16_t want;

    value_store(RANK_F16, &want, v);
    assert_int_equal(rk_f32_to_f16(f), want);
    value_store(RANK_BF16, &want, v);
    assert_int_equal(rk_f32_to_bf16(f), want);
}

/* Rounding: ties, their neighbours, subnormals, overflow, and a million others. */
static void halves_narrow(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float low = rk_f16_to_f32((uint16_t)h), high = rk_f16_to_f32((uint16_t)(h + 1));
        float middle = isinf(high) ? 65520.0f : (low + high) / 2;
        check_narrow(middle);
        check_narrow(-middle);
        check_narrow(nextafterf(middle, 0));
        check_narrow(nextafterf(middle, INFINITY));
    }
    for (int i = 0; i < 1000000; i++) {
        float f = rk_bits_float((uint32_t)next_random());
        if (!isnan(f))
            check_narrow(f);
    }
    check_narrow(0);
    check_narrow(-0.0f);
    check_narrow(INFINITY);
    check_narrow(-INFINITY);
    check_narrow(3.4e38f);
    assert_true(isnan(rk_f16_to_f32(rk_f32_to_f16(NAN))));
    assert_true(isnan(rk_bf16_to_f32(rk_f32_to_bf16(NAN))));
}

static void datatypes_have_generations(void **state)
{
    static const int64_t sizes[] = {1, 2, 255, 256, 257, 4096, 65536, (1 << 20) - 1, 1 << 20};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 100 };
    rank_dtype_t made[SIZES], old[SIZES * ROUNDS], copy = RANK_F64;
    size_t bytes;
    int nold = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SIZES; i++) {
            assert_int_equal(rank_dtype_create(sizes[i], &made[i]), RANK_OK);
            assert_int_equal(rank_dtype_size(made[i]), sizes[i]);
            assert_int_equal(rk_dtype_span(NULL, made[i], 1000, &bytes), RANK_OK);
            assert_int_equal(bytes, sizes[i] * 1000);
            assert_int_equal(rk_dtype_span(NULL, made[i], -1, &bytes), RANK_ERR_COUNT);
            assert_int_equal(rk_dtype_span(NULL, made[i], INT64_MAX, &bytes), RANK_ERR_COUNT);
            assert_int_equal(rank_op_defined(RANK_SUM, made[i]), 0);
        }
        for (int i = 0; i < nold; i++) /* freed ones, though their indexes are in use again */
            assert_int_equal(rank_dtype_size(old[i]), RANK_ERR_DTYPE);
        for (int i = 0; i < SIZES; i++) {
            old[nold++] = made[i];
            assert_int_equal(rank_dtype_free(&made[i]), RANK_OK);
            assert_int_equal(made[i], 0);
            assert_int_equal(rank_dtype_free(&old[nold - 1]), RANK_ERR_DTYPE);
        }
    }
    assert_int_equal(rank_dtype_create(0, &copy), RANK_ERR_COUNT);
    assert_int_equal(rank_dtype_create((1 << 20) + 1, &copy), RANK_ERR_COUNT);
    assert_int_equal(rank_dtype_create(8, NULL), RANK_ERR_ARG);
    assert_int_equal(rank_dtype_free(&copy), RANK_ERR_DTYPE);
    assert_int_equal(rank_dtype_free(NULL), RANK_ERR_ARG);
    assert_int_equal(copy, RANK_F64);
}

/* Reduce k operands of n elements into each of them, or elsewhere. */
static void compose_many(struct affine_op *op, const struct rk_user_op *user, int64_t n)
{
    enum { K = 5 };
    int64_t maps = n * op->maps;
    struct affine_map *src[K + 1];
    struct rk_reducer r = {.dtype = op->dtype, .user = user};
    size_t elem = (size_t)op->maps * sizeof(struct affine_map);

    r.temp = test_malloc(rk_user_op_temp(elem) * elem);
    for (int i = 0; i <= K; i++)
        src[i] = test_malloc((size_t)maps * sizeof(struct affine_map));
    for (int k = 2; k <= K; k++) {
        for (int dst = 0; dst <= k; dst++) {
            struct affine_map *to = src[dst == k ? K : dst];

            for (int i = 0; i < k; i++) {
                for (int64_t j = 0; j < maps; j++)
                    src[i][j] = affine_input(7, i, j);
            }
            if (k == 2)
                rk_reduce(&r, to, src[0], src[1], (size_t)n);
            else
                rk_reduce_many(&r, to, (const void *const *)src, k, (size_t)n);
            for (int64_t j = 0; j < maps; j++) {
                struct affine_map want = affine_result(7, 0, k - 1, j, op->swap);

                assert_memory_equal(&to[j], &want, sizeof(want));
                for (int i = 0; i < k; i++) {
                    want = affine_input(7, i, j);
                    if (i != dst)
                        assert_memory_equal(&src[i][j], &want, sizeof(want));
                }
            }
        }
    }
    for (int i = 0; i <= K; i++)
        test_free(src[i]);
    test_free(r.temp);
}

static void operations_of_the_program(void **state)
{
    static const int64_t maps[] = {1, 3, 200, 300, 1000};
    static const int64_t counts[] = {1, 2, 100, 257};

    (void)state;
    for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
        struct affine_op arg = {.maps = maps[m], .swap = m % 2};
        const struct rk_user_op *user;
        rank_op_t op, stale;

        assert_int_equal(rank_dtype_create(maps[m] * (int64_t)sizeof(struct affine_map), &arg.dtype), RANK_OK);
        assert_int_equal(rank_op_create(affine_compose, &arg, 0, &op), RANK_OK);
        assert_int_equal(rank_op_defined(op, arg.dtype), 1);
        assert_int_equal(rank_op_defined(op, RANK_INT8), 1);
        assert_int_equal(rank_op_defined(op, RANK_SUM), 0);
        stale = op;
        user = rk_user_op_take(op);
        assert_non_null(user);
        assert_int_equal(rank_op_free(&op), RANK_OK);
        assert_int_equal(op, 0);
        assert_int_equal(rank_op_free(&stale), RANK_ERR_OP);
        assert_null(rk_user_op_take(stale));
        for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
            compose_many(&arg, user, counts[n]); /* the reference keeps it */
        rk_user_op_drop(user);
        assert_int_equal(arg.wrong, 0);
        assert_true(arg.calls > 0);
        assert_int_equal(rank_dtype_free(&arg.dtype), RANK_OK);
    }
}

static void local_reductions(void **state)
{
    struct affine_map a = affine_input(1, 0, 0), b = affine_input(1, 1, 0), want = affine_then(a, b);
    struct affine_op arg = {.maps = 1};
    double x[3] = {1, 2, 3}, y[3] = {10, 20, 30};
    rank_op_t op;

    (void)state;
    assert_int_equal(rank_dtype_create(sizeof(a), &arg.dtype), RANK_OK);
    assert_int_equal(rank_op_create(NULL, NULL, 0, &op), RANK_ERR_ARG);
    assert_int_equal(rank_op_create(affine_compose, &arg, 2, &op), RANK_ERR_ARG);
    assert_int_equal(rank_op_create(affine_compose, &arg, 0, NULL), RANK_ERR_ARG);
    assert_int_equal(rank_op_create(affine_compose, &arg, 0, &op), RANK_OK);
    assert_int_equal(rank_reduce_local(&a, &b, 1, arg.dtype, op), RANK_OK);
    assert_memory_equal(&b, &want, sizeof(b));
    assert_int_equal(rank_reduce_local(x, y, 3, RANK_F64, RANK_SUM), RANK_OK);
    assert_true(y[0] == 11 && y[1] == 22 && y[2] == 33);
    assert_int_equal(rank_reduce_local(NULL, NULL, 0, RANK_F64, RANK_SUM), RANK_OK);
    assert_int_equal(rank_reduce_local(x, NULL, 1, RANK_F64, RANK_SUM), RANK_ERR_ARG);
    assert_int_equal(rank_reduce_local(x, y, -1, RANK_F64, RANK_SUM), RANK_ERR_COUNT);
    assert_int_equal(rank_reduce_local(x, y, 1, RANK_F64, RANK_AVG), RANK_ERR_OP);
    assert_int_equal(rank_reduce_local(x, y, 1, RANK_F64, RANK_BAND), RANK_ERR_DTYPE);
    assert_int_equal(rank_reduce_local(x, y, 1, arg.dtype, RANK_SUM), RANK_ERR_DTYPE);
    assert_int_equal(rank_reduce_local(x, y, 1, RANK_F64, RANK_F64), RANK_ERR_OP);
    assert_int_equal(rank_op_free(&op), RANK_OK);
    assert_int_equal(rank_op_free(&op), RANK_ERR_OP);
    assert_int_equal(rank_dtype_free(&arg.dtype), RANK_OK);
    op = RANK_SUM;
    assert_int_equal(rank_op_free(&op), RANK_ERR_OP);
    assert_int_equal(rank_op_free(NULL), RANK_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datatypes_have_generations), cmocka_unit_test(operations_of_the_program),
        cmocka_unit_test(local_reductions),
        cmocka_unit_test(table_is_as_documented), cmocka_unit_test(kernels),
        cmocka_unit_test(many_agree), cmocka_unit_test(averages), cmocka_unit_test(halves_widen),
        cmocka_unit_test(halves_narrow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
