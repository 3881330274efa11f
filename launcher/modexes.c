/* modexes.c: see modexes.h. */
#include "launcher/modexes.h"
#include "launcher/message.h"
#include "lib/base/list.h"

#include <stdlib.h>

struct question {
    struct rk_link link;
    uint32_t id, node, rank; /* node: who is asked, or who asks */
    uint32_t their_id;       /* of one asked here: what the asker calls it */
    void *token;             /* of one that we asked */
};

struct rk_modexes {
    struct rk_tree *tree;
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
    free(q);
}

static void answer(struct rk_modexes *m, uint32_t node, uint32_t id, bool found, const void *data,
                   size_t len)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, id);
    rk_pack_u32(&p, found);
    rk_pack_bytes(&p, data, len);
    rk_tree_send(m->tree, node, RK_MSG_MODEX_ANSWER, &p);
}

void rk_modexes_ask(struct rk_modexes *m, uint32_t node, uint32_t rank, void *token)
{
    struct question *q = add(m, &m->asked, node, rank);
    struct rk_packer p = {0};

    if (!q) {
        m->ops->on_answer(m->arg, token, false, NULL, 0);
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

void rk_modexes_never(struct rk_modexes *m, uint32_t rank)
{
    for (struct rk_link *l = m->asking.next, *next; l != &m->asking; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->rank == rank)
            rk_modexes_found(m, q->id, false, NULL, 0);
    }
}

bool rk_modexes_take(struct rk_modexes *m, uint32_t kind, struct rk_unpacker *u)
{
    uint32_t a = rk_unpack_u32(u), b = rk_unpack_u32(u), rank;
    struct question *q;
    const void *data;
    size_t len;
    void *token;

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
    if (!q) /* it was given up */
        return true;
    token = q->token;
    drop(q);
    m->ops->on_answer(m->arg, token, b != 0, data, len);
    return true;
}

void rk_modexes_lost(struct rk_modexes *m, uint32_t node)
{
    for (struct rk_link *l = m->asked.next, *next; l != &m->asked; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->node == node) {
            void *token = q->token;
            drop(q);
            m->ops->on_answer(m->arg, token, false, NULL, 0);
        }
    }
}

rank_status_t rk_modexes_open(struct rk_tree *tree, uint32_t self, const struct rk_modex_ops *ops,
                              void *arg, struct rk_modexes **out)
{
    struct rk_modexes *m = calloc(1, sizeof(*m));

    if (!m)
        return RANK_ERR_NO_MEMORY;
    *m = (struct rk_modexes){.tree = tree, .self = self, .ops = ops, .arg = arg};
    rk_list_init(&m->asked);
    rk_list_init(&m->asking);
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
    free(m);
}
