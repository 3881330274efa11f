/* SPDX-License-Identifier: BSD-3-Clause */
/* progress_watch.c: see progress_watch.h. */
#include "launcher/agent/progress_watch.h"
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/stack_traces.h"
#include "launcher/monitor/status_board.h"
#include "launcher/monitor/proc_state.h"
#include "launcher/overlay/protocol.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_PERIOD_MS = 100 };
/* Without --heartbeat: how often the board is read, for each time without progress that is reported. */
enum { QUIET_LOOKS = 5, QUIET_LEAST_MS = 1000 };
/* What came within that before one look, and not before the next, was no progress but UCX's keepalive. */
#define RECENT_NS 1000000000ull

struct watched {
    struct xr_look_past past;
    struct xr_look look; /* the latest */
    bool stalled;        /* the front end was told so */
    bool halted;         /* and that it is stopped */
    bool told;           /* within this round */
    uint64_t stalled_ns; /* it has made no progress since then */
    uint64_t begun_ns;   /* the wait that was seen last began then */
    uint64_t still_ns;   /* and has made no progress since then */
    bool recent;         /* something had just come then */
    const struct xr_fence *fence; /* that its text tells of, in this look */
    uint32_t unnamed;    /* and the front end is to say whom it waits for: 1 and its space, or 0 */
};

struct xr_watch {
    struct xr_agent *agent;
    struct xr_agent_board board;
    struct watched *ranks; /* as agent->ranks */
    uint32_t n;
    uint64_t patience_ns; /* the heartbeat; 0: none */
    uint64_t held_ns;     /* the user stopped all ranks then; 0: he did not */
    uint64_t fresh_ns;    /* no stall began before that */
    bool quiet;           /* report only ranks that wait in librank; all else is silent */
    uint64_t period_ns;
    uint64_t timer_ns;    /* when on_time ran last; 0: never */
    struct event *on_time;
    struct xr_traces *traces;
};

