/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_kernel_test.c: compare kernels with the CPU, on the stand-in or a card. */
#include "tests/standin/standin_run.h"

#include "collectives/op/kernel_set.h"
#include "lib/mem/cuda/cuda_reduce.h"
#include "lib/mem/cuda/kind_cuda.h"
#include "tests/coll/reference_values.h"

#include <math.h>

enum { COUNT_MAX = 301, OFFSET_MAX = 32, ARRAY = COUNT_MAX * 16 + 2 * OFFSET_MAX, OPERANDS = RK_KIND_OPERANDS, ROUNDS = 24 };

#ifndef RK_ON_CARD
const char rk_cuda_image[] = "the stand-in takes STANDIN_KERNELS";
const char rk_cuda_image_text[] = "of the test";
#endif

static uint64_t seed = 88172645463325252u;

static unsigned next_random(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 20) % below;
}

/* A reduction: arrays in host memory, each with its offset in an array of the device. The last array is dst. */
struct reduction {
    rank_dtype_t dtype;
    rank_op_t op;
    int k, by, onto; /* onto: the source that dst is, or k */
    size_t size, n, at[OPERANDS + 1];
    char host[OPERANDS + 1][ARRAY];
};

static bool is_complex(rank_dtype_t d)
{
    return d == RANK_F32_COMPLEX || d == RANK_F64_COMPLEX;
}

/* Any bits: NaN, infinities and subnormals, too. Factors of complex products are near 1. */
static void fill(const struct reduction *r, char *array)
{
    for (size_t i = 0; i < ARRAY; i++)
        array[i] = (char)(next_random(3) ? next_random(256) : 0);
    for (size_t i = 0; i < r->n && is_complex(r->dtype) && r->op == RANK_PROD; i++) {
        struct value v = {0, next_random(1000) * 0.002 - 1, next_random(1000) * 0.002 - 1, 0};
        value_store(r->dtype, array + OFFSET_MAX + i * r->size, v);
    }
}

/* Choose alignments: all equal, each a multiple of the element, or any. */
static void draw(struct reduction *r)
{
    unsigned how = next_random(3), same = next_random(16);

    r->k = 1 + (int)next_random(OPERANDS);
    r->n = next_random(4) ? next_random(COUNT_MAX) : next_random(9);
    r->by = r->op == RANK_AVG && next_random(2) ? 1 + (int)next_random(40) : 0;
    r->onto = next_random(2) ? (int)next_random((unsigned)r->k) : r->k;
    for (int j = 0; j <= r->k; j++) {
        unsigned any = next_random(OFFSET_MAX);

        r->at[j] = how == 0 ? same : how == 1 ? any / r->size * r->size : any;
        fill(r, r->host[j]);
    }
}

/* As rk_reduce_many and the last part of AVG; 16-bit averages are rounded once. */
static void compute(const struct reduction *r, char *want)
{
    struct rk_reducer by_pairs = {.fn = rk_op_kernel(r->op, r->dtype), .dtype = r->dtype};
    const void *src[OPERANDS];
    float wide[COUNT_MAX], sum[COUNT_MAX] = {0};

    for (int j = 0; j < r->k; j++)
        src[j] = r->host[j] + OFFSET_MAX;
    if (r->op == RANK_AVG && (r->dtype == RANK_F16 || r->dtype == RANK_BF16)) {
        for (int j = 0; j < r->k; j++) {
            rk_op_widen(r->dtype, wide, src[j], r->n);
            for (size_t i = 0; i < r->n; i++)
                sum[i] = j ? sum[i] + wide[i] : wide[i];
        }
        rk_op_narrow(r->dtype, want, sum, r->n, r->by ? r->by : 1);
        return;
    }
    if (r->k == 1)
        memcpy(want, src[0], r->n * r->size);
    else
        rk_reduce_many(&by_pairs, want, src, r->k, r->n);
    if (r->by)
        rk_op_divide(r->dtype, want, r->n, r->by);
}

static bool near(double a, double b, double bound)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= bound;
}

/* Equal bits; but for the payload of a NaN, and for complex products, where the CPU may fuse multiply and add. */
static bool same(const struct reduction *r, const char *a, const char *b)
{
    struct value x, y;
    double bound = r->op != RANK_PROD ? 0 : r->dtype == RANK_F32_COMPLEX ? 1e-4 : 1e-12;

    if (memcmp(a, b, r->size) == 0)
        return true;
    if (!value_is_float(r->dtype) && !is_complex(r->dtype))
        return false;
    x = value_load(r->dtype, a);
    y = value_load(r->dtype, b);
    if (is_complex(r->dtype))
        return near(x.re, y.re, bound) && near(x.im, y.im, bound);
    return isnan(x.re) && isnan(y.re);
}

