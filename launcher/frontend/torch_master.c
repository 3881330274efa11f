/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torch_master.c: set MASTER_ADDR and MASTER_PORT of a job. See torch_master.h.
 */
#include "launcher/frontend/torch_master.h"
#include "launcher/exec/environ.h"
#include "launcher/util/netif.h"
#include "launcher/util/pack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return whether each host reaches itself under this name. */
static bool is_loopback(const char *name)
{
    uint8_t bytes[16];

    if (inet_pton(AF_INET, name, bytes) == 1)
        return bytes[0] == 127;
    if (inet_pton(AF_INET6, name, bytes) == 1)
        return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)bytes);
    return strncmp(name, "localhost", 9) == 0 && (!name[9] || name[9] == '.');
}

/*
 * Use the name that the user gave. The host's own name may be unknown to other hosts, or an alias of its loopback
 * address, as in Debian.
 */
static char *address_of(const struct xr_plan *p, uint32_t host)
{
    const char *name = p->hosts.host[host].name, *at = strrchr(name, '@');
    char **own, *address;

    if (p->placement.host[host].ranks == p->placement.n)
        return strdup("127.0.0.1");
    if (at)
        name = at + 1;
    own = host == p->local && is_loopback(name) ? xr_netif_addresses(p->where->interface) : NULL;
    address = strdup(own ? own[0] : name);
    xr_strv_free(own);
    return address;
}

static bool put_address(char ***env, const struct xr_plan *plan, uint32_t host)
{
    char *address = address_of(plan, host), *text = NULL;
    bool ok = address && asprintf(&text, "MASTER_ADDR=%s", address) >= 0 && xr_environ_put(env, text);

    free(address);
    free(text);
    return ok;
}

/* A free port of the host: its agent reported one; for this host xrun finds one itself. */
static bool put_port(char ***env, const struct xr_plan *plan, uint32_t host)
{
    char text[64];

    snprintf(text, sizeof(text), "MASTER_PORT=%u", host == plan->local ? xr_netif_free_port() : plan->known[host].port);
    return xr_environ_put(env, text);
}

bool xr_torch_place(char ***env, const struct xr_plan *plan)
{
    uint32_t host = plan->placement.rank[0].host;

    return (xr_environ_value(*env, "MASTER_ADDR") || put_address(env, plan, host)) &&
           (xr_environ_value(*env, "MASTER_PORT") || put_port(env, plan, host));
}
