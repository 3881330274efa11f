/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.c: see fence.h. */
#include "launcher/overlay/fence.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"
#include "lib/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOST (-2)     /* status: a participant failed */
#define OVERSIZED (-3) /* status: the data exceed one message */
/* Results kept for ranks that stopped waiting: these may never return, or only with other ranks. */
#define KEPT_MAX 256
#define NAMED_MAX 4 /* hosts named in a text */

struct xr_fence {
    struct rk_link link;
    uint32_t space;
    uint32_t *ranks; /* NULL: all */
    uint32_t nranks;
    bool *from; /* [nchildren + 1]: arrived; the last is this node */
    bool *part; /* [nchildren + 2]: has participating ranks; then this node, then any outside */
    bool sent;  /* sent up; the result is pending */
    int status;
    struct xr_packer data;
    void *token; /* of our own ranks */
    bool abandoned; /* our ranks arrived, but wait no longer */
    bool over;      /* complete; the result is kept until our ranks return */
};

struct xr_fence_table {
    struct xr_tree *tree;
    const struct xr_job *job;
    struct xr_liveness *liveness;
    struct xr_liveness_watcher watcher;
    uint32_t self, nchildren;
    xr_fence_done_fn done;
    void *arg;
    bool *used;  /* [job->nhosts]: has ranks */
    uint32_t *where; /* [job->nhosts]: its child's number, nchildren for this node, or nchildren + 1 for outside */
    bool *live;  /* [nchildren + 2], scratch */
    uint32_t nkept; /* complete ones among the active */
    struct rk_link active; /* in order of their start */
};

/* ---------------------------------------------------------- participants */

static void scan_node(struct xr_fence_table *fs, struct xr_fence *f, uint32_t node, bool gone)
{
    uint32_t at = fs->where[node];

    f->part[at] = true;
    if (!gone)
        fs->live[at] = true;
}

/*
 * Find the branches with participants, and (fs->live) those with live ones, in one pass for any number of
 * children.
 */
static void scan_participants(struct xr_fence_table *fs, struct xr_fence *f)
{
    memset(fs->live, 0, (fs->nchildren + 2) * sizeof(*fs->live));
    for (uint32_t i = 0; !f->ranks && i < fs->job->nhosts; i++) {
        if (fs->used[i])
            scan_node(fs, f, i, xr_liveness(fs->liveness, XR_FAILED_HOST, i));
    }
    for (uint32_t i = 0; f->ranks && i < f->nranks; i++)
        scan_node(fs, f, fs->job->host_of[f->ranks[i]], xr_liveness(fs->liveness, XR_FAILED_RANK, f->ranks[i]));
}

