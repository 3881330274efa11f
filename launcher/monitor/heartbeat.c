/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heartbeat.c: see heartbeat.h.
 *
 * Two reports of waits are kept: of the ranks that the agents report as stalled,
 * and, when the job is to end, of all ranks that wait at that moment.
 */
#include "launcher/monitor/heartbeat.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/hang_report.h"
#include "launcher/monitor/stall_text.h"
#include "launcher/monitor/status_board.h"
#include "launcher/monitor/status_query.h"
#include "launcher/monitor/status_server.h"
#include "launcher/monitor/trace_request.h"
#include "launcher/overlay/protocol.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum rank_state { RANK_RUNS, RANK_STALLED, RANK_ENDED };

struct xr_heartbeat {
    const struct xr_job *job;
    const char *host; /* of the first rank */
    uint32_t nhosts;  /* with ranks */
    struct xr_stream *err;
    const struct xr_heartbeat_ops *ops;
    void *arg;
    uint64_t opened_ns;

    unsigned char *state; /* [job.size], of enum rank_state */
    uint32_t live, stalled;

    bool quiet;        /* without --heartbeat: only a job that waits as a whole is reported */
    double stall_s; /* without progress; 0: nothing is watched */
    struct event *begin; /* quiet: the agents begin to watch */

    bool all_stalled;     /* reported to the owner: no rank makes progress */
    struct event *settle; /* re-examines that, some time after a rank ended */
    struct xr_hang *hang; /* waits of stalled ranks; NULL: none has stalled yet */
    bool explained;       /* since the last progress of a rank */

    struct xr_status *status;      /* NULL: no socket */
    struct xr_status_query *query; /* of all ranks, for clients and for the last report */
    struct xr_trace_request *trace;

    struct xr_hang *last; /* the last report before the job ends; NULL: not requested */
    struct event *last_late;
    void (*after_last)(void *arg);
    void *last_arg;
};

/* ------------------------------------------------------------------------- stalls */

static void set_state(struct xr_heartbeat *l, uint32_t rank, enum rank_state state)
{
    unsigned char *s = &l->state[rank];

    if (*s == RANK_ENDED || *s == state)
        return;
    l->stalled += (state == RANK_STALLED) - (*s == RANK_STALLED);
    l->live -= state == RANK_ENDED;
    *s = (unsigned char)state;
}

static bool is_job_stalled(const struct xr_heartbeat *l)
{
    return l->live > 0 && l->stalled == l->live;
}

static void report_all_stalled(struct xr_heartbeat *l, bool all_stalled)
{
    if (l->all_stalled == all_stalled)
        return;
    l->all_stalled = all_stalled;
    l->ops->all_stalled(l->arg, all_stalled);
}

/* A rank ended, for which the others may have waited: they get another period to make progress. */
static void settle_later(struct xr_heartbeat *l)
{
    double s = l->stall_s;
    struct timeval t = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};

    report_all_stalled(l, false);
    if (is_job_stalled(l) || (l->quiet && l->stalled))
        event_add(l->settle, &t);
}

static void print_wait(struct xr_heartbeat *l, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    struct xr_awaited awaited = {0};
    char text[256], time[32];

    xr_status_board_ranks_text(ranks, n, n, text, sizeof(text));
    xr_duration_text(rk_clock_ns() - w->since_ns, time, sizeof(time));
    xr_stream_print(l->err, "xrun: %s %s: no progress for %s: %s%s", n > 1 ? "ranks" : "rank", text, time, w->text,
                  xr_stall_text_of_fence(w->unnamed ? l->ops->fences(l->arg) : NULL, (uint32_t)ranks[0], w->unnamed, &awaited));
}

static void print_line(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    print_wait(arg, ranks, n, w);
}

static void print_waits(struct xr_heartbeat *l, const struct xr_hang *hang)
{
    uint32_t left = xr_hang_lines(hang, print_line, l);

    if (left)
        xr_stream_print(l->err, "xrun: and %u more rank%s; xrun --status %s lists all", left, xr_plural(left), l->job->id);
}

