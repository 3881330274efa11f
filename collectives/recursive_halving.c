/* SPDX-License-Identifier: BSD-3-Clause */
/* recursive_halving.c: build reduce-scatter by recursive halving. */
#include "collectives/recursive_halving.h"

/* Elements of the first round's half: the largest of all rounds. */
static int64_t first_kept(const struct rk_coll_call *c, rk_part_fn part, const struct rk_fold *f)
{
    struct rk_halving r = rk_halving(f->vrank, f->pow2, 0);

    return part(c, f->pow2, r.keep + r.half) - part(c, f->pow2, r.keep);
}

void rk_build_halved(struct rk_sched *s, const struct rk_coll_call *c, int64_t total,
                     rk_part_fn part, const char *src, char *work, struct rk_halved *h)
{
    struct rk_fold f = h->fold = rk_fold(c->team->rank, c->team->size);
    struct rk_step *done = NULL;
    char *in;

    h->reduced = NULL;
    h->sent = rk_sched_join(s, NULL, NULL);
    if (f.vrank < 0) {
        done = rk_sched_send(s, NULL, f.partner, 0, src, (size_t)total * c->elem);
        rk_sched_order(done, h->sent);
        return;
    }
    in = rk_sched_scratch(s, (size_t)(f.partner >= 0 ? total : first_kept(c, part, &f)) * c->elem);
    if (f.partner >= 0) {
        done = rk_sched_recv(s, NULL, f.partner, 0, in, (size_t)total * c->elem);
        done = rk_build_reduce_pair(s, done, c, f.partner, work, src, in, total);
        src = work;
    }
    for (int k = 0; 1 << k < f.pow2; k++) {
        struct rk_halving r = rk_halving(f.vrank, f.pow2, k);
        int64_t keep = part(c, f.pow2, r.keep), keep_end = part(c, f.pow2, r.keep + r.half);
        int64_t give = part(c, f.pow2, r.give), give_end = part(c, f.pow2, r.give + r.half);
        int peer = rk_unfold(r.peer, c->team->size);
        struct rk_step *send, *recv;

        recv = rk_sched_recv(s, done, peer, (uint32_t)k + 1, in,
                             (size_t)(keep_end - keep) * c->elem);
        send = rk_sched_send(s, done, peer, (uint32_t)k + 1, src + (size_t)give * c->elem,
                             (size_t)(give_end - give) * c->elem);
        rk_sched_order(send, h->sent);
        done = rk_build_reduce_pair(s, recv, c, peer, work + (size_t)keep * c->elem,
                                    src + (size_t)keep * c->elem, in, keep_end - keep);
        src = work;
    }
    h->reduced = done;
}
