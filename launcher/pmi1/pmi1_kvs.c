/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi1_kvs.c: keep keys in a hash table that doubles as it fills. See pmi1_kvs.h. */
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/util/pack.h"
#include "lib/base/fnv.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_AT_FIRST 64

struct pair {
    struct pair *next;
    uint32_t hash;
    char *value;
    char key[];
};

struct xr_pmi1_kvs {
    struct pair **bucket;
    size_t nbuckets, npairs; /* a power of two */
    size_t bytes, limit;
    bool keep;
    struct xr_packer fresh;
};

static uint32_t hash_of(const char *key)
{
    return rk_fnv32(RK_FNV32_START, key, strlen(key));
}

rank_status_t xr_pmi1_kvs_create(size_t limit, bool keep, struct xr_pmi1_kvs **out)
{
    struct xr_pmi1_kvs *s = calloc(1, sizeof(*s));

    if (s) {
        s->limit = limit;
        s->keep = keep;
        s->nbuckets = BUCKETS_AT_FIRST;
        s->bucket = calloc(s->nbuckets, sizeof(struct pair *));
    }
    if (!s || !s->bucket) {
        free(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void xr_pmi1_kvs_destroy(struct xr_pmi1_kvs *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nbuckets; i++) {
        for (struct pair *p = s->bucket[i], *next; p; p = next) {
            next = p->next;
            free(p->value);
            free(p);
        }
    }
    free(s->bucket);
    xr_packer_free(&s->fresh);
    free(s);
}

/* The link that points to the pair with this key, or to which it would be added. */
static struct pair **pmi1_kvs_place(const struct xr_pmi1_kvs *s, const char *key, uint32_t hash)
{
    struct pair **at = &s->bucket[hash & (s->nbuckets - 1)];

    while (*at && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

/* Without memory the chains get longer. */
static void pmi1_kvs_grow(struct xr_pmi1_kvs *s)
{
    size_t n = 2 * s->nbuckets;
    struct pair **bucket = calloc(n, sizeof(struct pair *));

    if (!bucket)
        return;
    for (size_t i = 0; i < s->nbuckets; i++) {
        for (struct pair *p = s->bucket[i], *next; p; p = next) {
            next = p->next;
            p->next = bucket[p->hash & (n - 1)];
            bucket[p->hash & (n - 1)] = p;
        }
    }
    free(s->bucket);
    s->bucket = bucket;
    s->nbuckets = n;
}

rank_status_t xr_pmi1_kvs_set(struct xr_pmi1_kvs *s, const char *key, const char *value)
{
    size_t klen = strlen(key), vlen = strlen(value);
    uint32_t hash = hash_of(key);
    struct pair **at = pmi1_kvs_place(s, key, hash), *p = *at;
    size_t had = p ? strlen(p->value) : 0, more = vlen + (p ? 0 : klen + sizeof(*p));
    char *copy;

    if (klen == 0 || klen > XR_PMI1_KEY_MAX || vlen > XR_PMI1_VALUE_MAX)
        return RANK_ERR_ARG;
    if (s->bytes - had + more > s->limit)
        return RANK_ERR_NO_MEMORY;
    copy = strdup(value);
    if (!copy)
        return RANK_ERR_NO_MEMORY;
    if (!p) {
        p = malloc(sizeof(*p) + klen + 1);
        if (!p) {
            free(copy);
            return RANK_ERR_NO_MEMORY;
        }
        *p = (struct pair){.hash = hash};
        memcpy(p->key, key, klen + 1);
        *at = p;
        s->npairs++;
    }
    free(p->value);
    p->value = copy;
    s->bytes += more - had;
    if (s->npairs > 2 * s->nbuckets)
        pmi1_kvs_grow(s);
    return RANK_OK;
}

rank_status_t xr_pmi1_kvs_put(struct xr_pmi1_kvs *s, const char *key, const char *value)
{
    rank_status_t st = xr_pmi1_kvs_set(s, key, value);

    if (!st && s->keep) {
        xr_pack_string(&s->fresh, key);
        xr_pack_string(&s->fresh, value);
        if (s->fresh.failed)
            return RANK_ERR_NO_MEMORY;
    }
    return st;
}

const char *xr_pmi1_kvs_get(const struct xr_pmi1_kvs *s, const char *key)
{
    struct pair *p = *pmi1_kvs_place(s, key, hash_of(key));

    return p ? p->value : NULL;
}

void *xr_pmi1_kvs_blob(struct xr_pmi1_kvs *s, size_t *len)
{
    void *data = s->fresh.data;

    *len = s->fresh.len;
    memset(&s->fresh, 0, sizeof(s->fresh));
    return data;
}

rank_status_t xr_pmi1_kvs_merge(struct xr_pmi1_kvs *s, const void *blob, size_t len)
{
    struct xr_unpacker u = {.at = blob, .left = len};

    while (u.left > 0) {
        const char *key = xr_unpack_string(&u), *value = xr_unpack_string(&u);
        rank_status_t st = key && value ? xr_pmi1_kvs_set(s, key, value) : RANK_ERR_ARG;
        if (st)
            return st;
    }
    return RANK_OK;
}
