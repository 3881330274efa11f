/* SPDX-License-Identifier: BSD-3-Clause */
/* progress_watch.c: detect stalls, answer probes. See progress_watch.h. */
#include "launcher/agent/progress_watch.h"
#include "launcher/agent/progress_internal.h"
#include "launcher/agent/stack_traces.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The period is the patience divided by the number of probes. It has a minimum. */
enum { PROBES = 2, LEAST_PERIOD_MS = 100 };
/* The same without --heartbeat, where mostly the board alone is read. */
enum { QUIET_PROBES = 5, QUIET_LEAST_MS = 1000 };
/* Traffic that recent counts as progress if two probes in a row find it. Else it is UCX's keepalive. */
#define RECENT_NS 1000000000ull

struct xr_progress *xr_progress_open(struct xr_agent *agent)
{
    struct xr_progress *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->agent = agent;
    w->n = agent->nlocal;
    w->ranks = calloc(w->n, sizeof(*w->ranks));
    if (!w->ranks) {
        free(w);
        return NULL;
    }
    xr_agent_board_open(&w->board, w->n);
    return w;
}

void xr_progress_close(struct xr_progress *w)
{
    if (!w)
        return;
    if (w->on_time)
        event_free(w->on_time);
    xr_traces_close(w->traces);
    xr_agent_board_close(&w->board);
    free(w->ranks);
    free(w);
}

bool xr_progress_variable(const struct xr_progress *w, uint32_t slot, char *out, size_t len)
{
    size_t n = strlen(RK_BOARD_VARIABLE) + 1;

    if (!w || !w->board.head || slot >= w->n || len < n)
        return false;
    snprintf(out, len, "%s=", RK_BOARD_VARIABLE);
    rk_board_where(out + n, len - n, getpid(), w->board.fd, w->board.head->nonce, slot);
    return true;
}

/* ---------------------------------------------------------------------- heartbeat */

/* Pack the peers without which this wait does not end. */
static void pack_peers(const struct xr_proc_state *l, struct xr_packer *p)
{
    const struct rk_wait_for *what = &l->what;
    uint32_t n = what->npeers < RK_BOARD_PEERS ? what->npeers : RK_BOARD_PEERS;
    bool one_does = what->flags & RK_WAIT_ANY_SOURCE || (n > 1 && strncmp(what->call, "waitany", 7) == 0);

    if (l->doing != XR_DOING_WAIT || one_does)
        n = 0;
    xr_pack_u32(p, n);
    for (uint32_t i = 0; i < n; i++)
        xr_pack_u32(p, (uint32_t)what->peers[i]);
}

/* Send one message for all ranks whose stall began, or ended, with the same text. */
static void progress_send_change(struct xr_progress *w, uint32_t first, bool begins, uint64_t now)
{
    const struct xr_watched_rank *x = &w->ranks[first];
    struct xr_packer p = {0};
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            xr_pack_u32(&p, n);
        for (uint32_t i = first; i < w->n; i++) {
            struct xr_watched_rank *y = &w->ranks[i];
            if (!y->changed || y->stalled != begins ||
                (begins && (strcmp(x->look.text, y->look.text) != 0 || x->fence != y->fence)))
                continue;
            n += !pass;
            if (pass) {
                xr_pack_u32(&p, w->agent->ranks[i].rank);
                y->changed = false;
            }
        }
    }
    xr_pack_u64(&p, now - x->stalled_ns);
    xr_pack_string(&p, begins ? x->look.text : "");
    xr_pack_u32(&p, begins ? x->unnamed : 0);
    if (begins)
        pack_peers(&x->look, &p);
    else
        xr_pack_u32(&p, 0);
    xr_conn_send(w->agent->wire, begins ? XR_MSG_STALLED : XR_MSG_MOVING, &p);
}