static void print_cycle(struct xr_heartbeat *l, const struct xr_hang *hang)
{
    char cycle[256];

    if (xr_hang_cycle(hang, cycle, sizeof(cycle)))
        xr_stream_print(l->err, "xrun: cycle: %s", cycle);
}

void xr_heartbeat_explain(struct xr_heartbeat *l)
{
    if (!l || l->explained || !l->hang || !is_job_stalled(l))
        return;
    l->explained = true;
    if (l->quiet)
        print_waits(l, l->hang);
    print_cycle(l, l->hang);
}

static void note_stall(struct xr_heartbeat *l, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    if (!l->hang)
        l->hang = xr_hang_open(l->job->size);
    if (l->hang)
        xr_hang_add(l->hang, ranks, n, w);
}

static void note_progress(struct xr_heartbeat *l, const int32_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; l->hang && i < n; i++)
        xr_hang_drop(l->hang, (uint32_t)ranks[i]);
    l->explained = false;
}

static void print_progress(struct xr_heartbeat *l, const int32_t *ranks, uint32_t n, uint64_t stalled_ns)
{
    char text[256], time[32];

    xr_status_board_ranks_text(ranks, n, n, text, sizeof(text));
    xr_duration_text(stalled_ns, time, sizeof(time));
    xr_stream_print(l->err, "xrun: %s %s %s on after %s", n > 1 ? "ranks" : "rank", text, n > 1 ? "go" : "goes", time);
}

/* Handle XR_MSG_STALLED (begins) or XR_MSG_MOVING. ranks has room for n. */
static bool take_stall(struct xr_heartbeat *l, int32_t *ranks, uint32_t n, struct xr_unpacker *u, bool begins)
{
    struct xr_hang_wait wait = {.npeers = 0};
    uint64_t ns;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = xr_unpack_u32(u);
        if (rank >= l->job->size)
            return false;
        ranks[i] = (int32_t)rank;
        set_state(l, rank, begins ? RANK_STALLED : RANK_RUNS);
    }
    ns = xr_unpack_u64(u);
    wait.since_ns = rk_clock_ns() - ns;
    wait.text = xr_unpack_string(u);
    wait.unnamed = xr_unpack_u32(u);
    xr_stall_text_unpack_peers(u, &wait);
    if (!xr_unpack_done(u) || !wait.text)
        return false;
    if (begins)
        note_stall(l, ranks, n, &wait);
    else
        note_progress(l, ranks, n);
    if (!l->quiet && begins)
        print_wait(l, ranks, n, &wait);
    else if (!l->quiet)
        print_progress(l, ranks, n, ns);
    if (!(l->quiet && event_pending(l->settle, EV_TIMEOUT, NULL)))
        report_all_stalled(l, is_job_stalled(l));
    return true;
}

static bool on_stall(struct xr_heartbeat *l, struct xr_unpacker *u, bool begins)
{
    uint32_t n = xr_unpack_u32(u);
    int32_t *ranks;
    bool sound;

    if (u->failed || n == 0 || n > l->job->size)
        return false;
    ranks = malloc(n * sizeof(*ranks));
    sound = !ranks || take_stall(l, ranks, n, u, begins); /* without memory the line is lost */
    free(ranks);
    return sound;
}

static void on_settle(evutil_socket_t fd, short what, void *arg)
{
    struct xr_heartbeat *l = arg;

    (void)fd;
    (void)what;
    report_all_stalled(l, is_job_stalled(l));
}

static void send_watch(struct xr_heartbeat *l)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, (uint32_t)(l->stall_s * 1000));
    xr_pack_u32(&p, l->quiet);
    l->ops->send(l->arg, XR_MSG_WATCH, &p);
}

static void on_begin(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    send_watch(arg);
}

void xr_heartbeat_started(struct xr_heartbeat *l)
{
    const struct timeval later = {XR_QUIET_BEGIN_MS / 1000, 0};

    if (l->quiet)
        event_add(l->begin, &later);
    else if (l->stall_s > 0)
        send_watch(l);
}

