/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hang_report.h: what the ranks that make no progress wait for, as lines and as a cycle.
 *
 * It holds what the agents have reported of each rank. It decides nothing: its caller knows
 * whether the whole job waits.
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

/* size: ranks of the job. NULL without memory. */
struct xr_hang *xr_hang_open(uint32_t size);
/* No-op if NULL. */
void xr_hang_close(struct xr_hang *hang);

/* These ranks wait now. Without memory they are left out of the report. */
void xr_hang_add(struct xr_hang *hang, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait);
/* This rank does not wait any more. */
void xr_hang_drop(struct xr_hang *hang, uint32_t rank);
/* Ranks that wait. */
uint32_t xr_hang_count(const struct xr_hang *hang);

/* Call line once for all ranks that wait for the same, in the order of the first rank: at most XR_HANG_LINES times.
 * Returns how many ranks are left out. */
enum { XR_HANG_LINES = 32 };
uint32_t xr_hang_lines(const struct xr_hang *hang,
                       void (*line)(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait),
                       void *arg);
/* A cycle of waits as "0 -> 1 -> 2 -> 0". Returns false if there is none. */
bool xr_hang_cycle(const struct xr_hang *hang, char *out, size_t len);

#endif