/* Return whether all ranks here have waited in librank for half the patience. Reads only the board. */
static bool all_wait(const struct xr_progress *w, uint64_t now)
{
    struct rk_board_view view;
    uint32_t n = 0;

    for (uint32_t i = 0; w->board.head && i < w->n; i++) {
        if (!xr_progress_runs(w, i))
            continue;
        if (!rk_board_read(&w->board.slots[i], &view) ||
            (view.state != RK_BOARD_WAITING && view.state != RK_BOARD_JOINING) ||
            (view.begun_ns ? view.begun_ns : view.since_ns) + w->stall_ns / 2 > now)
            return false;
        n++;
    }
    return n > 0;
}

static bool any_stalled(const struct xr_progress *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ranks[i].stalled)
            return true;
    }
    return false;
}

/*
 * Return the time since which a rank has made no progress. UCX's keepalive, every 20 s, looks like progress to a rank
 * that waits. So traffic within a wait counts only if two probes in a row find it recent.
 */
static uint64_t quiet_since(struct xr_watched_rank *x, uint64_t now)
{
    const struct xr_proc_state *l = &x->look;
    bool recent = now - l->since_ns < RECENT_NS;

    if (l->doing != XR_DOING_WAIT || !l->begun_ns) {
        x->begun_ns = 0;
        return l->since_ns;
    }
    if (l->begun_ns != x->begun_ns || (recent && x->recent))
        x->still_ns = l->since_ns;
    x->begun_ns = l->begun_ns;
    x->recent = recent;
    return x->still_ns;
}

/* Return whether a rank waits in librank and none of its threads computes. A reported stall ends only with progress. */
static bool stands_quietly(const struct xr_watched_rank *x, uint64_t now)
{
    return x->look.doing == XR_DOING_WAIT && (x->stalled || (x->past.idle_ns && x->past.idle_ns < now));
}

/* Begin or end the stall of a rank. It ends with progress since it began. */
static void progress_judge(struct xr_progress *w, struct xr_watched_rank *x, bool alive, uint64_t now)
{
    bool stands = alive && (w->quiet ? stands_quietly(x, now)
                                     : x->look.doing != XR_DOING_WORK && x->look.doing != XR_DOING_GONE);
    uint64_t moved = w->quiet ? quiet_since(x, now) : x->look.since_ns;
    uint64_t since = moved > w->fresh_ns ? moved : w->fresh_ns;

    if (x->stalled && (!stands || moved > x->stalled_ns)) {
        x->stalled = false;
        x->changed = alive; /* the end of a rank is reported elsewhere */
    } else if (!x->stalled && stands && now - since >= w->stall_ns) {
        x->stalled = x->changed = true;
        x->stalled_ns = since;
        x->halted = x->look.doing >= XR_DOING_STOPPED;
    } else if (x->stalled && x->look.doing >= XR_DOING_STOPPED && !x->halted) {
        x->changed = x->halted = true; /* the reason has changed */
    }
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct xr_progress *w = arg;
    struct xr_agent *agent = w->agent;
    uint64_t now = rk_clock_ns();

    (void)fd;
    (void)what;
    if (agent->state != XR_AGENT_RUNNING || !agent->wire || w->traces)
        return; /* the job ends, or debuggers hold the ranks */
    /* The whole host was stopped, this agent too: the ranks may go on now. */
    if (w->quiet && w->timer_ns && now - w->timer_ns > 2 * w->period_ns)
        w->fresh_ns = now;
    w->timer_ns = now;
    /* No stall counts while the user has stopped the ranks, or does not read their output. */
    if (w->held_ns || xr_rank_output_stalled(agent->outputs)) {
        w->fresh_ns = now;
        return;
    }
    if (w->quiet && !any_stalled(w) && !all_wait(w, now))
        return;
    xr_progress_probe(w, now);
    for (uint32_t i = 0; i < w->n; i++)
        progress_judge(w, &w->ranks[i], xr_progress_runs(w, i), now);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ranks[i].changed)
            progress_send_change(w, i, w->ranks[i].stalled, now);
    }
}

