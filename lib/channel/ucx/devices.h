/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h: UCX's transports and devices, out of what its context prints about itself: it tells of them in no other way.
 * No UCX here, no state: a unit test reads texts of machines that have such devices.
 */
#ifndef RK_CHANNEL_UCX_DEVICES_H
#define RK_CHANNEL_UCX_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RK_UCX_BY_DEVICE = 1,  /* puts and gets that a network device does, which looks at keys */
    RK_UCX_BY_SOFTWARE = 2 /* leads to other hosts, but puts and gets would be emulated */
};

/* The next "tcp/eth0" of lines "#  resource 2 : md 1 dev 2 flags -- tcp/eth0", from *text on; NULL: there is none. */
const char *rk_ucx_next_device(const char **text, size_t *len);
/* Which sorts of transports there are. */
unsigned rk_ucx_sorts(const char *text);

#endif
