/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h: define a benchmark as a table entry, and what the harness gives it.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/backend.h"
#include "bench/harness_options.h"

/* Up to this many bytes the buffers are written and read inside the timed part, which then holds
 * several iterations; above it outside, and each iteration is timed by itself. So is each of a
 * collective with a root, at every size: back to back, some ranks would run ahead, and what is
 * timed would be how fast calls can be issued. */
enum { BENCH_SMALL = 4096 };

struct bench_entry;

/* One size of one benchmark, as a rank sees it. */
struct bench_run {
    const struct bench_opts *opts;
    const struct bench_entry *entry;
    int64_t bytes;   /* as printed: a message, a collective's whole vector, or what the table names */
    int64_t message; /* bytes of a message */
    int64_t stride;  /* from one message of a window to the next */
    int64_t count;   /* elements handed to the collective */
    rank_dtype_t dtype;
    rank_op_t op;
    int root;
    char *sbuf, *rbuf;
    struct be_window *window;
    char *window_base;
    struct be_blocks *blocks;
    be_request_t *reqs; /* two for each message of a window */
    int inflight;   /* messages in a window */
    int lanes;      /* messages that move at the time of each that is timed */
    double ack_us;  /* one way of a single byte */
    double extra;   /* of the last sample, where the entry has one */
    int64_t iters;  /* that have been timed */
    uint64_t turn;  /* differs in every iteration */
    uint64_t sink;  /* what was read, so that it is */
    void *state;    /* the entry's own, from begin to end */
    struct bench_far {
        const char *base;
        size_t bytes;
    } far[3];       /* buffers in device memory, which the CPU may not touch */
    int nfar;
};

enum bench_table {
    BENCH_LATENCY,
    BENCH_BANDWIDTH,
    BENCH_COLLECTIVE,
    BENCH_RATE,  /* of messages */
    BENCH_DEPTH, /* a latency; the size is how many others are in the way */
    BENCH_IDLE   /* a latency; the size is the microseconds of the wait before */
};

struct bench_entry {
    const char *name, *doc;
    enum bench_table table;
    bool dtype, op, root, one_sided; /* what it has */
    bool prefixes; /* of a reduction: no RANK_AVG */
    bool all;     /* all ranks take part, each gives a time, and the longest counts */
    bool outside; /* buffers are written and read outside the timed part, at every size */
    bool single;  /* each iteration is timed by itself, at every size */
    bool one_by_one; /* a rate without a window */
    bool apart;   /* messages of a window lie in cache lines of their own */
    bool fetches; /* one-sided: data comes from the window */
    const char *on_host; /* operations of which window and buffers are in host memory; NULL: others */
    bool signals; /* the window is in host memory */
    bool list;    /* the size is that of a list, --blocks times --block */
    int pieces; /* the vector is this many ranks' blocks: 0 no, 1 in sbuf, 2 in rbuf, 3 in both */
    int window; /* one-sided: bytes of the window for each of a message, and a few lines behind; 0: 1, none behind */
    int rounds; /* windows in an iteration; 0: 1 */
    int64_t least, most; /* sizes if none are given; 0: the table's. Equal: there is no other */
    double sample_us;    /* how long a sample of short iterations is made; 0: 20 */
    const char *extra[2]; /* a second figure: its name in JSON, and as a column */
    double (*bus)(int n); /* busbw / algbw; NULL: 1 */
    /* Before anything of a size, and after all of it: what was wrong (elements). NULL: nothing to do. */
    void (*begin)(struct bench_run *run);
    int64_t (*end)(struct bench_run *run);
    /* Some iterations on every rank; the microseconds of one, as this rank timed it (p2p: rank 0);
     * of windows: of one message. */
    double (*sample)(struct bench_run *run, int iterations);
    /* As sample, with both ranks at it at once (--bidirectional); it sets lanes. NULL: there is no such form. */
    double (*both)(struct bench_run *run, int iterations);
    /* As sample, of as many messages, of which inflight are outstanding (--tx-depth). It has both directions. NULL: none. */
    double (*queued)(struct bench_run *run, int messages);
    /* One iteration with every byte verified; the number of wrong ones (elements) here. */
    int64_t (*check)(struct bench_run *run);
    /* As check, of all messages in flight, for --tx-depth and --bidirectional. */
    int64_t (*check_all)(struct bench_run *run);
};

