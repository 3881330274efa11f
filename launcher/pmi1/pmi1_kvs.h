/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_kvs.h: the key-value space of a job's PMI-1 clients.
 *
 * What one puts all can get. Of what the ranks of this host have put since the
 * last barrier the space keeps one blob, which the other hosts take in. Blobs
 * put behind each other are one blob.
 */
#ifndef XR_LAUNCHER_PMI1_PMI1_KVS_H
#define XR_LAUNCHER_PMI1_PMI1_KVS_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What clients are told, and held to. */
#define XR_PMI1_KEY_MAX 64
#define XR_PMI1_VALUE_MAX 1024

struct xr_pmi1_space;

/* limit: bytes of keys and values. keep: blobs will be asked for. */
rank_status_t xr_pmi1_space_create(size_t limit, bool keep, struct xr_pmi1_space **out);
void xr_pmi1_space_destroy(struct xr_pmi1_space *space);

/* A key that is there gets the new value. RANK_ERR_ARG: too long. RANK_ERR_NO_MEMORY: the limit, or
 * none. */
rank_status_t xr_pmi1_space_set(struct xr_pmi1_space *space, const char *key, const char *value);
/* The same, and the other hosts will be told. */
rank_status_t xr_pmi1_space_put(struct xr_pmi1_space *space, const char *key, const char *value);
/* NULL: not there. */
const char *xr_pmi1_space_get(const struct xr_pmi1_space *space, const char *key);

/* What was put since the last call; the caller frees it. NULL and 0 if nothing was. */
void *xr_pmi1_space_blob(struct xr_pmi1_space *space, size_t *len);
/* Take in a blob, or several. RANK_ERR_ARG: it is none. */
rank_status_t xr_pmi1_space_merge(struct xr_pmi1_space *space, const void *blob, size_t len);

#endif