bool xr_fence_local(const struct xr_fence_table *fs, const uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; i < (n ? n : fs->job->size); i++) {
        if (fs->job->host_of[n ? ranks[i] : i] != fs->self)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------- lists */

static void fence_destroy(struct xr_fence_table *fs, struct xr_fence *f)
{
    rk_list_remove(&f->link);
    fs->nkept -= f->over;
    free(f->ranks);
    free(f->from);
    free(f->part);
    xr_packer_free(&f->data);
    free(f);
}

static bool fence_same(const struct xr_fence *f, uint32_t space, const uint32_t *ranks, uint32_t n)
{
    if (f->space != space)
        return false;
    if (n == 0 || !f->ranks)
        return n == 0 && !f->ranks;
    return f->nranks == n && memcmp(f->ranks, ranks, n * sizeof(*ranks)) == 0;
}

/* Return the fence of these ranks at which source has not arrived, or a new one. */
static struct xr_fence *fence_find(struct xr_fence_table *fs, uint32_t space, const uint32_t *ranks, uint32_t n,
                             uint32_t source)
{
    struct xr_fence *f;

    for (struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        f = rk_list_entry(l, struct xr_fence, link);
        if (!f->from[source] && fence_same(f, space, ranks, n))
            return f;
    }
    f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->from = calloc(fs->nchildren + 1, sizeof(*f->from));
    f->part = calloc(fs->nchildren + 2, sizeof(*f->part));
    if (n) {
        f->ranks = malloc(n * sizeof(*ranks));
        if (f->ranks)
            memcpy(f->ranks, ranks, n * sizeof(*ranks));
    }
    f->space = space;
    f->nranks = n;
    rk_list_append(&fs->active, &f->link);
    if (!f->from || !f->part || (n && !f->ranks)) {
        fence_destroy(fs, f);
        return NULL;
    }
    scan_participants(fs, f);
    for (uint32_t i = 0; i <= fs->nchildren; i++) {
        f->from[i] = !fs->live[i];
        if (f->from[i] && f->part[i])
            f->status = LOST;
    }
    /* The source arrives now, even if the map gives it no part. */
    f->from[source] = false;
    return f;
}

/* Return the size of pack's message with len bytes of data. */
static size_t fence_message_of(const struct xr_fence *f, size_t len)
{
    return 4 * (4 + (size_t)f->nranks) + len;
}

static void fence_pack(const struct xr_fence *f, const void *data, size_t len, struct xr_packer *p)
{
    xr_pack_u32(p, f->space);
    xr_pack_u32(p, (uint32_t)f->status);
    xr_pack_u32(p, f->nranks);
    for (uint32_t i = 0; i < f->nranks; i++)
        xr_pack_u32(p, f->ranks[i]);
    xr_pack_bytes(p, data, len);
}

/* -------------------------------------------------------------- progress */

static void forget_oldest(struct xr_fence_table *fs)
{
    for (struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        if (f->over) {
            fence_destroy(fs, f);
            return;
        }
    }
}

/*
 * Send the result down to all participants, this node last. Frees the fence unless our own ranks may still fetch
 * the result.
 */
static void fence_release(struct xr_fence_table *fs, struct xr_fence *f, const void *data, size_t len)
{
    void *token = f->token;

    for (uint32_t i = 0; i < fs->nchildren; i++) {
        struct xr_packer p = {0};
        if (!f->part[i])
            continue;
        fence_pack(f, data, len, &p);
        xr_tree_step(fs->tree, xr_tree_child(fs->tree, i), XR_MSG_FENCE_DOWN, &p);
    }
    if (token)
        fs->done(fs->arg, token, f->status, data, len);
    if (!f->abandoned) {
        fence_destroy(fs, f);
        return;
    }
    if (data != f->data.data) {
        xr_packer_free(&f->data);
        xr_pack_raw(&f->data, data, len);
    }
    f->over = true;
    f->sent = false;
    if (++fs->nkept > KEPT_MAX)
        forget_oldest(fs);
}

static void move_on(struct xr_fence_table *fs, struct xr_fence *f)
{
    struct xr_packer p = {0};

    for (uint32_t i = 0; i <= fs->nchildren; i++) {
        if (!f->from[i])
            return;
    }
    if (f->sent || f->over)
        return;
    if (fs->self != XR_NODE_FRONT && f->part[fs->nchildren + 1]) {
        f->sent = true;
        fence_pack(f, f->data.data, f->data.len, &p);
        xr_packer_free(&f->data);
        xr_tree_step(fs->tree, XR_NODE_FRONT, XR_MSG_FENCE_UP, &p);
        return;
    }
    fence_release(fs, f, f->data.data, f->data.len);
}

/* Append data. A message that is too long would break the connection, so this fence fails instead. */
static void add_data(struct xr_fence *f, const void *data, size_t len)
{
    if (f->status == OVERSIZED)
        return;
    if (fence_message_of(f, f->data.len + len) <= XR_MESSAGE_MAX) {
        xr_pack_raw(&f->data, data, len);
        return;
    }
    rk_error("a %s over several hosts fails: what its ranks have put makes a message of %zu bytes, and %u are the most",
             f->space == XR_FENCE_PMI1 ? "barrier of PMI-1" : "fence of PMIx", fence_message_of(f, f->data.len + len), XR_MESSAGE_MAX);
    xr_packer_free(&f->data);
    f->status = OVERSIZED;
}

static void fence_join(struct xr_fence_table *fs, struct xr_fence *f, uint32_t source, int status,
                 const void *data, size_t len)
{
    f->from[source] = true;
    if (status && !f->status)
        f->status = status;
    add_data(f, data, len);
    if (f->data.failed && !f->status)
        f->status = -1;
    move_on(fs, f);
}

static struct xr_fence *find_abandoned(struct xr_fence_table *fs, uint32_t space, const uint32_t *ranks, uint32_t n)
{
    for (struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        if (f->abandoned && fence_same(f, space, ranks, n))
            return f;
    }
    return NULL;
}

void xr_fence_abandon(struct xr_fence_table *fs, void *token)
{
    for (struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        if (f->token == token) {
            f->token = NULL;
            f->abandoned = true;
            return;
        }
    }
}

void xr_fence_enter(struct xr_fence_table *fs, enum xr_fence_space space, int status,
                     const uint32_t *ranks, uint32_t n, const void *data, size_t len, void *token)
{
    struct xr_fence *f = find_abandoned(fs, space, ranks, n);

    if (f && !status) {
        f->abandoned = false;
        f->token = token;
        if (f->over) {
            fs->done(fs->arg, token, f->status, f->data.data, f->data.len);
            fence_destroy(fs, f);
        }
        return;
    }
    f = fence_find(fs, space, ranks, n, fs->nchildren);
    if (!f) {
        fs->done(fs->arg, token, -1, NULL, 0);
        return;
    }
    f->token = token;
    fence_join(fs, f, fs->nchildren, status, data, len);
}

/* Return the first fence that awaits a result. */
static struct xr_fence *awaiting(struct xr_fence_table *fs, uint32_t space, const uint32_t *ranks, uint32_t n)
{
    for (struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        if (f->sent && fence_same(f, space, ranks, n))
            return f;
    }
    return NULL;
}

/* --------------------------------------------------------- waiting ranks */

static bool fence_takes_part(const struct xr_fence *f, uint32_t rank)
{
    for (uint32_t i = 0; f->ranks && i < f->nranks; i++) {
        if (f->ranks[i] == rank)
            return true;
    }
    return !f->ranks;
}

const struct xr_fence *xr_fence_of(const struct xr_fence_table *fs, enum xr_fence_space space, uint32_t rank)
{
    const struct xr_fence *found = NULL;
    uint32_t at = fs && rank < fs->job->size ? fs->where[fs->job->host_of[rank]] : UINT32_MAX;

    if (!fs || at > fs->nchildren)
        return NULL;
    for (const struct rk_link *l = fs->active.next; l != &fs->active; l = l->next) {
        const struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        /* Our own ranks that abandoned the fence do not wait. */
        if (f->space != space || f->over || !f->from[at] || (at == fs->nchildren && !f->token) || !fence_takes_part(f, rank))
            continue;
        if (found)
            return NULL;
        found = f;
    }
    return found;
}

bool xr_fence_awaited(const struct xr_fence_table *fs, const struct xr_fence *f, char *out, size_t len)
{
    bool *late = calloc(fs->job->nhosts, sizeof(*late));
    uint32_t branches = 0, hosts = 0, named = 0;
    size_t at;

    for (uint32_t i = 0; i < fs->nchildren; i++)
        branches += f->part[i] && !f->from[i];
    for (uint32_t i = 0; late && branches && i < (f->ranks ? f->nranks : fs->job->nhosts); i++) {
        uint32_t host = f->ranks ? fs->job->host_of[f->ranks[i]] : i, where = fs->where[host];
        if (!fs->used[host] || late[host] || where >= fs->nchildren || f->from[where] || xr_liveness(fs->liveness, XR_FAILED_HOST, host))
            continue;
        late[host] = true;
        hosts++;
    }
    at = (size_t)snprintf(out, len, "%s", hosts == 0 ? "other hosts" : hosts > branches ? "some of hosts" : hosts > 1 ? "hosts" : "host");
    for (uint32_t i = 0; hosts && i < fs->job->nhosts && named < NAMED_MAX && at < len; i++) {
        if (late[i])
            at += (size_t)snprintf(out + at, len - at, "%c%s", named++ ? ',' : ' ', fs->job->hosts[i]);
    }
    if (hosts > named && at < len)
        snprintf(out + at, len - at, " and %u more", hosts - named);
    free(late);
    return hosts > 0;
}

/* -------------------------------------------------------------- messages */

static bool take_fence(struct xr_fence_table *fs, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t space = xr_unpack_u32(u);
    int status = (int)xr_unpack_u32(u);
    uint32_t n = xr_unpack_u32(u), *ranks;
    const void *data;
    struct xr_fence *f = NULL;
    bool ok = !u->failed && n <= u->left / 4;
    size_t len;

    ranks = ok ? calloc(n ? n : 1, sizeof(*ranks)) : NULL;
    for (uint32_t i = 0; ranks && i < n; i++) {
        ranks[i] = xr_unpack_u32(u);
        ok = ok && ranks[i] < fs->job->size;
    }
    data = xr_unpack_bytes(u, &len);
    ok = ok && ranks && xr_unpack_done(u);
    if (ok && kind == XR_MSG_FENCE_UP) {
        uint32_t child = xr_tree_index(fs->tree, from);
        ok = child != XR_NODE_FRONT;
        f = ok ? fence_find(fs, space, ranks, n, child) : NULL;
        if (f)
            fence_join(fs, f, child, status, data, len);
    } else if (ok) {
        f = from == XR_NODE_FRONT ? awaiting(fs, space, ranks, n) : NULL;
        if (f) {
            f->status = status;
            fence_release(fs, f, data, len);
        }
    }
    free(ranks);
    return ok;
}

/* Some participants of a fence have ended. */
static void drop_ended(struct xr_fence_table *fs, struct xr_fence *f)
{
    scan_participants(fs, f);
    for (uint32_t i = 0; i <= fs->nchildren; i++) {
        if (f->from[i] || fs->live[i])
            continue;
        f->from[i] = true;
        f->status = LOST;
    }
    move_on(fs, f);
}

static void send_gone(struct xr_fence_table *fs, enum xr_liveness_what what, uint32_t number)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, what);
    xr_pack_u32(&p, number);
    xr_tree_step(fs->tree, XR_NODE_FRONT, XR_MSG_FENCE_ENDED, &p);
}

