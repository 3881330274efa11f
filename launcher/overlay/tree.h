/*
 * tree.h: xrun and its agents as a tree of wires.
 *
 * The front end is the root, agents are numbered as the job's hosts; kary.h says
 * who is above whom. Messages find their way by themselves; those for
 * XR_NODE_NEXT go one step.
 */
#ifndef XR_LAUNCHER_OVERLAY_TREE_H
#define XR_LAUNCHER_OVERLAY_TREE_H

#include "launcher/overlay/kary.h"
#include "launcher/overlay/conn.h"

struct xr_tree;

struct xr_tree_ops {
    /* For this node: from the front end or another agent. False: it makes no sense. */
    bool (*on_message)(void *arg, uint32_t kind, struct xr_unpacker *payload);
    /* One step, from a child, or from the parent (then from is XR_NODE_FRONT). May be NULL. */
    bool (*on_step)(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *payload);
    /* A child has closed its wire or does not answer, and with it all below; why is NULL for a plain end. */
    void (*on_child_gone)(void *arg, uint32_t node, const char *why);
    /*
     * One that did not answer is gone since then, but its wire still counts as there until this is called. seen: the
     * other end is closed, so that what the agent had started has ended, or its host is not there; else nothing has
     * shown so in the time that this may take.
     */
    void (*on_lost_ended)(void *arg, uint32_t node, bool seen);
    void (*on_parent_gone)(void *arg, const char *why);
    /* Little is left of what was queued for the parent. May be NULL. */
    void (*on_drained)(void *arg);
};

/* self: XR_NODE_FRONT or an agent's number. */
rank_status_t xr_tree_open(struct event_base *base, uint32_t self, const struct xr_shape *shape,
                           const struct xr_tree_ops *ops, void *arg, struct xr_tree **out);
/* NULL is fine. Closes all wires; whoever is below ends with that. */
void xr_tree_close(struct xr_tree *tree);

/* How many are just below, the i-th of them, and which of them a node is (XR_NODE_FRONT: none). */
uint32_t xr_tree_children(const struct xr_tree *tree);
uint32_t xr_tree_child(const struct xr_tree *tree, uint32_t i);
uint32_t xr_tree_index(const struct xr_tree *tree, uint32_t node);
/* Is node in the part of the tree that top is the top of? */
bool xr_tree_below(const struct xr_tree *tree, uint32_t top, uint32_t node);
bool xr_tree_is_root(const struct xr_tree *tree);
/* The child of this node that the way to another one, which is below it, goes by; XR_NODE_FRONT: that is not below. */
uint32_t xr_tree_way(const struct xr_tree *tree, uint32_t node);

/*
 * Take over a connection. remote: it crosses a network, and is watched with heartbeats. A child is expected to speak at least
 * every 6 s once it has said its first word; until then who waits for it has a limit (wait_hosts.h).
 */
rank_status_t xr_tree_add_parent(struct xr_tree *tree, int fd, bool remote);
rank_status_t xr_tree_add_child(struct xr_tree *tree, uint32_t node, int fd, bool remote);
/* The loop will not run for a while, for up to two minutes: those below are sent what waits for them as far as it goes, and
 * the parent is told, so that it does not take silence for death. That the host is there its kernel says all the while. */
void xr_tree_excuse(struct xr_tree *tree);

/* The parent's wire, or NULL. */
struct xr_wire *xr_tree_parent(const struct xr_tree *tree);
bool xr_tree_has_child(const struct xr_tree *tree, uint32_t node);
/* Wires to children that are there. */
uint32_t xr_tree_child_count(const struct xr_tree *tree);
/* Say no more to a child, which shows its keeper that the agent's time is over; its end is heard of all the same. */
void xr_tree_hang_up(struct xr_tree *tree, uint32_t node);

/* To one agent, to XR_NODE_FRONT, or from the root to XR_NODE_ALL. The packer is emptied. */
void xr_tree_send(struct xr_tree *tree, uint32_t node, uint32_t kind, struct xr_packer *payload);
/* One step down. */
void xr_tree_step(struct xr_tree *tree, uint32_t child, uint32_t kind, struct xr_packer *payload);
/* Bytes that wait for the kernel in all wires. */
size_t xr_tree_backlog(const struct xr_tree *tree);

#endif
