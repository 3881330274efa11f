/* SPDX-License-Identifier: BSD-3-Clause */
/* stall_text.c: see stall_text.h. */
#include "launcher/monitor/stall_text.h"

#include <stdio.h>
#include <string.h>

void xr_duration_text(uint64_t ns, char *out, size_t len)
{
    double s = (double)ns * 1e-9;

    if (s < 100)
        snprintf(out, len, "%.1f s", s);
    else if (s < 6000)
        snprintf(out, len, "%d min %02d s", (int)(s / 60), (int)s % 60);
    else
        snprintf(out, len, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
}

const char *xr_stall_text_of_fence(const struct xr_fence_table *fences, uint32_t rank, uint32_t unnamed, struct xr_awaited *cache)
{
    static const char waits[] = " waits for ";
    const struct xr_fence *fence;

    if (!unnamed)
        return "";
    fence = xr_fence_of(fences, (enum xr_fence_space)(unnamed - 1), rank);
    if (!fence) /* branches further down have not arrived, or it has just ended */
        return " waits for other hosts";
    if (fence != cache->fence) {
        memcpy(cache->text, waits, sizeof(waits));
        xr_fence_awaited(fences, fence, cache->text + sizeof(waits) - 1, sizeof(cache->text) - sizeof(waits) + 1);
        cache->fence = fence;
    }
    return cache->text;
}

void xr_stall_text_unpack_peers(struct xr_unpacker *u, struct xr_hang_wait *w)
{
    uint32_t n = xr_unpack_u32(u);

    for (uint32_t i = 0; i < n && !u->failed; i++) {
        int32_t peer = (int32_t)xr_unpack_u32(u);
        if (i < RK_BOARD_PEERS)
            w->peers[w->npeers++] = peer;
    }
}
