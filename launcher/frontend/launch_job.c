/* SPDX-License-Identifier: BSD-3-Clause */
/* launch_job.c: connect the agents, place the ranks, send the job. */
#include "launcher/frontend/job_link.h"
#include "launcher/frontend/job_map.h"
#include "launcher/frontend/place_job.h"
#include "launcher/exec/find_program.h"
#include "launcher/exec/rlimits.h"
#include "launcher/map/duplicate_hosts.h"
#include "launcher/overlay/protocol.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------- warnings */

/* Return the first host with that property, and the number of such hosts. */
static uint32_t first_host(const struct front *f, bool (*has)(const struct xr_placed_host *host), uint32_t *hosts)
{
    uint32_t first = 0;

    *hosts = 0;
    for (uint32_t i = f->nnodes; i-- > 0;) {
        if (has(&f->plan->placement.host[i])) {
            ++*hosts;
            first = i;
        }
    }
    return first;
}

static bool is_oversubscribed(const struct xr_placed_host *host)
{
    return host->oversubscribed;
}

static bool has_fewer(const struct xr_placed_host *host)
{
    return host->fewer;
}

/* Hosts with more ranks than cores get one line together. */
static void warn_oversubscribed(struct front *f)
{
    uint32_t hosts, first = first_host(f, is_oversubscribed, &hosts);
    const struct xr_placed_host *host = &f->plan->placement.host[first];
    const char *more = hosts > 1 ? " (and more such hosts)" : "";

    if (hosts == 0)
        return;
    if (host->pinned)
        xr_stream_print(f->err, "xrun: ranks share %ss of %s%s, as the rankfile says: waiting ranks yield",
                      xr_placed_unit(host), f->job->hosts[first], more);
    else
        xr_stream_print(f->err, "xrun: %u ranks share %u %s%s on %s%s: no rank is bound, and waiting ranks yield",
                      host->ranks, host->units, xr_placed_unit(host), xr_plural(host->units), f->job->hosts[first],
                      more);
}

/* The same for hosts with fewer cores for each rank than --cpus-per-rank requests. */
static void warn_fewer(struct front *f)
{
    uint32_t hosts, first = first_host(f, has_fewer, &hosts);
    const struct xr_placed_host *host = &f->plan->placement.host[first];

    if (hosts == 0)
        return;
    xr_stream_print(f->err, "xrun: %u %s%s for %u rank%s on %s%s: fewer than --cpus-per-rank %u asks for",
                  host->units, xr_placed_unit(host), xr_plural(host->units), host->ranks, xr_plural(host->ranks),
                  f->job->hosts[first], hosts > 1 ? " (and more such hosts)" : "", f->options->where.request.cpus);
}

/* ------------------------------------------------------------------------- launch */

/* The ranks are placed: make the parts of the front end that need the job, and send it to all agents. */
static rank_status_t send_job(struct front *f)
{
    struct xr_packer p = {0};
    struct xr_label label;
    const struct xr_heartbeat_options life = {f->options->heartbeat, f->options->heartbeat_kill, f->options->verbose};
    rank_status_t st = xr_map_job(f->plan, f->setup.shape.fanout, f->job);

    if (!st)
        st = xr_by_host_make(f->job, &f->of_host);
    if (!st)
        st = xr_liveness_open(f->job, &f->liveness);
    if (!st)
        st = xr_fence_open(f->tree, f->job, f->liveness, XR_NODE_FRONT, NULL, NULL, &f->fences);
    label = xr_front_label_of(f);
    if (!st && f->options->output_dir)
        st = xr_out_files_open(f->base, f->options->output_dir, f->job->size, &label, xr_front_on_output_lost, f,
                                &f->files);
    if (!st)
        st = xr_heartbeat_open(f->base, &life, f->job, f->err, &xr_front_heartbeat_ops, f, &f->heartbeat);
    if (st)
        return st;
    xr_front_enter(f, XR_JOB_LAUNCHING);
    f->launched_ns = rk_clock_ns();
    st = xr_job_link_describe(f);
    for (uint32_t i = 0; !st && i < f->nnodes; i++) {
        st = xr_map_local_ranks(f->plan, i, &f->of_host, &p);
        xr_tree_send(f->tree, i, XR_MSG_LOCAL_RANKS, &p);
    }
    xr_job_pack(f->job, &p);
    if (p.failed)
        st = RANK_ERR_NO_MEMORY;
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_JOB, &p);
    if (!st && !f->options->quiet && f->options->where.request.bind != XR_BIND_NONE) {
        warn_oversubscribed(f);
        warn_fewer(f);
    }
    if (!st)
        xr_heartbeat_started(f->heartbeat);
    return st;
}

/* Create the file of --json. Returns false after an error message. */
static bool open_report(struct front *f)
{
    char text[4096 + 128];

    if (!f->options->json || f->options->where.dry_run)
        return true;
    f->report = xr_report_open(f->options->json, f->job, text, sizeof(text));
    if (!f->report)
        rk_error("%s", text);
    return f->report != NULL;
}

