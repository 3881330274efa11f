/* SPDX-License-Identifier: BSD-3-Clause */
/* recursive_halving.c: build reduce-scatter by recursive halving. */
#include "collectives/algorithms/recursive_halving.h"

/* Elements that a rank keeps in a round: fewer in each. */
static int64_t kept(const struct rk_coll_call *c, const struct rk_halving_of *of, const struct rk_halved *h, int round)
{
    struct rk_halving r = rk_halving(h->place, h->fold.pow2, round);

    return of->at(c, h->fold.pow2, r.keep + r.half) - of->at(c, h->fold.pow2, r.keep);
}

/* Memory for what is received: a round's receive is posted during the round before, and folding is one more round. */
static void receive_memory(struct rk_sched *s, const struct rk_coll_call *c, const struct rk_halving_of *of,
                           const struct rk_halved *h, char *in[2])
{
    bool folds = h->fold.partner >= 0;

    for (int i = 0; i < 2; i++) {
        int round = folds ? 0 : i;
        int64_t n = folds && i == 1 ? of->total : 1 << round < h->fold.pow2 ? kept(c, of, h, round) : 0;

        in[i] = rk_sched_scratch(s, (size_t)n * c->elem);
    }
}

/* Move each part to its place in work, with the partner's added if there is one. */
static struct rk_step *move_parts(struct rk_sched *s, struct rk_step *after, const struct rk_coll_call *c,
                                  const struct rk_halving_of *of, const struct rk_fold *f, const char *src, const char *in,
                                  char *work)
{
    struct rk_step *moved = rk_sched_join(s, after, NULL);

    for (int i = 0; i < f->pow2; i++) {
        int64_t at = of->at(c, f->pow2, i), len = of->at(c, f->pow2, i + 1) - at;
        size_t from = (size_t)of->from(c, f->pow2, i) * c->elem, to = (size_t)at * c->elem;

        rk_sched_order(f->partner >= 0
                           ? rk_build_reduce_pair(s, after, c, f->partner, work + to, src + from, in + from, len)
                           : rk_sched_copy(s, after, work + to, src + from, (size_t)len * c->elem),
                       moved);
    }
    return moved;
}

void rk_build_halved(struct rk_sched *s, const struct rk_coll_call *c, const struct rk_halving_of *of, const char *src,
                     char *work, struct rk_halved *h)
{
    struct rk_fold f = h->fold = rk_fold(c->team->rank, c->team->size);
    struct rk_step *done = NULL, *before = NULL; /* last reduction, and the one before */
    char *in[2];

    h->near = of->near;
    h->place = f.vrank >= 0 && of->near ? rk_place(f.vrank, f.pow2) : f.vrank;
    h->reduced = NULL;
    h->sent = rk_sched_join(s, NULL, NULL);
    if (f.vrank < 0) {
        done = rk_sched_send(s, NULL, f.partner, 0, src, (size_t)of->total * c->elem);
        rk_sched_order(done, h->sent);
        return;
    }
    receive_memory(s, c, of, h, in);
    if (f.partner >= 0)
        done = rk_sched_recv(s, NULL, f.partner, 0, in[1], (size_t)of->total * c->elem);
    if (of->from)
        done = move_parts(s, done, c, of, &f, src, in[1], work);
    else if (f.partner >= 0)
        done = rk_build_reduce_pair(s, done, c, f.partner, work, src, in[1], of->total);
    if (of->from || f.partner >= 0)
        src = work;
    for (int k = 0; 1 << k < f.pow2; k++) {
        struct rk_halving r = rk_halving(h->place, f.pow2, k);
        int64_t keep = of->at(c, f.pow2, r.keep), keep_end = of->at(c, f.pow2, r.keep + r.half);
        int64_t give = of->at(c, f.pow2, r.give), give_end = of->at(c, f.pow2, r.give + r.half);
        int peer = rk_halved_rank(h, r.peer, c->team->size);
        struct rk_step *send, *recv;

        recv = rk_sched_recv(s, before, peer, (uint32_t)k + 1, in[k % 2],
                             (size_t)(keep_end - keep) * c->elem);
        send = rk_sched_send(s, done, peer, (uint32_t)k + 1, src + (size_t)give * c->elem,
                             (size_t)(give_end - give) * c->elem);
        rk_sched_order(send, h->sent);
        before = done;
        done = rk_build_reduce_pair(s, recv, c, peer, work + (size_t)keep * c->elem,
                                    src + (size_t)keep * c->elem, in[k % 2], keep_end - keep);
        rk_sched_order(before, done);
        src = work;
    }
    h->reduced = done;
}
