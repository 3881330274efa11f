/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_steps.c: copy long messages of connections in steps, which take turns.
 *
 * Other connections of the context, and other threads, go on between two steps. Ranks of a node copy at once: nothing
 * but the message waits for them.
 */
#include "lib/channel/shm/shm_rndv.h"
#include "lib/mem/segment.h"
#include "lib/node/cma.h"

#include <stdlib.h>
#include <string.h>

struct rk_shm_steps {
    struct rk_link link; /* in rk_shm.steps, the next first */
    struct rk_shm_recv r;
    struct rk_segment *segment; /* holds r.here; or NULL: by CMA */
    uint64_t done;
};

static void steps_end(struct rk_shm_steps *s)
{
    rk_list_remove(&s->link);
    s->r.shm->nsteps--;
    rk_segment_close(s->segment);
    free(s);
}

bool rk_shm_steps_begin(const struct rk_shm_recv *r)
{
    struct rk_shm_steps *s;

    if (!r->shm->only || r->want <= RK_SHM_STEP || r->req->view.ops || r->in_pieces || !(r->has & (RK_NEEDS_MAPPING | RK_NEEDS_CMA)))
        return false;
    s = calloc(1, sizeof(*s));
    if (!s)
        return false; /* then at once */
    s->r = *r;
    if (r->has & RK_NEEDS_MAPPING) {
        s->segment = rk_segment_holding(r->shm->ctx, r->here, r->want);
        s->segment->users++;
    }
    rk_list_append(&r->shm->steps, &s->link);
    r->shm->nsteps++;
    return true;
}

int rk_shm_steps_progress(struct rk_shm *shm)
{
    struct rk_shm_steps *s = rk_list_entry(shm->steps.next, struct rk_shm_steps, link);
    struct rk_shm_recv r = s->r;
    char *to = (char *)r.req->view.base + s->done;
    size_t n = r.want - s->done < RK_SHM_STEP ? r.want - s->done : RK_SHM_STEP;
    rank_status_t st = RANK_OK;

    if (s->segment)
        memcpy(to, r.here + s->done, n);
    else
        st = rk_cma_read(r.ep->pid, to, r.at + s->done, n);
    s->done += n;
    if (!st && s->done < r.want) {
        rk_list_remove(&s->link);
        rk_list_append(&shm->steps, &s->link);
        return 1;
    }
    steps_end(s);
    if (st == RANK_ERR_CHANNEL) { /* what the kernel cannot copy goes through the ring */
        rk_shm_cma_failed(r.ep);
        shm->protos.ring[rk_proto_class(r.want)]->run(&r);
    } else {
        rk_shm_recv_finish(&r, st);
    }
    return 1;
}

void rk_shm_steps_abort(struct rk_shm *shm)
{
    while (!rk_list_empty(&shm->steps)) {
        struct rk_shm_steps *s = rk_list_entry(shm->steps.next, struct rk_shm_steps, link);
        struct rank_request *req = s->r.req;

        steps_end(s);
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
    }
}
