/* SPDX-License-Identifier: BSD-3-Clause */
/* op_name.h: name datatypes and operations in messages. */
#ifndef RK_COLLECTIVES_OP_NAME_H
#define RK_COLLECTIVES_OP_NAME_H

#include "lib/rank.h"

#include <stddef.h>

enum { RK_OP_NAME = 48 };

/* "RANK_F64", "RANK_SUM"; those of the program have no name. */
void rk_dtype_text(rank_dtype_t dtype, char *out, size_t len);
void rk_op_text(rank_op_t op, char *out, size_t len);

#endif
