/*
 * netif.h: addresses of this host's network interfaces, and a free port.
 */
#ifndef XR_LAUNCHER_UTIL_NETIF_H
#define XR_LAUNCHER_UTIL_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * List the numeric addresses at which this host can be reached, or its loopback if it has no others.
 * interface: a name, or a network as 10.0.0.0/8; NULL: all. Free with xr_strings_free. Returns NULL if there is none.
 */
char **xr_netif_addresses(const char *interface);
/* Returns false, and says so in err, if no address fits interface. */
bool xr_netif_usable(const char *interface, char *err, size_t errlen);
/* Put into err that no address fits interface; returns false. */
bool xr_netif_none(const char *interface, char *err, size_t errlen);

/* A TCP port of this host that is free now, and hardly the same in two calls; 0: there is none. */
uint16_t xr_netif_free_port(void);

#endif
