/*
 * notice.h: an event that a rank raised by PMIx, on its way to the ranks of other hosts.
 *
 * Its agent tells the front end, and that tells all agents; each hands it to
 * those of its own ranks that want to know. What the rank says with it is for
 * them alone: bytes that only PMIx reads.
 */
#ifndef RK_LAUNCHER_NOTICE_H
#define RK_LAUNCHER_NOTICE_H

#include "launcher/codec.h"

/* More than this a rank cannot say at once: messages between hosts have to stay short. */
#define RK_NOTICE_MAX (1u << 20)

struct rk_notice {
    uint32_t rank;  /* who raised it */
    uint32_t range; /* as PMIx numbers them */
    int code;
    const void *info;
    size_t len;
};

void rk_notice_pack(const struct rk_notice *notice, struct rk_packer *p);
/* info points into the message. False: it makes no sense in a job of size ranks. */
bool rk_notice_unpack(struct rk_unpacker *u, uint32_t size, struct rk_notice *out);

#endif
