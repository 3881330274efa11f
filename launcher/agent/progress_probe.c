/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_probe.c: probe all ranks of this host, and name what each waits for.
 *
 * proc_state.h gives the state of one rank. Here it is completed by what the
 * agent has of the other ranks: which have not come to rank_init, to PMIx, to a
 * fence or to a barrier.
 */
#include "launcher/agent/progress_internal.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <string.h>

bool xr_progress_runs(const struct xr_progress *w, uint32_t i)
{
    const struct xr_rank *r = &w->agent->ranks[i];

    return r->pid > 0 && !r->exited;
}

static bool is_off_board(const struct xr_progress *w, uint32_t i)
{
    return !w->ranks[i].look.on_board;
}

static bool is_unconnected(const struct xr_progress *w, uint32_t i)
{
    return !w->agent->ranks[i].connected;
}

static bool is_outside_barrier(const struct xr_progress *w, uint32_t i)
{
    return !xr_pmi1_waits(w->agent->pmi1, i);
}

/* Write the running ranks with a property as "rank 1" or "ranks 1, 2". Returns their number; *first: the first. */
static uint32_t list_ranks_that(const struct xr_progress *w, bool (*holds)(const struct xr_progress *, uint32_t),
                                char *out, size_t len, int32_t *first)
{
    int32_t some[RK_BOARD_PEERS];
    uint32_t n = 0;
    char text[128];

    for (uint32_t i = 0; i < w->n; i++) {
        if (!xr_progress_runs(w, i) || !holds(w, i))
            continue;
        if (n < RK_BOARD_PEERS)
            some[n] = (int32_t)w->agent->ranks[i].rank;
        n++;
    }
    if (n == 0)
        return 0;
    xr_status_board_ranks_text(some, n < RK_BOARD_PEERS ? n : RK_BOARD_PEERS, n, text, sizeof(text));
    snprintf(out, len, "rank%s %s", xr_plural(n), text);
    *first = some[0];
    return n;
}

/* Name the ranks that have not called rank_init, for a rank that waits there. */
static void name_absent(struct xr_progress *w, struct xr_proc_state *l)
{
    char text[140];
    int32_t first;
    uint32_t n = list_ranks_that(w, is_off_board, text, sizeof(text), &first);

    if (n == 0)
        return;
    snprintf(l->text, sizeof(l->text), "rank_init, waits for %s", text);
    if (n == 1) {
        l->what.npeers = 1;
        l->what.peers[0] = first;
    }
}

/* Append what the awaited rank does, if it is on this host and does not wait too. */
static void name_reason(struct xr_progress *w, struct xr_proc_state *l)
{
    size_t len = strlen(l->text);

    if (l->doing != XR_DOING_WAIT || l->what.npeers != 1)
        return;
    for (uint32_t i = 0; i < w->n; i++) {
        if ((int32_t)w->agent->ranks[i].rank != l->what.peers[0])
            continue;
        if (w->ranks[i].look.doing != XR_DOING_WAIT)
            snprintf(l->text + len, sizeof(l->text) - len, ", which %s",
                     xr_proc_doing_text(w->ranks[i].look.doing));
        return;
    }
}

/* Append the ranks that PMIx awaits, for a sleeping program without librank. */
static void name_unconnected(struct xr_progress *w, uint32_t i)
{
    struct xr_proc_state *l = &w->ranks[i].look;
    size_t len = strlen(l->text);
    char text[140];
    int32_t first;

    if (l->doing != XR_DOING_SLEEP || l->on_board || !w->agent->ranks[i].connected)
        return;
    if (list_ranks_that(w, is_unconnected, text, sizeof(text), &first))
        snprintf(l->text + len, sizeof(l->text) - len, "; not connected to PMIx: %s", text);
}

/* Append the ranks of this host that have not entered the PMI-1 barrier. Returns false if there is none. */
static bool name_late_ranks(struct xr_progress *w, struct xr_proc_state *l)
{
    size_t len = strlen(l->text);
    char text[140];
    int32_t first;

    if (!list_ranks_that(w, is_outside_barrier, text, sizeof(text), &first))
        return false;
    snprintf(l->text + len, sizeof(l->text) - len, "; its PMI-1 barrier waits for %s", text);
    return true;
}

/* Append the hosts that a fence awaits. If all hosts below have entered it, the front end appends them. */
static void name_late_hosts(struct xr_progress *w, struct xr_watched_rank *x, enum xr_fence_space space)
{
    const char *what = space == XR_FENCE_PMI1 ? "PMI-1 barrier" : "PMIx fence";
    char *text = x->look.text, hosts[160];
    size_t len = strlen(text), room = sizeof(x->look.text) - len;

    if (xr_fence_awaited(w->agent->fences, x->fence, hosts, sizeof(hosts))) {
        snprintf(text + len, room, "; its %s waits for %s", what, hosts);
    } else {
        snprintf(text + len, room, "; its %s", what);
        x->unnamed = 1 + (uint32_t)space;
    }
}

/*
 * Append the fence of a program without librank, or of a rank in rank_init. The client need not wait there: it may
 * begin a fence and continue. Within a host libpmix does not report which clients have entered.
 */
static void name_fence(struct xr_progress *w, uint32_t i)
{
    const struct xr_rank *r = &w->agent->ranks[i];
    struct xr_watched_rank *x = &w->ranks[i];
    struct xr_proc_state *l = &x->look;
    bool barrier = xr_pmi1_waits(w->agent->pmi1, i);
    enum xr_fence_space space = barrier ? XR_FENCE_PMI1 : XR_FENCE_PMIX;

    x->fence = NULL;
    x->unnamed = 0;
    if (l->on_board ? l->doing != XR_DOING_WAIT || !l->joining
                    : l->doing != XR_DOING_SLEEP && l->doing != XR_DOING_WORK)
        return;
    if ((barrier && name_late_ranks(w, l)) || (!barrier && (!r->connected || r->finalized)))
        return;
    x->fence = xr_fence_of(w->agent->fences, space, r->rank);
    if (x->fence)
        name_late_hosts(w, x, space);
}

/* First the state of each rank, then the names, which depend on the states of all. */
void xr_progress_probe(struct xr_progress *w, uint64_t now)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct xr_rank *r = &w->agent->ranks[i];
        struct xr_watched_rank *x = &w->ranks[i];

        x->look.doing = XR_DOING_GONE;
        if (!xr_progress_runs(w, i))
            continue;
        xr_proc_state_read(r->pid, w->board.head ? &w->board.slots[i] : NULL, now, &x->past, &x->look);
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

pid_t xr_progress_process(const struct xr_progress *w, uint32_t slot)
{
    struct xr_proc_state_past past = {0};
    struct xr_proc_state look;

    xr_proc_state_read(w->agent->ranks[slot].pid, w->board.head ? &w->board.slots[slot] : NULL,
               rk_clock_ns(), &past, &look);
    return look.pid;
}
