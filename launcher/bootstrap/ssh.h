/*
 * ssh.h: start agents on other hosts, by ssh or a command like it.
 *
 * "ssh HOST COMMAND" with a setup on its standard input. The command stays as
 * long as the agent does: it carries what the agent has to say before it is
 * connected, and the reason if it never is.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SSH_H
#define XR_LAUNCHER_BOOTSTRAP_SSH_H

#include "launcher/bootstrap/setup.h"
#include "launcher/overlay/tree.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_starter;

struct xr_starter_ops {
    /* The command ended before the agent was connected; text is what it last said, and how it ended. */
    void (*on_failed)(void *arg, uint32_t node, const char *text);
    /* A line that it wrote, once the agent is connected. */
    void (*on_said)(void *arg, uint32_t node, const char *line);
};

/* For the children in the tree. Clear setup only after it. */
rank_status_t xr_starter_open(struct event_base *base, const struct xr_setup *setup, const struct xr_tree *tree,
                              const struct xr_starter_ops *ops, void *arg, struct xr_starter **out);
/* NULL is fine. Kills what still runs. */
void xr_starter_close(struct xr_starter *starter);

/* Start the agent of a node. RANK_ERR_SYSTEM: err says why. */
rank_status_t xr_starter_start(struct xr_starter *starter, uint32_t node, char *err, size_t errlen);
/* The agent is there: what its command says from now on is passed on. */
void xr_starter_connected(struct xr_starter *starter, uint32_t node);
/* A child of this process has ended; true if it was a starter's. */
bool xr_starter_reaped(struct xr_starter *starter, pid_t pid, int status);
bool xr_starter_has(const struct xr_starter *starter, pid_t pid);
/* The pids of all that run, at most max. Returns how many; pids NULL: all of them are counted. */
size_t xr_starter_pids(const struct xr_starter *starter, pid_t *pids, size_t max);
/* Nobody waits any more for agents that have not come. */
void xr_starter_give_up(struct xr_starter *starter);
/* The agent is lost: its command has no use any more. */
void xr_starter_kill(struct xr_starter *starter, uint32_t node);

#endif
