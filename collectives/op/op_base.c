/* SPDX-License-Identifier: BSD-3-Clause */
/* op_base.c: reduce several arrays with the instructions that each machine has. */
#include "collectives/op/op_loop.h"

#define RK_VEC 16
#define RK_SET rk_kernel_set_base
#define RK_SET_RUNS base_runs
#define RK_SET_NAME "base"
#define RK_SET_IS_BASE

#if defined(__SSE2__)
#include <emmintrin.h>
#define MIN_F32(x, y) ((vec_f32)_mm_min_ps((__m128)(y), (__m128)(x))) /* y < x ? y : x */
#define MAX_F32(x, y) ((vec_f32)_mm_max_ps((__m128)(y), (__m128)(x)))
#define MIN_F64(x, y) ((vec_f64)_mm_min_pd((__m128d)(y), (__m128d)(x)))
#define MAX_F64(x, y) ((vec_f64)_mm_max_pd((__m128d)(y), (__m128d)(x)))
#endif

static bool base_runs(void)
{
    return true;
}

#include "collectives/op/op_vector.h"
