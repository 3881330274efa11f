/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret_id.h: give objects ids that no other process can guess.
 *
 * For what a peer may name without being the one that it belongs to: registered memory, links of packets. An object that
 * is looked up together with its one peer has a counted id (handle.h).
 *
 * The n-th id of a table is n, enciphered by XTEA with a key of the kernel. So ids do not repeat, any number of them
 * reveals no other, and a dropped one is recognized without a record of it. A guess finds one of n objects once in
 * 2^64 / n tries.
 *
 * The nodes are in the objects. A table takes no lock.
 */
#ifndef RK_BASE_SECRET_ID_H
#define RK_BASE_SECRET_ID_H

#include "lib/base/handle.h"
#include "lib/base/hash_table.h"

struct rk_secret_ids {
    struct rk_hash_table by_id;
    uint32_t key[4];
    uint64_t count; /* ids given so far */
};

/* Returns false if the kernel gives no random bytes, which is reported. */
bool rk_secret_ids_open(struct rk_secret_ids *table);
/* All ids become invalid. */
void rk_secret_ids_close(struct rk_secret_ids *table);

/* Returns false if out of memory, which is reported. The index of an id is never UINT32_MAX, and not all is 0. */
bool rk_secret_id_put(struct rk_secret_ids *table, struct rk_hash_node *node, struct rk_id *id);
/* No-op if the node has no id. */
void rk_secret_id_drop(struct rk_secret_ids *table, struct rk_hash_node *node);

/* NULL: stale or invalid. */
RK_INLINE struct rk_hash_node *rk_secret_id_find(const struct rk_secret_ids *table, struct rk_id id)
{
    return rk_hash_find(&table->by_id, rk_id_pack(id));
}

/* Is it an id that the table has given, and that has been dropped? For any number of ids since; not for a hot path. */
bool rk_secret_id_was_dropped(const struct rk_secret_ids *table, struct rk_id id);

#endif
