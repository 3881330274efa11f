/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_device.h: read device memory of the ranks of this node, by one copy.
 *
 * For the rooms above the channels. The owner exports a buffer and passes its name on; a reader maps it, and copies.
 */
#ifndef RK_CORE_PEER_DEVICE_H
#define RK_CORE_PEER_DEVICE_H

#include "lib/core/peer.h"
#include "lib/data/view.h"

/* An exported buffer. */
struct rk_device_export {
    uint64_t name;              /* 0: others cannot map it */
    uint64_t offset;            /* of the buffer in the memory that the name tells */
    uint64_t slots, generation; /* for the owner: what it holds */
};

struct rk_peer_device_ops {
    /* Export the memory of a view of one kind, and keep it exported until release. Sets name 0 if that is not possible. */
    void (*hold)(void *state, const struct rk_view *view, struct rk_device_export *out);
    void (*release)(void *state, const struct rk_device_export *held);
    /*
     * Map all bytes of a peer's buffer from offset on, for the device of near. RANK_ERR_NOT_SUPPORTED: they cannot be
     * mapped here. Other errors: the device fails.
     */
    rank_status_t (*map)(struct rk_peer *peer, uint64_t name, uint64_t offset, size_t bytes, const void *near);
    /*
     * A pointer to the byte at offset, for the device of near; *bytes, at most as given, are in a row there. It is valid until
     * the channel has mapped 32 other buffers, or has been idle.
     */
    rank_status_t (*at)(struct rk_peer *peer, uint64_t name, uint64_t offset, const void *near, const void **out, size_t *bytes);
    /* Copy them to memory of a kind. As map, which it repeats for what has been closed meanwhile. */
    rank_status_t (*fetch)(struct rk_peer *peer, uint64_t name, uint64_t offset, void *to, const struct rk_kind *kind, size_t bytes);
};

#endif
