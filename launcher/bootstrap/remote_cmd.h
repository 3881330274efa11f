/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_cmd.h: run a command that starts agents: ssh, or srun.
 *
 * It receives the setup on standard input. What it writes on standard error is
 * kept, or passed on in lines. Standard output is discarded.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_REMOTE_CMD_H
#define XR_LAUNCHER_BOOTSTRAP_REMOTE_CMD_H

#include "launcher/bootstrap/setup.h"
#include "launcher/exec/spawn_proc.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_remote_cmd;

struct xr_remote_cmd_ops {
    /* A line of its output; see xr_remote_cmd_pass. */
    void (*on_line)(void *arg, const char *line);
    /* It has been reaped, and all of its output has been read. */
    void (*on_end)(void *arg, int status);
};

struct xr_remote_cmd_start {
    const char *path;
    char *const *argv, *const *env;
    const struct xr_setup *setup; /* sent on standard input: the launch parameters of this node */
    uint32_t node;
};

/* Returns RANK_ERR_SYSTEM or RANK_ERR_NO_MEMORY with a text in err. */
rank_status_t xr_remote_cmd_start(struct event_base *base, struct xr_spawner *spawner,
                               const struct xr_remote_cmd_start *start, const struct xr_remote_cmd_ops *ops,
                               void *arg, struct xr_remote_cmd **out, char *err, size_t errlen);
/* No-op if NULL. Kills it if it still runs. */
void xr_remote_cmd_close(struct xr_remote_cmd *command);

/* Pass lines on as they arrive, beginning with the kept ones. No-op if NULL. */
void xr_remote_cmd_pass(struct xr_remote_cmd *command);
/* Return the last line kept: most programs put the reason for their end there. */
const char *xr_remote_cmd_last(struct xr_remote_cmd *command);

/* Handle the end of a child process. Returns true if it was this one. NULL is accepted. */
bool xr_remote_cmd_reaped(struct xr_remote_cmd *command, pid_t pid, int status);
/* Return its pid, or 0 if it does not run or is NULL. */
pid_t xr_remote_cmd_pid(const struct xr_remote_cmd *command);

#endif
