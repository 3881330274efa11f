/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_job.c: the agents of all hosts come, ranks are placed, and everybody
 * is told the job.
 */
#include "launcher/frontend/job_map.h"
#include "launcher/frontend/place_job.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"
#include "launcher/map/duplicate_hosts.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define START_TIMEOUT_S 60

/* A host that has more ranks than cores gets one line; many such hosts get one too. */
static void say_oversubscribed(struct front *f)
{
    const struct xr_placement *placed = &f->plan->placement;
    uint32_t hosts = 0, first = 0;

    for (uint32_t i = f->nnodes; i-- > 0;) {
        if (placed->host[i].oversubscribed) {
            hosts++;
            first = i;
        }
    }
    if (hosts == 0 || f->options->quiet || f->options->where.request.bind == XR_BIND_NONE)
        return;
    if (placed->host[first].pinned) {
        xr_stream_say(f->err, "xrun: ranks share %ss of %s%s, as the rankfile says: waiting ranks yield",
                      xr_placed_unit(&placed->host[first]), f->job->hosts[first],
                      hosts > 1 ? " (and more such hosts)" : "");
        return;
    }
    xr_stream_say(f->err, "xrun: %u ranks share %u %s%s on %s%s: nobody is bound, and waiting ranks yield",
                  placed->host[first].ranks, placed->host[first].units, xr_placed_unit(&placed->host[first]),
                  xr_plural(placed->host[first].units), f->job->hosts[first],
                  hosts > 1 ? " (and more such hosts)" : "");
}

/* The same where there are fewer cores for each rank than --cpus-per-rank says. */
static void say_fewer(struct front *f)
{
    const struct xr_placement *placed = &f->plan->placement;
    uint32_t hosts = 0, first = 0;

    for (uint32_t i = f->nnodes; i-- > 0;) {
        if (placed->host[i].fewer) {
            hosts++;
            first = i;
        }
    }
    if (hosts == 0 || f->options->quiet || f->options->where.request.bind == XR_BIND_NONE)
        return;
    xr_stream_say(f->err, "xrun: %u %s%s for %u rank%s on %s%s: fewer than --cpus-per-rank %u asks for",
                  placed->host[first].units, xr_placed_unit(&placed->host[first]), xr_plural(placed->host[first].units), placed->host[first].ranks,
                  xr_plural(placed->host[first].ranks), f->job->hosts[first],
                  hosts > 1 ? " (and more such hosts)" : "", f->options->where.request.cpus);
}

/* All is known: place the ranks, and tell the agents. */
static rank_status_t send_job(struct front *f)
{
    struct xr_packer p = {0};
    struct xr_label label;
    const struct xr_life_options life = {f->options->heartbeat, f->options->heartbeat_kill, f->options->verbose};
    rank_status_t st = xr_map_job(f->plan, f->setup.shape.fanout, f->job);

    if (!st)
        st = xr_by_host_make(f->job, &f->of_host);
    if (!st)
        st = xr_gone_open(f->job, &f->gone);
    if (!st)
        st = xr_fences_open(f->tree, f->job, f->gone, XR_NODE_FRONT, NULL, NULL, &f->fences);
    label = xr_front_label_of(f);
    if (!st && f->options->output_dir)
        st = xr_output_dir_open(f->base, f->options->output_dir, f->job->size, &label, xr_front_on_lost, f,
                                &f->files);
    if (!st)
        st = xr_life_open(f->base, &life, f->job, f->err, &xr_front_life_ops, f, &f->life);
    if (st)
        return st;
    f->told = true;
    f->told_ns = rk_clock_ns();
    st = xr_job_link_describe(f);
    for (uint32_t i = 0; !st && i < f->nnodes; i++) {
        st = xr_map_seats(f->plan, i, &f->of_host, &p);
        xr_tree_send(f->tree, i, XR_MSG_SEATS, &p);
    }
    xr_job_pack(f->job, &p);
    if (p.failed)
        st = RANK_ERR_NO_MEMORY;
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_JOB, &p);
    if (!st)
        say_oversubscribed(f);
    if (!st)
        say_fewer(f);
    if (!st)
        xr_life_started(f->life);
    return st;
}

/* ------------------------------------------------------------ agents of other hosts */

