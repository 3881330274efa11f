/* SPDX-License-Identifier: BSD-3-Clause */
/* device_ops.c: let the rooms above read device memory of the node's ranks. */
#include "lib/channel/shm/device_copy.h"
#include "lib/core/peer_device.h"

static void ops_hold(void *state, const struct rk_view *view, struct rk_device_export *out)
{
    rk_export_hold(state, view, out);
}

static void ops_release(void *state, const struct rk_device_export *held)
{
    rk_export_release(state, held);
}

static rank_status_t ops_map(struct rk_peer *peer, uint64_t name, uint64_t offset, size_t bytes, const void *near)
{
    struct rk_shm_ep *ep = rk_shm_ep_of(peer);
    struct rk_far far = {name, offset};

    while (bytes) {
        const struct rk_import *m;
        rank_status_t st = ep ? rk_import(ep, &far, near, &m) : RANK_ERR_PEER_DEAD;
        size_t n;

        if (st)
            return st;
        n = m->bytes - far.offset < bytes ? m->bytes - far.offset : bytes;
        far.offset += n;
        bytes -= n;
    }
    return RANK_OK;
}

static rank_status_t ops_at(struct rk_peer *peer, uint64_t name, uint64_t offset, const void *near, const void **out, size_t *bytes)
{
    struct rk_shm_ep *ep = rk_shm_ep_of(peer);
    struct rk_far far = {name, offset};
    const struct rk_import *m;
    rank_status_t st = ep ? rk_import(ep, &far, near, &m) : RANK_ERR_PEER_DEAD;

    if (st)
        return st;
    *out = m->at + far.offset;
    if (*bytes > m->bytes - far.offset)
        *bytes = m->bytes - far.offset;
    return RANK_OK;
}

static rank_status_t ops_fetch(struct rk_peer *peer, uint64_t name, uint64_t offset, void *to, const struct rk_kind *kind, size_t bytes)
{
    struct rk_shm_ep *ep = rk_shm_ep_of(peer);

    return ep ? rk_device_copy_in(ep, name, offset, to, kind, bytes) : RANK_ERR_PEER_DEAD;
}

const struct rk_peer_device_ops rk_shm_device_ops = {.hold = ops_hold, .release = ops_release, .map = ops_map, .at = ops_at, .fetch = ops_fetch};
