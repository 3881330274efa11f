/*
 * bench.h: a benchmark is an entry of one table, and what the frame gives it.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/backend.h"
#include "bench/frame_options.h"

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
    int64_t bytes;  /* as printed: a message, or a collective's whole vector */
    int64_t count;  /* elements handed to the collective */
    rank_dtype_t dtype;
    rank_op_t op;
    int root;
    char *sbuf, *rbuf;
    struct be_window *window;
    char *window_base;
    struct be_blocks *blocks;
    be_request_t *reqs;
    int inflight;   /* messages in a window */
    double ack_us;  /* one way of a single byte */
    int64_t batch;  /* iterations of one sample */
    uint64_t turn;  /* differs in every iteration */
    uint64_t sink;  /* what was read, so that it is */
};

enum bench_table { BENCH_LATENCY, BENCH_BANDWIDTH, BENCH_COLLECTIVE };

struct bench_entry {
    const char *name, *doc;
    enum bench_table table;
    bool dtype, op, root, one_sided; /* what it has */
    int pieces; /* the vector is this many ranks' blocks: 0 no, 1 in sbuf, 2 in rbuf, 3 in both */
    double (*bus)(int n); /* busbw / algbw; NULL: 1 */
    /* Some iterations on every rank; the microseconds of one, as this rank timed it (p2p: rank 0). */
    double (*sample)(struct bench_run *run, int iterations);
    /* One iteration whose every byte is verified; the number of wrong ones (elements) here. */
    int64_t (*check)(struct bench_run *run);
};

extern const struct bench_entry bench_p2p[], bench_coll[]; /* end with a NULL name */

static inline bool bench_inside(const struct bench_run *run)
{
    return run->bytes <= BENCH_SMALL && !run->entry->root;
}

double bench_now_us(void);

/* Write all of buf, other than last time; read all of it. */
void bench_write(struct bench_run *run, void *buf, int64_t bytes);
void bench_read(struct bench_run *run, const void *buf, int64_t bytes);

/* What rank r has at element or byte i in a checked iteration. */
void bench_pattern(struct bench_run *run, int r, void *buf, int64_t bytes);
int64_t bench_pattern_wrong(const struct bench_run *run, int r, const void *buf, int64_t bytes);

/* Elements for reductions: rank r's input, and whether the result over n ranks is right. */
void bench_fill(const struct bench_run *run, int r, void *buf, int64_t first, int64_t count);
int64_t bench_wrong(const struct bench_run *run, int n, const void *buf, int64_t first,
                    int64_t count);

#endif
