/* event.c: see notice.h. */
#include "launcher/overlay/event.h"

void rk_notice_pack(const struct rk_notice *n, struct rk_packer *p)
{
    rk_pack_u32(p, n->rank);
    rk_pack_u32(p, (uint32_t)n->code);
    rk_pack_u32(p, n->range);
    rk_pack_u32(p, n->wide);
    rk_pack_bytes(p, n->info, n->len);
}

bool rk_notice_unpack(struct rk_unpacker *u, uint32_t size, struct rk_notice *out)
{
    out->rank = rk_unpack_u32(u);
    out->code = (int)rk_unpack_u32(u);
    out->range = rk_unpack_u32(u);
    out->wide = rk_unpack_u32(u) != 0;
    out->info = rk_unpack_bytes(u, &out->len);
    return rk_unpack_done(u) && out->rank < size && out->range <= UINT8_MAX && out->len <= RK_NOTICE_MAX;
}
