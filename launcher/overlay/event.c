/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c: see event.h. */
#include "launcher/overlay/event.h"

void xr_event_pack(const struct xr_event *n, struct xr_packer *p)
{
    xr_pack_u32(p, n->rank);
    xr_pack_u32(p, (uint32_t)n->code);
    xr_pack_u32(p, n->range);
    xr_pack_u32(p, n->wide);
    xr_pack_bytes(p, n->info, n->len);
}

bool xr_event_unpack(struct xr_unpacker *u, uint32_t size, struct xr_event *out)
{
    out->rank = xr_unpack_u32(u);
    out->code = (int)xr_unpack_u32(u);
    out->range = xr_unpack_u32(u);
    out->wide = xr_unpack_u32(u) != 0;
    out->info = xr_unpack_bytes(u, &out->len);
    return xr_unpack_done(u) && out->rank < size && out->range <= UINT8_MAX && out->len <= XR_EVENT_MAX;
}
