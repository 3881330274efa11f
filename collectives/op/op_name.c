/* SPDX-License-Identifier: BSD-3-Clause */
/* op_name.c: name datatypes and operations in messages. */
#include "collectives/op/op_name.h"
#include "lib/data/dtype.h"

#include <stdio.h>

#define INDEXED(name) [RK_HANDLE_INDEX(name)] = #name

void rk_dtype_text(rank_dtype_t dtype, char *out, size_t len)
{
    static const char *const name[RK_DTYPE_COUNT] = {
        INDEXED(RANK_BYTE), INDEXED(RANK_INT8), INDEXED(RANK_INT16), INDEXED(RANK_INT32), INDEXED(RANK_INT64),
        INDEXED(RANK_UINT8), INDEXED(RANK_UINT16), INDEXED(RANK_UINT32), INDEXED(RANK_UINT64), INDEXED(RANK_F16),
        INDEXED(RANK_BF16), INDEXED(RANK_F32), INDEXED(RANK_F64), INDEXED(RANK_F32_COMPLEX), INDEXED(RANK_F64_COMPLEX),
        INDEXED(RANK_PAIR_INT32), INDEXED(RANK_PAIR_INT64), INDEXED(RANK_PAIR_F32), INDEXED(RANK_PAIR_F64)};

    if (rk_dtype_is_predefined(dtype))
        snprintf(out, len, "%s", name[RK_HANDLE_INDEX(dtype)]);
    else
        snprintf(out, len, "one of %u B of the program", rk_dtype_bytes(dtype));
}

void rk_op_text(rank_op_t op, char *out, size_t len)
{
    static const char *const name[RK_OP_COUNT] = {
        INDEXED(RANK_SUM), INDEXED(RANK_PROD), INDEXED(RANK_MIN), INDEXED(RANK_MAX), INDEXED(RANK_AVG), INDEXED(RANK_LAND),
        INDEXED(RANK_LOR), INDEXED(RANK_LXOR), INDEXED(RANK_BAND), INDEXED(RANK_BOR), INDEXED(RANK_BXOR), INDEXED(RANK_MINLOC),
        INDEXED(RANK_MAXLOC)};

    snprintf(out, len, "%s", rk_op_is_predefined(op) ? name[RK_HANDLE_INDEX(op)] : "one of the program");
}
