/* SPDX-License-Identifier: BSD-3-Clause */
/* cma_iov.h: large messages of a node whose payload is not in one piece on one side or both. */
#ifndef RK_CHANNEL_SHM_CMA_IOV_H
#define RK_CHANNEL_SHM_CMA_IOV_H

#include "lib/channel/shm/shm.h"

/*
 * Fetch want bytes from the sender's memory into view, by the kernel's copy
 * from lists of pieces to lists of pieces. at: the payload's address there, or
 * that of its struct rk_pieces if in_pieces. RANK_ERR_CHANNEL: it cannot be
 * done this way.
 */
rank_status_t rk_shm_gather(struct rk_shm_ep *ep, uint64_t at, bool in_pieces,
                            const struct rk_view *view, uint64_t want);

#endif
