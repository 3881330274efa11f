/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_program.c: find the ranks' programs, and explain why one did not start. */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/rank_start_internal.h"
#include "launcher/exec/environ.h"
#include "launcher/exec/find_program.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write "program 2: " if there are several programs. Returns its length. */
static size_t write_app_number(const struct xr_agent *agent, const struct xr_app *app, char *text, size_t len)
{
    if (agent->job.napps == 1)
        return 0;
    return (size_t)snprintf(text, len, "program %u: ", (unsigned)(app - agent->job.apps) + 1);
}

void xr_rank_start_explain(const struct xr_agent *agent, uint32_t rank, const struct xr_rank_start *s, int *code,
                           char *text, size_t len)
{
    const struct xr_app *app = xr_job_app_of(&agent->job, rank);
    size_t named = write_app_number(agent, app, text, len);

    *code = XR_EXIT_USAGE;
    text += named;
    len -= named;
    if (strcmp(s->step, "exec") == 0 && s->error == ENOENT && access(app->program, F_OK)) {
        *code = XR_EXIT_NOT_FOUND;
        snprintf(text, len, "there is no program %s on %s", app->program, agent->host);
    } else if (strcmp(s->step, "exec") == 0) {
        *code = s->error == ENOENT ? XR_EXIT_NOT_FOUND : XR_EXIT_CANNOT_EXECUTE;
        snprintf(text, len, "cannot execute %s on %s: %s%s", app->program, agent->host,
                 strerror(s->error),
                 s->error == ENOENT    ? " (it is there: is its interpreter, after #!, missing?)"
                 : s->error == ENOEXEC ? " (a script needs #! in its first line)"
                                       : "");
    } else if (strcmp(s->step, "chdir") == 0) {
        snprintf(text, len, "cannot start in %s on %s: %s", app->wdir, agent->host,
                 strerror(s->error));
    } else {
        snprintf(text, len, "cannot start rank %u of %u on %s: %s: %s%s", rank, agent->job.size,
                 agent->host, s->step, strerror(s->error),
                 s->error == EAGAIN ? " (too many processes: start fewer, or raise ulimit -u or pids.max of the "
                                      "control group)"
                 : strcmp(s->step, "sched_setaffinity") == 0 ? " (--bind none does without it)"
                                                             : rk_refusal_remedy(s->error));
    }
}

rank_status_t xr_rank_programs_find(struct xr_agent *agent, int *code, char *text, size_t len)
{
    for (struct xr_app *app = agent->job.apps; app < agent->job.apps + agent->job.napps; app++) {
        const char *path = xr_environ_value_of(app->env, agent->job.env, "PATH");
        bool here = false;
        size_t named;
        char *found;
        for (uint32_t i = 0; i < agent->nlocal && !here; i++)
            here = xr_job_app_of(&agent->job, agent->ranks[i].rank) == app;
        if (!here || strchr(app->program, '/'))
            continue;
        named = write_app_number(agent, app, text, len);
        named += (size_t)snprintf(text + named, len - named, "host %s: ", agent->host);
        found = xr_program_find(app->program, *app->path ? app->path : NULL, path, app->wdir, text + named, len - named, code);
        if (!found)
            return RANK_ERR_SYSTEM;
        free(app->program);
        app->program = found;
        *text = '\0';
    }
    return RANK_OK;
}
