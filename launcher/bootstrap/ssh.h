/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ssh.h: start agents on other hosts, by ssh or a similar command.
 *
 * Runs "ssh HOST COMMAND" with a setup on its standard input. The command runs as
 * long as the agent. It carries the agent's output before it is connected, and the
 * reason if it never is.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SSH_H
#define XR_LAUNCHER_BOOTSTRAP_SSH_H

#include "launcher/bootstrap/setup.h"
#include "launcher/overlay/tree.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_ssh;

struct xr_ssh_ops {
    /* The command ended before the agent connected; text: its last output, and its exit status. */
    void (*on_failed)(void *arg, uint32_t node, const char *text);
    /* A line of its output after the agent connected. */
    void (*on_output)(void *arg, uint32_t node, const char *line);
};

/* For the children in the tree. setup must outlive the ssh. */
rank_status_t xr_ssh_open(struct event_base *base, const struct xr_setup *setup, const struct xr_tree *tree,
                              const struct xr_ssh_ops *ops, void *arg, struct xr_ssh **out);
/* No-op if NULL. Kills the commands that still run. */
void xr_ssh_close(struct xr_ssh *ssh);

/* Start the agent of a node. RANK_ERR_SYSTEM: err holds a text. */
rank_status_t xr_ssh_start(struct xr_ssh *ssh, uint32_t node, char *err, size_t errlen);
/* The agent connected: pass the further output of its command on. */
void xr_ssh_connected(struct xr_ssh *ssh, uint32_t node);
/* Handle the end of a child process. Returns true if it was one of ours. */
bool xr_ssh_reaped(struct xr_ssh *ssh, pid_t pid, int status);
bool xr_ssh_has(const struct xr_ssh *ssh, pid_t pid);
/* Store the pids of running commands, at most max. Returns the number; pids NULL: only count them. */
size_t xr_ssh_pids(const struct xr_ssh *ssh, pid_t *pids, size_t max);
/* Kill the commands whose agents have not connected. */
void xr_ssh_give_up(struct xr_ssh *ssh);
/* The agent is lost: kill its command. */
void xr_ssh_kill(struct xr_ssh *ssh, uint32_t node);

#endif
