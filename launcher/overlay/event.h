/*
 * event.h: an event that a rank raised by PMIx, on its way to the ranks of other hosts and of other jobs.
 *
 * Its agent tells the front end, and that tells all agents; each hands it to
 * those of its own ranks that want to know. One whose range does not end with
 * the job goes on to the hub, and from there to the front ends of all other
 * jobs. What the rank says with it is for those who hear it alone: bytes that
 * only PMIx reads, which holds a range of named processes against them as well.
 */
#ifndef XR_LAUNCHER_OVERLAY_EVENT_H
#define XR_LAUNCHER_OVERLAY_EVENT_H

#include "launcher/util/pack.h"

/* More than this a rank cannot say at once: messages between hosts have to stay short. */
#define XR_NOTICE_MAX (1u << 20)

struct xr_notice {
    uint32_t rank;  /* who raised it */
    uint32_t range; /* as PMIx numbers them */
    bool wide;      /* which goes beyond the job */
    int code;
    const void *info;
    size_t len;
};

void xr_notice_pack(const struct xr_notice *notice, struct xr_packer *p);
/* info points into the message. False: it makes no sense in a job of size ranks (of another job: UINT32_MAX). */
bool xr_notice_unpack(struct xr_unpacker *u, uint32_t size, struct xr_notice *out);

#endif