struct xr_watch *xr_watch_open(struct xr_agent *agent)
{
    struct xr_watch *w = calloc(1, sizeof(*w));

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

void xr_watch_close(struct xr_watch *w)
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

bool xr_watch_variable(const struct xr_watch *w, uint32_t slot, char *out, size_t len)
{
    size_t n = strlen(RK_BOARD_VARIABLE) + 1;

    if (!w || !w->board.head || slot >= w->n || len < n)
        return false;
    snprintf(out, len, "%s=", RK_BOARD_VARIABLE);
    rk_board_where(out + n, len - n, getpid(), w->board.fd, w->board.head->nonce, slot);
    return true;
}

/* ------------------------------------------------------------------------ looking */

static bool progress_runs(const struct xr_watch *w, uint32_t i)
{
    const struct xr_rank *r = &w->agent->ranks[i];

    return r->pid > 0 && !r->exited;
}

static bool is_off_board(const struct xr_watch *w, uint32_t i)
{
    return !w->ranks[i].look.on_board;
}

static bool is_unconnected(const struct xr_watch *w, uint32_t i)
{
    return !w->agent->ranks[i].connected;
}

static bool is_outside_barrier(const struct xr_watch *w, uint32_t i)
{
    return !xr_pmi1_waits(w->agent->pmi1, i);
}

/* Those that run and of which that holds, as "rank 1" or "ranks 1, 2": how many they are, and the first. */
static uint32_t ranks_that(const struct xr_watch *w, bool (*holds)(const struct xr_watch *, uint32_t), char *out, size_t len,
                           int32_t *first)
{
    int32_t some[RK_BOARD_PEERS];
    uint32_t n = 0;
    char text[128];

    for (uint32_t i = 0; i < w->n; i++) {
        if (!progress_runs(w, i) || !holds(w, i))
            continue;
        if (n < RK_BOARD_PEERS)
            some[n] = (int32_t)w->agent->ranks[i].rank;
        n++;
    }
    if (n == 0)
        return 0;
    xr_ranks_text(some, n < RK_BOARD_PEERS ? n : RK_BOARD_PEERS, n, text, sizeof(text));
    snprintf(out, len, "rank%s %s", xr_plural(n), text);
    *first = some[0];
    return n;
}

/* Whom those in rank_init wait for: who has not come to it. */
static void name_absent(struct xr_watch *w, struct xr_look *l)
{
    char text[140];
    int32_t first;
    uint32_t n = ranks_that(w, is_off_board, text, sizeof(text), &first);

    if (n == 0)
        return;
    snprintf(l->text, sizeof(l->text), "rank_init, waits for %s", text);
    if (n == 1) {
        l->what.npeers = 1;
        l->what.peers[0] = first;
    }
}

/* What keeps the one that is waited for, if it is here and does not wait itself. */
static void name_reason(struct xr_watch *w, struct xr_look *l)
{
    size_t len = strlen(l->text);

    if (l->doing != XR_DOING_WAIT || l->what.npeers != 1)
        return;
    for (uint32_t i = 0; i < w->n; i++) {
        if ((int32_t)w->agent->ranks[i].rank != l->what.peers[0])
            continue;
        if (w->ranks[i].look.doing != XR_DOING_WAIT)
            snprintf(l->text + len, sizeof(l->text) - len, ", which %s",
                     xr_doing_word(w->ranks[i].look.doing));
        return;
    }
}

/* A foreign program that sleeps: at least say whom PMIx has not seen yet. */
static void name_unconnected(struct xr_watch *w, uint32_t i)
{
    struct xr_look *l = &w->ranks[i].look;
    size_t len = strlen(l->text);
    char text[140];
    int32_t first;

    if (l->doing != XR_DOING_SLEEP || l->on_board || !w->agent->ranks[i].connected)
        return;
    if (ranks_that(w, is_unconnected, text, sizeof(text), &first))
        snprintf(l->text + len, sizeof(l->text) - len, "; not connected to PMIx: %s", text);
}

/* Of a barrier of PMI-1: who is here and has not come to it. False: nobody. */
static bool name_late(struct xr_watch *w, struct xr_look *l)
{
    size_t len = strlen(l->text);
    char text[140];
    int32_t first;

    if (!ranks_that(w, is_outside_barrier, text, sizeof(text), &first))
        return false;
    snprintf(l->text + len, sizeof(l->text) - len, "; its PMI-1 barrier waits for %s", text);
    return true;
}

/* Of a fence to which all here have come: which host has not. If those below this one all have, the front end will know. */
static void name_late_hosts(struct xr_watch *w, struct watched *x, enum xr_fence_space space)
{
    const char *what = space == XR_FENCE_PMI1 ? "PMI-1 barrier" : "PMIx fence";
    char *text = x->look.text, hosts[160];
    size_t len = strlen(text), room = sizeof(x->look.text) - len;

    if (xr_fences_awaited(w->agent->fences, x->fence, hosts, sizeof(hosts))) {
        snprintf(text + len, room, "; its %s waits for %s", what, hosts);
    } else {
        snprintf(text + len, room, "; its %s", what);
        x->unnamed = 1 + (uint32_t)space;
    }
}

/*
 * Of a program that is not ours, and of rank_init, the agent sees what it does for it. A client may have begun a fence and
 * go on meanwhile, so that it is not said to wait. Within a host PMIx does not tell who has come.
 */
static void name_fence(struct xr_watch *w, uint32_t i)
{
    const struct xr_rank *r = &w->agent->ranks[i];
    struct watched *x = &w->ranks[i];
    struct xr_look *l = &x->look;
    bool barrier = xr_pmi1_waits(w->agent->pmi1, i);
    enum xr_fence_space space = barrier ? XR_FENCE_PMI1 : XR_FENCE_PMIX;

    x->fence = NULL;
    x->unnamed = 0;
    if (l->on_board ? l->doing != XR_DOING_WAIT || !l->joining : l->doing != XR_DOING_SLEEP && l->doing != XR_DOING_WORK)
        return;
    if ((barrier && name_late(w, l)) || (!barrier && (!r->connected || r->finalized)))
        return;
    x->fence = xr_fences_of(w->agent->fences, space, r->rank);
    if (x->fence)
        name_late_hosts(w, x, space);
}

static void progress_look_at_all(struct xr_watch *w, uint64_t now)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct xr_rank *r = &w->agent->ranks[i];
        struct watched *x = &w->ranks[i];

        x->look.doing = XR_DOING_GONE;
        if (!progress_runs(w, i))
            continue;
        xr_look_at(r->pid, w->board.head ? &w->board.slots[i] : NULL, now, &x->past, &x->look);
        if (x->look.since_ns < r->start_ns)
            x->look.since_ns = r->start_ns;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ranks[i].look.doing == XR_DOING_WAIT && w->ranks[i].look.joining)
            name_absent(w, &w->ranks[i].look);
        name_unconnected(w, i);
        name_fence(w, i);
        name_reason(w, &w->ranks[i].look);
    }
}