static bool progress_start(struct xr_progress *w, uint32_t ms, bool quiet)
{
    uint32_t least = quiet ? QUIET_LEAST_MS : LEAST_PERIOD_MS, period = ms / (quiet ? QUIET_PROBES : PROBES);
    struct timeval t;

    if (ms == 0 || w->on_time)
        return false;
    if (period < least)
        period = least;
    t = (struct timeval){period / 1000, period % 1000 * 1000};
    w->stall_ns = ms * 1000000ull;
    w->period_ns = period * 1000000ull;
    w->quiet = quiet;
    w->on_time = event_new(w->agent->base, -1, EV_PERSIST, on_time, w);
    if (w->on_time)
        event_add(w->on_time, &t);
    return true;
}

void xr_progress_signal(struct xr_progress *w, int sig)
{
    if (!w)
        return;
    if (sig == SIGSTOP || sig == SIGTSTP)
        w->held_ns = rk_clock_ns();
    else if (sig == SIGCONT && w->held_ns)
        w->held_ns = 0;
}

/* ----------------------------------------------------------------------- requests */

static void progress_answer(struct xr_progress *w, uint32_t token)
{
    uint64_t now = rk_clock_ns();
    struct xr_packer p = {0};

    xr_progress_probe(w, now);
    xr_pack_u32(&p, token);
    xr_pack_string(&p, w->agent->host);
    xr_pack_u32(&p, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        const struct xr_proc_state *l = &w->ranks[i].look;
        char text[sizeof(l->text) + 48];
        xr_pack_u32(&p, w->agent->ranks[i].rank);
        xr_pack_u32(&p, xr_progress_runs(w, i) ? (uint32_t)l->pid : 0);
        xr_pack_u64(&p, l->cpu_ns);
        xr_pack_u64(&p, l->doing == XR_DOING_WORK ? 0 : now - l->since_ns);
        xr_proc_state_text(l, text, sizeof(text));
        xr_pack_string(&p, xr_progress_runs(w, i) ? text : "has ended");
        xr_pack_u32(&p, xr_progress_runs(w, i) ? w->ranks[i].unnamed : 0);
        xr_pack_u32(&p, l->doing == XR_DOING_WAIT && w->ranks[i].past.idle_ns);
        pack_peers(l, &p);
    }
    xr_conn_send(w->agent->wire, XR_MSG_PROBED, &p);
}

static void progress_trace(struct xr_progress *w, uint32_t ms)
{
    struct xr_trace_target *ranks = w->traces ? NULL : calloc(w->n, sizeof(*ranks));
    uint32_t n = 0;

    for (uint32_t i = 0; ranks && i < w->n; i++) {
        if (xr_progress_runs(w, i))
            ranks[n++] = (struct xr_trace_target){w->agent->ranks[i].rank, xr_progress_process(w, i)};
    }
    if (ranks)
        w->traces = xr_traces_start(w->agent->base, &w->agent->wire, ranks, n, ms);
    free(ranks);
}

bool xr_progress_message(struct xr_progress *w, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t number, quiet;

    if (kind != XR_MSG_WATCH && kind != XR_MSG_PROBE && kind != XR_MSG_TRACE)
        return false;
    number = xr_unpack_u32(u);
    quiet = kind == XR_MSG_WATCH ? xr_unpack_u32(u) : 0;
    if (!xr_unpack_done(u) || quiet > 1)
        return false;
    if (!w || !w->agent->ranks || !w->agent->wire)
        return true; /* no job runs any more */
    switch (kind) {
    case XR_MSG_WATCH:
        return progress_start(w, number, quiet);
    case XR_MSG_PROBE:
        progress_answer(w, number);
        return true;
    default:
        progress_trace(w, number);
        return true;
    }
}

bool xr_progress_reaped(struct xr_progress *w, pid_t pid)
{
    return w && xr_traces_reaped(w->traces, pid);
}
