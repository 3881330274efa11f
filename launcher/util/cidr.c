/* SPDX-License-Identifier: BSD-3-Clause */
/* cidr.c: see cidr.h. */
#include "launcher/util/cidr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

bool xr_cidr_parse(const char *text, struct xr_cidr *out)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/'), *bits = slash ? slash + 1 : "";
    size_t len = slash ? (size_t)(slash - text) : 0, digits = strspn(bits, "0123456789");

    memset(out, 0, sizeof(*out));
    if (!slash || len >= sizeof(address) || digits < 1 || digits > 3 || bits[digits])
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    out->family = strchr(address, ':') ? AF_INET6 : AF_INET;
    out->bits = (unsigned)strtoul(bits, NULL, 10);
    return out->bits <= (out->family == AF_INET ? 32 : 128) && inet_pton(out->family, address, out->address) == 1;
}

bool xr_cidr_has(const struct xr_cidr *net, const struct sockaddr *a)
{
    const uint8_t *have = a->sa_family == AF_INET
                              ? (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
                              : (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    unsigned whole = net->bits / 8, rest = net->bits % 8;

    if (a->sa_family != net->family || memcmp(have, net->address, whole) != 0)
        return false;
    return rest == 0 || ((have[whole] ^ net->address[whole]) & (0xff00 >> rest) & 0xff) == 0;
}
