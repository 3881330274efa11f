/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * insist.c: an end that is not heard.
 *
 * Every agent answers the message that the job is to end. One that does not,
 * for it has been stopped or is stuck, cannot end its ranks: the keeper of the
 * one on this host is told to kill it and them, those of other hosts see that
 * their wires are closed and do the same, and that they have done it is what the
 * wires' other ends say by closing, too. Who does not is left behind, with a line
 * that says so. What is counted is our own waking, not the time: a user may have
 * stopped xrun in between (^Z).
 */
#include "launcher/frontend/frontend_internal.h"

#include <signal.h>

#define TICK_MS 100
/* An agent that starts many ranks hears nothing meanwhile. */
#define FAILED_MS 10000
#define FORCED_MS 3000  /* by a signal or a time-out */
#define AT_ONCE_MS 1000 /* the user insists */
/* From TERM to the keeper until all that was below it is gone; see supervisor.c. */
#define KEEPER_MS 9000

static const struct timeval tick = {0, TICK_MS * 1000};

/* One that has not come yet has nothing to end; who started it sees to it. */
static bool insist_runs(const struct node *n)
{
    return n->joined && !n->done && !n->gone;
}

static bool hears(const struct front *f, const struct node *n)
{
    return n->heard == f->ends;
}

static bool any_silent(const struct front *f)
{
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (insist_runs(&f->nodes[i]) && !hears(f, &f->nodes[i]))
            return true;
    }
    return false;
}

void xr_front_insist(struct front *f, uint32_t grace_ms)
{
    uint32_t ticks = (!f->forced ? FAILED_MS : grace_ms ? FORCED_MS : AT_ONCE_MS) / TICK_MS;

    if (f->keeper_told || f->hung_up) /* that has its time already */
        return;
    if (f->plan->local != XR_NO_HOST && f->keeper > 0) /* our own may stand still before it can say that it is there */
        f->nodes[f->plan->local].joined = true;
    /* Who is silent is not given more time by being told again. */
    if (event_pending(f->insist, EV_TIMEOUT, NULL) && any_silent(f)) {
        if (ticks < f->patience)
            f->patience = ticks;
        return;
    }
    f->ends++;
    f->patience = ticks;
    event_add(f->insist, &tick);
}

void xr_front_heard_end(struct front *f, uint32_t node)
{
    if (f->nodes[node].heard < f->ends)
        f->nodes[node].heard++;
}

/* The one of this host. False: it has been done, or there is nobody to tell. */
static bool tell_keeper(struct front *f)
{
    uint32_t local = f->plan->local;

    if (local == XR_NO_HOST || f->keeper <= 0 || f->keeper_told || !insist_runs(&f->nodes[local]) ||
        hears(f, &f->nodes[local]))
        return false;
    xr_report_cause(f->report, "the agent on %s stands still", xr_plan_name(f->plan, local));
    xr_stream_say(f->err, "xrun: error: the agent on %s stands still; killing it and its ranks",
                  xr_plan_name(f->plan, local));
    kill(f->keeper, SIGTERM);
    f->keeper_told = true;
    return true;
}

/* Those of other hosts. False: it has been done. An agent between here and a silent one has nothing more to do. */
static bool insist_hang_up(struct front *f)
{
    if (f->hung_up)
        return false;
    f->hung_up = true;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (!insist_runs(&f->nodes[i]) || i == f->plan->local)
            continue;
        xr_report_cause(f->report, "the agent on %s stands still", xr_plan_name(f->plan, i));
        xr_stream_say(f->err, "xrun: error: the agent on %s stands still; killing it and its ranks",
                      xr_plan_name(f->plan, i));
        xr_tree_hang_up(f->tree, xr_tree_way(f->tree, i));
    }
    return true;
}

void xr_front_on_insist(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;
    uint32_t busy = 0;

    (void)fd;
    (void)what;
    if (f->patience > 0) {
        f->patience--;
        event_add(f->insist, &tick);
        return;
    }
    if (!any_silent(f))
        return;
    for (uint32_t i = 0; i < f->nnodes; i++)
        busy += insist_runs(&f->nodes[i]) && hears(f, &f->nodes[i]);
    if (tell_keeper(f)) {
        f->patience = KEEPER_MS / TICK_MS;
        event_add(f->insist, &tick);
        return;
    }
    if (busy) {
        event_add(f->insist, &tick);
        return;
    }
    if (insist_hang_up(f)) {
        f->patience = KEEPER_MS / TICK_MS;
        event_add(f->insist, &tick);
        return;
    }
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (insist_runs(&f->nodes[i]) && i != f->plan->local)
            xr_stream_say(f->err, XR_LEFT_BEHIND, xr_plan_name(f->plan, i));
    }
    event_base_loopexit(f->base, NULL);
}
