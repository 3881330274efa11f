/* SPDX-License-Identifier: BSD-3-Clause */
/* device_move.c: read the other ranks' device buffers, by one copy a block. */
#include "collectives/shm/direct_call.h"
#include "lib/core/engine.h"

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
        peer = rk_device_peer(x, r);
        if (!peer || peer->channel->device->map(peer, p->device.input.name, p->device.input.offset, p->sent, x->device->rbuf))
            return false;
    }
    return true;
}

rank_status_t rk_device_read(const struct rk_direct *x, int r, size_t from, char *to, size_t bytes)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    struct rk_peer *peer = rk_device_peer(x, r);
    rank_status_t st = RANK_ERR_PEER_DEAD;

    if (peer)
        st = peer->channel->device->fetch(peer, p->input.name, p->input.offset + from, to, x->device->kind, bytes);
    return st ? rk_device_read_failed(x, r, st) : RANK_OK;
}
