/*
 * tree.h: xrun and its agents as a tree of wires.
 *
 * The front end is the root, agents are numbered as the job's hosts; kary.h says
 * who is above whom. Messages find their way by themselves; those for
 * RK_NODE_NEXT go one step.
 */
#ifndef RK_LAUNCHER_OVERLAY_TREE_H
#define RK_LAUNCHER_OVERLAY_TREE_H

#include "launcher/overlay/kary.h"
#include "launcher/overlay/conn.h"

struct rk_tree;

struct rk_tree_ops {
    /* For this node: from the front end or another agent. False: it makes no sense. */
    bool (*on_message)(void *arg, uint32_t kind, struct rk_unpacker *payload);
    /* One step, from a child, or from the parent (then from is RK_NODE_FRONT). May be NULL. */
    bool (*on_step)(void *arg, uint32_t from, uint32_t kind, struct rk_unpacker *payload);
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

/* self: RK_NODE_FRONT or an agent's number. */
rank_status_t rk_tree_open(struct event_base *base, uint32_t self, const struct rk_shape *shape,
                           const struct rk_tree_ops *ops, void *arg, struct rk_tree **out);
/* NULL is fine. Closes all wires; whoever is below ends with that. */
void rk_tree_close(struct rk_tree *tree);

/* How many are just below, the i-th of them, and which of them a node is (RK_NODE_FRONT: none). */
uint32_t rk_tree_children(const struct rk_tree *tree);
uint32_t rk_tree_child(const struct rk_tree *tree, uint32_t i);
uint32_t rk_tree_index(const struct rk_tree *tree, uint32_t node);
/* Is node in the part of the tree that top is the top of? */
bool rk_tree_below(const struct rk_tree *tree, uint32_t top, uint32_t node);
bool rk_tree_is_root(const struct rk_tree *tree);
/* The child of this node that the way to another one, which is below it, goes by; RK_NODE_FRONT: that is not below. */
uint32_t rk_tree_way(const struct rk_tree *tree, uint32_t node);

/*
 * Take over a connection. remote: it crosses a network, and is watched with heartbeats. A child is expected to speak at least
 * every 6 s once it has said its first word; until then who waits for it has a limit (wait_hosts.h).
 */
rank_status_t rk_tree_add_parent(struct rk_tree *tree, int fd, bool remote);
rank_status_t rk_tree_add_child(struct rk_tree *tree, uint32_t node, int fd, bool remote);
/* The loop will not run for a while, for up to two minutes: those below are sent what waits for them as far as it goes, and
 * the parent is told, so that it does not take silence for death. That the host is there its kernel says all the while. */
void rk_tree_excuse(struct rk_tree *tree);
/* The kernel shall notice when the host at the other end of a connection is gone. */
void rk_tree_watch(int fd);
/* The parent's wire, or NULL. */
struct rk_wire *rk_tree_parent(const struct rk_tree *tree);
bool rk_tree_has_child(const struct rk_tree *tree, uint32_t node);
/* Wires to children that are there. */
uint32_t rk_tree_child_count(const struct rk_tree *tree);
/* Say no more to a child, which shows its keeper that the agent's time is over; its end is heard of all the same. */
void rk_tree_hang_up(struct rk_tree *tree, uint32_t node);

/* To one agent, to RK_NODE_FRONT, or from the root to RK_NODE_ALL. The packer is emptied. */
void rk_tree_send(struct rk_tree *tree, uint32_t node, uint32_t kind, struct rk_packer *payload);
/* One step down. */
void rk_tree_step(struct rk_tree *tree, uint32_t child, uint32_t kind, struct rk_packer *payload);
/* Bytes that wait for the kernel in all wires. */
size_t rk_tree_backlog(const struct rk_tree *tree);

#endif
