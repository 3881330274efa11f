/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi1_kvs.c: keep keys in a hash table. See pmi1_kvs.h. */
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/util/hash.h"
#include "launcher/util/pack.h"

#include <stdlib.h>
#include <string.h>

struct pair {
    struct xr_hash_item item; /* the first member */
    char *value;
    char key[];
};

struct xr_pmi1_kvs {
    struct xr_hash pairs;
    size_t bytes, limit;
    bool keep;
    struct xr_packer fresh;
};

rank_status_t xr_pmi1_kvs_create(size_t limit, bool keep, struct xr_pmi1_kvs **out)
{
    struct xr_pmi1_kvs *s = calloc(1, sizeof(*s));

    if (!s)
        return RANK_ERR_NO_MEMORY;
    s->limit = limit;
    s->keep = keep;
    *out = s;
    return RANK_OK;
}

void xr_pmi1_kvs_destroy(struct xr_pmi1_kvs *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->pairs.size; i++) {
        for (struct xr_hash_item *item = s->pairs.heads[i], *next; item; item = next) {
            next = item->next;
            free(((struct pair *)item)->value);
            free(item);
        }
    }
    xr_hash_clear(&s->pairs);
    xr_packer_free(&s->fresh);
    free(s);
}

static struct pair *find_pair(const struct xr_pmi1_kvs *s, const char *key, uint32_t hash)
{
    struct xr_hash_item *item = xr_hash_first(&s->pairs, hash);

    while (item && strcmp(((struct pair *)item)->key, key) != 0)
        item = xr_hash_next(item);
    return (struct pair *)item;
}

static struct pair *add_pair(struct xr_pmi1_kvs *s, const char *key, size_t klen, uint32_t hash)
{
    struct pair *p = malloc(sizeof(*p) + klen + 1);

    if (!p)
        return NULL;
    p->value = NULL;
    memcpy(p->key, key, klen + 1);
    if (xr_hash_add(&s->pairs, &p->item, hash))
        return p;
    free(p);
    return NULL;
}

rank_status_t xr_pmi1_kvs_set(struct xr_pmi1_kvs *s, const char *key, const char *value)
{
    size_t klen = strlen(key), vlen = strlen(value);
    uint32_t hash = xr_hash_bytes(0, key, klen);
    struct pair *p = find_pair(s, key, hash);
    size_t had = p ? strlen(p->value) : 0, more = vlen + (p ? 0 : klen + sizeof(*p));
    char *copy;

    if (klen == 0 || klen > XR_PMI1_KEY_MAX || vlen > XR_PMI1_VALUE_MAX)
        return RANK_ERR_ARG;
    if (s->bytes - had + more > s->limit)
        return RANK_ERR_NO_MEMORY;
    copy = strdup(value);
    if (copy && !p)
        p = add_pair(s, key, klen, hash);
    if (!copy || !p) {
        free(copy);
        return RANK_ERR_NO_MEMORY;
    }
    free(p->value);
    p->value = copy;
    s->bytes += more - had;
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
    struct pair *p = find_pair(s, key, xr_hash_bytes(0, key, strlen(key)));

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
