/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h: parse, resolve and print addresses of listeners.
 *
 * An address is "host:port", "[v6]:port" or ":port". The last one is for listening: all interfaces, both families.
 * Port 0 is for listening, too: the kernel chooses. Names of services are no ports.
 * Thread-safe.
 */
#ifndef RK_CONN_ADDRESS_H
#define RK_CONN_ADDRESS_H

#include "lib/rank.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct rk_address {
    char host[256]; /* without brackets; empty: all interfaces */
    uint16_t port;
};

/* Bytes of rk_address_text: brackets, address, interface, port, NUL. */
enum { RK_ADDRESS_TEXT = 1 + 46 + 1 + 16 + 1 + 1 + 5 + 1 };

/*
 * Parse an address. A failed call sets why, one line: the cause and the remedy.
 * RANK_ERR_ARG: malformed, or not for this use. Resolves no names.
 */
rank_status_t rk_address_parse(const char *text, bool listens, struct rk_address *out, char *why, size_t len);

/*
 * Resolve an address. The caller frees the list by freeaddrinfo. May wait for a name server: hold no lock.
 * All interfaces: [::] comes first. A socket there with IPV6_V6ONLY off serves both families; 0.0.0.0, the second
 * entry, is for hosts without IPv6.
 * A failed call sets why and no list. RANK_ERR_UNREACHABLE: the name is unknown or no name server answers.
 * RANK_ERR_NO_MEMORY, RANK_ERR_SYSTEM.
 */
rank_status_t rk_address_resolve(const struct rk_address *address, bool listens, struct addrinfo **out, char *why,
                                 size_t len);

/* Begin to connect a socket, without waiting. Returns the descriptor, or -1 with errno. */
int rk_address_connect(const struct sockaddr *address);

/*
 * Write "1.2.3.4:5" or "[::1]:5", which rk_address_parse reads. IPv4 within IPv6 is written as IPv4.
 * "?" if the family is another one.
 */
void rk_address_text(const struct sockaddr *address, char *text, size_t len);

/* Can only processes of this host use the address? False for all interfaces. */
bool rk_address_is_loopback(const struct sockaddr *address);

/*
 * Return a hash of the kernel's boot id: equal in all processes of a running kernel, containers included.
 * 0 if it cannot be read; two zeros are not the same host.
 */
uint64_t rk_address_host_id(void);

#endif
