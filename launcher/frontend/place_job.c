/* SPDX-License-Identifier: BSD-3-Clause */
/* place_job.c: place the ranks of a job on its hosts. See place_job.h. */
#include "launcher/frontend/place_job.h"
#include "launcher/frontend/agent_setup.h"
#include "launcher/exec/rlimits.h"
#include "launcher/iof/out_files.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/util/shell_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int place_job_by_host(const void *name, const void *word)
{
    const char *host = strchr(*(char *const *)word, ' ');

    return strcmp(name, host ? host + 1 : "");
}

/* The words are sorted by the names of the hosts. */
static uint32_t busy_on(char **busy, size_t n, const char *host)
{
    char **word = n && host ? bsearch(host, busy, n, sizeof(*busy), place_job_by_host) : NULL;

    return word ? (uint32_t)strtoul(*word, NULL, 10) : 0;
}

/* Where ranks of all jobs are more than cores, they have to yield to each other. */
static void share_with_other_jobs(const struct xr_spawned *spawned, struct xr_plan *plan)
{
    char **busy = spawned->hello.busy;
    size_t n = 0;

    while (busy[n])
        n++;
    for (uint32_t i = 0; i < plan->placement.nhosts; i++) {
        struct xr_placed_host *host = &plan->placement.host[i];
        uint64_t there = busy_on(busy, n, xr_plan_name(plan, i));
        if (!there)
            there = busy_on(busy, n, plan->hosts.host[i].name);
        if (there && host->ranks + there > host->units)
            host->oversubscribed = true;
    }
}

rank_status_t xr_place_ranks(const struct xr_options *o, struct xr_plan *plan, char *err,
                              size_t errlen)
{
    rank_status_t st = xr_plan_place(plan, (uint32_t)o->n, err, errlen);

    if (!st && o->spawned)
        share_with_other_jobs(o->spawned, plan);
    if (!st)
        st = xr_plan_pair(plan, err, errlen);
    if (!st && o->where.json_map)
        st = xr_plan_json(plan, o->where.json_map, err, errlen);
    if (!st && (o->where.show_map || o->where.dry_run)) {
        xr_plan_show(plan, stdout);
        xr_plan_show_devices(plan, stdout);
        if (fflush(stdout)) {
            snprintf(err, errlen, "cannot write the map: %s", strerror(errno));
            st = RANK_ERR_SYSTEM;
        }
    }
    return st;
}

bool xr_place_files(const struct xr_options *o, const struct xr_plan *plan, uint32_t n, char *err, size_t errlen)
{
    uint32_t fanout = xr_setup_fanout(o), hosts = xr_plan_remote(plan) ? plan->hosts.n : 0;
    uint64_t need = XR_FDS_OWN + (uint64_t)XR_FDS_PER_AGENT * (hosts < fanout ? hosts : fanout);
    char owner[128];

    if (plan->step)
        need += 2ull * hosts; /* all agents connect to the listener of xrun */
    if (n && o->output_dir)
        need += 2ull * n;
    if (n && o->output_dir)
        snprintf(owner, sizeof(owner), "--output-dir for %u rank%s needs", n, xr_plural(n));
    else
        snprintf(owner, sizeof(owner), "starting agents on %u host%s needs", hosts, xr_plural(hosts));
    return xr_rlimits_raise_files(need, owner, err, errlen);
}

rank_status_t xr_place_size(const struct xr_options *o, const struct xr_plan *plan, struct xr_job *job, char *err,
                             size_t errlen)
{
    uint32_t n = plan->placement.n;

    if (job->size != n)
        xr_job_set_size(job, n);
    if (!xr_options_check_ranks(o, n, err, errlen))
        return RANK_ERR_ARG;
    if (o->output_dir && !o->where.dry_run &&
        (!xr_place_files(o, plan, n, err, errlen) || !xr_out_files_make(o->output_dir, n, err, errlen)))
        return RANK_ERR_SYSTEM;
    return RANK_OK;
}
