/* rpc.c: see errands.h. */
#include "launcher/dpm/rpc.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"

#include <stdlib.h>

struct errand {
    struct rk_link link;
    uint32_t id;
    rk_errand_done_fn done;
    void *arg, *token;
};

struct rk_errands {
    struct rk_tree *tree;
    uint32_t self, next_id;
    struct rk_link pending;
};

rank_status_t rk_errands_open(struct rk_tree *tree, uint32_t self, struct rk_errands **out)
{
    struct rk_errands *e = calloc(1, sizeof(*e));

    if (!e)
        return RANK_ERR_NO_MEMORY;
    e->tree = tree;
    e->self = self;
    rk_list_init(&e->pending);
    *out = e;
    return RANK_OK;
}

void rk_errands_close(struct rk_errands *e)
{
    if (!e)
        return;
    while (!rk_list_empty(&e->pending)) {
        struct errand *x = rk_list_entry(e->pending.next, struct errand, link);
        rk_list_remove(&x->link);
        free(x);
    }
    free(e);
}

void rk_errands_send(struct rk_errands *e, enum rk_errand what, uint32_t rank,
                     struct rk_packer *payload, rk_errand_done_fn done, void *arg, void *token)
{
    struct errand *x = calloc(1, sizeof(*x));
    struct rk_packer p = {0};

    if (!x || payload->failed || payload->len > RK_MESSAGE_MAX / 2 || !rk_tree_parent(e->tree)) {
        free(x);
        rk_packer_free(payload);
        done(arg, token, NULL);
        return;
    }
    *x = (struct errand){.id = e->next_id++, .done = done, .arg = arg, .token = token};
    rk_list_append(&e->pending, &x->link);
    rk_pack_u32(&p, e->self);
    rk_pack_u32(&p, x->id);
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, what);
    rk_pack_raw(&p, payload->data, payload->len);
    rk_packer_free(payload);
    rk_tree_send(e->tree, RK_NODE_FRONT, RK_MSG_ERRAND, &p);
}

bool rk_errands_take(struct rk_errands *e, struct rk_unpacker *u)
{
    uint32_t id = rk_unpack_u32(u);

    for (struct rk_link *l = e->pending.next; l != &e->pending; l = l->next) {
        struct errand *x = rk_list_entry(l, struct errand, link), old = *x;
        if (x->id != id)
            continue;
        rk_list_remove(&x->link);
        free(x);
        old.done(old.arg, old.token, u);
        return true;
    }
    return !u->failed;
}
