/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.c: see tree.h. */
#include "launcher/overlay/tree.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/keepalive.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FOR_EVER UINT32_MAX

struct link {
    struct xr_tree *tree;
    struct xr_conn *wire; /* NULL: not connected */
    uint32_t node;        /* of the other end; XR_NODE_FRONT: the parent */
    bool remote;
    bool disconnected; /* nothing more is sent, and only the end is expected */
    bool timeout_suspended; /* the kernel's time-out for unsent data is suspended */
    bool lost;    /* reported to the owner; waits for the supervisor to end its processes */
    uint32_t silent; /* our heartbeats since the last byte; grows slower if this process gets no time */
    uint32_t silent_max;
    uint64_t lost_ns;
};

struct xr_tree {
    struct event_base *base;
    const struct xr_tree_ops *ops;
    void *arg;
    uint32_t self;
    struct xr_kary shape;
    struct link parent;
    struct link *child; /* [nchildren] */
    uint32_t nchildren;
    struct event *beat;
    uint64_t beat_ns; /* time of the last check */
};

bool xr_tree_below(const struct xr_tree *t, uint32_t top, uint32_t node)
{
    return xr_kary_is_below(&t->shape, top, node);
}

bool xr_tree_is_root(const struct xr_tree *t)
{
    return t->self == XR_NODE_FRONT;
}

uint32_t xr_tree_children(const struct xr_tree *t)
{
    return t->nchildren;
}

uint32_t xr_tree_child(const struct xr_tree *t, uint32_t i)
{
    return t->child[i].node;
}

uint32_t xr_tree_index(const struct xr_tree *t, uint32_t node)
{
    uint32_t i = xr_kary_way(&t->shape, t->self, node);

    return i < t->nchildren && t->child[i].node == node ? i : XR_NODE_FRONT;
}

uint32_t xr_tree_way(const struct xr_tree *t, uint32_t node)
{
    uint32_t i = xr_kary_way(&t->shape, t->self, node);

    return i < t->nchildren ? t->child[i].node : XR_NODE_FRONT;
}

static struct link *tree_child_of(struct xr_tree *t, uint32_t node)
{
    uint32_t i = xr_tree_index(t, node);

    return i == XR_NODE_FRONT ? NULL : &t->child[i];
}

/* Return the child on the route to a descendant, or NULL. */
static struct link *next_hop(struct xr_tree *t, uint32_t node)
{
    uint32_t i = xr_kary_way(&t->shape, t->self, node);

    return i >= t->nchildren ? NULL : &t->child[i];
}

/* -------------------------------------------------------------------- sending */

static void send_to_children(struct xr_tree *t, uint32_t kind, const void *data, size_t len)
{
    for (uint32_t i = 0; i < t->nchildren; i++) {
        if (t->child[i].wire && !t->child[i].disconnected)
            xr_conn_forward(t->child[i].wire, XR_NODE_ALL, kind, data, len);
    }
}

/* Send to another node. Drops a message without a route. */
static void tree_forward(struct xr_tree *t, uint32_t node, uint32_t kind, const void *data, size_t len)
{
    struct link *l = node == XR_NODE_FRONT ? NULL : next_hop(t, node);

    if (!l)
        l = &t->parent;
    if (l->wire && !l->disconnected)
        xr_conn_forward(l->wire, node, kind, data, len);
}

void xr_tree_send(struct xr_tree *t, uint32_t node, uint32_t kind, struct xr_packer *p)
{
    struct xr_packer none = {0};

    p = p ? p : &none;
    if (!p->failed) {
        if (node == XR_NODE_ALL)
            send_to_children(t, kind, p->data, p->len);
        else if (node == t->self) {
            struct xr_unpacker u = {p->data, p->len, false};
            t->ops->on_message(t->arg, kind, &u);
        } else {
            tree_forward(t, node, kind, p->data, p->len);
        }
    }
    xr_packer_free(p);
}

void xr_tree_step(struct xr_tree *t, uint32_t child, uint32_t kind, struct xr_packer *p)
{
    struct link *l = child == XR_NODE_FRONT ? &t->parent : next_hop(t, child);

    if (l && l->wire && !l->disconnected)
        xr_conn_send_to(l->wire, XR_NODE_NEXT, kind, p);
    else if (p)
        xr_packer_free(p);
}

