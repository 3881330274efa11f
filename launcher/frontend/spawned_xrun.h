/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawned_xrun.h: an xrun that another one has started, for a job that a rank of it
 * asked for.
 *
 * The first xrun starts every such job as a child process of its own, which
 * finds the first's end of a connection, the link, on a fixed descriptor. The
 * first word on it (spawn_request.h) says what to run; all else follows in hub.h.
 */
#ifndef XR_LAUNCHER_FRONTEND_SPAWNED_XRUN_H
#define XR_LAUNCHER_FRONTEND_SPAWNED_XRUN_H

#include "launcher/cli/options.h"
#include "launcher/map/plan.h"
#include "launcher/dpm/spawn_request.h"

#define XR_SPAWNED_PROCESS "--spawned-process"
#define XR_SPAWNED_FD 3

struct xr_spawned {
    int link; /* the descriptor, or -1 once somebody has taken it over */
    struct xr_hello hello;
    char **argv;        /* of the options, which point into it */
    const char **words; /* what the programs' own options point into */
    char *output_dir;
};

/* In that process: be told what to run. On failure err says why. Clear it in any case, after the options. */
rank_status_t xr_spawned_read(struct xr_spawned *out, struct xr_options *options, char *err, size_t errlen);
/* What the job is told of where it comes from. False: no memory. */
bool xr_spawned_origin(const struct xr_spawned *spawned, struct xr_origin *out);
void xr_spawned_clear(struct xr_spawned *spawned);
/* The descriptor of the link, which children of that process must not hold; -1: this is not such a process. */
int xr_spawned_link(void);

#endif
