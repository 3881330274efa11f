/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_board.h: the status board of an agent's ranks (lib/base/status_page.h), made by the
 * agent, and what its entries say as text.
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

/* false: there is none, and nothing depends on it. */
bool xr_agent_board_open(struct xr_agent_board *board, uint32_t slots);
/* One that is not open is fine. */
void xr_agent_board_close(struct xr_agent_board *board);

/* "5", "0-3,7", "0-3,7 and 12 more": n ranks in ascending order, of which so many are listed. */
void xr_ranks_text(const int32_t *ranks, uint32_t listed, uint32_t n, char *out, size_t len);
/* "allreduce #812 on world, waits for rank 5" */
void xr_wait_text(const struct rk_wait_for *what, char *out, size_t len);

#endif
