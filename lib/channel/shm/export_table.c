/* SPDX-License-Identifier: BSD-3-Clause */
/* export_table.c: publish handles of own device memory in the node's segment. */
#include "lib/channel/shm/export_table.h"
#include "lib/base/log.h"
#include "lib/channel/shm/shm_region.h"
#include "lib/node/node.h"

#include <stdlib.h>

/* The owner's side of an entry. */
struct export_slot {
    const struct rk_kind *kind; /* NULL: free */
    struct rk_kind_block block;
    uint64_t name; /* 0: the kind refuses to export it */
    uint64_t turn; /* of the last use */
    unsigned holds;
    size_t len;
    unsigned char handle[RK_KIND_HANDLE_MAX];
};

struct rk_exports {
    struct rk_export_entry *entries; /* [RK_EXPORTS] in the segment */
    uint64_t turn;                   /* calls of rk_export_view */
    uint64_t generation;             /* names so far */
    uint64_t checked_ns;
    struct export_slot slots[RK_EXPORTS];
};

_Static_assert(sizeof(struct rk_export_entry) == 256, "entries do not share cache lines");

size_t rk_shm_exports_bytes(int nlocal)
{
    return (size_t)nlocal * RK_EXPORTS * sizeof(struct rk_export_entry);
}

/* NULL: out of memory. */
static struct rk_exports *exports_open(struct rk_shm *shm)
{
    size_t bytes = RK_EXPORTS * sizeof(struct rk_export_entry), at = bytes * (size_t)shm->me;
    struct rk_exports *x = calloc(1, sizeof(*x));

    if (!x || !rk_node_try_commit(shm->node, RK_REGION_EXPORTS, at, bytes)) {
        free(x);
        return NULL;
    }
    x->entries = rk_node_at(shm->node, RK_REGION_EXPORTS, at);
    return x;
}

static void slot_drop(struct rk_exports *x, int i)
{
    struct export_slot *s = &x->slots[i];

    if (!s->kind)
        return;
    atomic_store(&x->entries[i].name, 0);
    if (s->name && s->kind->export_end)
        s->kind->export_end(s->handle, s->len);
    s->kind = NULL;
}

static bool overlaps_block(const struct rk_kind_block *b, const void *p, size_t bytes)
{
    return rk_overlap(b->base, b->bytes, p, bytes);
}

static bool is_used_by(const struct rk_link *requests, const struct export_slot *s)
{
    const struct rk_link *l;

    rk_list_for_each(l, requests)
    {
        const struct rk_view *v = &rk_list_entry(l, struct rank_request, link)->view;

        if (v->ops && v->ops->kind == s->kind && overlaps_block(&s->block, v->base, v->bytes))
            return true;
    }
    return false;
}

/* A free slot, or else the one that is unused for longest; -1: all are in use by messages. */
static int find_free_slot(struct rk_shm *shm)
{
    struct rk_exports *x = shm->exports;
    int oldest = -1;

    for (int i = 0; i < RK_EXPORTS; i++) {
        if (!x->slots[i].kind)
            return i;
    }
    for (int i = 0; i < RK_EXPORTS; i++) {
        const struct export_slot *s = &x->slots[i];

        if (s->turn != x->turn && !s->holds && (oldest < 0 || s->turn < x->slots[oldest].turn) && !is_used_by(&shm->sending, s) &&
            !is_used_by(&shm->receiving, s))
            oldest = i;
    }
    if (oldest >= 0)
        slot_drop(x, oldest);
    return oldest;
}

static void publish_slot(struct rk_exports *x, int i)
{
    struct export_slot *s = &x->slots[i];
    struct rk_export_entry *e = &x->entries[i];

    s->name = ++x->generation * RK_EXPORTS + (uint64_t)i;
    atomic_store(&e->next, 0);
    e->bytes = s->block.bytes;
    e->kind = (uint32_t)s->kind->id;
    e->len = (uint32_t)s->len;
    memcpy(e->handle, s->handle, s->len);
    atomic_store(&e->name, s->name);
}

static RK_COLD void report_refused(const struct rk_kind *kind)
{
    static bool reported;

    if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
        rk_warn("%s memory of this rank cannot be mapped by others (memory of a pool, or not created as shareable, or the driver refuses "
                "it): its messages are copied through host memory",
                kind->name);
}