int xr_front_place(struct front *f)
{
    const struct xr_options *o = f->options;
    int more = o->input == XR_INPUT_ALL ? 2 : 0;
    char text[1024] = "";

    /* Where only the placement gives the number of ranks, the limits could not be checked before. */
    if (xr_place_ranks(o, f->plan, text, sizeof(text)) || xr_place_size(o, f->plan, f->job, text, sizeof(text)) ||
        (o->n == 0 && !xr_rlimits_check((int)f->plan->placement.n, more, 0, text, sizeof(text)))) {
        xr_shell_words_show(text);
        rk_error("%s", text);
        return XR_EXIT_USAGE;
    }
    return open_report(f) ? 0 : XR_EXIT_USAGE;
}

/* ------------------------------------------------------------ agents of other hosts */

static void on_launcher_output(void *arg, uint32_t node, const char *line)
{
    struct front *f = arg;

    if (node != XR_NODE_ALL)
        xr_stream_print(f->err, "%s: %s", f->plan->hosts.host[node].name, line);
    else if (!xr_job_is_ending(f->state) || f->options->verbose) /* srun reports an end that xrun itself ordered */
        xr_stream_print(f->err, "%s", line);
}

static const struct xr_launch_ops launch_ops = {xr_front_on_launch_failed, on_launcher_output};

/*
 * Refuse hosts that are one machine under two names, unless the placement allows that. Slurm's nodes differ. Returns
 * false if the job was refused.
 */
static bool check_duplicate_hosts(struct front *f)
{
    char line[1024];

    if (f->plan->step)
        return true;
    if (f->plan->local != XR_NO_HOST)
        f->plan->known[f->plan->local].machine = xr_local_host_machine();
    if (!xr_duplicate_hosts_find(f->plan, line, sizeof(line)))
        return true;
    if (xr_duplicate_hosts_allowed(f->plan)) {
        if (!f->options->quiet)
            xr_stream_print(f->err, "xrun: %s: no rank is bound there", line);
        return true;
    }
    snprintf(line + strlen(line), sizeof(line) - strlen(line), "; name each host once, with all its slots, as NAME:SLOTS");
    xr_front_refuse(f, XR_EXIT_USAGE, line);
    return false;
}

/* Refuse for a reason that may quote variables, and texts of agents. */
static void refuse_quoted(struct front *f, char *text)
{
    xr_shell_words_show(text);
    xr_front_refuse(f, XR_EXIT_USAGE, text);
}

static void on_hosts_complete(void *arg)
{
    struct front *f = arg;
    char text[1024] = "";

    xr_launch_close_listener(f->launch);
    if (f->state != XR_JOB_ALLOCATING) /* the last agent reported before it got the end order */
        return;
    if (f->options->verbose)
        xr_stream_print(f->err, "xrun: %u host%s there after %.2f ms", f->nnodes, f->nnodes == 1 ? " is" : "s are",
                      (double)(rk_clock_ns() - f->job->started_ns) * 1e-6);
    if (!check_duplicate_hosts(f))
        return;
    if (xr_place_ranks(f->options, f->plan, text, sizeof(text))) {
        refuse_quoted(f, text);
    } else if (f->options->where.dry_run) {
        xr_front_set_exit_code(f, 0);
        xr_front_end_job_by(f, SIGTERM, 0);
    } else if (xr_place_size(f->options, f->plan, f->job, text, sizeof(text))) {
        refuse_quoted(f, text);
    } else if (!open_report(f)) {
        xr_front_refuse(f, 1, "the report cannot be written");
    } else if (send_job(f) || xr_front_open_input(f)) {
        xr_front_refuse(f, 1, "out of memory");
    }
}

static void on_hosts_slow(void *arg, const char *line)
{
    struct front *f = arg;

    if (!f->options->quiet && !xr_job_is_ending(f->state))
        xr_stream_print(f->err, "xrun: %s", line);
}

static void on_hosts_missing(void *arg, const char *line)
{
    struct front *f = arg;

    xr_launch_give_up(f->launch);
    xr_front_refuse(f, 1, line);
}

static const struct xr_wait_hosts_ops wait_hosts_ops = {on_hosts_complete, on_hosts_slow, on_hosts_missing};

rank_status_t xr_front_open_tree(struct front *f, int fd)
{
    double s = f->options->where.start_timeout;
    char text[1024] = "";
    rank_status_t st = xr_tree_open(f->base, XR_NODE_FRONT, &f->setup.shape, &xr_front_tree_ops, f, &f->tree);

    if (st || (fd >= 0 && (st = xr_tree_add_child(f->tree, f->plan->local, fd, NULL))))
        return st;
    if (!xr_plan_remote(f->plan))
        return send_job(f);
    st = xr_launch_open(f->base, f->tree, &f->setup, f->plan->local, &launch_ops, f, &f->launch,
                          text, sizeof(text));
    if (st)
        rk_error("%s", text);
    return st ? st : xr_wait_hosts_open(f->base, f->tree, f->plan, s > 0 ? s : XR_START_S, &wait_hosts_ops,
                                    f, &f->wait_hosts);
}
