/* SPDX-License-Identifier: BSD-3-Clause */
/* decode.c: validate received bytes as a packet. */
#include "lib/channel/ucx/decode.h"

#include <string.h>

static bool kind_fits(uint8_t kind)
{
    return kind != RK_KIND_NONE && kind != RK_KIND_RNDV && kind < RK_UCX_KIND_END; /* RNDV comes as rndv only */
}

/* Check one frame with its payload at data + at. */
static bool frame_fits(const struct rk_hdr *hdr, size_t at, size_t len)
{
    return kind_fits(hdr->kind) && hdr->len <= len - at && (hdr->kind != RK_UCX_BYE || hdr->len == 0);
}

/* Check the frames behind the first. */
static bool chain_fits(const struct rk_hdr *first, const unsigned char *data, size_t len)
{
    size_t end = first->len;

    while (end < len) {
        struct rk_hdr hdr;
        size_t at = rk_ucx_pad(end);

        if (at > len || len - at < sizeof(hdr))
            return false;
        memcpy(&hdr, data + at, sizeof(hdr));
        at += sizeof(hdr);
        if (hdr.turn != 0 || !frame_fits(&hdr, at, len))
            return false;
        end = at + hdr.len;
    }
    return true;
}

bool rk_ucx_decode(const void *head, size_t head_len, const void *data, size_t len, bool rndv,
                   struct rk_ucx_packet *p)
{
    struct rk_ucx_head h;

    if (!head || head_len < sizeof(h))
        return false;
    memcpy(&h, head, sizeof(h));
    p->to = h.to;
    p->first = h.first;
    p->has_hello = head_len == RK_UCX_HEAD_MAX;
    if (p->has_hello) {
        memcpy(&p->hello, (const unsigned char *)head + sizeof(h), sizeof(p->hello));
        if (p->hello.magic != RK_UCX_MAGIC || p->hello.from.index == RK_UCX_NO_LINK)
            return false;
    } else if (head_len != sizeof(h) || h.to.index == RK_UCX_NO_LINK) {
        return false; /* without sender or receiver */
    }
    if (rndv) {
        p->data = NULL;
        p->len = p->at = 0;
        return h.first.kind == RK_KIND_RNDV && h.first.len == 0 && len > 0;
    }
    p->data = data;
    p->len = len;
    p->at = SIZE_MAX;
    if (len && !data)
        return false;
    return frame_fits(&h.first, 0, len) && chain_fits(&h.first, data, len);
}

bool rk_ucx_next(struct rk_ucx_packet *p, struct rk_hdr *hdr, const void **payload)
{
    size_t at;

    if (p->at == SIZE_MAX) {
        *hdr = p->first;
        at = 0;
    } else if (p->at < p->len) {
        at = rk_ucx_pad(p->at);
        memcpy(hdr, p->data + at, sizeof(*hdr));
        at += sizeof(*hdr);
    } else {
        return false;
    }
    *payload = hdr->len ? p->data + at : NULL;
    p->at = at + hdr->len;
    return true;
}

bool rk_ucx_card_decode(const void *bytes, size_t len, struct rk_ucx_card *card, const void **address)
{
    if (len <= sizeof(*card))
        return false;
    memcpy(card, bytes, sizeof(*card));
    *address = (const unsigned char *)bytes + sizeof(*card);
    return card->magic == RK_UCX_CARD_MAGIC;
}
