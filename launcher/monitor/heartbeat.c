/* SPDX-License-Identifier: BSD-3-Clause */
/* heartbeat.c: see heartbeat.h. */
#include "launcher/monitor/heartbeat.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/hang_report.h"
#include "launcher/monitor/status_board.h"
#include "launcher/overlay/protocol.h"
#include "launcher/monitor/status_server.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIVES, STALLED, ENDED };

struct line {
    uint32_t rank;
    char *text;
};

struct xr_life {
    struct xr_life_options options;
    const struct xr_job *job;
    const char *host; /* of the first rank */
    uint32_t nhosts;  /* that have ranks */
    struct xr_stream *err;
    const struct xr_life_ops *ops;
    void *arg;
    uint64_t opened_ns;

    unsigned char *state; /* [job.size] */
    uint32_t live, stalled;

    struct xr_status *status;
    struct event *late; /* no more waiting for answers */
    struct line *lines; /* of the answer that is being put together */
    uint32_t nlines, lines_cap;
    uint32_t token;
    int missing; /* agents that have not answered; 0: nobody was asked */

    bool still;             /* no rank makes progress, and that was told */
    struct event *hopeless; /* looks again when the last that was not stalled has ended */

    bool quiet;            /* the user gave no heartbeat: only a job that waits as a whole is reported */
    double patience;       /* seconds without progress; 0: nothing is watched */
    struct event *begin;   /* tells the agents to watch quietly; or NULL */
    struct xr_hang *hang;  /* what stalled ranks wait for; NULL: none has stalled yet */
    bool explained;        /* since a rank went on last */

    struct xr_hang *last;  /* what the ranks wait for, before the job is ended; NULL: not asked */
    struct event *last_late;
    void (*after_last)(void *arg);
    void *last_arg;

    struct event *traced;
    int tracing; /* agents that are not through */
    void (*after_trace)(void *arg);
    void *after_arg;
};

/* What follows where an agent's text ends with a fence; all empty: nothing was asked yet. */
struct awaited {
    const struct xr_fence *fence; /* that the text is about: ranks of a host often wait for the same */
    char text[256];
};

/* unnamed: as the agent says it. */
static const char *heartbeat_awaited(struct xr_life *l, uint32_t rank, uint32_t unnamed, struct awaited *a)
{
    const struct xr_fences *all = unnamed ? l->ops->fences(l->arg) : NULL;
    const struct xr_fence *fence = unnamed ? xr_fences_of(all, (enum xr_fence_space)(unnamed - 1), rank) : NULL;
    static const char waits[] = " waits for ";

    if (!unnamed)
        return "";
    if (!fence) /* branches further down have not come, or it has just ended */
        return " waits for other hosts";
    if (fence != a->fence) {
        memcpy(a->text, waits, sizeof(waits));
        xr_fences_awaited(all, fence, a->text + sizeof(waits) - 1, sizeof(a->text) - sizeof(waits) + 1);
        a->fence = fence;
    }
    return a->text;
}

/* ------------------------------------------------------------------------- stalls */

static void duration(uint64_t ns, char *out, size_t len)
{
    double s = (double)ns * 1e-9;

    if (s < 100)
        snprintf(out, len, "%.1f s", s);
    else if (s < 6000)
        snprintf(out, len, "%d min %02d s", (int)(s / 60), (int)s % 60);
    else
        snprintf(out, len, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
}

static void set_state(struct xr_life *l, uint32_t rank, unsigned char state)
{
    unsigned char *s = &l->state[rank];

    if (*s == ENDED || *s == state)
        return;
    l->stalled += (state == STALLED) - (*s == STALLED);
    l->live -= state == ENDED;
    *s = state;
}

static bool is_hopeless(const struct xr_life *l)
{
    return l->live > 0 && l->stalled == l->live;
}

static void set_still(struct xr_life *l, bool still)
{
    if (l->still == still)
        return;
    l->still = still;
    l->ops->still(l->arg, still);
}

/* What the others have waited for may just have come: they get one more heartbeat to go on. */
static void look_later(struct xr_life *l)
{
    double s = l->patience;
    struct timeval t = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};

    set_still(l, false);
    if (is_hopeless(l) || (l->quiet && l->stalled))
        event_add(l->hopeless, &t);
}

