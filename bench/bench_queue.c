/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_queue.c: keep a number of messages, puts or gets outstanding.
 *
 * As perftest with its tx-depth: the next one starts when the oldest is complete. A window (--window) is empty before
 * the next begins; here it is a queue of as many messages as it has slots.
 *
 * One way, rank 0 sends, puts or gets. With --bidirectional both ranks do so at once, and the time ends when both have all.
 */
#include "bench/bench.h"

enum queue_way { QUEUE_SEND, QUEUE_PUT, QUEUE_GET };

static bool queue_starts(const struct bench_run *run)
{
    return be_rank() == 0 || run->opts->both;
}

static inline void queue_post(struct bench_run *run, enum queue_way way, int slot)
{
    size_t bytes = (size_t)run->bytes, at = (size_t)slot * bytes;
    int peer = 1 - be_rank();

    if (way == QUEUE_SEND)
        be_isend(run->sbuf + at, bytes, peer, BE_TAG_DATA, &run->reqs[slot]);
    else if (way == QUEUE_PUT)
        be_iput(run->window, run->sbuf + at, bytes, peer, at, &run->reqs[slot]);
    else
        be_iget(run->window, run->rbuf + at, bytes, peer, at, &run->reqs[slot]);
}

/* The requests of receives lie behind those of sends. */
static inline void queue_receive(struct bench_run *run, int slot)
{
    be_irecv(run->rbuf + (size_t)slot * (size_t)run->bytes, (size_t)run->bytes, 1 - be_rank(), BE_TAG_DATA,
             &run->reqs[run->inflight + slot]);
}

/* Both sides are ready. */
static void queue_meet(struct bench_run *run)
{
    if (!run->opts->both && be_rank() == 0) {
        bench_await(1);
    } else if (!run->opts->both) {
        bench_notify(0);
    } else if (be_rank() == 0) {
        bench_notify(1);
        bench_await(1);
    } else {
        bench_await(0);
        bench_notify(0);
    }
}

/* Both sides have all. Of messages the receiver reports that, of one-sided operations the origin. */
static void queue_part(struct bench_run *run, enum queue_way way)
{
    int peer = 1 - be_rank();

    if (run->opts->both) {
        bench_notify(peer);
        bench_await(peer);
    } else if (queue_starts(run) == (way == QUEUE_SEND)) {
        bench_await(peer);
    } else {
        bench_notify(peer);
    }
}

/* Move so many messages. Returns the microseconds from the first call to the last completion. */
static inline __attribute__((always_inline)) double queue_move(struct bench_run *run, enum queue_way way, int n)
{
    bool starts = queue_starts(run), receives = way == QUEUE_SEND && (be_rank() == 1 || run->opts->both);
    int depth = run->inflight, slots = n < depth ? n : depth;
    double t;

    for (int k = 0; receives && k < slots; k++)
        queue_receive(run, k);
    queue_meet(run);
    t = bench_now_us();
    for (int i = 0, slot = 0; i < n; i++, slot = slot + 1 < depth ? slot + 1 : 0) {
        if (starts) {
            if (i >= depth)
                be_waitall(1, &run->reqs[slot]);
            queue_post(run, way, slot);
        }
        if (receives && i >= depth) {
            be_waitall(1, &run->reqs[depth + slot]);
            queue_receive(run, slot);
        }
    }
    if (starts)
        be_waitall(slots, run->reqs);
    if (receives)
        be_waitall(slots, run->reqs + depth);
    if (starts && way == QUEUE_PUT)
        be_flush_puts(run->window, 1 - be_rank());
    if (way != QUEUE_SEND && !run->opts->both)
        t = bench_now_us() - t;
    queue_part(run, way);
    if (way == QUEUE_SEND || run->opts->both) {
        t = bench_now_us() - t;
        t -= run->ack_us < t / 2 ? run->ack_us : t / 2; /* with more ranks than cores, an answer may have taken longer */
    }
    return t;
}

/* What is sent or got from here, and what comes here. */
static char *queue_source(const struct bench_run *run, enum queue_way way)
{
    return way == QUEUE_GET ? run->window_base : run->sbuf;
}

static char *queue_result(const struct bench_run *run, enum queue_way way)
{
    return way == QUEUE_PUT ? run->window_base : run->rbuf;
}

/* Has this rank the source, or the result? */
static bool queue_has_source(const struct bench_run *run, enum queue_way way)
{
    return run->opts->both || (be_rank() == 0) == (way != QUEUE_GET);
}

static bool queue_has_result(const struct bench_run *run, enum queue_way way)
{
    return run->opts->both || (be_rank() == 0) == (way == QUEUE_GET);
}

/* The microseconds of a message. Buffers are written before and read after, outside the timed part. */
static inline __attribute__((always_inline)) double queue_sample(struct bench_run *run, enum queue_way way, int n)
{
    int64_t all = run->bytes * run->inflight;
    double us;

    run->lanes = run->opts->both ? 2 : 1;
    if (queue_has_source(run, way))
        bench_write(run, queue_source(run, way), all);
    if (run->window)
        be_window_sync(run->window);
    us = queue_move(run, way, n);
    if (run->window)
        be_window_sync(run->window);
    if (queue_has_result(run, way))
        bench_read(run, queue_result(run, way), all);
    return us / n;
}

static inline __attribute__((always_inline)) double queue_windows(struct bench_run *run, enum queue_way way, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += queue_sample(run, way, run->inflight);
    return sum / n;
}

double bench_queue_send(struct bench_run *run, int n) { return queue_sample(run, QUEUE_SEND, n); }
double bench_queue_put(struct bench_run *run, int n) { return queue_sample(run, QUEUE_PUT, n); }
double bench_queue_get(struct bench_run *run, int n) { return queue_sample(run, QUEUE_GET, n); }
double bench_both_put(struct bench_run *run, int n) { return queue_windows(run, QUEUE_PUT, n); }
double bench_both_get(struct bench_run *run, int n) { return queue_windows(run, QUEUE_GET, n); }

/* Every slot, and both directions where both are measured. */
static int64_t queue_check(struct bench_run *run, enum queue_way way)
{
    int64_t all = run->bytes * run->inflight, wrong = 0;

    if (queue_has_result(run, way))
        bench_clear(run, queue_result(run, way), 0, all);
    if (queue_has_source(run, way))
        bench_pattern(run, be_rank(), queue_source(run, way), all);
    if (run->window)
        be_window_sync(run->window);
    queue_move(run, way, run->inflight);
    if (run->window)
        be_window_sync(run->window);
    if (queue_has_result(run, way))
        wrong = bench_pattern_wrong(run, 1 - be_rank(), queue_result(run, way), all);
    queue_meet(run); /* the next one does not write before this is read */
    return wrong;
}

int64_t bench_queue_send_check(struct bench_run *run) { return queue_check(run, QUEUE_SEND); }
int64_t bench_queue_put_check(struct bench_run *run) { return queue_check(run, QUEUE_PUT); }
int64_t bench_queue_get_check(struct bench_run *run) { return queue_check(run, QUEUE_GET); }
