/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_op.c: keep the table of ops, with ids for the wire. */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>

static bool ucx_op_grow(struct rk_ucx *ucx)
{
    struct rk_ucx_op *op;

    if (ucx->nops == ucx->ops_cap) {
        uint32_t cap = ucx->ops_cap ? ucx->ops_cap * 2 : 64;
        struct rk_ucx_op **ops = realloc(ucx->ops, cap * sizeof(struct rk_ucx_op *));
        if (!ops)
            return false;
        ucx->ops = ops;
        ucx->ops_cap = cap;
    }
    op = calloc(1, sizeof(*op));
    if (!op)
        return false;
    op->ucx = ucx;
    op->id = (struct rk_id){ucx->nops, 1};
    ucx->ops[ucx->nops++] = op;
    ucx->free_ops = op;
    return true;
}

struct rk_ucx_op *rk_ucx_op_new(struct rk_ucx_link *l, enum rk_ucx_op_type type)
{
    struct rk_ucx *ucx = l->ucx;
    struct rk_ucx_op *op;

    if (!ucx->free_ops && !ucx_op_grow(ucx)) {
        rk_error("out of memory for transfers");
        return NULL;
    }
    op = ucx->free_ops;
    ucx->free_ops = op->next_free;
    op->next_free = NULL;
    op->type = (uint8_t)type;
    op->wanted = op->unwanted = op->announced = false;
    op->of = l;
    op->req = NULL;
    op->desc = NULL;
    rk_list_init(&op->todo);
    rk_list_append(&l->ops, &op->link);
    return op;
}

void rk_ucx_op_free(struct rk_ucx_op *op)
{
    if (op->announced)
        op->of->announced--;
    rk_list_remove(&op->link);
    rk_list_remove(&op->todo);
    op->type = RK_UCX_OP_FREE;
    op->id.gen = rk_next_gen(op->id.gen);
    op->next_free = op->ucx->free_ops;
    op->ucx->free_ops = op;
}

struct rk_ucx_op *rk_ucx_op_find(struct rk_ucx_link *l, struct rk_id id, enum rk_ucx_op_type type)
{
    struct rk_ucx *ucx = l->ucx;
    struct rk_ucx_op *op;

    if (id.index >= ucx->nops)
        return NULL;
    op = ucx->ops[id.index];
    return op->id.gen == id.gen && op->type == type && op->of == l ? op : NULL;
}

void rk_ucx_ops_destroy(struct rk_ucx *ucx)
{
    for (uint32_t i = 0; i < ucx->nops; i++)
        free(ucx->ops[i]);
    free(ucx->ops);
    ucx->ops = NULL;
    ucx->nops = ucx->ops_cap = 0;
    ucx->free_ops = NULL;
}
