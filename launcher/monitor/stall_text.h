/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall_text.h: format durations and waits of ranks, and unpack them.
 */
#ifndef XR_LAUNCHER_MONITOR_STALL_TEXT_H
#define XR_LAUNCHER_MONITOR_STALL_TEXT_H

#include "launcher/monitor/hang_report.h"
#include "launcher/overlay/fence.h"

#include <stddef.h>
#include <stdint.h>

/* Format "12.3 s", "3 min 04 s" or "2 h 05 min". */
void xr_duration_text(uint64_t ns, char *out, size_t len);

/* The fence of the last text: ranks of a host often wait for the same. Zeroed: none. */
struct xr_awaited {
    const struct xr_fence *fence;
    char text[256];
};

/*
 * Name the hosts that are missing in the fence of a rank: " waits for host b". unnamed: the fence's space + 1, or 0:
 * its wait is no fence, which gives "". fences may be NULL. The text is valid until the next call with the cache.
 */
const char *xr_stall_text_of_fence(const struct xr_fence_table *fences, uint32_t rank, uint32_t unnamed, struct xr_awaited *cache);

/* Unpack u32 peers, then u32 each. Keeps at most RK_BOARD_PEERS of them. */
void xr_stall_text_unpack_peers(struct xr_unpacker *u, struct xr_hang_wait *wait);

#endif
