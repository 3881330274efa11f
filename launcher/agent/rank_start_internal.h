/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_start_internal.h: share the parameters of a rank's start.
 *
 * Used by rank_start.c, rank_prepare.c and rank_program.c only.
 */
#ifndef XR_LAUNCHER_AGENT_RANK_START_INTERNAL_H
#define XR_LAUNCHER_AGENT_RANK_START_INTERNAL_H

#include "launcher/agent/agent_internal.h"
#include "launcher/exec/spawn_proc.h"
#include "launcher/job/torch_env.h"

#define XR_OWN_VARS 8
#define XR_DEVICE_VARS 4

struct xr_rank_start {
    struct xr_spawn spec;
    char own[XR_OWN_VARS][400]; /* the rank's own variables */
    char torch[XR_TORCH_VARS][32];
    char **env, **pmix, **foreign;
    int null;         /* /dev/null, which all ranks without input share */
    int error;        /* errno, if it did not start */
    const char *step; /* the step of the start that failed */
};

/*
 * rank_prepare.c: prepare all that the local-th rank needs. env: the variables of its program. null: its input if it
 * gets none. Runs on the agent's thread. On failure too, clear *s.
 */
rank_status_t xr_rank_prepare(struct xr_agent *agent, uint32_t local, char *const *env, int null,
                              struct xr_rank_start *s);
/* rank_prepare.c: close the rank's ends of its streams, and free its environment. */
void xr_rank_start_clear(struct xr_rank_start *s);

/* rank_program.c: set exit code and text for a rank that did not start. */
void xr_rank_start_explain(const struct xr_agent *agent, uint32_t rank, const struct xr_rank_start *s, int *code,
                           char *text, size_t len);

#endif
