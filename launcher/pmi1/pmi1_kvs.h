/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_kvs.h: keep the key-value space (KVS) of a job's PMI-1 clients.
 *
 * All ranks can get what one has put. The pairs that the ranks of this host have put
 * since the last barrier form a blob, which the other hosts merge. Concatenated
 * blobs are a blob.
 */
#ifndef XR_LAUNCHER_PMI1_PMI1_KVS_H
#define XR_LAUNCHER_PMI1_PMI1_KVS_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limits that clients get from get_maxes. */
#define XR_PMI1_KEY_MAX 64
#define XR_PMI1_VALUE_MAX 1024

struct xr_pmi1_kvs;

/* limit: bytes of keys and values. keep: blobs will be needed. */
rank_status_t xr_pmi1_kvs_create(size_t limit, bool keep, struct xr_pmi1_kvs **out);
void xr_pmi1_kvs_destroy(struct xr_pmi1_kvs *space);

/* Set or replace a value. RANK_ERR_ARG: too long. RANK_ERR_NO_MEMORY: the limit is reached, or there is no memory. */
rank_status_t xr_pmi1_kvs_set(struct xr_pmi1_kvs *space, const char *key, const char *value);
/* The same, and add the pair to the blob. */
rank_status_t xr_pmi1_kvs_put(struct xr_pmi1_kvs *space, const char *key, const char *value);
/* NULL if there is no such key. */
const char *xr_pmi1_kvs_get(const struct xr_pmi1_kvs *space, const char *key);

/* The pairs put since the last call. Caller frees. NULL and 0 if there are none. */
void *xr_pmi1_kvs_blob(struct xr_pmi1_kvs *space, size_t *len);
/* Merge one or more blobs. Returns RANK_ERR_ARG if they are malformed. */
rank_status_t xr_pmi1_kvs_merge(struct xr_pmi1_kvs *space, const void *blob, size_t len);

#endif