/* Return the process that this rank is, which may be below a script. */
static pid_t progress_process(const struct xr_watch *w, uint32_t slot)
{
    struct xr_look_past past = {0};
    struct xr_look look;

    xr_look_at(w->agent->ranks[slot].pid, w->board.head ? &w->board.slots[slot] : NULL,
               rk_clock_ns(), &past, &look);
    return look.pid;
}

/* ---------------------------------------------------------------------- heartbeat */

/* The peers without which this wait does not end. */
static void pack_peers(const struct xr_look *l, struct xr_packer *p)
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

/* Tell of all ranks whose stall began (or ended) in this round and reads the same, in one message. */
static void tell_like(struct xr_watch *w, uint32_t first, bool begins, uint64_t now)
{
    const struct watched *x = &w->ranks[first];
    struct xr_packer p = {0};
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            xr_pack_u32(&p, n);
        for (uint32_t i = first; i < w->n; i++) {
            struct watched *y = &w->ranks[i];
            if (!y->told || y->stalled != begins ||
                (begins && (strcmp(x->look.text, y->look.text) != 0 || x->fence != y->fence)))
                continue;
            n += !pass;
            if (pass) {
                xr_pack_u32(&p, w->agent->ranks[i].rank);
                y->told = false;
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
    xr_wire_send(w->agent->wire, begins ? XR_MSG_STALLED : XR_MSG_MOVING, &p);
}

/* Do all ranks of this host wait in librank, for half the time at least? The board alone is read. */
static bool all_wait(const struct xr_watch *w, uint64_t now)
{
    struct rk_board_view view;
    uint32_t n = 0;

    for (uint32_t i = 0; w->board.head && i < w->n; i++) {
        if (!progress_runs(w, i))
            continue;
        if (!rk_board_read(&w->board.slots[i], &view) ||
            (view.state != RK_BOARD_WAITING && view.state != RK_BOARD_JOINING) ||
            (view.begun_ns ? view.begun_ns : view.since_ns) + w->patience_ns / 2 > now)
            return false;
        n++;
    }
    return n > 0;
}

static bool any_stalled(const struct xr_watch *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ranks[i].stalled)
            return true;
    }
    return false;
}

/*
 * Since when a rank that waits has made no progress. UCX's keepalive, every 20 s, looks like progress to the rank. A wait
 * that goes on is taken to stand although something came, unless something has just come at two looks in a row.
 */
static uint64_t quiet_since(struct watched *x, uint64_t now)
{
    const struct xr_look *l = &x->look;
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

/* Does a rank wait in librank, and none of its threads compute? A stall that was reported ends with progress alone. */
static bool stands_quietly(const struct watched *x, uint64_t now)
{
    return x->look.doing == XR_DOING_WAIT && (x->stalled || (x->past.idle_ns && x->past.idle_ns < now));
}

/* A stall is over when there has been progress since it began. */
static void judge(struct xr_watch *w, struct watched *x, bool alive, uint64_t now)
{
    bool stands = alive && (w->quiet ? stands_quietly(x, now)
                                     : x->look.doing != XR_DOING_WORK && x->look.doing != XR_DOING_GONE);
    uint64_t moved = w->quiet ? quiet_since(x, now) : x->look.since_ns, since = moved > w->fresh_ns ? moved : w->fresh_ns;

    if (x->stalled && (!stands || moved > x->stalled_ns)) {
        x->stalled = false;
        x->told = alive; /* an end is told by itself */
    } else if (!x->stalled && stands && now - since >= w->patience_ns) {
        x->stalled = x->told = true;
        x->stalled_ns = since;
        x->halted = x->look.doing >= XR_DOING_STOPPED;
    } else if (x->stalled && x->look.doing >= XR_DOING_STOPPED && !x->halted) {
        x->told = x->halted = true; /* it is another matter now */
    }
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct xr_watch *w = arg;
    struct xr_agent *agent = w->agent;
    uint64_t now = rk_clock_ns();

    (void)fd;
    (void)what;
    if (agent->state != XR_AGENT_RUNNING || !agent->wire || w->traces)
        return; /* in the end, or debuggers hold the ranks */
    /* The whole host was stopped, this agent too: what the ranks wait for may come now. */
    if (w->quiet && w->timer_ns && now - w->timer_ns > 2 * w->period_ns)
        w->fresh_ns = now;
    w->timer_ns = now;
    /* Nobody is to blame while the user holds the ranks or does not read what they write. */
    if (w->held_ns || xr_outputs_stalled(agent->outputs)) {
        w->fresh_ns = now;
        return;
    }
    if (w->quiet && !any_stalled(w) && !all_wait(w, now))
        return;
    progress_look_at_all(w, now);
    for (uint32_t i = 0; i < w->n; i++)
        judge(w, &w->ranks[i], progress_runs(w, i), now);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ranks[i].told)
            tell_like(w, i, w->ranks[i].stalled, now);
    }
}

