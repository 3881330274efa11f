/*
 * cidr.h: a network as --if names it: 10.1.0.0/16, fd00::/8.
 */
#ifndef RK_LAUNCHER_UTIL_CIDR_H
#define RK_LAUNCHER_UTIL_CIDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct rk_network {
    int family;
    unsigned bits;
    uint8_t address[16];
};

/* False: it is none. */
bool rk_network_parse(const char *text, struct rk_network *out);
/* Is the address in it? */
bool rk_network_has(const struct rk_network *network, const struct sockaddr *address);

#endif