void xr_tree_suspend_keepalive(struct xr_tree *t)
{
    if (t->parent.remote)
        xr_tree_step(t, XR_NODE_FRONT, XR_MSG_BUSY, NULL);
    if (t->parent.wire)
        xr_conn_flush(t->parent.wire);
    for (uint32_t i = 0; i < t->nchildren; i++) {
        if (t->child[i].wire)
            xr_conn_flush(t->child[i].wire);
    }
}

size_t xr_tree_backlog(const struct xr_tree *t)
{
    size_t sum = t->parent.wire ? xr_conn_backlog(t->parent.wire) : 0;

    for (uint32_t i = 0; i < t->nchildren; i++)
        sum += t->child[i].wire ? xr_conn_backlog(t->child[i].wire) : 0;
    return sum;
}

/* ------------------------------------------------------------------ receiving */

static bool tree_on_message(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *u)
{
    struct link *l = arg;
    struct xr_tree *t = l->tree;

    l->silent_max = (kind == XR_MSG_BUSY ? XR_BUSY_S : XR_LOST_AFTER_S) / XR_BEAT_S;
    if (kind == XR_MSG_BEAT || kind == XR_MSG_BUSY || l->lost)
        return true;
    if (node == XR_NODE_NEXT)
        return t->ops->on_step && t->ops->on_step(t->arg, l->node, kind, u);
    if (node == XR_NODE_ALL) {
        if (l != &t->parent) /* only the root sends to all */
            return false;
        send_to_children(t, kind, u->at, u->left);
        return t->ops->on_message(t->arg, kind, u);
    }
    if (l != &t->parent && node != XR_NODE_FRONT && !xr_message_is_routed(kind)) /* an agent poses as the front end */
        return false;
    if (node == t->self)
        return t->ops->on_message(t->arg, kind, u);
    if (node != XR_NODE_FRONT && node >= t->shape.nodes)
        return false;
    tree_forward(t, node, kind, u->at, u->left);
    return true;
}

static void end_lost(struct link *l, bool seen)
{
    xr_conn_close(l->wire);
    l->wire = NULL;
    l->tree->ops->on_lost_ended(l->tree->arg, l->node, seen);
}

static void on_close(void *arg, const char *why)
{
    struct link *l = arg;
    struct xr_tree *t = l->tree;

    if (l->lost) { /* the supervisor closed it if why is NULL, else the kernel gave up: the host is gone */
        end_lost(l, true);
        return;
    }
    xr_conn_close(l->wire);
    l->wire = NULL;
    if (l == &t->parent)
        t->ops->on_parent_gone(t->arg, why);
    else
        t->ops->on_child_gone(t->arg, l->node, why);
}

static void tree_on_drained(void *arg)
{
    struct link *l = arg;
    struct xr_tree *t = l->tree;

    if (l == &t->parent && t->ops->on_drained)
        t->ops->on_drained(t->arg);
}

/* A long message takes its time on a slow link, with heartbeats behind it. */
static void on_bytes(void *arg)
{
    struct link *l = arg;

    l->silent = 0;
}

static const struct xr_conn_ops wire_ops = {tree_on_message, on_close, tree_on_drained, on_bytes};

/* ----------------------------------------------------------------- heartbeats */

/*
 * The agent hangs, or its host is cut off. The owner continues without it at once. Its supervisor sees our end
 * closed, ends the agent and its ranks, and closes the other end only then. If the host is cut off, the kernel
 * gives up soon.
 */
static void tree_lose(struct link *l, uint64_t now)
{
    struct xr_tree *t = l->tree;
    char why[64];

    l->lost = true;
    l->lost_ns = now;
    xr_tree_disconnect_child(t, l->node);
    snprintf(why, sizeof(why), "it has not answered for %u s", l->silent_max * XR_BEAT_S);
    t->ops->on_child_gone(t->arg, l->node, why);
}

