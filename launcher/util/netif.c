/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netif.c: list this host's addresses, find a free port. See netif.h.
 */
#include "launcher/util/netif.h"
#include "launcher/util/cidr.h"
#include "launcher/util/strv.h"
#include "lib/base/clock.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_PORT 10000 /* below are the ports of known services */
#define TRIES 200

/* Return whether the address is in a network as "10.0.0.0/8". */
static bool in_network(const struct sockaddr *a, const char *network)
{
    struct xr_cidr net;

    return xr_cidr_parse(network, &net) && xr_cidr_has(&net, a);
}

static bool fits(const struct ifaddrs *i, const char *interface, bool loopback, int family)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        !!(i->ifa_flags & IFF_LOOPBACK) != loopback)
        return false;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(
            &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr))
        return false;
    return !interface || strcmp(interface, i->ifa_name) == 0 || in_network(i->ifa_addr, interface);
}

char **xr_netif_addresses(const char *interface)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;
    char **list = NULL;
    size_t n = 0;

    if (getifaddrs(&all))
        return NULL;
    for (int loopback = 0; loopback <= 1 && n == 0; loopback++) {
        for (size_t f = 0; f < 2; f++) {
            for (struct ifaddrs *i = all; i; i = i->ifa_next) {
                char text[INET6_ADDRSTRLEN];
                if (!fits(i, interface, loopback, families[f]))
                    continue;
                inet_ntop(families[f],
                          families[f] == AF_INET
                              ? (void *)&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr
                              : (void *)&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr,
                          text, sizeof(text));
                if (!xr_strv_add(&list, text))
                    break;
                n++;
            }
        }
    }
    freeifaddrs(all);
    return list;
}

bool xr_netif_none(const char *interface, char *err, size_t errlen)
{
    snprintf(err, errlen, "no network address %s%s is there to be reached at (--if)", interface ? "of " : "",
             interface ? interface : "");
    return false;
}

bool xr_netif_usable(const char *interface, char *err, size_t errlen)
{
    char **addresses = xr_netif_addresses(interface);

    if (!addresses)
        return xr_netif_none(interface, err, errlen);
    xr_strv_free(addresses);
    return true;
}

/* Bind to a port, 0 for any: on IPv6 including IPv4, or on IPv4 if there is no IPv6. */
static uint16_t try_port(uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof(six);
    uint16_t got = 0;
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (bind(fd, (struct sockaddr *)&six, sizeof(six)) == 0 &&
            getsockname(fd, (struct sockaddr *)&six, &len) == 0)
            got = ntohs(six.sin6_port);
    } else {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        len = sizeof(four);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&four, sizeof(four)) == 0 &&
            getsockname(fd, (struct sockaddr *)&four, &len) == 0)
            got = ntohs(four.sin_port);
    }
    if (fd >= 0)
        close(fd);
    return got;
}

/*
 * Nothing reserves the port until rank 0 binds it. So it is outside the kernel's ephemeral range, and differs
 * from job to job.
 */
uint16_t xr_netif_free_port(void)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned low = 32768, high = 60999, below, above, at;
    uint64_t seed = rk_clock_ns() ^ ((uint64_t)getpid() << 32);

    if (f) {
        if (fscanf(f, "%u %u", &low, &high) != 2 || low > high || high > 65535) {
            low = 32768;
            high = 60999;
        }
        fclose(f);
    }
    below = low > FIRST_PORT ? low - FIRST_PORT : 0;
    above = 65535 - (high > FIRST_PORT ? high : FIRST_PORT - 1);
    for (int i = 0; i < TRIES && below + above > 0; i++) {
        uint16_t got;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        at = (unsigned)((seed >> 33) % (below + above));
        got = try_port((uint16_t)(at < below ? FIRST_PORT + at : 65535 - (at - below)));
        if (got)
            return got;
    }
    return try_port(0);
}
