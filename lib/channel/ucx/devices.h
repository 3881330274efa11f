/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h: parse the transports and devices that a UCX context prints.
 *
 * UCX has no other interface for them. No UCX calls and no state here: a unit test parses texts of other machines.
 */
#ifndef RK_CHANNEL_UCX_DEVICES_H
#define RK_CHANNEL_UCX_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

/* Next "tcp/eth0" of lines like "#  resource 2 : md 1 dev 2 flags -- tcp/eth0", from *text on; NULL: none. */
const char *rk_ucx_next_device(const char **text, size_t *len);
/* Does the text of a context list a network device that does puts and gets itself, and checks keys? */
bool rk_ucx_lists_rdma(const char *text);
/* Does the text of a context list a device of UCX's tcp? */
bool rk_ucx_lists_tcp(const char *text);
/*
 * Remove tcp from a list of UCX_TLS ("rc,tcp", "^shm", "all"). Returns "" if nothing is left; NULL: out of memory. Caller
 * frees.
 */
char *rk_ucx_tls_without_tcp(const char *tls);

/*
 * net_devices.c: make UCX's list from a comma list of NICs: an RDMA device becomes its ports, as sysfs ("/sys") has
 * them. NULL: out of memory. Caller frees.
 */
char *rk_ucx_net_devices(const char *nics, const char *sysfs);
/* Return whether the text of a context has a device of such a list. */
bool rk_ucx_has_net_device(const char *text, const char *words);

#endif