static void fence_on_gone(struct xr_liveness_watcher *watcher, enum xr_liveness_what what, uint32_t number)
{
    struct xr_fence_table *fs = rk_list_entry(watcher, struct xr_fence_table, watcher);

    for (struct rk_link *l = fs->active.next, *next; l != &fs->active; l = next) {
        struct xr_fence *f = rk_list_entry(l, struct xr_fence, link);
        next = l->next;
        if (f->ranks || what != XR_FAILED_RANK)
            drop_ended(fs, f);
    }
    if (what == XR_FAILED_HOST && number == fs->self)
        send_gone(fs, what, number);
}

void xr_fence_report_lost(struct xr_fence_table *fs, uint32_t rank)
{
    send_gone(fs, XR_FAILED_RANK, rank);
}

static bool take_ended(struct xr_fence_table *fs, uint32_t from, struct xr_unpacker *u)
{
    uint32_t what = xr_unpack_u32(u), number = xr_unpack_u32(u);
    bool rank = what == XR_FAILED_RANK;

    if (!xr_unpack_done(u) || from == XR_NODE_FRONT || (!rank && what != XR_FAILED_HOST) ||
        number >= (rank ? fs->job->size : fs->job->nhosts) ||
        !xr_tree_below(fs->tree, from, rank ? fs->job->host_of[number] : number))
        return false;
    xr_liveness_note(fs->liveness, (enum xr_liveness_what)what, number);
    if (fs->self != XR_NODE_FRONT)
        send_gone(fs, (enum xr_liveness_what)what, number);
    return true;
}