static void print_wait(struct xr_life *l, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    struct awaited whom = {0};
    char text[256], time[32];

    xr_ranks_text(ranks, n, n, text, sizeof(text));
    duration(rk_clock_ns() - w->since_ns, time, sizeof(time));
    xr_stream_say(l->err, "xrun: %s %s: no progress for %s: %s%s", n > 1 ? "ranks" : "rank", text, time, w->text,
                  heartbeat_awaited(l, (uint32_t)ranks[0], w->unnamed, &whom));
}

static void print_line(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    print_wait(arg, ranks, n, w);
}

static void print_waits(struct xr_life *l, const struct xr_hang *hang)
{
    uint32_t left = xr_hang_lines(hang, print_line, l);

    if (left)
        xr_stream_say(l->err, "xrun: and %u more rank%s; xrun --status %s lists all", left, xr_plural(left), l->job->id);
}

static void print_cycle(struct xr_life *l, const struct xr_hang *hang)
{
    char cycle[256];

    if (xr_hang_cycle(hang, cycle, sizeof(cycle)))
        xr_stream_say(l->err, "xrun: cycle: %s", cycle);
}

void xr_life_explain(struct xr_life *l)
{
    if (!l || l->explained || !l->hang || !is_hopeless(l))
        return;
    l->explained = true;
    if (l->quiet)
        print_waits(l, l->hang);
    print_cycle(l, l->hang);
}

static void note_stall(struct xr_life *l, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    if (!l->hang)
        l->hang = xr_hang_open(l->job->size);
    if (l->hang)
        xr_hang_add(l->hang, ranks, n, w);
}

static void note_progress(struct xr_life *l, const int32_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; l->hang && i < n; i++)
        xr_hang_drop(l->hang, (uint32_t)ranks[i]);
    l->explained = false;
}

/* u32 peers, u32 each */
static void unpack_peers(struct xr_unpacker *u, struct xr_hang_wait *w)
{
    uint32_t n = xr_unpack_u32(u);

    for (uint32_t i = 0; i < n && !u->failed; i++) {
        int32_t peer = (int32_t)xr_unpack_u32(u);
        if (i < RK_BOARD_PEERS)
            w->peers[w->npeers++] = peer;
    }
}

static bool on_stall(struct xr_life *l, struct xr_unpacker *u, bool begins)
{
    uint32_t n = xr_unpack_u32(u);
    struct xr_hang_wait wait = {.npeers = 0};
    char ranks[256], time[32];
    int32_t *list;
    uint64_t ns;
    bool sound;

    if (u->failed || n == 0 || n > l->job->size)
        return false;
    list = malloc(n * sizeof(*list));
    if (!list)
        return true; /* nothing but a line is lost */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = xr_unpack_u32(u);
        if (rank >= l->job->size) {
            free(list);
            return false;
        }
        list[i] = (int32_t)rank;
        set_state(l, rank, begins ? STALLED : LIVES);
    }
    ns = xr_unpack_u64(u);
    wait.since_ns = rk_clock_ns() - ns;
    wait.text = xr_unpack_string(u);
    wait.unnamed = xr_unpack_u32(u);
    unpack_peers(u, &wait);
    sound = xr_unpack_done(u) && wait.text;
    if (sound && begins)
        note_stall(l, list, n, &wait);
    else if (sound)
        note_progress(l, list, n);
    if (sound && !l->quiet && begins) {
        print_wait(l, list, n, &wait);
    } else if (sound && !l->quiet) {
        xr_ranks_text(list, n, n, ranks, sizeof(ranks));
        duration(ns, time, sizeof(time));
        xr_stream_say(l->err, "xrun: %s %s %s on after %s", n > 1 ? "ranks" : "rank", ranks, n > 1 ? "go" : "goes", time);
    }
    free(list);
    if (sound && !(l->quiet && event_pending(l->hopeless, EV_TIMEOUT, NULL)))
        set_still(l, is_hopeless(l));
    return sound;
}

