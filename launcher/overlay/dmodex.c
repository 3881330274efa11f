/* dmodex.c: see modexes.h. */
#include "launcher/overlay/dmodex.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"
#include "lib/base/log.h"

#include <stdlib.h>

struct question {
    struct rk_link link;
    struct rk_modexes *all;
    struct event *late; /* of one that we asked: when it waits no longer; or NULL */
    uint32_t id, node, rank; /* node: who is asked, or who asks */
    uint32_t their_id;       /* of one asked here: what the asker calls it */
    void *token;             /* of one that we asked */
};

struct rk_modexes {
    struct event_base *base;
    struct rk_tree *tree;
    struct rk_gone *gone;
    struct rk_gone_watcher watcher;
    uint32_t self, next_id;
    const struct rk_modex_ops *ops;
    void *arg;
    struct rk_link asked, asking; /* by us; us */
};

static struct question *add(struct rk_modexes *m, struct rk_link *to, uint32_t node, uint32_t rank)
{
    struct question *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    q->all = m;
    q->id = m->next_id++;
    q->node = node;
    q->rank = rank;
    rk_list_append(to, &q->link);
    return q;
}

static struct question *find(struct rk_link *in, uint32_t id)
{
    for (struct rk_link *l = in->next; l != in; l = l->next) {
        struct question *q = rk_list_entry(l, struct question, link);
        if (q->id == id)
            return q;
    }
    return NULL;
}

static void drop(struct question *q)
{
    rk_list_remove(&q->link);
    if (q->late)
        event_free(q->late);
    free(q);
}

static void give(struct question *q, enum rk_found found, const void *data, size_t len)
{
    struct rk_modexes *m = q->all;
    void *token = q->token;

    drop(q);
    m->ops->on_answer(m->arg, token, found, data, len);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    give(arg, RK_FOUND_LATE, NULL, 0);
}

static void answer(struct rk_modexes *m, uint32_t node, uint32_t id, bool found, const void *data,
                   size_t len)
{
    struct rk_packer p = {0};
    const uint32_t most = RK_MESSAGE_MAX - 12; /* what goes before it; of a longer message the wire would break */

    if (len > most) {
        rk_error("a rank has committed %zu bytes, which is more than another host can be told (%u)", len, most);
        found = false;
        len = 0;
    }
    rk_pack_u32(&p, id);
    rk_pack_u32(&p, found);
    rk_pack_bytes(&p, data, len);
    rk_tree_send(m->tree, node, RK_MSG_MODEX_ANSWER, &p);
}

void rk_modexes_ask(struct rk_modexes *m, uint32_t node, uint32_t rank, uint32_t timeout_s, void *token)
{
    const struct timeval late = {(time_t)timeout_s, 0};
    struct question *q = rk_gone(m->gone, RK_GONE_AGENT, node) ? NULL : add(m, &m->asked, node, rank);
    struct rk_packer p = {0};

    if (q && timeout_s)
        q->late = evtimer_new(m->base, on_late, q);
    if (!q || (timeout_s && (!q->late || event_add(q->late, &late)))) {
        if (q)
            drop(q);
        m->ops->on_answer(m->arg, token, RK_FOUND_NEVER, NULL, 0);
        return;
    }
    q->token = token;
    rk_pack_u32(&p, m->self);
    rk_pack_u32(&p, q->id);
    rk_pack_u32(&p, rank);
    rk_tree_send(m->tree, node, RK_MSG_MODEX_ASK, &p);
}

void rk_modexes_found(struct rk_modexes *m, uint32_t id, bool found, const void *data, size_t len)
{
    struct question *q = find(&m->asking, id);

    if (!q)
        return;
    answer(m, q->node, q->their_id, found, data, len);
    drop(q);
}

void rk_modexes_ended(struct rk_modexes *m, uint32_t rank)
{
    for (struct rk_link *l = m->asking.next, *next; l != &m->asking; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->rank == rank)
            m->ops->on_ended(m->arg, q->id);
    }
}

bool rk_modexes_take(struct rk_modexes *m, uint32_t kind, struct rk_unpacker *u)
{
    uint32_t a = rk_unpack_u32(u), b = rk_unpack_u32(u), rank;
    struct question *q;
    const void *data;
    size_t len;

    if (kind == RK_MSG_MODEX_ASK) {
        rank = rk_unpack_u32(u);
        if (!rk_unpack_done(u))
            return false;
        q = add(m, &m->asking, a, rank);
        if (!q) {
            answer(m, a, b, false, NULL, 0);
            return true;
        }
        q->their_id = b;
        m->ops->on_asked(m->arg, rank, q->id);
        return true;
    }
    data = rk_unpack_bytes(u, &len);
    if (!rk_unpack_done(u))
        return false;
    q = find(&m->asked, a);
    if (q) /* else it waits no longer */
        give(q, b ? RK_FOUND : RK_FOUND_NEVER, data, len);
    return true;
}

static void on_gone(struct rk_gone_watcher *watcher, enum rk_gone_what what, uint32_t number)
{
    struct rk_modexes *m = rk_list_entry(watcher, struct rk_modexes, watcher);

    if (what == RK_GONE_RANK)
        rk_modexes_ended(m, number);
    for (struct rk_link *l = m->asked.next, *next; l != &m->asked && what == RK_GONE_AGENT; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->node == number)
            give(q, RK_FOUND_NEVER, NULL, 0);
    }
}

rank_status_t rk_modexes_open(struct event_base *base, struct rk_tree *tree, struct rk_gone *gone, uint32_t self,
                              const struct rk_modex_ops *ops, void *arg, struct rk_modexes **out)
{
    struct rk_modexes *m = calloc(1, sizeof(*m));

    if (!m)
        return RANK_ERR_NO_MEMORY;
    *m = (struct rk_modexes){.base = base, .tree = tree, .gone = gone, .self = self, .ops = ops, .arg = arg};
    rk_list_init(&m->asked);
    rk_list_init(&m->asking);
    m->watcher.told = on_gone;
    rk_gone_watch(gone, &m->watcher);
    *out = m;
    return RANK_OK;
}

void rk_modexes_close(struct rk_modexes *m)
{
    if (!m)
        return;
    while (!rk_list_empty(&m->asked))
        drop(rk_list_entry(m->asked.next, struct question, link));
    while (!rk_list_empty(&m->asking))
        drop(rk_list_entry(m->asking.next, struct question, link));
    rk_gone_unwatch(&m->watcher);
    free(m);
}
