/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c: view contiguous memory of any kind; copy between views. */
#include "lib/data/view.h"

static rank_status_t kind_pack(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    return rk_kind_copy(to, NULL, (const char *)view->base + offset, view->ops->kind, bytes);
}

static rank_status_t kind_unpack(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    return rk_kind_copy((char *)view->base + offset, view->ops->kind, from, NULL, bytes);
}

static rank_status_t kind_begin(const struct rk_view *view, bool in, size_t offset, char *host, size_t bytes, struct rk_kind_copy **list)
{
    char *at = (char *)view->base + offset;

    return rk_kind_begin(in, in ? at : host, in ? host : at, view->ops->kind, bytes, list);
}

struct rk_view rk_view_of_kind(const void *base, size_t bytes)
{
    static struct rk_view_ops ops = {.pack = kind_pack, .unpack = kind_unpack, .begin = kind_begin};
    const struct rk_kind *kind = rk_kind_of(base, bytes);

    if (kind) /* two threads may store the same */
        __atomic_store_n(&ops.kind, kind, __ATOMIC_RELAXED);
    return (struct rk_view){(void *)(uintptr_t)base, bytes, kind ? &ops : NULL};
}

rank_status_t rk_view_copy(const struct rk_view *to, const struct rk_view *from, size_t bytes)
{
    rank_status_t st = RANK_OK;
    char buf[16384];

    if (!to->ops)
        return rk_copy_out(to->base, from, 0, bytes);
    if (!from->ops)
        return rk_copy_in(to, 0, from->base, bytes);
    if (to->ops->kind && from->ops->kind)
        return rk_kind_copy(to->base, to->ops->kind, from->base, from->ops->kind, bytes);
    for (size_t at = 0, n; at < bytes && !st; at += n) {
        n = bytes - at < sizeof(buf) ? bytes - at : sizeof(buf);
        st = rk_copy_out(buf, from, at, n);
        if (!st)
            st = rk_copy_in(to, at, buf, n);
    }
    return st;
}
