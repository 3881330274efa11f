/*
 * launch.h: the agents below a node of the tree, from their start on.
 *
 * Used by xrun and by every agent that has others below it: it opens a door,
 * starts the agents and takes their wires into the tree as they come in.
 * Where one srun starts all agents, xrun's door also tells those that are not
 * its own whose they are (parent_lookup.h), and the others only wait for theirs.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_LAUNCH_H
#define XR_LAUNCHER_BOOTSTRAP_LAUNCH_H

#include "launcher/bootstrap/setup.h"
#include "launcher/overlay/tree.h"

#include <sys/types.h>

struct xr_branches;

/* node XR_NODE_ALL: of the one command that starts them all. */
struct xr_branch_ops {
    /* It has not come, or came and makes no sense; text is a line. */
    void (*on_failed)(void *arg, uint32_t node, const char *text);
    /* A line that the command which started it wrote. */
    void (*on_said)(void *arg, uint32_t node, const char *line);
};

/*
 * Start all children in the tree but skip, which the caller starts itself
 * (XR_NODE_FRONT: none). setup: names, secret, commands; what children are told
 * of the door is filled in. Failures of single ones come by on_failed; a status
 * and err say that nothing could be started at all.
 */
rank_status_t xr_branches_open(struct event_base *base, struct xr_tree *tree,
                               const struct xr_setup *setup, uint32_t skip,
                               const struct xr_branch_ops *ops, void *arg,
                               struct xr_branches **out, char *err, size_t errlen);
/* A node below says where its door is (the payload of XR_MSG_DOOR): those who wait for that are told. False: it makes
 * no sense. */
bool xr_branches_hear_door(struct xr_branches *branches, struct xr_unpacker *u);
/* What such a message says of our own door; fd: the wire up, whose address here is the likeliest to be reached. */
void xr_branches_pack_door(const struct xr_branches *branches, uint32_t node, int fd, struct xr_packer *p);
/* A node below is in the tree, by whichever way it came. */
void xr_branches_connected(struct xr_branches *branches, uint32_t node);
/* What the command that starts them all has said of its end, or "". NULL is fine. */
const char *xr_branches_words(const struct xr_branches *branches);
/* That this command was killed, or "". NULL is fine. */
const char *xr_branches_killed(const struct xr_branches *branches);
/* NULL is fine. Kills the commands that still run. */
void xr_branches_close(struct xr_branches *branches);

/* A child of this process ended; true if it belongs here. */
bool xr_branches_reaped(struct xr_branches *branches, pid_t pid, int status);
/* The commands that run, for those who signal descendants: at most max. pids NULL: how many there are. */
size_t xr_branches_pids(const struct xr_branches *branches, pid_t *pids, size_t max);
/* A child in the tree is lost: the command that started it need not be waited for. */
void xr_branches_lost(struct xr_branches *branches, uint32_t node);
/* The user does not want to wait: commands whose agents have not come are killed. Not srun, which Slurm knows to end.
 * NULL is fine. */
void xr_branches_give_up(struct xr_branches *branches);
/* Is it one of them? */
bool xr_branches_has(const struct xr_branches *branches, pid_t pid);
/* How many strangers came to the door. */
uint32_t xr_branches_strangers(const struct xr_branches *branches);
/* No more agents are expected: close the door. */
void xr_branches_shut_door(struct xr_branches *branches);

#endif
