/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_board.h: create an agent's status board, and format its entries.
 *
 * The board is shared memory that librank writes. See lib/base/status_page.h.
 */
#ifndef XR_LAUNCHER_MONITOR_STATUS_BOARD_H
#define XR_LAUNCHER_MONITOR_STATUS_BOARD_H

#include "lib/base/status_page.h"

struct xr_agent_board {
    int fd;
    size_t bytes;
    struct rk_board_head *head;
    struct rk_board_slot *slots;
};

/* Returns false on failure. The job runs without it. */
bool xr_agent_board_open(struct xr_agent_board *board, uint32_t slots);
/* No-op if it is not open. */
void xr_agent_board_close(struct xr_agent_board *board);

/* Format n ranks in ascending order, of which so many are listed: "5", "0-3,7", "0-3,7 and 12 more". */
void xr_status_board_ranks_text(const int32_t *ranks, uint32_t listed, uint32_t n, char *out, size_t len);
/* Format a wait: "allreduce #812 on world, waits for rank 5". */
void xr_status_board_wait_text(const struct rk_wait_for *what, char *out, size_t len);

#endif
