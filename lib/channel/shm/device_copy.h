/* SPDX-License-Identifier: BSD-3-Clause */
/* device_copy.h: move messages from and to device memory by one copy. */
#ifndef RK_CHANNEL_SHM_DEVICE_COPY_H
#define RK_CHANNEL_SHM_DEVICE_COPY_H

#include "lib/channel/shm/export_table.h"
#include "lib/channel/shm/shm_rndv.h"

struct rk_shm_push { /* RK_SHM_PUSH; the frame's tag: offset in the named memory */
    struct rk_shm_fetch fetch;
    uint64_t name;
};

/*
 * At the receiver: copy the payload, which is at r->at in the memory that name names. Returns false if it cannot be
 * mapped here: stream it. Otherwise the receive is complete.
 */
bool rk_device_fetch(struct rk_shm_recv *r, uint64_t name);

/* Copy bytes of a peer's memory to memory of a kind. RANK_ERR_NOT_SUPPORTED: it cannot be mapped here. */
rank_status_t rk_device_copy_in(struct rk_shm_ep *ep, uint64_t name, uint64_t offset, void *to, const struct rk_kind *kind, size_t bytes);

/* At the receiver, for a buffer in device memory: let the sender copy. Returns false if it cannot. */
bool rk_device_request_push(struct rk_shm_recv *r);
/* At the sender: handle a PUSH frame. */
void rk_device_push(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t offset, const struct rk_shm_push *p);
/* At the receiver: handle a PUSHED frame, which has a status. */
void rk_device_pushed(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t status, const struct rk_shm_fetch *f);

#endif