static void on_hopeless(evutil_socket_t fd, short what, void *arg)
{
    struct xr_life *l = arg;

    (void)fd;
    (void)what;
    set_still(l, is_hopeless(l));
}

static void heartbeat_watch(struct xr_life *l)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, (uint32_t)(l->patience * 1000));
    xr_pack_u32(&p, l->quiet);
    l->ops->send(l->arg, XR_MSG_WATCH, &p);
}

static void on_begin(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    heartbeat_watch(arg);
}

void xr_life_started(struct xr_life *l)
{
    const struct timeval later = {XR_QUIET_BEGIN_MS / 1000, 0};

    if (l->quiet)
        event_add(l->begin, &later);
    else if (l->patience > 0)
        heartbeat_watch(l);
}

void xr_life_exited(struct xr_life *l, uint32_t rank)
{
    if (rank >= l->job->size)
        return;
    set_state(l, rank, ENDED);
    if (l->hang)
        xr_hang_drop(l->hang, rank);
    look_later(l);
}

void xr_life_again(struct xr_life *l)
{
    if (l)
        look_later(l);
}

/* ------------------------------------------------------------------------- status */

static void head(void *arg, char *out, size_t len)
{
    struct xr_life *l = arg;
    char time[32], where[128];
    int n;

    duration(rk_clock_ns() - l->opened_ns, time, sizeof(time));
    if (l->nhosts > 1)
        snprintf(where, sizeof(where), "%u hosts", l->nhosts);
    else
        snprintf(where, sizeof(where), "%.100s", l->host);
    n = snprintf(out, len, "%s: %u of %u rank%s of %.200s run%s on %s since %s", l->job->id, l->live,
                 l->job->size, xr_plural(l->job->size), l->job->apps[0].program, l->live == 1 ? "s" : "", where, time);
    if (n > 0 && (size_t)n < len && l->job->origin.job)
        n += snprintf(out + n, len - (size_t)n, "; spawned by rank %u of %.100s", l->job->origin.rank,
                      l->job->origin.job);
    if (n > 0 && (size_t)n < len && l->status && xr_status_strangers(l->status))
        n += snprintf(out + n, len - (size_t)n, "; %" PRIu64 " stranger%s turned away", xr_status_strangers(l->status),
                      xr_status_strangers(l->status) == 1 ? " was" : "s were");
    if (n > 0 && (size_t)n < len - 1)
        snprintf(out + n, len - (size_t)n, "\n");
}

static void clear_lines(struct xr_life *l)
{
    for (uint32_t i = 0; i < l->nlines; i++)
        free(l->lines[i].text);
    l->nlines = 0;
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = ((const struct line *)a)->rank, y = ((const struct line *)b)->rank;

    return (x > y) - (x < y);
}

static void end_last(struct xr_life *l)
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

static void give_answer(struct xr_life *l)
{
    struct evbuffer *text = evbuffer_new();
    int missing = l->missing;
    char line[512];

    l->missing = 0;
    event_del(l->late);
    end_last(l);
    if (!l->status) { /* nobody is there any more */
        if (text)
            evbuffer_free(text);
        clear_lines(l);
        return;
    }
    if (!text) {
        xr_status_answer(l->status, "", 0);
        return;
    }
    head(l, line, sizeof(line));
    evbuffer_add(text, line, strlen(line));
    if (l->nlines)
        qsort(l->lines, l->nlines, sizeof(*l->lines), by_rank);
    for (uint32_t i = 0; i < l->nlines; i++)
        evbuffer_add_printf(text, "rank %u: %s\n", l->lines[i].rank, l->lines[i].text);
    if (missing)
        evbuffer_add_printf(text, "%d of the job's agents did not answer\n", missing);
    clear_lines(l);
    xr_status_answer(l->status, (const char *)evbuffer_pullup(text, -1),
                     evbuffer_get_length(text));
    evbuffer_free(text);
}

static void heartbeat_on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    give_answer(arg);
}