static inline bool bench_has_op(const struct bench_entry *e, rank_op_t op, rank_dtype_t dtype)
{
    return be_op_supported(op, dtype) && !(e->prefixes && op == RANK_AVG);
}

/* Each ends with a NULL name. */
extern const struct bench_entry bench_p2p[], bench_rate[], bench_match[], bench_wait[], bench_rma[],
    bench_signal[], bench_strided[], bench_xfer[],
    bench_coll[], bench_coll_forms[];

static inline bool bench_windowed(const struct bench_entry *e)
{
    return (e->table == BENCH_BANDWIDTH || e->table == BENCH_RATE || e->apart) && !e->one_by_one;
}

/* Is it measured by a queue (--tx-depth), not by windows? */
static inline bool bench_queued(const struct bench_run *run)
{
    return run->opts->depth > 0 && run->entry->queued;
}

/* Where its window lies. */
static inline struct be_mem bench_target(const struct bench_opts *opts, const struct bench_entry *e)
{
    struct be_mem there = opts->mem[!e->fetches];

    return opts->target_auto && there.sort == BE_CUDA && !e->on_host && !e->signals ? there : opts->target;
}

static inline bool bench_inside(const struct bench_run *run)
{
    return run->message <= BENCH_SMALL && !run->entry->root && !run->entry->single;
}

/* A byte beside what is measured. */
static inline void bench_notify(int peer)
{
    char c = 1;

    be_send(&c, 1, peer, BE_TAG_CTL);
}

static inline void bench_await(int peer)
{
    char c;

    be_recv(&c, 1, peer, BE_TAG_CTL);
}

/* A message to peer and one back, verified. Both call it. */
int64_t bench_exchange_wrong(struct bench_run *run, int peer);

/* Samples for --tx-depth; windows of puts or gets of both ranks; and checks of every message of a window or queue. */
double bench_queue_send(struct bench_run *run, int n);
double bench_queue_put(struct bench_run *run, int n);
double bench_queue_get(struct bench_run *run, int n);
double bench_both_put(struct bench_run *run, int n);
double bench_both_get(struct bench_run *run, int n);
int64_t bench_queue_send_check(struct bench_run *run);
int64_t bench_queue_put_check(struct bench_run *run);
int64_t bench_queue_get_check(struct bench_run *run);

double bench_now_us(void);

/* Compute without a call of the library, for so long. */
static inline void bench_compute(double us)
{
    double end = bench_now_us() + us;

    while (us > 0 && bench_now_us() < end)
        ;
}

/*
 * Access a buffer from the CPU, outside the timed part: returns a copy of it if it is in device memory, or itself. Let end
 * free the copy, after it has been written back if it was changed.
 */
char *bench_host_begin(const struct bench_run *run, const void *buf, int64_t bytes);
void bench_host_end(const struct bench_run *run, void *buf, char *host, int64_t bytes, bool changed);
/* Is it in device memory? */
bool bench_is_far(const struct bench_run *run, const void *buf);
/* Set all of buf, as memset. */
void bench_clear(const struct bench_run *run, void *buf, int value, int64_t bytes);

/* Write all of buf, other than last time; read all of it. No-op in device memory: a copy would be measured. */
void bench_write(struct bench_run *run, void *buf, int64_t bytes);
void bench_read(struct bench_run *run, const void *buf, int64_t bytes);

/* What rank r has at element or byte i in a checked iteration. */
void bench_pattern(struct bench_run *run, int r, void *buf, int64_t bytes);
int64_t bench_pattern_wrong(const struct bench_run *run, int r, const void *buf, int64_t bytes);

/* Elements for reductions over n ranks: rank r's input, and how many of the result are wrong. */
void bench_fill(const struct bench_run *run, int n, int r, void *buf, int64_t first, int64_t count);
/* The same, of the sum of the first ranks among n. */
int64_t bench_wrong_prefix(const struct bench_run *run, int ranks, int n, const void *buf, int64_t first, int64_t count);
int64_t bench_wrong(const struct bench_run *run, int n, const void *buf, int64_t first,
                    int64_t count);

#endif
