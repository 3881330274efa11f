/*
 * remote_cmd.h: a command that starts agents: ssh, or srun.
 *
 * It gets its words on standard input, and what it writes on standard error is
 * kept, or passed on in lines. Standard output goes nowhere.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_REMOTE_CMD_H
#define XR_LAUNCHER_BOOTSTRAP_REMOTE_CMD_H

#include "launcher/bootstrap/setup.h"
#include "launcher/exec/spawn_proc.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_command;

struct xr_command_ops {
    /* A line that it wrote; see xr_command_pass. */
    void (*on_line)(void *arg, const char *line);
    /* It has been reaped, and all that it wrote has come. */
    void (*on_end)(void *arg, int status);
};

struct xr_command_start {
    const char *path;
    char *const *argv, *const *env;
    const struct xr_setup *setup; /* what it is to say on standard input: what this node is told */
    uint32_t node;
};

/* RANK_ERR_SYSTEM, RANK_ERR_NO_MEMORY: err says why. */
rank_status_t xr_command_start(struct event_base *base, struct xr_spawner *spawner,
                               const struct xr_command_start *start, const struct xr_command_ops *ops,
                               void *arg, struct xr_command **out, char *err, size_t errlen);
/* NULL is fine. Kills it if it still runs. */
void xr_command_close(struct xr_command *command);

/* From now on lines are passed on as they come, beginning with those that are kept. NULL is fine. */
void xr_command_pass(struct xr_command *command);
/* The last line that is kept: where programs put the reason for their end. */
const char *xr_command_last(struct xr_command *command);

/* A child has ended; true if it was this one. NULL is fine. */
bool xr_command_reaped(struct xr_command *command, pid_t pid, int status);
/* 0: it does not run. NULL is fine. */
pid_t xr_command_pid(const struct xr_command *command);

#endif
