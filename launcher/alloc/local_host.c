/* SPDX-License-Identifier: BSD-3-Clause */
/* local_host.c: see local_host.h. */
#include "launcher/alloc/local_host.h"
#include "lib/base/fnv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool resolves_elsewhere(struct xr_local_host *h, const char *name);

void xr_local_host_find(struct xr_local_host *h)
{
    memset(h, 0, sizeof(*h));
    h->elsewhere = resolves_elsewhere;
    if (gethostname(h->name, sizeof(h->name) - 1) || !h->name[0])
        snprintf(h->name, sizeof(h->name), "localhost");
}

static const struct ifaddrs *addresses(struct xr_local_host *h)
{
    if (!h->addresses && getifaddrs(&h->addresses))
        h->addresses = NULL;
    return h->addresses;
}

void xr_local_host_clear(struct xr_local_host *h)
{
    if (!h)
        return;
    if (h->addresses)
        freeifaddrs(h->addresses);
    memset(h, 0, sizeof(*h));
}

/* Return the bytes of an interface's address, or NULL. */
static const void *local_host_bytes_of(const struct ifaddrs *i, int *family, size_t *len)
{
    *family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    *len = *family == AF_INET ? 4 : 16;
    if (*family == AF_INET)
        return &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
    if (*family == AF_INET6)
        return &((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
    return NULL;
}

static bool has_address(struct xr_local_host *h, int want_family, const void *want)
{
    int family;
    size_t len;

    for (const struct ifaddrs *i = addresses(h); i; i = i->ifa_next) {
        const void *have = local_host_bytes_of(i, &family, &len);
        if (have && family == want_family && memcmp(have, want, len) == 0)
            return true;
    }
    return false;
}

static bool own_address(struct xr_local_host *h, const char *name)
{
    int family = strchr(name, ':') ? AF_INET6 : AF_INET;
    uint8_t want[16];

    return inet_pton(family, name, want) == 1 && has_address(h, family, want);
}

/* 127.0.1.1, where some systems keep the host's own name, belongs to no interface. */
static bool is_loopback(const struct sockaddr_in *at)
{
    return ntohl(at->sin_addr.s_addr) >> 24 == 127;
}

/* Return whether the name resolves to another host. A name that does not resolve belongs to no other host. */
static bool resolves_elsewhere(struct xr_local_host *h, const char *name)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    bool own = false;

    if (getaddrinfo(name, NULL, &hints, &all) || !all)
        return false;
    for (const struct addrinfo *a = all; a && !own; a = a->ai_next) {
        if (a->ai_family == AF_INET) {
            const struct sockaddr_in *at = (const void *)a->ai_addr;
            own = is_loopback(at) || has_address(h, AF_INET, &at->sin_addr);
        } else if (a->ai_family == AF_INET6) {
            const struct sockaddr_in6 *at = (const void *)a->ai_addr;
            own = has_address(h, AF_INET6, &at->sin6_addr);
        }
    }
    freeaddrinfo(all);
    return !own;
}

bool xr_local_host_is(struct xr_local_host *h, const char *name)
{
    const char *own = h->name;
    size_t n = strcspn(own, "."), m = strcspn(name, ".");

    if (strcmp(name, "localhost") == 0 || strcmp(name, own) == 0)
        return true;
    /* "node1" and "node1.cluster" are one, "node1.a" and "node1.b" are two. */
    if (n == m && strncmp(name, own, n) == 0 && (!name[m] || !own[n]) && !isdigit((unsigned char)name[0]))
        return !name[m] || !h->elsewhere || !h->elsewhere(h, name);
    return own_address(h, name);
}

const char *xr_local_host_domain(const char *name)
{
    const char *dot = strchr(name, '.');
    uint8_t bytes[16];

    if (!dot || inet_pton(strchr(name, ':') ? AF_INET6 : AF_INET, name, bytes) == 1)
        return NULL;
    return dot + 1;
}

bool xr_local_host_differ(const char *a, const char *b)
{
    const char *x = xr_local_host_domain(a), *y = xr_local_host_domain(b);

    return x && y && strcmp(x, y) != 0;
}

/* -------------------------------------------------------------- machine */

static bool mix_file(uint64_t *h, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[64];
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

    if (fd >= 0)
        close(fd);
    if (n > 0)
        *h = rk_fnv64(*h, text, (size_t)n);
    return n > 0;
}

static bool mix_namespace(uint64_t *h, const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return false;
    *h = rk_fnv64(*h, &st.st_ino, sizeof(st.st_ino));
    return true;
}

/*
 * Return a sum of all addresses, in any order; 0: none. Machines cloned while they ran share a boot id and
 * namespace numbers, but need different addresses to communicate.
 */
static uint64_t sum_addresses(void)
{
    struct xr_local_host h = {.addresses = NULL};
    uint64_t sum = 0;
    int family;
    size_t len;

    for (const struct ifaddrs *i = addresses(&h); i; i = i->ifa_next) {
        const void *bytes = local_host_bytes_of(i, &family, &len);
        if (bytes && !(i->ifa_flags & IFF_LOOPBACK))
            sum += rk_fnv64((uint64_t)family, bytes, len);
    }
    xr_local_host_clear(&h);
    return sum;
}

uint64_t xr_local_host_machine(void)
{
    uint64_t h = RK_FNV64_START, sum;

    if (!mix_file(&h, "/proc/sys/kernel/random/boot_id") || !mix_namespace(&h, "/proc/self/ns/net") ||
        !mix_namespace(&h, "/proc/self/ns/pid"))
        return 0;
    sum = sum_addresses();
    if (!sum)
        return 0;
    h = rk_fnv64(h, &sum, sizeof(sum));
    return h ? h : 1;
}
