/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failure.c: which rank's failure it is that ends the job.
 *
 * When a rank dies, those who wait for it may fail by that within milliseconds,
 * sooner than the kernel has done with the first; and what the agents of several
 * hosts say need not come in the order in which it happened. So a rank that
 * exits badly is not blamed at once: one that was killed by a signal, or a host
 * that was lost, and is heard of meanwhile, is the likelier cause.
 */
#include "launcher/frontend/frontend_internal.h"
#include "launcher/job/exit_status.h"

#include <sys/wait.h>

#define HERE_MS 20
#define HOSTS_MS 100

static void blame(struct front *f, const struct xr_failure *why)
{
    char how[160], time[32];

    xr_verdict_how(why->status, why->unfinished, how, sizeof(how));
    xr_verdict_time(why->lived_ns, time, sizeof(time));
    xr_report_cause(f->report, "rank %u %s", why->rank, how);
    xr_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) %s after %s%s", why->rank,
                  xr_front_host_of(f, why->rank), why->pid, how, time,
                  f->options->go_on ? "; the others go on" : "; ending the job");
    xr_front_judge(f, xr_verdict_code(why->status, why->unfinished));
    if (!f->options->go_on)
        xr_front_end_job(f);
}

void xr_front_blame(struct front *f)
{
    if (!f->blaming)
        return;
    f->blaming = false;
    event_del(f->blame);
    if (!f->ending)
        blame(f, &f->failure);
}

void xr_front_blame_host(struct front *f)
{
    uint32_t node = f->blaming && f->told && f->failure.rank < f->job->size ? f->job->host_of[f->failure.rank] : XR_NO_HOST;

    if (node == XR_NO_HOST || f->nodes[node].gone) { /* it has failed before its host was lost */
        xr_front_blame(f);
        return;
    }
    f->blaming = false;
    event_del(f->blame);
}

void xr_front_on_blame(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_front_blame(arg);
}

void xr_front_failed(struct front *f, const struct xr_failure *why)
{
    const struct timeval moment = {0, (f->nnodes > 1 ? HOSTS_MS : HERE_MS) * 1000};

    if (f->options->go_on) {
        blame(f, why);
        return;
    }
    if (!f->blaming || WIFSIGNALED(why->status))
        f->failure = *why;
    if (!f->blaming)
        event_add(f->blame, &moment);
    f->blaming = true;
    if (WIFSIGNALED(why->status))
        xr_front_blame(f);
}
