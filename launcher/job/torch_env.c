/* torch_env.c: see torch.h. */
#include "launcher/job/torch_env.h"
#include "launcher/util/pack.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/exec/environ.h"
#include "lib/base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_PORT 10000 /* below are the ports of known services */
#define TRIES 200

static const char *const names[XR_TORCH_VARS] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                                 "LOCAL_WORLD_SIZE"};

bool xr_torch_own(const char *s)
{
    size_t len = strcspn(s, "=");

    for (int i = 0; i < XR_TORCH_VARS; i++) {
        if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0)
            return true;
    }
    return false;
}

/* Bind to a port, or to any for 0; on IPv6 and thereby IPv4, or where there is no IPv6, on IPv4. */
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
 * Nothing keeps the port until rank 0 has it. So it is none of those that the
 * kernel itself gives out (to every connection that somebody opens), and which
 * one it is differs from job to job.
 */
uint16_t xr_torch_port(void)
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

void xr_torch_job(char **env)
{
    char **to = env;

    for (char **from = env; *from; from++) {
        if (xr_torch_own(*from))
            free(*from);
        else
            *to++ = *from;
    }
    *to = NULL;
}

/* One that each host takes for itself. */
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
 * By the name that the user gave, which needs not be the one that the host gives itself: that one others may not
 * know, or it may be a loopback's for itself, as Debian's is.
 */
static char *address_of(const struct xr_plan *p, uint32_t host)
{
    const char *name = p->hosts.host[host].name, *at = strrchr(name, '@');
    char **own, *address;

    if (p->placement.host[host].ranks == p->placement.n)
        return strdup("127.0.0.1");
    if (at)
        name = at + 1;
    own = host == p->local && is_loopback(name) ? xr_door_addresses(p->where->interface) : NULL;
    address = strdup(own ? own[0] : name);
    xr_strings_free(own);
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

/* Only an agent of that host can tell; xrun's own host is looked at by xrun itself. */
static bool put_port(char ***env, const struct xr_plan *plan, uint32_t host)
{
    char text[64];

    snprintf(text, sizeof(text), "MASTER_PORT=%u", host == plan->local ? xr_torch_port() : plan->known[host].port);
    return xr_environ_put(env, text);
}

bool xr_torch_place(char ***env, const struct xr_plan *plan)
{
    uint32_t host = plan->placement.rank[0].host;

    return (xr_environ_value(*env, "MASTER_ADDR") || put_address(env, plan, host)) &&
           (xr_environ_value(*env, "MASTER_PORT") || put_port(env, plan, host));
}

void xr_torch_rank(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   char *const out[XR_TORCH_VARS])
{
    const uint32_t values[XR_TORCH_VARS] = {rank, size, local_rank, local_size};

    for (int i = 0; i < XR_TORCH_VARS; i++)
        snprintf(out[i], 32, "%s=%u", names[i], values[i]);
}
