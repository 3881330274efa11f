/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_card.h: addresses, port and key of a rank, for ranks of other hosts. */
#ifndef RK_CONN_RANK_CARD_H
#define RK_CONN_RANK_CARD_H

#include "lib/rank.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RK_RANK_CARD_ADDRESSES = 8 };

struct rk_rank_card {
    uint32_t magic;
    uint16_t port, naddresses;
    uint64_t host; /* rk_address_host_id */
    unsigned char key[32];
    struct in6_addr at[RK_RANK_CARD_ADDRESSES]; /* IPv4 mapped */
};

/* Fill in all but the port: a new key, and the addresses of the interfaces in RANK_NICS, or of all if it has none. */
rank_status_t rk_rank_card_make(struct rk_rank_card *card, uint64_t host);
/* Are these bytes of another rank a card? */
bool rk_rank_card_is_valid(const struct rk_rank_card *card, size_t len);

/* How many addresses are there to try from mine? */
int rk_rank_card_tries(const struct rk_rank_card *card, const struct rk_rank_card *mine);
/* Get the address to try from mine, from number *next on, and set *next beyond it. Returns false if there is none. */
bool rk_rank_card_next(const struct rk_rank_card *card, const struct rk_rank_card *mine, int *next, struct sockaddr_storage *at);

#endif
