/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_card.c: make the card of a rank, and choose the addresses of another one's. */
#include "lib/conn/rank_card.h"
#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

enum { MAGIC = 0x31544b52 };

static bool is_chosen(const char *name)
{
    const char *nics = rk_conf.nics;

    for (size_t len; *nics; nics += len + (nics[len] == ',')) {
        len = strcspn(nics, ",");
        if (strlen(name) == len && memcmp(nics, name, len) == 0)
            return true;
    }
    return false;
}

static struct in6_addr interface_address(const struct sockaddr *a)
{
    struct in6_addr at = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

    if (a->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    memcpy(&at.s6_addr[12], &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    return at;
}

static bool is_usable(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET)
        return true;
    return i->ifa_addr->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr);
}

static void list_addresses(struct rk_rank_card *c)
{
    struct ifaddrs *all = NULL;
    bool chosen = false;

    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        chosen = chosen || (is_usable(i) && is_chosen(i->ifa_name));
    for (const struct ifaddrs *i = all; i && c->naddresses < RK_RANK_CARD_ADDRESSES; i = i->ifa_next) {
        if (is_usable(i) && (!chosen || is_chosen(i->ifa_name)))
            c->at[c->naddresses++] = interface_address(i->ifa_addr);
    }
    freeifaddrs(all);
}

rank_status_t rk_rank_card_make(struct rk_rank_card *card, uint64_t host)
{
    *card = (struct rk_rank_card){.magic = MAGIC, .host = host};
    list_addresses(card);
    if (!rk_random_secret(card->key, sizeof(card->key)))
        return rk_fail(RANK_ERR_SYSTEM, "no random bytes (getrandom, /dev/urandom) for the key of this rank: %m%s",
                       rk_refusal_remedy(errno));
    return RANK_OK;
}

bool rk_rank_card_is_valid(const struct rk_rank_card *card, size_t len)
{
    return len == sizeof(*card) && card->magic == MAGIC && card->naddresses <= RK_RANK_CARD_ADDRESSES;
}

/* Ranks of this host may share its loopback, the first address then. */
static bool shares_host(const struct rk_rank_card *card, const struct rk_rank_card *mine)
{
    return card->host && card->host == mine->host;
}

/* Is it an address of this host, while the rank is on another one? Both may have one for their containers. */
static bool leads_back(const struct rk_rank_card *card, const struct rk_rank_card *mine, const struct in6_addr *at)
{
    for (int i = 0; i < mine->naddresses && card->host != mine->host; i++) {
        if (memcmp(&mine->at[i], at, sizeof(*at)) == 0)
            return true;
    }
    return false;
}

int rk_rank_card_tries(const struct rk_rank_card *card, const struct rk_rank_card *mine)
{
    return card->naddresses + shares_host(card, mine);
}

static void set_address(struct sockaddr_storage *to, const struct in6_addr *at, uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = *at, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

    memset(to, 0, sizeof(*to));
    memcpy(&four.sin_addr, &at->s6_addr[12], 4);
    if (IN6_IS_ADDR_V4MAPPED(at))
        memcpy(to, &four, sizeof(four));
    else
        memcpy(to, &six, sizeof(six));
}

bool rk_rank_card_next(const struct rk_rank_card *card, const struct rk_rank_card *mine, int *next, struct sockaddr_storage *at)
{
    static const struct in6_addr loopback = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    int here = shares_host(card, mine);

    for (; *next < card->naddresses + here; ++*next) {
        const struct in6_addr *a = *next < here ? &loopback : &card->at[*next - here];

        if (leads_back(card, mine, a))
            continue;
        ++*next;
        set_address(at, a, card->port);
        return true;
    }
    return false;
}