static void asked(void *arg)
{
    const struct timeval limit = {XR_STATUS_AGENTS_MS / 1000, XR_STATUS_AGENTS_MS % 1000 * 1000};
    struct xr_life *l = arg;
    struct xr_packer p = {0};

    if (l->missing) /* others have asked just now: one answer does */
        return;
    clear_lines(l);
    xr_pack_u32(&p, ++l->token);
    l->missing = l->ops->send(l->arg, XR_MSG_LOOK, &p);
    if (l->missing == 0) {
        give_answer(l);
        return;
    }
    event_add(l->late, &limit);
}

void xr_life_explain_last(struct xr_life *l, void (*done)(void *arg), void *arg)
{
    const struct timeval limit = {XR_LAST_REPORT_MS / 1000, XR_LAST_REPORT_MS % 1000 * 1000};

    /* Else it was explained when it stalled, or the user wants none. */
    if (l && l->patience > 0 && !(is_hopeless(l) && (l->explained || !l->quiet)) && !l->last)
        l->last = xr_hang_open(l->job->size);
    if (!l || !l->last) {
        done(arg);
        return;
    }
    l->after_last = done;
    l->last_arg = arg;
    event_add(l->last_late, &limit);
    asked(l);
}

static void note_last(struct xr_life *l, uint32_t rank, uint64_t idle, const struct xr_hang_wait *w)
{
    int32_t one = (int32_t)rank;

    if (l->last && rank < l->job->size && idle >= XR_LAST_STALLED_MS * 1000000ull)
        xr_hang_add(l->last, &one, 1, w);
}

static void keep_line(struct xr_life *l, uint32_t rank, const char *fmt, ...) RK_PRINTF(3, 4);

static void keep_line(struct xr_life *l, uint32_t rank, const char *fmt, ...)
{
    char *text;
    va_list ap;
    int n;

    if (l->nlines == l->lines_cap) {
        uint32_t cap = l->lines_cap ? 2 * l->lines_cap : 64;
        struct line *more = realloc(l->lines, cap * sizeof(*more));
        if (!more)
            return;
        l->lines = more;
        l->lines_cap = cap;
    }
    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n >= 0)
        l->lines[l->nlines++] = (struct line){rank, text};
}

static bool on_looked(struct xr_life *l, struct xr_unpacker *u)
{
    uint32_t token = xr_unpack_u32(u);
    const char *host = xr_unpack_string(u);
    uint32_t n = xr_unpack_u32(u);
    bool wanted = token == l->token && l->missing > 0;
    struct awaited whom = {0};

    for (uint32_t i = 0; i < n && !u->failed; i++) {
        uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
        double cpu = (double)xr_unpack_u64(u) * 1e-9;
        uint64_t idle = xr_unpack_u64(u);
        const char *text = xr_unpack_string(u), *more;
        uint32_t unnamed = xr_unpack_u32(u), waits = xr_unpack_u32(u);
        struct xr_hang_wait wait = {.since_ns = rk_clock_ns() - idle, .text = text, .unnamed = unnamed};
        char time[32];

        unpack_peers(u, &wait);
        if (!text || u->failed || !wanted)
            continue;
        if (pid && waits)
            note_last(l, rank, idle, &wait);
        more = heartbeat_awaited(l, rank, unnamed, &whom);
        duration(idle, time, sizeof(time));
        if (pid == 0)
            keep_line(l, rank, "%s", text);
        else if (idle < 100 * 1000000)
            keep_line(l, rank, "%s%s (host %s, pid %u, cpu %.2f s)", text, more, host, pid, cpu);
        else
            keep_line(l, rank, "%s%s, for %s (host %s, pid %u, cpu %.2f s)", text, more, time, host, pid, cpu);
    }
    if (!xr_unpack_done(u))
        return false;
    if (wanted && --l->missing == 0)
        give_answer(l);
    return true;
}

static const struct xr_status_ops status_ops = {asked, head};

/* ------------------------------------------------------------------------- traces */

static void end_trace(struct xr_life *l)
{
    void (*after)(void *) = l->after_trace;

    if (!after)
        return;
    l->after_trace = NULL;
    event_del(l->traced);
    after(l->after_arg);
}

static void on_traced_late(evutil_socket_t fd, short what, void *arg)
{
    struct xr_life *l = arg;

    (void)fd;
    (void)what;
    xr_stream_say(l->err, "xrun: some stack traces did not come in time");
    end_trace(l);
}

