/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.h: connect xrun and its agents as one tree and route messages in it.
 *
 * Room: connections of xrun and agents; liveness, fences, direct modex on them.
 * Called by: agent, bootstrap, dpm, frontend, iof, monitor, pmix.
 * Never: starts a process; includes a PMIx header.
 * Tests: tests/launcher/unit/{tree,fence}_test.c, tests/launcher/tree_hosts.sh.
 *
 * The front end is the root; agents are numbered as the job's hosts; kary.h
 * computes parents. Messages are routed hop by hop; those for XR_NODE_NEXT go one
 * hop.
 */
#ifndef XR_LAUNCHER_OVERLAY_TREE_H
#define XR_LAUNCHER_OVERLAY_TREE_H

#include "launcher/overlay/kary.h"
#include "launcher/overlay/conn.h"

struct xr_tree;

struct xr_tree_ops {
    /* For this node: from the front end or another agent. Return false if it is malformed. */
    bool (*on_message)(void *arg, uint32_t kind, struct xr_unpacker *payload);
    /* One hop, from a child, or from the parent (then from is XR_NODE_FRONT). May be NULL. */
    bool (*on_step)(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *payload);
    /* A child closed its connection or does not answer; all below it is lost too. why: NULL for an orderly end. */
    void (*on_child_gone)(void *arg, uint32_t node, const char *why);
    /*
     * Second report for a child that did not answer: its connection counts as open until this call. seen: the
     * other end is closed, so what the agent started has ended, or its host is gone. Else the time limit passed
     * without such a sign.
     */
    void (*on_lost_ended)(void *arg, uint32_t node, bool seen);
    void (*on_parent_gone)(void *arg, const char *why);
    /* Little of the data queued for the parent is left. May be NULL. */
    void (*on_drained)(void *arg);
};

/* self: XR_NODE_FRONT or an agent's number. */
rank_status_t xr_tree_open(struct event_base *base, uint32_t self, const struct xr_kary *shape,
                           const struct xr_tree_ops *ops, void *arg, struct xr_tree **out);
/* No-op if NULL. Closes all connections, which ends all descendants. */
void xr_tree_close(struct xr_tree *tree);

/* The number of children, the i-th child, and the index of a child (XR_NODE_FRONT: none). */
uint32_t xr_tree_children(const struct xr_tree *tree);
uint32_t xr_tree_child(const struct xr_tree *tree, uint32_t i);
uint32_t xr_tree_index(const struct xr_tree *tree, uint32_t node);
/* Return whether node is top or a descendant of top. */
bool xr_tree_below(const struct xr_tree *tree, uint32_t top, uint32_t node);
bool xr_tree_is_root(const struct xr_tree *tree);
/* Next hop: the child on the route to node, or XR_NODE_FRONT if node is not a descendant. */
uint32_t xr_tree_way(const struct xr_tree *tree, uint32_t node);

/*
 * Takes ownership of fd. seals: it crosses a network, and uses heartbeats; NULL: both ends are on this host. A child
 * must send at least every 6 s after its first message; until then the caller sets a limit (wait_hosts.h).
 */
rank_status_t xr_tree_add_parent(struct xr_tree *tree, int fd, const struct xr_seals *seals);
rank_status_t xr_tree_add_child(struct xr_tree *tree, uint32_t node, int fd, const struct xr_seals *seals);
/*
 * The loop will not run for up to two minutes. Sends queued data to the children as far as the kernel accepts,
 * and notifies the parent, so that silence does not count as death. The kernel still answers keepalive probes.
 */
void xr_tree_suspend_keepalive(struct xr_tree *tree);

/* The parent's connection, or NULL. */
struct xr_conn *xr_tree_parent(const struct xr_tree *tree);
/* The number of connected children. */
uint32_t xr_tree_child_count(const struct xr_tree *tree);
/* Send nothing more to a child: its supervisor then ends the agent. Its end is still reported. */
void xr_tree_disconnect_child(struct xr_tree *tree, uint32_t node);

/* Send to an agent, to XR_NODE_FRONT, or from the root to XR_NODE_ALL. Empties the packer. */
void xr_tree_send(struct xr_tree *tree, uint32_t node, uint32_t kind, struct xr_packer *payload);
/* Send one hop down. */
void xr_tree_step(struct xr_tree *tree, uint32_t child, uint32_t kind, struct xr_packer *payload);
/* The bytes queued in all connections. */
size_t xr_tree_backlog(const struct xr_tree *tree);

#endif