bool xr_fence_take(struct xr_fence_table *fs, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    return kind == XR_MSG_FENCE_ENDED ? take_ended(fs, from, u) : take_fence(fs, from, kind, u);
}

rank_status_t xr_fence_open(struct xr_tree *tree, const struct xr_job *job, struct xr_liveness *liveness, uint32_t self,
                             xr_fence_done_fn done, void *arg, struct xr_fence_table **out)
{
    struct xr_fence_table *fs = calloc(1, sizeof(*fs));

    if (!fs)
        return RANK_ERR_NO_MEMORY;
    *fs = (struct xr_fence_table){.tree = tree, .job = job, .liveness = liveness, .self = self, .done = done, .arg = arg};
    fs->nchildren = xr_tree_children(tree);
    rk_list_init(&fs->active);
    fs->watcher.on_gone = fence_on_gone;
    xr_liveness_watch(liveness, &fs->watcher);
    fs->live = calloc(fs->nchildren + 2, sizeof(*fs->live));
    fs->used = calloc(job->nhosts, sizeof(*fs->used));
    fs->where = calloc(job->nhosts, sizeof(*fs->where));
    if (!fs->live || !fs->used || !fs->where) {
        xr_fence_close(fs);
        return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < job->size; r++)
        fs->used[job->host_of[r]] = true;
    for (uint32_t i = 0; i < job->nhosts; i++) {
        uint32_t child = xr_tree_way(tree, i);
        fs->where[i] = i == self ? fs->nchildren : child == XR_NODE_FRONT ? fs->nchildren + 1 : xr_tree_index(tree, child);
    }
    *out = fs;
    return RANK_OK;
}

void xr_fence_close(struct xr_fence_table *fs)
{
    if (!fs)
        return;
    while (!rk_list_empty(&fs->active))
        fence_destroy(fs, rk_list_entry(fs->active.next, struct xr_fence, link));
    xr_liveness_unwatch(&fs->watcher);
    free(fs->live);
    free(fs->used);
    free(fs->where);
    free(fs);
}
