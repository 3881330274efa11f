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
/* y < x ? y : x, which is x if one is a NaN; where y is one, all bits are set, which is a NaN too. */
#define NAN_OR(name, y, r) _mm_or_##name((r), _mm_cmpunord_##name((y), (y)))
#define MIN_F32(x, y) ((vec_f32)NAN_OR(ps, (__m128)(y), _mm_min_ps((__m128)(y), (__m128)(x))))
#define MAX_F32(x, y) ((vec_f32)NAN_OR(ps, (__m128)(y), _mm_max_ps((__m128)(y), (__m128)(x))))
#define MIN_F64(x, y) ((vec_f64)NAN_OR(pd, (__m128d)(y), _mm_min_pd((__m128d)(y), (__m128d)(x))))
#define MAX_F64(x, y) ((vec_f64)NAN_OR(pd, (__m128d)(y), _mm_max_pd((__m128d)(y), (__m128d)(x))))
#endif

static bool base_runs(void)
{
    return true;
}

#include "collectives/op/op_vector.h"
