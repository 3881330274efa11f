/* SPDX-License-Identifier: BSD-3-Clause */
/* secret_id.c: keep tables of secret ids. */
#include "lib/base/secret_id.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <errno.h>
#include <string.h>

/* XTEA: Needham and Wheeler, 1997. Blocks of 64 bits, and so a permutation of the counts. */
enum { ROUNDS = 32 };
#define DELTA 0x9e3779b9u

static uint32_t xtea_mix(uint32_t x)
{
    return ((x << 4 ^ x >> 5) + x);
}

static uint64_t secret_id_encipher(const uint32_t key[4], uint64_t block)
{
    uint32_t a = (uint32_t)(block >> 32), b = (uint32_t)block, sum = 0;

    for (int i = 0; i < ROUNDS; i++) {
        a += xtea_mix(b) ^ (sum + key[sum & 3]);
        sum += DELTA;
        b += xtea_mix(a) ^ (sum + key[sum >> 11 & 3]);
    }
    return (uint64_t)a << 32 | b;
}

static uint64_t secret_id_decipher(const uint32_t key[4], uint64_t block)
{
    uint32_t a = (uint32_t)(block >> 32), b = (uint32_t)block, sum = DELTA * ROUNDS;

    for (int i = 0; i < ROUNDS; i++) {
        b -= xtea_mix(a) ^ (sum + key[sum >> 11 & 3]);
        sum -= DELTA;
        a -= xtea_mix(b) ^ (sum + key[sum & 3]);
    }
    return (uint64_t)a << 32 | b;
}

bool rk_secret_ids_open(struct rk_secret_ids *table)
{
    memset(table, 0, sizeof(*table));
    if (rk_random_secret(table->key, sizeof(table->key)))
        return true;
    rk_fail(RANK_ERR_SYSTEM, "no random bytes (getrandom, /dev/urandom), which ids of memory need: %m%s", rk_refusal_remedy(errno));
    return false;
}

void rk_secret_ids_close(struct rk_secret_ids *table)
{
    rk_hash_close(&table->by_id);
    explicit_bzero(table, sizeof(*table));
}

bool rk_secret_id_put(struct rk_secret_ids *table, struct rk_hash_node *node, struct rk_id *id)
{
    do /* frames have other words for none */
        *id = rk_id_unpack(secret_id_encipher(table->key, ++table->count));
    while (id->index == UINT32_MAX || rk_id_pack(*id) == 0);
    if (rk_hash_put(&table->by_id, node, rk_id_pack(*id)))
        return true;
    rk_fail(RANK_ERR_NO_MEMORY, "out of memory for ids of objects");
    return false;
}

void rk_secret_id_drop(struct rk_secret_ids *table, struct rk_hash_node *node)
{
    rk_hash_remove(&table->by_id, node);
}

bool rk_secret_id_was_dropped(const struct rk_secret_ids *table, struct rk_id id)
{
    uint64_t count = secret_id_decipher(table->key, rk_id_pack(id));

    return count - 1 < table->count && !rk_secret_id_find(table, id);
}
