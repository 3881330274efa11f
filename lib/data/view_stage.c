/* SPDX-License-Identifier: BSD-3-Clause */
/* view_stage.c: keep a piece of a view's payload in host memory. */
#include "lib/data/view_stage.h"

#include <stdlib.h>

struct view_stage {
    struct rk_view of;
    size_t total;    /* bytes of the transfer */
    size_t at, held; /* what data holds: packed, or unpacked and not yet moved */
    bool unpacks;
    char *data;      /* RK_VIEW_STAGE bytes at most; allocated when needed */
};

static size_t stage_room(const struct view_stage *s)
{
    return s->total < RK_VIEW_STAGE ? s->total : RK_VIEW_STAGE;
}

static bool stage_alloc(struct view_stage *s)
{
    if (!s->data)
        s->data = malloc(stage_room(s));
    return s->data != NULL;
}

static rank_status_t stage_pack(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    struct view_stage *s = view->base;
    rank_status_t st;

    if (!stage_alloc(s))
        return rk_copy_out(to, &s->of, offset, bytes);
    for (size_t n; bytes; bytes -= n, offset += n, to = (char *)to + n) {
        if (offset < s->at || offset >= s->at + s->held) {
            n = s->total - offset < stage_room(s) ? s->total - offset : stage_room(s);
            s->held = 0;
            st = rk_copy_out(s->data, &s->of, offset, n);
            if (st)
                return st;
            s->at = offset;
            s->held = n;
        }
        n = s->at + s->held - offset < bytes ? s->at + s->held - offset : bytes;
        memcpy(to, s->data + (offset - s->at), n);
    }
    return RANK_OK;
}

static rank_status_t stage_flush(struct view_stage *s)
{
    size_t n = s->held;

    s->held = 0;
    return n ? rk_copy_in(&s->of, s->at, s->data, n) : RANK_OK;
}

static rank_status_t stage_unpack(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    struct view_stage *s = view->base;
    rank_status_t st = RANK_OK;

    s->unpacks = true;
    if (!stage_alloc(s))
        return rk_copy_in(&s->of, offset, from, bytes);
    for (size_t n; bytes && !st; bytes -= n, offset += n, from = (const char *)from + n) {
        if (s->held && offset != s->at + s->held)
            st = stage_flush(s);
        if (s->held == 0)
            s->at = offset;
        n = stage_room(s) - s->held < bytes ? stage_room(s) - s->held : bytes;
        memcpy(s->data + s->held, from, n);
        s->held += n;
        if (!st && (s->held == stage_room(s) || s->at + s->held >= s->total))
            st = stage_flush(s);
    }
    return st;
}

static const struct rk_view_ops staged_ops = {.pack = stage_pack, .unpack = stage_unpack};

void rk_view_stage_open(struct rk_view *view, size_t bytes)
{
    struct view_stage *s = rk_view_may_fail(view) && view->ops != &staged_ops && bytes ? calloc(1, sizeof(*s)) : NULL;

    if (!s)
        return;
    s->of = *view;
    s->total = bytes;
    view->base = s;
    view->ops = &staged_ops;
}

rank_status_t rk_view_stage_close(struct rk_view *view, bool flush)
{
    struct view_stage *s = view->ops == &staged_ops ? view->base : NULL;
    rank_status_t st = RANK_OK;

    if (!s)
        return RANK_OK;
    if (flush && s->unpacks)
        st = stage_flush(s);
    *view = s->of;
    free(s->data);
    free(s);
    return st;
}
