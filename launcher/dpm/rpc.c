/* SPDX-License-Identifier: BSD-3-Clause */
/* rpc.c: send requests and deliver their answers. See rpc.h. */
#include "launcher/dpm/rpc.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"

#include <stdlib.h>

struct rpc {
    struct rk_link link;
    uint32_t id;
    xr_rpc_done_fn done;
    void *arg, *token;
};

struct xr_rpc_table {
    struct xr_tree *tree;
    uint32_t self, next_id;
    struct rk_link pending;
};

rank_status_t xr_rpc_table_open(struct xr_tree *tree, uint32_t self, struct xr_rpc_table **out)
{
    struct xr_rpc_table *e = calloc(1, sizeof(*e));

    if (!e)
        return RANK_ERR_NO_MEMORY;
    e->tree = tree;
    e->self = self;
    rk_list_init(&e->pending);
    *out = e;
    return RANK_OK;
}

void xr_rpc_table_send(struct xr_rpc_table *e, enum xr_rpc what, uint32_t rank,
                     struct xr_packer *payload, xr_rpc_done_fn done, void *arg, void *token)
{
    struct rpc *x = calloc(1, sizeof(*x));
    struct xr_packer p = {0};

    if (!x || payload->failed || payload->len > XR_MESSAGE_MAX / 2 || !xr_tree_parent(e->tree)) {
        free(x);
        xr_packer_free(payload);
        done(arg, token, NULL);
        return;
    }
    *x = (struct rpc){.id = e->next_id++, .done = done, .arg = arg, .token = token};
    rk_list_append(&e->pending, &x->link);
    xr_pack_u32(&p, e->self);
    xr_pack_u32(&p, x->id);
    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, what);
    xr_pack_raw(&p, payload->data, payload->len);
    xr_packer_free(payload);
    xr_tree_send(e->tree, XR_NODE_FRONT, XR_MSG_RPC, &p);
}

bool xr_rpc_table_take(struct xr_rpc_table *e, struct xr_unpacker *u)
{
    uint32_t id = xr_unpack_u32(u);

    for (struct rk_link *l = e->pending.next; l != &e->pending; l = l->next) {
        struct rpc *x = rk_list_entry(l, struct rpc, link), old = *x;
        if (x->id != id)
            continue;
        rk_list_remove(&x->link);
        free(x);
        old.done(old.arg, old.token, u);
        return true;
    }
    return !u->failed;
}
