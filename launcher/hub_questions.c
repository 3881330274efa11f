/* hub_questions.c: a rank asks what one of another job has committed. See hub_parts.h. */
#include "launcher/hub_parts.h"
#include "launcher/pmix/server.h"

#include <stdlib.h>

struct question {
    struct rk_link link;
    struct rk_gather_who who;
    uint32_t id, to;
};

void rk_hub_ask(struct rk_hub *h, const struct rk_gather_who *who, struct rk_unpacker *u)
{
    const char *id = rk_unpack_string(u);
    uint32_t rank = rk_unpack_u32(u), timeout_s = rk_unpack_u32(u), to;
    struct rk_packer p = {0};
    struct question *q;

    if (!rk_unpack_done(u) || !id) {
        rk_hub_answer_with(h, who, RK_REFUSED, NULL, 0, NULL);
        return;
    }
    to = rk_hub_find_job(h, id);
    if (to == RK_NO_JOB || h->jobs[to]->gone ||
        (rank != RK_ALL_RANKS && rank >= h->jobs[to]->outline.size)) {
        rk_hub_answer_with(h, who, RK_NOT_FOUND, NULL, 0, NULL);
        return;
    }
    if (rank == RK_ALL_RANKS) { /* the outline is all that is asked for */
        rk_hub_answer_with(h, who, RK_DONE, NULL, 0, h->jobs[to]);
        return;
    }
    q = calloc(1, sizeof(*q));
    if (!q) {
        rk_hub_answer_with(h, who, RK_NO_ROOM, NULL, 0, NULL);
        return;
    }
    *q = (struct question){.who = *who, .id = h->next_id++, .to = to};
    rk_list_append(&h->questions, &q->link);
    rk_pack_u32(&p, q->id);
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, timeout_s);
    h->ops->send(h->arg, to, RK_DOWN_MODEX, &p);
}

bool rk_hub_take_modex(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t id = rk_unpack_u32(u), found = rk_unpack_u32(u);
    size_t len;
    const void *data = rk_unpack_bytes(u, &len);

    if (!rk_unpack_done(u))
        return false;
    for (struct rk_link *l = h->questions.next; l != &h->questions; l = l->next) {
        struct question *q = rk_list_entry(l, struct question, link);
        if (q->id != id || q->to != job)
            continue;
        rk_list_remove(&q->link);
        rk_hub_answer_with(h, &q->who, found == RK_FOUND ? RK_DONE : found == RK_FOUND_LATE ? RK_TOO_LATE : RK_NOT_FOUND, data,
                    len, h->jobs[job]);
        free(q);
        return true;
    }
    return true;
}

void rk_hub_drop_questions(struct rk_hub *h, uint32_t job)
{
    for (struct rk_link *l = h->questions.next, *next; l != &h->questions; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->to != job && q->who.job != job)
            continue;
        rk_list_remove(&q->link);
        rk_hub_answer_with(h, &q->who, RK_NOT_FOUND, NULL, 0, NULL);
        free(q);
    }
}

void rk_hub_free_questions(struct rk_hub *h)
{
    while (!rk_list_empty(&h->questions)) {
        struct question *q = rk_list_entry(h->questions.next, struct question, link);
        rk_list_remove(&q->link);
        free(q);
    }
}