void xr_heartbeat_exited(struct xr_heartbeat *l, uint32_t rank)
{
    if (rank >= l->job->size)
        return;
    set_state(l, rank, RANK_ENDED);
    if (l->hang)
        xr_hang_drop(l->hang, rank);
    settle_later(l);
}

void xr_heartbeat_again(struct xr_heartbeat *l)
{
    if (l)
        settle_later(l);
}

/* ------------------------------------------------------------------------- status */

/* Describe the job in one line. */
static void format_summary(void *arg, char *out, size_t len)
{
    struct xr_heartbeat *l = arg;
    char time[32], where[128];
    int n;

    xr_duration_text(rk_clock_ns() - l->opened_ns, time, sizeof(time));
    if (l->nhosts > 1)
        snprintf(where, sizeof(where), "%u hosts", l->nhosts);
    else
        snprintf(where, sizeof(where), "%.100s", l->host);
    n = snprintf(out, len, "%s: %u of %u rank%s of %.200s run%s on %s for %s", l->job->id, l->live,
                 l->job->size, xr_plural(l->job->size), l->job->apps[0].program, l->live == 1 ? "s" : "", where, time);
    if (n > 0 && (size_t)n < len && l->job->origin.job)
        n += snprintf(out + n, len - (size_t)n, "; spawned by rank %u of %.100s", l->job->origin.rank,
                      l->job->origin.job);
    if (n > 0 && (size_t)n < len && l->status && xr_status_rejected(l->status))
        n += snprintf(out + n, len - (size_t)n, "; %" PRIu64 " stranger%s turned away", xr_status_rejected(l->status),
                      xr_status_rejected(l->status) == 1 ? " was" : "s were");
    if (n > 0 && (size_t)n < len - 1)
        snprintf(out + n, len - (size_t)n, "\n");
}

static void end_last(struct xr_heartbeat *l)
{
    struct xr_hang *last = l->last;

    if (!last)
        return;
    l->last = NULL;
    event_del(l->last_late);
    if (l->live > 0 && xr_hang_count(last) == l->live) {
        print_waits(l, last);
        print_cycle(l, last);
    }
    xr_hang_close(last);
    l->after_last(l->last_arg);
}

static void on_last_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    end_last(arg);
}

/* The agents have answered: finish the last report, and answer the status clients. */
static void on_query_complete(void *arg)
{
    struct xr_heartbeat *l = arg;
    struct evbuffer *text;
    char line[512];

    end_last(l);
    if (!l->status)
        return;
    text = evbuffer_new();
    if (!text) {
        xr_status_answer(l->status, "", 0);
        return;
    }
    format_summary(l, line, sizeof(line));
    evbuffer_add(text, line, strlen(line));
    xr_status_query_write(l->query, text);
    xr_status_answer(l->status, (const char *)evbuffer_pullup(text, -1), evbuffer_get_length(text));
    evbuffer_free(text);
}

/* Add a rank to the last report. */
static void on_rank_wait(void *arg, uint32_t rank, uint64_t idle_ns, const struct xr_hang_wait *w)
{
    struct xr_heartbeat *l = arg;
    int32_t one = (int32_t)rank;

    if (l->last && rank < l->job->size && idle_ns >= XR_LAST_STALLED_MS * 1000000ull)
        xr_hang_add(l->last, &one, 1, w);
}

static int query_send(void *arg, uint32_t kind, struct xr_packer *payload)
{
    struct xr_heartbeat *l = arg;

    return l->ops->send(l->arg, kind, payload);
}

static const struct xr_fence_table *query_fences(void *arg)
{
    struct xr_heartbeat *l = arg;

    return l->ops->fences(l->arg);
}

static const struct xr_status_query_ops query_ops = {query_send, query_fences, on_rank_wait, on_query_complete};

static void on_status_request(void *arg)
{
    struct xr_heartbeat *l = arg;

    xr_status_query_start(l->query);
}

static const struct xr_status_ops status_ops = {on_status_request, format_summary};

