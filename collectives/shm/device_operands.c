/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_operands.c: let kernels read the inputs of a reduction where they are.
 *
 * No input is copied to scratch memory then. A kernel reads all operands of an element before it writes that element, and
 * each element has one reducer: so a result may take the place of its input.
 */
#include "collectives/shm/direct_call.h"
#include "lib/base/arg_error.h"
#include "lib/core/engine.h"
#include "lib/node/node.h"

/* NULL: that rank is dead, or device memory does not go by the channel to it. */
struct rk_peer *rk_device_peer(const struct rk_direct *x, int r)
{
    struct rk_peer *peer = rk_engine_peer(x->sched->all->ctx, rk_arena_world_rank(x->a, r));

    if (peer && peer->state == RK_PEER_NEW && rk_peer_try_connect(peer))
        return NULL;
    return peer && peer->state == RK_PEER_UP && peer->channel->device ? peer : NULL;
}

rank_status_t rk_device_read_failed(const struct rk_direct *x, int r, rank_status_t st)
{
    rk_node_check_deaths(x->a->node);
    if (st == RANK_ERR_PEER_DEAD || rk_node_is_dead(x->a->node, x->a->slot_of[r]))
        return RK_AGAIN;
    if (st != RANK_ERR_NOT_SUPPORTED)
        return st;
    return rk_fail(RANK_ERR_DEVICE, "device memory of rank %d can be mapped no longer, in a collective",
                   rk_arena_world_rank(x->a, r));
}

int rk_device_reducer_of(const struct rk_direct *x, int r)
{
    uint64_t device = rk_post_of(x, r)->device.device;
    int least = 0;

    while (device && least < r && rk_post_of(x, least)->device.device != device)
        least++;
    return device ? least : r;
}

char *rk_device_result(const struct rk_direct *x)
{
    return x->kind == RK_COLL_ALLREDUCE ? x->device->rbuf : x->device->own_scratch;
}

/* Of rank r from byte at on, for the kernel of this rank. *bytes: at most so many are in a row there. */
static rank_status_t device_operand(const struct rk_direct *x, int r, size_t at, const void **out, size_t *bytes)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    struct rk_peer *peer;
    size_t there = *bytes;
    rank_status_t st;

    *out = x->device->sbuf + at;
    if (r == x->a->me)
        return RANK_OK;
    peer = rk_device_peer(x, r);
    st = peer ? peer->channel->device->at(peer, p->input.name, p->input.offset + at, rk_device_result(x), out, &there) : RANK_ERR_PEER_DEAD;
    if (there < *bytes)
        *bytes = there;
    return st;
}

/* Elements lie in one mapping each: mappings are whole pages. */
static bool is_aligned(const struct rk_direct *x, const struct rk_device_post *p)
{
    return p->input.name && p->input.offset % x->elem == 0 && (x->kind != RK_COLL_ALLREDUCE || p->result.name);
}

bool rk_device_may_reduce_inputs(const struct rk_direct *x)
{
    const struct rk_device_call *d = x->device;
    bool reduces = rk_device_reducer_of(x, x->a->me) == x->a->me;
    const void *src[RK_KIND_OPERANDS];

    for (int r = 0; r < x->a->n; r++) {
        const struct rk_device_post *p = &rk_post_of(x, r)->device;
        struct rk_peer *peer = r == x->a->me ? NULL : rk_device_peer(x, r);
        size_t one = x->elem;

        if (!is_aligned(x, p) || (r != x->a->me && !peer))
            return false;
        if (peer && reduces && peer->channel->device->map(peer, p->input.name, p->input.offset, d->sent, rk_device_result(x)))
            return false;
        if (peer && x->kind == RK_COLL_ALLREDUCE && rk_device_reducer_of(x, r) == r &&
            peer->channel->device->map(peer, p->result.name, p->result.offset, x->bytes, d->rbuf))
            return false;
        if (reduces && device_operand(x, r, 0, &src[r], &one))
            return false;
    }
    return !reduces || d->kind->reduce(rk_device_result(x), src, x->a->n, 0, d->dtype, d->op, 0) == RANK_OK;
}

rank_status_t rk_device_reduce_inputs(const struct rk_direct *x, char *to, size_t at, size_t bytes)
{
    const struct rk_device_call *d = x->device;

    while (bytes) {
        const void *src[RK_KIND_OPERANDS];
        size_t len = bytes;
        rank_status_t st;

        for (int r = 0; r < x->a->n; r++) {
            st = device_operand(x, r, at, &src[r], &len);
            if (st)
                return rk_device_read_failed(x, r, st);
        }
        st = d->kind->reduce(to, src, x->a->n, len / x->elem, d->dtype, d->op, d->op == RANK_AVG ? x->a->n : 0);
        if (st)
            return st;
        to += len;
        at += len;
        bytes -= len;
    }
    return RANK_OK;
}

rank_status_t rk_device_read_result(const struct rk_direct *x, int r, size_t at, size_t bytes)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    struct rk_peer *peer = r == x->a->me ? NULL : rk_device_peer(x, r);
    rank_status_t st = RANK_ERR_PEER_DEAD;

    if (r == x->a->me || bytes == 0)
        return RANK_OK;
    if (peer)
        st = peer->channel->device->fetch(peer, p->result.name, p->result.offset + at, x->device->rbuf + at, x->device->kind, bytes);
    return st ? rk_device_read_failed(x, r, st) : RANK_OK;
}