static bool progress_start(struct xr_watch *w, uint32_t ms, bool quiet)
{
    uint32_t least = quiet ? QUIET_LEAST_MS : LEAST_PERIOD_MS, period = ms / (quiet ? QUIET_LOOKS : 2);
    struct timeval t;

    if (ms == 0 || w->on_time)
        return false;
    if (period < least)
        period = least;
    t = (struct timeval){period / 1000, period % 1000 * 1000};
    w->patience_ns = ms * 1000000ull;
    w->period_ns = period * 1000000ull;
    w->quiet = quiet;
    w->on_time = event_new(w->agent->base, -1, EV_PERSIST, on_time, w);
    if (w->on_time)
        event_add(w->on_time, &t);
    return true;
}

void xr_watch_signal(struct xr_watch *w, int sig)
{
    if (!w)
        return;
    if (sig == SIGSTOP || sig == SIGTSTP)
        w->held_ns = rk_clock_ns();
    else if (sig == SIGCONT && w->held_ns)
        w->held_ns = 0;
}

/* --------------------------------------------------------------------- when asked */

static void progress_answer(struct xr_watch *w, uint32_t token)
{
    uint64_t now = rk_clock_ns();
    struct xr_packer p = {0};

    progress_look_at_all(w, now);
    xr_pack_u32(&p, token);
    xr_pack_string(&p, w->agent->host);
    xr_pack_u32(&p, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        const struct xr_look *l = &w->ranks[i].look;
        char text[sizeof(l->text) + 48];
        xr_pack_u32(&p, w->agent->ranks[i].rank);
        xr_pack_u32(&p, progress_runs(w, i) ? (uint32_t)l->pid : 0);
        xr_pack_u64(&p, l->cpu_ns);
        xr_pack_u64(&p, l->doing == XR_DOING_WORK ? 0 : now - l->since_ns);
        xr_look_text(l, text, sizeof(text));
        xr_pack_string(&p, progress_runs(w, i) ? text : "has ended");
        xr_pack_u32(&p, progress_runs(w, i) ? w->ranks[i].unnamed : 0);
        xr_pack_u32(&p, l->doing == XR_DOING_WAIT && w->ranks[i].past.idle_ns);
        pack_peers(l, &p);
    }
    xr_wire_send(w->agent->wire, XR_MSG_LOOKED, &p);
}

static void progress_trace(struct xr_watch *w, uint32_t ms)
{
    struct xr_trace_target *ranks = w->traces ? NULL : calloc(w->n, sizeof(*ranks));
    uint32_t n = 0;

    for (uint32_t i = 0; ranks && i < w->n; i++) {
        if (progress_runs(w, i))
            ranks[n++] = (struct xr_trace_target){w->agent->ranks[i].rank, progress_process(w, i)};
    }
    if (ranks)
        w->traces = xr_traces_start(w->agent->base, &w->agent->wire, ranks, n, ms);
    free(ranks);
}

bool xr_watch_message(struct xr_watch *w, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t number, quiet;

    if (kind != XR_MSG_WATCH && kind != XR_MSG_LOOK && kind != XR_MSG_TRACE)
        return false;
    number = xr_unpack_u32(u);
    quiet = kind == XR_MSG_WATCH ? xr_unpack_u32(u) : 0;
    if (!xr_unpack_done(u) || quiet > 1)
        return false;
    if (!w || !w->agent->ranks || !w->agent->wire)
        return true; /* no job any more: there is nothing to say */
    switch (kind) {
    case XR_MSG_WATCH:
        return progress_start(w, number, quiet);
    case XR_MSG_LOOK:
        progress_answer(w, number);
        return true;
    default:
        progress_trace(w, number);
        return true;
    }
}

bool xr_watch_reaped(struct xr_watch *w, pid_t pid)
{
    return w && xr_traces_reaped(w->traces, pid);
}
