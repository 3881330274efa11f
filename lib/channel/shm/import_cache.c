/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * import_cache.c: map device memory of other ranks, keep the mappings.
 *
 * A mapping may keep memory that its owner has freed. So it is closed when the owner has dropped the entry, when it
 * is idle, when others need its place, and when the owner leaves.
 */
#include "lib/base/clock.h"
#include "lib/channel/shm/export_table.h"
#include "lib/node/node.h"

#include <stdlib.h>

struct rk_imports {
    int n; /* open mappings */
    struct rk_import slots[RK_IMPORTS];
};

static struct rk_export_entry *entry_of(struct rk_shm *shm, int local, uint64_t name)
{
    size_t i = (size_t)local * RK_EXPORTS + (size_t)(name % RK_EXPORTS);

    return rk_node_at(shm->node, RK_REGION_EXPORTS, i * sizeof(struct rk_export_entry));
}

static void mapping_close(struct rk_imports *m, struct rk_import *s)
{
    s->kind->free(s->at);
    *s = (struct rk_import){.used_ns = 0};
    m->n--;
}

/* Close the mappings of memory that the peer has freed: the driver may give the new memory at its place the same handle. */
static void close_stale(struct rk_shm *shm, int local)
{
    struct rk_imports *m = shm->imports;

    for (int i = 0; i < RK_IMPORTS; i++) {
        struct rk_import *s = &m->slots[i];

        if (s->used_ns && s->local == local && atomic_load(&entry_of(shm, local, s->name)->name) != s->name)
            mapping_close(m, s);
    }
}

/* A free slot, or else the one that is unused for longest. */
static struct rk_import *find_slot(struct rk_imports *m)
{
    struct rk_import *oldest = &m->slots[0];

    for (int i = 0; i < RK_IMPORTS; i++) {
        if (m->slots[i].used_ns < oldest->used_ns)
            oldest = &m->slots[i];
    }
    if (oldest->used_ns)
        mapping_close(m, oldest);
    return oldest;
}

static struct rk_import *find_import(struct rk_imports *m, int local, uint64_t name, int device)
{
    for (int i = 0; i < RK_IMPORTS; i++) {
        struct rk_import *s = &m->slots[i];

        if (s->name == name && s->used_ns && s->local == local && s->device == device)
            return s;
    }
    return NULL;
}

/* Read an entry that its owner may drop meanwhile. */
static bool entry_read(struct rk_shm *shm, int local, uint64_t name, struct rk_export_entry *out)
{
    const struct rk_export_entry *e = entry_of(shm, local, name);

    if (name == 0 || atomic_load(&e->name) != name)
        return false;
    out->bytes = e->bytes;
    out->kind = e->kind;
    out->len = e->len;
    memcpy(out->handle, e->handle, sizeof(out->handle));
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&e->name) == name && out->len <= sizeof(out->handle);
}

static rank_status_t import_name(struct rk_shm_ep *ep, uint64_t name, const void *near, const struct rk_import **out)
{
    struct rk_shm *shm = ep->shm;
    struct rk_imports *m = shm->imports;
    const struct rk_kind *kind;
    struct rk_kind_block mapped;
    struct rk_export_entry e;
    struct rk_import *s;
    int local = ep->peer->slot, device = -1;
    rank_status_t st;
    void *at;

    if (!m && !(m = shm->imports = calloc(1, sizeof(*m))))
        return RANK_ERR_NO_MEMORY;
    if (!entry_read(shm, local, name, &e))
        return RANK_ERR_NOT_SUPPORTED;
    kind = rk_kind_with_id((rank_mem_kind_t)e.kind);
    if (!kind || !kind->import)
        return RANK_ERR_NOT_SUPPORTED;
    if (near && kind->device)
        device = kind->device(near);
    s = find_import(m, local, name, device);
    if (!s) {
        close_stale(shm, local);
        st = kind->import(e.handle, e.len, near, &at);
        if (st)
            return st;
        if (kind->block && (kind->block(at, false, &mapped) || mapped.bytes < e.bytes)) { /* the entry is wrong */
            kind->free(at);
            return RANK_ERR_NOT_SUPPORTED;
        }
        s = find_slot(m);
        *s = (struct rk_import){.kind = kind, .at = at, .bytes = e.bytes, .name = name, .local = local, .device = device};
        m->n++;
    }
    s->used_ns = rk_clock_ns();
    *out = s;
    return RANK_OK;
}

/* Name of the memory that follows in the owner's addresses. 0: none. */
static uint64_t name_behind(struct rk_shm_ep *ep, uint64_t name)
{
    struct rk_export_entry *e = entry_of(ep->shm, ep->peer->slot, name);
    uint64_t next = atomic_load(&e->next);

    return atomic_load(&e->name) == name ? next : 0;
}

rank_status_t rk_import(struct rk_shm_ep *ep, struct rk_far *far, const void *near, const struct rk_import **out)
{
    rank_status_t st;

    while ((st = import_name(ep, far->name, near, out)) == RANK_OK && far->offset >= (*out)->bytes) {
        far->offset -= (*out)->bytes;
        far->name = name_behind(ep, far->name);
    }
    return st;
}

void rk_imports_check(struct rk_shm *shm, uint64_t now)
{
    struct rk_imports *m = shm->imports;

    for (int i = 0; m && m->n && i < RK_IMPORTS; i++) {
        struct rk_import *s = &m->slots[i];

        if (s->used_ns &&
            (now - s->used_ns >= RK_IMPORT_IDLE_NS || atomic_load(&entry_of(shm, s->local, s->name)->name) != s->name))
            mapping_close(m, s);
    }
}

void rk_imports_drop(struct rk_shm *shm, int local)
{
    struct rk_imports *m = shm->imports;

    for (int i = 0; m && m->n && i < RK_IMPORTS; i++) {
        if (m->slots[i].used_ns && m->slots[i].local == local)
            mapping_close(m, &m->slots[i]);
    }
}