void xr_heartbeat_explain_last(struct xr_heartbeat *l, void (*done)(void *arg), void *arg)
{
    const struct timeval limit = {XR_LAST_REPORT_MS / 1000, XR_LAST_REPORT_MS % 1000 * 1000};

    /* Otherwise it was explained when it stalled, or the user wants no report. */
    if (l && l->stall_s > 0 && !(is_job_stalled(l) && (l->explained || !l->quiet)) && !l->last)
        l->last = xr_hang_open(l->job->size);
    if (!l || !l->last) {
        done(arg);
        return;
    }
    l->after_last = done;
    l->last_arg = arg;
    event_add(l->last_late, &limit);
    xr_status_query_start(l->query);
}

void xr_heartbeat_trace(struct xr_heartbeat *l, void (*done)(void *arg), void *arg)
{
    xr_trace_request_start(l->trace, l->ops->send, l->arg, done, arg);
}

bool xr_heartbeat_message(struct xr_heartbeat *l, uint32_t kind, struct xr_unpacker *u, bool *mine)
{
    *mine = true;
    switch (kind) {
    case XR_MSG_PROBED:
        return xr_status_query_receive(l->query, u);
    case XR_MSG_STALLED:
    case XR_MSG_MOVING:
        return on_stall(l, u, kind == XR_MSG_STALLED);
    case XR_MSG_TRACE_TEXT:
        return xr_trace_request_print(l->trace, u);
    case XR_MSG_TRACED:
        xr_trace_request_traced(l->trace);
        return true;
    default:
        *mine = false;
        return true;
    }
}

static uint32_t hosts_used(const struct xr_job *job)
{
    bool *used = calloc(job->nhosts, sizeof(*used));
    uint32_t n = 0;

    for (uint32_t r = 0; used && r < job->size; r++) {
        n += !used[job->host_of[r]];
        used[job->host_of[r]] = true;
    }
    free(used);
    return n;
}

rank_status_t xr_heartbeat_open(struct event_base *base, const struct xr_heartbeat_options *options,
                           const struct xr_job *job, struct xr_stream *err,
                           const struct xr_heartbeat_ops *ops, void *arg, struct xr_heartbeat **out)
{
    struct xr_heartbeat *l = calloc(1, sizeof(*l));

    if (!l)
        return RANK_ERR_NO_MEMORY;
    *l = (struct xr_heartbeat){.job = job,
                          .host = job->hosts[job->host_of[0]],
                          .nhosts = hosts_used(job),
                          .err = err,
                          .ops = ops,
                          .arg = arg,
                          .opened_ns = rk_clock_ns(),
                          .live = job->size,
                          .quiet = options->heartbeat < 0};
    l->stall_s = l->quiet ? XR_QUIET_MS / 1000 : options->heartbeat;
    l->state = calloc(job->size, 1);
    l->settle = evtimer_new(base, on_settle, l);
    l->begin = evtimer_new(base, on_begin, l);
    l->last_late = evtimer_new(base, on_last_late, l);
    if (!l->state || !l->settle || !l->begin || !l->last_late || xr_status_query_open(base, &query_ops, l, &l->query) ||
        xr_trace_request_open(base, err, &l->trace)) {
        xr_heartbeat_close(l);
        return RANK_ERR_NO_MEMORY;
    }
    l->status = xr_status_open(base, job->id, &status_ops, l);
    if (!l->status && options->verbose)
        xr_stream_print(err, "xrun: no socket for xrun --status: %s", strerror(errno));
    *out = l;
    return RANK_OK;
}

void xr_heartbeat_shut(struct xr_heartbeat *l)
{
    if (!l || !l->status || xr_status_busy(l->status))
        return;
    xr_status_close(l->status);
    l->status = NULL;
}

void xr_heartbeat_close(struct xr_heartbeat *l)
{
    if (!l)
        return;
    xr_status_close(l->status);
    xr_status_query_close(l->query);
    xr_trace_request_close(l->trace);
    if (l->settle)
        event_free(l->settle);
    if (l->begin)
        event_free(l->begin);
    if (l->last_late)
        event_free(l->last_late);
    xr_hang_close(l->hang);
    xr_hang_close(l->last);
    free(l->state);
    free(l);
}
