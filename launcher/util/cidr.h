/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cidr.h: match addresses against a network of --if: 10.1.0.0/16, fd00::/8.
 */
#ifndef XR_LAUNCHER_UTIL_CIDR_H
#define XR_LAUNCHER_UTIL_CIDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct xr_cidr {
    int family;
    unsigned bits;
    uint8_t address[16];
};

/* Returns false if text is no network. */
bool xr_cidr_parse(const char *text, struct xr_cidr *out);
/* Return whether the address is in the network. */
bool xr_cidr_has(const struct xr_cidr *network, const struct sockaddr *address);

#endif