static void check_link(struct link *l, uint64_t now)
{
    if (l->wire && l->lost && now - l->lost_ns > XR_SUPERVISOR_MS * 1000000ull)
        end_lost(l, false);
    if (!l->wire || !l->remote || l->disconnected)
        return;
    if (l == &l->tree->parent)
        l->timeout_suspended = xr_keepalive_suspend(xr_conn_fd(l->wire), l->timeout_suspended);
    xr_conn_send_to(l->wire, XR_NODE_NEXT, XR_MSG_BEAT, NULL);
    /* A silent parent may be xrun, stopped by its user. The kernel's keepalive detects a dead host. */
    if (l != &l->tree->parent && l->silent++ >= l->silent_max)
        tree_lose(l, now);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    struct xr_tree *t = arg;
    uint64_t now = rk_clock_ns();

    (void)fd;
    (void)what;
    /* This process was stopped itself: data of the peers are still unread. */
    if (now - t->beat_ns > 2 * XR_BEAT_S * 1000000000ull) {
        for (uint32_t i = 0; i < t->nchildren; i++) {
            t->child[i].silent = 0;
            t->child[i].lost_ns = now;
        }
    }
    t->beat_ns = now;
    check_link(&t->parent, now);
    for (uint32_t i = 0; i < t->nchildren; i++)
        check_link(&t->child[i], now);
}

static rank_status_t tree_add(struct link *l, int fd, const struct xr_seals *seals)
{
    struct xr_tree *t = l->tree;
    const struct timeval every = {XR_BEAT_S, 0};
    rank_status_t st = xr_conn_open(t->base, fd, seals, &wire_ops, l, &l->wire);

    if (st) {
        close(fd);
        return st;
    }
    l->remote = seals != NULL;
    l->silent = 0;
    l->silent_max = FOR_EVER;
    if (!seals)
        return RANK_OK;
    xr_keepalive_enable(fd);
    if (!t->beat) {
        t->beat = event_new(t->base, -1, EV_PERSIST, on_beat, t);
        t->beat_ns = rk_clock_ns();
        if (!t->beat || event_add(t->beat, &every))
            return RANK_ERR_NO_MEMORY;
    }
    return RANK_OK;
}

/* ------------------------------------------------------------------ open, close */

rank_status_t xr_tree_open(struct event_base *base, uint32_t self, const struct xr_kary *shape,
                           const struct xr_tree_ops *ops, void *arg, struct xr_tree **out)
{
    struct xr_tree *t = calloc(1, sizeof(*t));

    if (!t)
        return RANK_ERR_NO_MEMORY;
    *t = (struct xr_tree){.base = base, .ops = ops, .arg = arg, .self = self, .shape = *shape};
    t->parent = (struct link){.tree = t, .node = XR_NODE_FRONT};
    t->nchildren = xr_kary_children(shape, self);
    t->child = calloc(t->nchildren ? t->nchildren : 1, sizeof(*t->child));
    if (!t->child) {
        free(t);
        return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < t->nchildren; i++)
        t->child[i] = (struct link){.tree = t, .node = xr_kary_child(shape, self, i)};
    *out = t;
    return RANK_OK;
}

void xr_tree_close(struct xr_tree *t)
{
    if (!t)
        return;
    xr_conn_close(t->parent.wire);
    for (uint32_t i = 0; i < t->nchildren; i++)
        xr_conn_close(t->child[i].wire);
    if (t->beat)
        event_free(t->beat);
    free(t->child);
    free(t);
}

rank_status_t xr_tree_add_parent(struct xr_tree *t, int fd, const struct xr_seals *seals)
{
    return tree_add(&t->parent, fd, seals);
}

rank_status_t xr_tree_add_child(struct xr_tree *t, uint32_t node, int fd, const struct xr_seals *seals)
{
    struct link *l = tree_child_of(t, node);

    if (!l || l->wire) {
        close(fd);
        return RANK_ERR_ARG;
    }
    return tree_add(l, fd, seals);
}

struct xr_conn *xr_tree_parent(const struct xr_tree *t)
{
    return t->parent.wire;
}

uint32_t xr_tree_child_count(const struct xr_tree *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->nchildren; i++)
        n += t->child[i].wire != NULL;
    return n;
}

void xr_tree_disconnect_child(struct xr_tree *t, uint32_t node)
{
    struct link *l = tree_child_of(t, node);

    if (!l || !l->wire || l->disconnected)
        return;
    l->disconnected = true;
    xr_conn_shutdown_write(l->wire);
}