static void launch_job_fail(struct front *f, const char *text)
{
    if (f->ending)
        return;
    xr_stream_say(f->err, "xrun: error: %s", text);
    xr_front_judge(f, 1);
    xr_front_end_job_by(f, SIGTERM, 0);
}

static void launch_job_on_branch_said(void *arg, uint32_t node, const char *line)
{
    struct front *f = arg;

    if (node != XR_NODE_ALL)
        xr_stream_say(f->err, "%s: %s", f->plan->hosts.host[node].name, line);
    else if (!f->ending || f->options->verbose) /* srun has much to say of an end that is our own wish */
        xr_stream_say(f->err, "%s", line);
}

static const struct xr_branch_ops branch_ops = {xr_front_on_branch_failed, launch_job_on_branch_said};

bool xr_front_open_report(struct front *f)
{
    char text[4096 + 128];

    if (!f->options->json || f->options->where.dry_run || f->report || f->job->size == 0)
        return true;
    f->report = xr_report_open(f->options->json, f->job, text, sizeof(text));
    if (!f->report)
        rk_error("%s", text);
    return f->report != NULL;
}

/* Slurm's nodes are what it says; of others, may two be one machine? False: they may not, and that has been said. */
static bool check_twins(struct front *f)
{
    char line[1024];

    if (f->plan->step)
        return true;
    if (f->plan->local != XR_NO_HOST)
        f->plan->known[f->plan->local].machine = xr_here_machine();
    if (!xr_twins_find(f->plan, line, sizeof(line)))
        return true;
    if (xr_twins_allowed(f->plan)) {
        if (!f->options->quiet)
            xr_stream_say(f->err, "xrun: %s: nobody is bound there", line);
        return true;
    }
    snprintf(line + strlen(line), sizeof(line) - strlen(line), "; name each host once, with all its slots, as NAME:SLOTS");
    launch_job_fail(f, line);
    f->code = XR_EXIT_USAGE;
    return false;
}

static void on_all_here(void *arg)
{
    struct front *f = arg;
    char text[1024] = "";

    xr_branches_shut_door(f->branches);
    if (f->ending) /* the last word of an agent that had not heard of it */
        return;
    if (f->options->verbose)
        xr_stream_say(f->err, "xrun: %u host%s there after %.2f ms", f->nnodes, f->nnodes == 1 ? " is" : "s are",
                      (double)(rk_clock_ns() - f->job->started_ns) * 1e-6);
    if (!check_twins(f))
        return;
    if (xr_place_ranks(f->options, f->plan, text, sizeof(text))) {
        launch_job_fail(f, text);
        f->code = 2;
    } else if (f->options->where.dry_run) {
        xr_front_judge(f, 0);
        xr_front_end_job_by(f, SIGTERM, 0);
    } else if (xr_place_size(f->options, f->plan, f->job, text, sizeof(text))) {
        launch_job_fail(f, text);
        f->code = 2;
    } else if (!xr_front_open_report(f)) {
        launch_job_fail(f, "the report cannot be written");
    } else if (send_job(f) || xr_front_open_input(f)) {
        launch_job_fail(f, "out of memory");
    }
}

static void launch_job_on_slow(void *arg, const char *line)
{
    struct front *f = arg;

    if (!f->options->quiet && !f->ending)
        xr_stream_say(f->err, "xrun: %s", line);
}

static void on_not_here(void *arg, const char *line)
{
    launch_job_fail(arg, line);
}

static const struct xr_muster_ops muster_ops = {on_all_here, launch_job_on_slow, on_not_here};

/* fd: to the agent of this host, or -1. */
rank_status_t xr_front_open_tree(struct front *f, int fd)
{
    double s = f->options->where.start_timeout;
    char text[1024] = "";
    rank_status_t st = xr_tree_open(f->base, XR_NODE_FRONT, &f->setup.shape, &xr_front_tree_ops, f, &f->tree);

    if (st || (fd >= 0 && (st = xr_tree_add_child(f->tree, f->plan->local, fd, false))))
        return st;
    if (!xr_plan_remote(f->plan))
        return send_job(f);
    st = xr_branches_open(f->base, f->tree, &f->setup, f->plan->local, &branch_ops, f, &f->branches,
                          text, sizeof(text));
    if (st)
        rk_error("%s", text);
    return st ? st : xr_muster_open(f->base, f->tree, f->plan, s > 0 ? s : START_TIMEOUT_S, &muster_ops,
                                    f, &f->muster);
}
