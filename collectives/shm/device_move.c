/* SPDX-License-Identifier: BSD-3-Clause */
/* device_move.c: read the other ranks' device buffers, by one copy a block. */
#include "collectives/shm/direct_call.h"
#include "lib/base/log.h"
#include "lib/core/engine.h"
#include "lib/node/node.h"

/* NULL: that rank is dead, or device memory does not go by the channel to it. */
static struct rk_peer *device_peer(const struct rk_direct *x, int r)
{
    struct rk_peer *peer = rk_engine_peer(x->sched->all->ctx, rk_arena_world_rank(x->a, r));

    if (peer && peer->state == RK_PEER_NEW && rk_peer_try_connect(peer))
        return NULL;
    return peer && peer->state == RK_PEER_UP && peer->channel->device ? peer : NULL;
}

/* Does this rank read the buffer of that one? */
static bool reads_from(const struct rk_direct *x, int r)
{
    if (r == x->a->me || !x->device->rbuf || rk_post_of(x, r)->sent == 0)
        return false;
    return rk_direct_one_source(x) ? r == x->root : !rk_direct_one_reader(x) || x->a->me == x->root;
}

bool rk_device_may_read(const struct rk_direct *x)
{
    for (int r = 0; r < x->a->n; r++) {
        const struct rk_post *p = rk_post_of(x, r);
        struct rk_peer *peer;

        if (!reads_from(x, r))
            continue;
        peer = device_peer(x, r);
        if (!peer || peer->channel->device->map(peer, p->device.name, p->device.offset, p->sent, x->device->rbuf))
            return false;
    }
    return true;
}

rank_status_t rk_device_read(const struct rk_direct *x, int r, size_t from, char *to, size_t bytes)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    struct rk_peer *peer = device_peer(x, r);
    rank_status_t st = RANK_ERR_PEER_DEAD;

    if (peer)
        st = peer->channel->device->fetch(peer, p->name, p->offset + from, to, x->device->kind, bytes);
    if (!st)
        return RANK_OK;
    rk_node_check_deaths(x->a->node);
    if (st == RANK_ERR_PEER_DEAD || rk_node_is_dead(x->a->node, x->a->slot_of[r]))
        return RK_AGAIN;
    if (st == RANK_ERR_NOT_SUPPORTED) {
        rk_error("device memory of rank %d can be mapped no longer, in a collective", rk_arena_world_rank(x->a, r));
        st = RANK_ERR_DEVICE;
    }
    return st;
}