/* Slot of the allocation, exported now or before; -1: none is free. Drops what the program has freed at its place. */
static int export_block(struct rk_shm *shm, const struct rk_kind *kind, const struct rk_kind_block *block)
{
    struct rk_exports *x = shm->exports;
    struct export_slot *s;
    int i;

    for (i = 0; i < RK_EXPORTS; i++) {
        s = &x->slots[i];
        if (s->kind != kind || !overlaps_block(&s->block, block->base, block->bytes))
            continue;
        if (s->block.id == block->id && s->block.base == block->base && s->block.bytes == block->bytes)
            return i;
        slot_drop(x, i);
    }
    i = find_free_slot(shm);
    if (i < 0)
        return -1;
    s = &x->slots[i];
    *s = (struct export_slot){.kind = kind, .block = *block};
    s->len = kind->export(block->base, block->bytes, s->handle, sizeof(s->handle));
    if (s->len && s->len <= sizeof(s->handle))
        publish_slot(x, i);
    else
        report_refused(kind);
    return i;
}

uint64_t rk_export_view(struct rk_shm *shm, const struct rk_view *view, uint64_t *offset)
{
    const struct rk_kind *kind = view->ops->kind;
    const char *at = view->base, *end = at + view->bytes;
    struct rk_exports *x = shm->exports;
    uint64_t first = 0;

    if (!kind->block || !kind->export || !kind->import)
        return 0;
    if (!x)
        x = shm->exports = exports_open(shm);
    if (!x)
        return 0;
    x->turn++;
    for (int before = -1, i; at < end; before = i) {
        struct rk_kind_block block;

        if (kind->block(at, true, &block)) /* a failing device fails the message when it is staged */
            return 0;
        i = export_block(shm, kind, &block);
        if (i < 0)
            return 0;
        x->slots[i].turn = x->turn;
        if (!x->slots[i].name)
            return 0;
        if (before >= 0) {
            atomic_store(&x->entries[before].next, x->slots[i].name);
        } else {
            first = x->slots[i].name;
            *offset = (uint64_t)(at - (const char *)block.base);
        }
        at = (const char *)block.base + block.bytes;
    }
    return first;
}

_Static_assert(RK_EXPORTS <= 64, "a bit for each entry");

void rk_export_hold(struct rk_shm *shm, const struct rk_view *view, struct rk_device_export *out)
{
    struct rk_exports *x;

    *out = (struct rk_device_export){.name = 0};
    out->name = rk_export_view(shm, view, &out->offset);
    x = shm->exports;
    for (int i = 0; out->name && i < RK_EXPORTS; i++) {
        if (!x->slots[i].kind || x->slots[i].turn != x->turn)
            continue;
        x->slots[i].holds++;
        out->slots |= (uint64_t)1 << i;
    }
    out->generation = out->name ? x->generation : 0;
}

void rk_export_release(struct rk_shm *shm, const struct rk_device_export *held)
{
    for (int i = 0; held->slots && shm->exports && i < RK_EXPORTS; i++) {
        struct export_slot *s = &shm->exports->slots[i];

        /* Not an entry that has been dropped meanwhile, and its place used again. */
        if ((held->slots >> i & 1) && s->kind && s->name / RK_EXPORTS <= held->generation)
            s->holds--;
    }
}

void rk_exports_check(struct rk_shm *shm, uint64_t now)
{
    struct rk_exports *x = shm->exports;

    if (!x || now - x->checked_ns < RK_IMPORT_IDLE_NS / 2)
        return;
    x->checked_ns = now;
    for (int i = 0; i < RK_EXPORTS; i++) {
        const struct export_slot *s = &x->slots[i];
        struct rk_kind_block block;

        if (s->kind && (s->kind->block(s->block.base, false, &block) || block.id != s->block.id))
            slot_drop(x, i);
    }
}

void rk_exports_drop(struct rk_shm *shm, const void *ptr, size_t bytes)
{
    for (int i = 0; shm->exports && i < RK_EXPORTS; i++) {
        if (overlaps_block(&shm->exports->slots[i].block, ptr, bytes))
            slot_drop(shm->exports, i);
    }
}

void rk_exports_close(struct rk_shm *shm)
{
    for (int i = 0; shm->exports && i < RK_EXPORTS; i++)
        slot_drop(shm->exports, i);
    free(shm->exports);
    shm->exports = NULL;
}