void xr_life_trace(struct xr_life *l, void (*done)(void *arg), void *arg)
{
    const struct timeval limit = {XR_TRACE_MS / 1000, 0};
    struct xr_packer p = {0};

    l->after_trace = done;
    l->after_arg = arg;
    event_add(l->traced, &limit);
    xr_pack_u32(&p, XR_TRACE_AGENT_MS);
    l->tracing = l->ops->send(l->arg, XR_MSG_TRACE, &p);
    if (l->tracing == 0)
        end_trace(l);
}

static bool on_trace_text(struct xr_life *l, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
    size_t len;
    const char *at = xr_unpack_bytes(u, &len);

    if (!xr_unpack_done(u))
        return false;
    for (const char *end = at + len; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        int n = (int)((nl ? nl : end) - at);
        if (rank == XR_NO_RANK)
            xr_stream_say(l->err, "xrun: %.*s", n, at);
        else if (n > 0)
            xr_stream_say(l->err, "xrun: rank %u (pid %u): %.*s", rank, pid, n, at);
        at += n + (nl != NULL);
    }
    return true;
}

/* ------------------------------------------------------------------------- the rest */

bool xr_life_message(struct xr_life *l, uint32_t kind, struct xr_unpacker *u, bool *mine)
{
    *mine = true;
    switch (kind) {
    case XR_MSG_LOOKED:
        return on_looked(l, u);
    case XR_MSG_STALLED:
    case XR_MSG_MOVING:
        return on_stall(l, u, kind == XR_MSG_STALLED);
    case XR_MSG_TRACE_TEXT:
        return on_trace_text(l, u);
    case XR_MSG_TRACED:
        if (--l->tracing <= 0)
            end_trace(l);
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

rank_status_t xr_life_open(struct event_base *base, const struct xr_life_options *options,
                           const struct xr_job *job, struct xr_stream *err,
                           const struct xr_life_ops *ops, void *arg, struct xr_life **out)
{
    struct xr_life *l = calloc(1, sizeof(*l));

    if (!l)
        return RANK_ERR_NO_MEMORY;
    *l = (struct xr_life){.options = *options,
                          .job = job,
                          .host = job->hosts[job->host_of[0]],
                          .nhosts = hosts_used(job),
                          .err = err,
                          .ops = ops,
                          .arg = arg,
                          .opened_ns = rk_clock_ns(),
                          .live = job->size,
                          .quiet = options->heartbeat < 0};
    l->patience = l->quiet ? XR_QUIET_MS / 1000 : options->heartbeat;
    l->state = calloc(job->size, 1);
    l->late = evtimer_new(base, heartbeat_on_late, l);
    l->traced = evtimer_new(base, on_traced_late, l);
    l->hopeless = evtimer_new(base, on_hopeless, l);
    l->begin = evtimer_new(base, on_begin, l);
    l->last_late = evtimer_new(base, on_last_late, l);
    if (!l->state || !l->late || !l->hopeless || !l->traced || !l->begin || !l->last_late) {
        xr_life_close(l);
        return RANK_ERR_NO_MEMORY;
    }
    l->status = xr_status_open(base, job->id, &status_ops, l);
    if (!l->status && options->verbose)
        xr_stream_say(err, "xrun: no socket for xrun --status: %s", strerror(errno));
    *out = l;
    return RANK_OK;
}

void xr_life_shut(struct xr_life *l)
{
    if (!l || !l->status || xr_status_busy(l->status))
        return;
    xr_status_close(l->status);
    l->status = NULL;
}

void xr_life_close(struct xr_life *l)
{
    if (!l)
        return;
    xr_status_close(l->status);
    if (l->late)
        event_free(l->late);
    if (l->traced)
        event_free(l->traced);
    if (l->hopeless)
        event_free(l->hopeless);
    if (l->begin)
        event_free(l->begin);
    if (l->last_late)
        event_free(l->last_late);
    xr_hang_close(l->hang);
    xr_hang_close(l->last);
    clear_lines(l);
    free(l->lines);
    free(l->state);
    free(l);
}
