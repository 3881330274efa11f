/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_wire.c: see tcp_wire.h. */
#include "lib/channel/tcp/tcp_wire.h"

#include <string.h>

/* Are length, flags and status of the frame some that the kind may have? */
static bool payload_fits(const struct rk_hdr *hdr)
{
    switch (hdr->kind) {
    case RK_TCP_ANNOUNCE:
        return hdr->len == sizeof(struct rk_tcp_announce);
    case RK_TCP_PULL:
        return hdr->len == sizeof(struct rk_tcp_pull);
    case RK_TCP_DROP:
    case RK_TCP_BYE:
    case RK_TCP_READY:
        return hdr->len == 0;
    case RK_TCP_DATA:
        if (hdr->flags & RK_TCP_END)
            return hdr->len == 0 && rk_tcp_is_status((int32_t)hdr->src);
        return hdr->len <= RK_TCP_CHUNK_MAX && (hdr->len > 0 || (hdr->flags & RK_TCP_UNREAD));
    case RK_TCP_WRITE:
        return hdr->len > 0 && hdr->len <= RK_TCP_CHUNK_MAX;
    case RK_TCP_WRITTEN:
        return hdr->len == sizeof(struct rk_tcp_written);
    case RK_TCP_READ:
        return hdr->len == sizeof(struct rk_tcp_read);
    case RK_KIND_NONE:
    case RK_KIND_RNDV: /* never on the wire: channels make it */
        return false;
    default:
        return hdr->len <= RK_TCP_FRAME_MAX;
    }
}

long rk_tcp_next(const void *data, size_t len, struct rk_hdr *hdr)
{
    if (len < sizeof(*hdr))
        return 0;
    memcpy(hdr, data, sizeof(*hdr));
    return payload_fits(hdr) ? (long)rk_tcp_length(hdr->len) : -1;
}
