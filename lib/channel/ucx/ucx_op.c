/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_op.c: keep the table of ops. */
#include "lib/channel/ucx/ucx.h"
#include "lib/data/view_stage.h"

#include <stddef.h>

enum { OP_LINK = offsetof(struct rk_ucx_op, link) };

void rk_ucx_ops_init(struct rk_ucx *ucx)
{
    ucx->ops = (struct rk_slab)RK_SLAB_INIT(sizeof(struct rk_ucx_op), 16);
    rk_handles_open(&ucx->op_ids);
}

struct rk_ucx_op *rk_ucx_op_new(struct rk_ucx_link *l, enum rk_ucx_op_type type)
{
    struct rk_ucx *ucx = l->ucx;
    struct rk_ucx_op *op = rk_slab_alloc(&ucx->ops, OP_LINK);

    if (!op) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for transfers");
        return NULL;
    }
    if (!rk_handle_put(&ucx->op_ids, op, &op->id)) {
        rk_slab_free(&ucx->ops, op, OP_LINK);
        return NULL;
    }
    op->ucx = ucx;
    op->type = (uint8_t)type;
    op->wanted = op->unwanted = op->announced = op->with_status = false;
    op->of = l;
    op->total = 0;
    op->copied = RANK_OK;
    op->status = 0;
    op->view.ops = NULL;
    op->req = NULL;
    op->desc = NULL;
    rk_list_init(&op->todo);
    rk_list_append(&l->ops, &op->link);
    return op;
}

void rk_ucx_op_free(struct rk_ucx_op *op)
{
    rk_view_stage_close(&op->view, false);
    rk_list_remove(&op->link);
    rk_list_remove(&op->todo);
    rk_handle_drop(&op->ucx->op_ids, op->id);
    rk_slab_free(&op->ucx->ops, op, OP_LINK);
}

struct rk_ucx_op *rk_ucx_op_find(struct rk_ucx_link *l, struct rk_id id)
{
    struct rk_ucx_op *op = rk_handle_get(&l->ucx->op_ids, id);

    return op && op->of == l ? op : NULL;
}

void rk_ucx_ops_destroy(struct rk_ucx *ucx)
{
    struct rk_ucx_op *op;
    uint32_t i;

    rk_handles_for_each(i, op, &ucx->op_ids)
        rk_view_stage_close(&op->view, false); /* of a message that UCP has not given back */
    rk_slab_close(&ucx->ops);
    rk_handles_close(&ucx->op_ids);
}