static void run(struct reduction *r, CUdeviceptr memory)
{
    static char want[ARRAY], got[ARRAY];
    CUdeviceptr array[OPERANDS + 1];
    const void *src[OPERANDS];
    char *dst;

    draw(r);
    for (int j = 0; j <= r->k; j++) {
        array[j] = memory + (CUdeviceptr)j * (ARRAY + OFFSET_MAX);
        OK(Memcpy(array[j] + r->at[j], (CUdeviceptr)(uintptr_t)r->host[j], ARRAY));
        if (j < r->k)
            src[j] = (void *)(uintptr_t)(array[j] + r->at[j] + OFFSET_MAX);
    }
    memcpy(want, r->host[r->onto], ARRAY);
    compute(r, want + OFFSET_MAX);
    dst = (char *)(uintptr_t)(array[r->onto] + r->at[r->onto]);
    CHECK(rk_kind_cuda.reduce(dst + OFFSET_MAX, src, r->k, r->n, r->dtype, r->op, r->by) == RANK_OK);
    OK(Memcpy((CUdeviceptr)(uintptr_t)got, (CUdeviceptr)(uintptr_t)dst, ARRAY));
    for (size_t i = 0; i < r->n; i++) {
        const char *a = got + OFFSET_MAX + i * r->size, *b = want + OFFSET_MAX + i * r->size;

        if (!same(r, a, b)) {
            fprintf(stderr, "# dtype %llx, op %llx, element %zu of %zu, %d arrays, onto %d, by %d\n", (unsigned long long)r->dtype,
                    (unsigned long long)r->op, i, r->n, r->k, r->onto, r->by);
            _exit(3);
        }
    }
    CHECK(memcmp(got, want, OFFSET_MAX) == 0);
    CHECK(memcmp(got + OFFSET_MAX + r->n * r->size, want + OFFSET_MAX + r->n * r->size, ARRAY - OFFSET_MAX - r->n * r->size) == 0);
}

static void open_kind(void)
{
    char why[512];

    run_start();
    if (rk_kind_cuda.open(true, why, sizeof(why))) {
        fprintf(stderr, "# %s\n", why);
        _exit(3);
    }
}

static void close_kind(void)
{
    rk_kind_cuda.close();
    run_stop();
}

/* Every type and operation. */
static void as_the_cpu(void)
{
    static struct reduction r;
    CUdeviceptr memory;
    int n = 0;

    open_kind();
    OK(MemAlloc(&memory, (OPERANDS + 1) * (ARRAY + OFFSET_MAX)));
    for (int d = 0; d < VALUE_DTYPES; d++) {
        for (int op = 0; op < VALUE_OPS; op++) {
            r.dtype = value_dtypes[d];
            r.op = value_ops[op];
            r.size = value_size(r.dtype);
            for (int round = 0; round < ROUNDS && rk_op_kernel(r.op, r.dtype); round++, n++)
                run(&r, memory);
        }
    }
    CHECK(n == (8 * 10 + 3 + 4 * 5 + 2 * 3 + 4 * 2) * ROUNDS);
    OK(MemFree(memory));
    close_kind();
}

#ifdef RK_ON_CARD /* and with the image of librank-cuda.so */
int main(void)
{
    as_the_cpu();
    return 0;
}
#else
static char kernels[4096];

/* Reduce one float onto itself. */
static rank_status_t reduce_float(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    const void *from[] = {(void *)(uintptr_t)dst, (void *)(uintptr_t)src};

    return rk_kind_cuda.reduce((void *)(uintptr_t)dst, from, 2, n, RANK_F32, RANK_SUM, 0);
}

static void refused(void)
{
    CUdeviceptr here, there;

    open_kind();
    OK(MemAlloc(&here, 64));
    OK(CtxPushCurrent(contexts[1]));
    OK(MemAlloc(&there, 64));
    CHECK(reduce_float(there, there, 1) == RANK_OK);
    OK(CtxPopCurrent(NULL));
    CHECK(reduce_float(here, here, 0) == RANK_OK);
    CHECK(reduce_float(here, there, 1) == RANK_ERR_NOT_SUPPORTED); /* of two devices */
    CHECK(reduce_float(here, here + 4, 1) == RANK_OK);
    rk_cuda_unload_kernels();
    CHECK(reduce_float(here, here + 4, 1) == RANK_OK);
    OK(MemFree(here));
    OK(MemFree(there));
    close_kind();
}

static void image_refused(void)
{
    CUdeviceptr here;

    open_kind();
    OK(MemAlloc(&here, 64));
    CHECK(reduce_float(here, here, 0) == RANK_ERR_NOT_SUPPORTED);
    CHECK(reduce_float(here, here, 1) == RANK_ERR_NOT_SUPPORTED);
    OK(MemFree(here));
    close_kind();
}

static void launch_fails(void)
{
    CUdeviceptr here;

    open_kind();
    OK(MemAlloc(&here, 64));
    CHECK(reduce_float(here, here, 1) == RANK_ERR_DEVICE);
    CHECK(reduce_float(here, here, 1) == RANK_OK);
    OK(MemFree(here));
    close_kind();
}

static void kernels_reduce_as_the_cpu(void **state)
{
    const char *top = getenv("top_builddir");
    FILE *object;

    (void)state;
    snprintf(kernels, sizeof(kernels), "STANDIN_KERNELS=%s/tests/standin/reduce_kernel.so", top ? top : ".");
    object = fopen(strchr(kernels, '=') + 1, "r");
    if (!object || fgetc(object) == EOF) { /* no C++ compiler */
        kernels[0] = '\0';
        skip();
    }
    fclose(object);
    RUN(as_the_cpu, kernels, "STANDIN_DELAY=0", NULL);
}

static void kernels_refused(void **state)
{
    (void)state;
    RUN(image_refused, "STANDIN_GPUS=1", NULL);
    if (kernels[0] == '\0')
        skip();
    RUN(refused, kernels, "STANDIN_GPUS=2", NULL);
    RUN(launch_fails, kernels, "STANDIN_FAIL=LaunchKernel:1", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_reduce_as_the_cpu),
        cmocka_unit_test(kernels_refused),
    };

    return cmocka_run_group_tests_name("stand-in for libcuda, no GPU: reduction kernels", tests, NULL, NULL);
}
#endif
