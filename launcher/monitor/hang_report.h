/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hang_report.h: keep and list the waits of stalled ranks; find a cycle.
 *
 * It stores the agents' reports. The caller decides whether the whole job waits.
 */
#ifndef XR_LAUNCHER_MONITOR_HANG_REPORT_H
#define XR_LAUNCHER_MONITOR_HANG_REPORT_H

#include "lib/base/status_page.h"

struct xr_hang;

/* One wait of one or more ranks. */
struct xr_hang_wait {
    uint64_t since_ns; /* no progress since then, on the front end's clock */
    const char *text;  /* "receive of 4 bytes on world, tag 0, waits for rank 1" */
    uint32_t unnamed;  /* as in XR_MSG_STALLED */
    uint32_t npeers;   /* must all act before the wait ends; at most RK_BOARD_PEERS are kept */
    int32_t peers[RK_BOARD_PEERS];
};

/* size: ranks of the job. Returns NULL if out of memory. */
struct xr_hang *xr_hang_open(uint32_t size);
/* No-op if NULL. */
void xr_hang_close(struct xr_hang *hang);

/* Store the wait of ranks. Out of memory: they are left out. */
void xr_hang_add(struct xr_hang *hang, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait);
/* Remove the wait of a rank. */
void xr_hang_drop(struct xr_hang *hang, uint32_t rank);
/* Return the number of ranks that wait. */
uint32_t xr_hang_count(const struct xr_hang *hang);

/*
 * Call line once for all ranks with the same wait, in the order of the first rank, at most XR_HANG_LINES times.
 * Returns the number of ranks left out.
 */
#define XR_HANG_LINES 32
uint32_t xr_hang_lines(const struct xr_hang *hang,
                       void (*line)(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait),
                       void *arg);
/* Format a cycle of waits as "0 -> 1 -> 2 -> 0". Returns false if there is none. */
bool xr_hang_cycle(const struct xr_hang *hang, char *out, size_t len);

#endif
