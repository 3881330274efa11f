/* SPDX-License-Identifier: BSD-3-Clause */
/* cma_iov.h: copy large noncontiguous payloads between ranks of a node. */
#ifndef RK_CHANNEL_SHM_CMA_IOV_H
#define RK_CHANNEL_SHM_CMA_IOV_H

#include "lib/channel/shm/shm.h"

/*
 * Fetch want bytes from the sender's memory into view, by CMA from list to list. at: address there of the payload,
 * or of its struct rk_pieces if in_pieces. RANK_ERR_CHANNEL: not possible this way.
 */
rank_status_t rk_shm_gather(struct rk_shm_ep *ep, uint64_t at, bool in_pieces,
                            const struct rk_view *view, uint64_t want);

#endif
