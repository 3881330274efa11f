/* SPDX-License-Identifier: BSD-3-Clause */
/* dmodex.c: see dmodex.h. */
#include "launcher/overlay/dmodex.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"
#include "lib/base/log.h"

#include <stdlib.h>

struct dmodex_request {
    struct rk_link link;
    struct xr_dmodex_table *all;
    struct event *late; /* time-out of our own request, or NULL */
    uint32_t id, node, rank; /* node: the target of the request, or its origin */
    uint32_t their_id;       /* of an incoming request: its number at the origin */
    void *token;             /* of our own request */
};

struct xr_dmodex_table {
    struct event_base *base;
    struct xr_tree *tree;
    struct xr_liveness *liveness;
    struct xr_liveness_watcher watcher;
    uint32_t self, next_id;
    const struct xr_dmodex_ops *ops;
    void *arg;
    struct rk_link outgoing, incoming; /* requests */
};

static struct dmodex_request *dmodex_add(struct xr_dmodex_table *m, struct rk_link *to, uint32_t node, uint32_t rank)
{
    struct dmodex_request *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    q->all = m;
    q->id = m->next_id++;
    q->node = node;
    q->rank = rank;
    rk_list_append(to, &q->link);
    return q;
}

static struct dmodex_request *dmodex_find(struct rk_link *in, uint32_t id)
{
    for (struct rk_link *l = in->next; l != in; l = l->next) {
        struct dmodex_request *q = rk_list_entry(l, struct dmodex_request, link);
        if (q->id == id)
            return q;
    }
    return NULL;
}

static void dmodex_drop(struct dmodex_request *q)
{
    rk_list_remove(&q->link);
    if (q->late)
        event_free(q->late);
    free(q);
}

static void dmodex_give(struct dmodex_request *q, enum xr_found found, const void *data, size_t len)
{
    struct xr_dmodex_table *m = q->all;
    void *token = q->token;

    dmodex_drop(q);
    m->ops->on_answer(m->arg, token, found, data, len);
}

static void dmodex_on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    dmodex_give(arg, XR_FOUND_LATE, NULL, 0);
}

static void dmodex_answer(struct xr_dmodex_table *m, uint32_t node, uint32_t id, bool found, const void *data,
                   size_t len)
{
    struct xr_packer p = {0};
    const uint32_t most = XR_MESSAGE_MAX - 12; /* minus the header; the connection rejects longer messages */

    if (len > most) {
        rk_error("a rank has committed %zu bytes, which is more than another host can be sent (%u)", len, most);
        found = false;
        len = 0;
    }
    xr_pack_u32(&p, id);
    xr_pack_u32(&p, found);
    xr_pack_bytes(&p, data, len);
    xr_tree_send(m->tree, node, XR_MSG_DMODEX_REPLY, &p);
}

void xr_dmodex_request(struct xr_dmodex_table *m, uint32_t node, uint32_t rank, uint32_t timeout_s, void *token)
{
    const struct timeval late = {(time_t)timeout_s, 0};
    struct dmodex_request *q = xr_liveness(m->liveness, XR_FAILED_AGENT, node) ? NULL : dmodex_add(m, &m->outgoing, node, rank);
    struct xr_packer p = {0};

    if (q && timeout_s)
        q->late = evtimer_new(m->base, dmodex_on_late, q);
    if (!q || (timeout_s && (!q->late || event_add(q->late, &late)))) {
        if (q)
            dmodex_drop(q);
        m->ops->on_answer(m->arg, token, XR_FOUND_NEVER, NULL, 0);
        return;
    }
    q->token = token;
    xr_pack_u32(&p, m->self);
    xr_pack_u32(&p, q->id);
    xr_pack_u32(&p, rank);
    xr_tree_send(m->tree, node, XR_MSG_DMODEX_REQUEST, &p);
}

void xr_dmodex_found(struct xr_dmodex_table *m, uint32_t id, bool found, const void *data, size_t len)
{
    struct dmodex_request *q = dmodex_find(&m->incoming, id);

    if (!q)
        return;
    dmodex_answer(m, q->node, q->their_id, found, data, len);
    dmodex_drop(q);
}

void xr_dmodex_ended(struct xr_dmodex_table *m, uint32_t rank)
{
    for (struct rk_link *l = m->incoming.next, *next; l != &m->incoming; l = next) {
        struct dmodex_request *q = rk_list_entry(l, struct dmodex_request, link);
        next = l->next;
        if (q->rank == rank)
            m->ops->on_ended(m->arg, q->id);
    }
}

bool xr_dmodex_receive(struct xr_dmodex_table *m, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t a = xr_unpack_u32(u), b = xr_unpack_u32(u), rank;
    struct dmodex_request *q;
    const void *data;
    size_t len;

    if (kind == XR_MSG_DMODEX_REQUEST) {
        rank = xr_unpack_u32(u);
        if (!xr_unpack_done(u))
            return false;
        q = dmodex_add(m, &m->incoming, a, rank);
        if (!q) {
            dmodex_answer(m, a, b, false, NULL, 0);
            return true;
        }
        q->their_id = b;
        m->ops->on_asked(m->arg, rank, q->id);
        return true;
    }
    data = xr_unpack_bytes(u, &len);
    if (!xr_unpack_done(u))
        return false;
    q = dmodex_find(&m->outgoing, a);
    if (q) /* else the request has timed out */
        dmodex_give(q, b ? XR_FOUND : XR_FOUND_NEVER, data, len);
    return true;
}

static void dmodex_on_gone(struct xr_liveness_watcher *watcher, enum xr_liveness_what what, uint32_t number)
{
    struct xr_dmodex_table *m = rk_list_entry(watcher, struct xr_dmodex_table, watcher);

    if (what == XR_FAILED_RANK)
        xr_dmodex_ended(m, number);
    for (struct rk_link *l = m->outgoing.next, *next; l != &m->outgoing && what == XR_FAILED_AGENT; l = next) {
        struct dmodex_request *q = rk_list_entry(l, struct dmodex_request, link);
        next = l->next;
        if (q->node == number)
            dmodex_give(q, XR_FOUND_NEVER, NULL, 0);
    }
}

rank_status_t xr_dmodex_open(struct event_base *base, struct xr_tree *tree, struct xr_liveness *liveness, uint32_t self,
                              const struct xr_dmodex_ops *ops, void *arg, struct xr_dmodex_table **out)
{
    struct xr_dmodex_table *m = calloc(1, sizeof(*m));

    if (!m)
        return RANK_ERR_NO_MEMORY;
    *m = (struct xr_dmodex_table){.base = base, .tree = tree, .liveness = liveness, .self = self, .ops = ops, .arg = arg};
    rk_list_init(&m->outgoing);
    rk_list_init(&m->incoming);
    m->watcher.on_gone = dmodex_on_gone;
    xr_liveness_watch(liveness, &m->watcher);
    *out = m;
    return RANK_OK;
}

void xr_dmodex_close(struct xr_dmodex_table *m)
{
    if (!m)
        return;
    while (!rk_list_empty(&m->outgoing))
        dmodex_drop(rk_list_entry(m->outgoing.next, struct dmodex_request, link));
    while (!rk_list_empty(&m->incoming))
        dmodex_drop(rk_list_entry(m->incoming.next, struct dmodex_request, link));
    xr_liveness_unwatch(&m->watcher);
    free(m);
}
