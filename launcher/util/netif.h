/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netif.h: list addresses of this host's interfaces, and find a free port.
 */
#ifndef XR_LAUNCHER_UTIL_NETIF_H
#define XR_LAUNCHER_UTIL_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Return the numeric addresses of this host, or its loopback if it has no others. interface: a name, or a
 * network as 10.0.0.0/8; NULL: all. Caller frees with xr_strv_free. Returns NULL if there is none.
 */
char **xr_netif_addresses(const char *interface);
/* Returns false, with a text in err, if no address fits interface. */
bool xr_netif_usable(const char *interface, char *err, size_t errlen);
/* Format the text that no address fits interface. Always returns false. */
bool xr_netif_none(const char *interface, char *err, size_t errlen);

/* Return a TCP port of this host that is free now, rarely the same in two calls; 0: none. */
uint16_t xr_netif_free_port(void);

#endif
