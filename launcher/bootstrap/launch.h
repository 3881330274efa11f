/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h: start the agents below a node and connect them to the tree.
 *
 * Room: start agents on other hosts and authenticate them.
 * Called by: agent, frontend, main.c.
 * Never: decides which hosts are used, or what runs on them.
 * Tests: tests/launcher/unit/listener_test.c, listener_hosts.sh;
 * tests/fuzz/fuzz_wire.c.
 *
 * Used by xrun and by each agent with children. It opens a listener, starts the
 * agents, and adds their connections to the tree as they arrive. Where one srun
 * starts all agents, xrun's listener also sends the others the addresses of their parents
 * (parent_lookup.h).
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_LAUNCH_H
#define XR_LAUNCHER_BOOTSTRAP_LAUNCH_H

#include "launcher/bootstrap/setup.h"
#include "launcher/overlay/tree.h"

#include <sys/types.h>

struct xr_launch;

/* node is XR_NODE_ALL for the one command that starts all agents. */
struct xr_launch_ops {
    /* The agent did not connect, or sent a malformed handshake; text is a line. */
    void (*on_failed)(void *arg, uint32_t node, const char *text);
    /* A line of output of the command that started the agent. */
    void (*on_output)(void *arg, uint32_t node, const char *line);
};

/*
 * Start all children in the tree except skip, which the caller starts itself (XR_NODE_FRONT: none). setup:
 * names, secret, commands; the listener's addresses are filled in. Single failures are reported by on_failed. A
 * failure status, with err, means that nothing could be started.
 */
rank_status_t xr_launch_open(struct event_base *base, struct xr_tree *tree,
                               const struct xr_setup *setup, uint32_t skip,
                               const struct xr_launch_ops *ops, void *arg,
                               struct xr_launch **out, char *err, size_t errlen);
/*
 * Handle XR_MSG_LISTENER of a descendant: pass its listener's address to the agents that wait for it. Returns false
 * if the message is malformed.
 */
bool xr_launch_take_listener(struct xr_launch *launch, struct xr_unpacker *u);
/* Pack XR_MSG_LISTENER for our own listener. fd: the connection to the parent, whose local address comes first. */
void xr_launch_pack_listener(const struct xr_launch *launch, uint32_t node, int fd, struct xr_packer *p);
/* A descendant is in the tree, by any route. */
void xr_launch_connected(struct xr_launch *launch, uint32_t node);
/* Return the last message of the command that starts all agents, or "". NULL is accepted. */
const char *xr_launch_reason(const struct xr_launch *launch);
/* Return the text that this command was killed, or "". NULL is accepted. */
const char *xr_launch_killed(const struct xr_launch *launch);
/* No-op if NULL. Kills the commands that still run. */
void xr_launch_close(struct xr_launch *launch);

/* Handle the end of a child process. Returns true if it belongs here. */
bool xr_launch_reaped(struct xr_launch *launch, pid_t pid, int status);
/* Store the pids of running commands, at most max. pids NULL: only count them. */
size_t xr_launch_pids(const struct xr_launch *launch, pid_t *pids, size_t max);
/* A child in the tree is lost: do not wait for the command that started it. */
void xr_launch_lost(struct xr_launch *launch, uint32_t node);
/* Kill the commands whose agents have not connected. Not srun: Slurm ends it. No-op if NULL. */
void xr_launch_give_up(struct xr_launch *launch);
/* Return whether pid is one of the commands. */
bool xr_launch_has(const struct xr_launch *launch, pid_t pid);
/* Return the number of unauthenticated peers. */
uint32_t xr_launch_unauthenticated(const struct xr_launch *launch);
/* No more agents are expected: close the listener. */
void xr_launch_close_listener(struct xr_launch *launch);

#endif
