/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawned_xrun.h: make options of a spawn request, in a spawned xrun.
 *
 * The first xrun starts a child process for each spawned job (child_jobs.h). A connection to the first xrun is on a
 * fixed descriptor. Its first message holds what to run (spawn_request.h); hub.h has the others.
 */
#ifndef XR_LAUNCHER_FRONTEND_SPAWNED_XRUN_H
#define XR_LAUNCHER_FRONTEND_SPAWNED_XRUN_H

#include "launcher/cli/options.h"
#include "launcher/map/plan.h"
#include "launcher/dpm/spawn_request.h"

#define XR_SPAWNED_PROCESS "--spawned-process"
#define XR_SPAWNED_FD 3

struct xr_spawned {
    int link; /* the descriptor; -1: it is owned by job_link.c */
    struct xr_spawn_hello hello;
    /* The options point into these. */
    char **argv;
    const char **words;
    char *output_dir;
};

/* Read what to run. On failure err holds the reason. Clear both whatever is returned, the options first. */
rank_status_t xr_spawned_read(struct xr_spawned *out, struct xr_options *options, char *err, size_t errlen);
/* Describe the parent of the job. Returns false if out of memory. */
bool xr_spawned_origin(const struct xr_spawned *spawned, struct xr_origin *out);
void xr_spawned_clear(struct xr_spawned *spawned);
/* The descriptor of the connection, which forked processes have to close. -1: this xrun was not spawned. */
int xr_spawned_fd(void);

#endif
