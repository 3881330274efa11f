/* SPDX-License-Identifier: BSD-3-Clause */
/* status_query.c: see status_query.h. */
#include "launcher/monitor/status_query.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/stall_text.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"
#include "lib/base/compiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_LINES 64
/* A rank without progress for less than this gets no duration. */
#define RECENT_NS 100000000u

struct rank_line {
    uint32_t rank;
    char *text;
};

struct xr_status_query {
    const struct xr_status_query_ops *ops;
    void *arg;
    struct event *late;
    struct rank_line *lines;
    uint32_t nlines, lines_cap;
    uint32_t token; /* of the latest query */
    int missing;    /* agents that have not answered; 0: no query is in progress */
    int silent;     /* of the query that is complete: agents that did not answer */
};

static void drop_lines(struct xr_status_query *q)
{
    for (uint32_t i = 0; i < q->nlines; i++)
        free(q->lines[i].text);
    q->nlines = 0;
}

static int by_line_rank(const void *a, const void *b)
{
    uint32_t x = ((const struct rank_line *)a)->rank, y = ((const struct rank_line *)b)->rank;

    return (x > y) - (x < y);
}

static void complete_query(struct xr_status_query *q)
{
    q->silent = q->missing;
    q->missing = 0;
    event_del(q->late);
    if (q->nlines)
        qsort(q->lines, q->nlines, sizeof(*q->lines), by_line_rank);
    q->ops->on_complete(q->arg);
    drop_lines(q);
}

static void on_query_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    complete_query(arg);
}

void xr_status_query_start(struct xr_status_query *q)
{
    const struct timeval limit = {XR_STATUS_AGENTS_MS / 1000, XR_STATUS_AGENTS_MS % 1000 * 1000};
    struct xr_packer p = {0};

    if (q->missing)
        return;
    xr_pack_u32(&p, ++q->token);
    q->missing = q->ops->send(q->arg, XR_MSG_PROBE, &p);
    if (q->missing == 0) {
        complete_query(q);
        return;
    }
    event_add(q->late, &limit);
}

static void add_line(struct xr_status_query *q, uint32_t rank, const char *fmt, ...) RK_PRINTF(3, 4);

/* Add a rank's line. Out of memory: the line is left out. */
static void add_line(struct xr_status_query *q, uint32_t rank, const char *fmt, ...)
{
    char *text;
    va_list ap;
    int n;

    if (q->nlines == q->lines_cap) {
        uint32_t cap = q->lines_cap ? 2 * q->lines_cap : FIRST_LINES;
        struct rank_line *more = realloc(q->lines, cap * sizeof(*more));
        if (!more)
            return;
        q->lines = more;
        q->lines_cap = cap;
    }
    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n >= 0)
        q->lines[q->nlines++] = (struct rank_line){rank, text};
}

bool xr_status_query_receive(struct xr_status_query *q, struct xr_unpacker *u)
{
    uint32_t token = xr_unpack_u32(u);
    const char *host = xr_unpack_string(u);
    uint32_t n = xr_unpack_u32(u);
    bool wanted = token == q->token && q->missing > 0;
    struct xr_awaited awaited = {0};

    for (uint32_t i = 0; i < n && !u->failed; i++) {
        uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
        double cpu = (double)xr_unpack_u64(u) * 1e-9;
        uint64_t idle = xr_unpack_u64(u);
        const char *text = xr_unpack_string(u), *more;
        uint32_t unnamed = xr_unpack_u32(u), waits = xr_unpack_u32(u);
        struct xr_hang_wait wait = {.since_ns = rk_clock_ns() - idle, .text = text, .unnamed = unnamed};
        char time[32];

        xr_stall_text_unpack_peers(u, &wait);
        if (!text || u->failed || !wanted)
            continue;
        if (pid && waits)
            q->ops->on_wait(q->arg, rank, idle, &wait);
        more = xr_stall_text_of_fence(unnamed ? q->ops->fences(q->arg) : NULL, rank, unnamed, &awaited);
        xr_duration_text(idle, time, sizeof(time));
        if (pid == 0)
            add_line(q, rank, "%s", text);
        else if (idle < RECENT_NS)
            add_line(q, rank, "%s%s (host %s, pid %u, cpu %.2f s)", text, more, host, pid, cpu);
        else
            add_line(q, rank, "%s%s, for %s (host %s, pid %u, cpu %.2f s)", text, more, time, host, pid, cpu);
    }
    if (!xr_unpack_done(u))
        return false;
    if (wanted && --q->missing == 0)
        complete_query(q);
    return true;
}

void xr_status_query_write(const struct xr_status_query *q, struct evbuffer *to)
{
    for (uint32_t i = 0; i < q->nlines; i++)
        evbuffer_add_printf(to, "rank %u: %s\n", q->lines[i].rank, q->lines[i].text);
    if (q->silent)
        evbuffer_add_printf(to, "%d of the job's agents did not answer\n", q->silent);
}

rank_status_t xr_status_query_open(struct event_base *base, const struct xr_status_query_ops *ops, void *arg,
                                   struct xr_status_query **out)
{
    struct xr_status_query *q = calloc(1, sizeof(*q));

    if (!q)
        return RANK_ERR_NO_MEMORY;
    q->ops = ops;
    q->arg = arg;
    q->late = evtimer_new(base, on_query_late, q);
    if (!q->late) {
        free(q);
        return RANK_ERR_NO_MEMORY;
    }
    *out = q;
    return RANK_OK;
}

void xr_status_query_close(struct xr_status_query *q)
{
    if (!q)
        return;
    event_free(q->late);
    drop_lines(q);
    free(q->lines);
    free(q);
}
