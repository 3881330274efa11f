/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_xfer.c: measure transfers of rank 0 to and from rank 1's window.
 * Each is one call for a block, or for a list of blocks (--blocks, --block).
 *
 * The blocks of a list are together at rank 0. At rank 1, each has a gap of its size behind it, and the next one lies
 * elsewhere, as pages of a cache do: none merge.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 7919, /* places from one block to the next; a prime */ GAP = 0x5a };

/* The transfers of a window, each prepared once. */
struct transfers {
    struct be_list **list; /* [inflight], on rank 0 */
    int64_t blocks, block; /* of each */
};

static struct transfers *transfers_of(const struct bench_run *run)
{
    return run->state;
}

/* The place of block i of transfer k in the window. */
static int64_t transfer_offset(const struct bench_run *run, const struct transfers *t, int k, int64_t i)
{
    int64_t step = t->blocks % STEP ? STEP : 1;

    if (!run->entry->list)
        return k * run->bytes;
    return 2 * (k * run->bytes + i * step % t->blocks * t->block);
}

static void prepare_list(struct bench_run *run, struct transfers *t, struct be_block *blocks, int k)
{
    bool reads = run->entry->fetches;
    char *buf = (reads ? run->rbuf : run->sbuf) + k * run->bytes;

    for (int64_t i = 0; i < t->blocks; i++)
        blocks[i] = (struct be_block){buf + i * t->block, (size_t)t->block, (size_t)transfer_offset(run, t, k, i)};
    t->list[k] = be_list_create(run->window, reads, blocks, (size_t)t->blocks, 1);
}

static void prepare_transfers(struct bench_run *run)
{
    struct transfers *t = calloc(1, sizeof(*t));
    struct be_block *blocks = NULL;

    if (t) {
        t->blocks = run->entry->list ? run->opts->blocks : 1;
        t->block = run->bytes / t->blocks;
        t->list = calloc((size_t)run->inflight, sizeof(struct be_list *));
        blocks = calloc((size_t)t->blocks, sizeof(*blocks));
    }
    if (!t || !t->list || !blocks)
        be_abort(1, "out of memory for the blocks");
    run->state = t;
    for (int k = 0; be_rank() == 0 && k < run->inflight; k++)
        prepare_list(run, t, blocks, k);
    free(blocks);
}

static int64_t free_transfers(struct bench_run *run)
{
    struct transfers *t = transfers_of(run);

    for (int k = 0; be_rank() == 0 && k < run->inflight; k++)
        be_list_destroy(t->list[k]);
    free(t->list);
    free(t);
    run->state = NULL;
    return 0;
}

/* Move n transfers of the window, until all are complete. */
static inline void move_transfers(struct bench_run *run, int n)
{
    struct be_list **list = transfers_of(run)->list;

    for (int k = 0; k < n; k++)
        be_list_start(list[k], &run->reqs[k]);
    be_lists_wait(run->window, n, run->reqs, 1);
}

/* Bytes of the window that n transfers use, with the gaps. */
static int64_t window_bytes(const struct bench_run *run, int n)
{
    return run->bytes * n * (run->entry->list ? 2 : 1);
}

static double bench_xfer_write(struct bench_run *run, int n)
{
    int w = run->inflight;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 1) {
            bench_await(0);
            be_window_sync(run->window);
            bench_read(run, run->window_base, window_bytes(run, w));
            bench_notify(0);
            continue;
        }
        bench_write(run, run->sbuf, run->bytes * w);
        t = bench_now_us();
        move_transfers(run, w);
        sum += bench_now_us() - t;
        bench_notify(1);
        bench_await(1);
    }
    return sum / n / w;
}

static double bench_xfer_read(struct bench_run *run, int n)
{
    int w = run->inflight;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 1) {
            bench_write(run, run->window_base, window_bytes(run, w));
            be_window_sync(run->window);
            bench_notify(0);
            bench_await(0);
            continue;
        }
        bench_await(1);
        t = bench_now_us();
        move_transfers(run, w);
        sum += bench_now_us() - t;
        bench_read(run, run->rbuf, run->bytes * w);
        bench_notify(1);
    }
    return sum / n / w;
}

/* Copy between bytes in a row and the blocks of transfer k of the window. */
static void scatter_blocks(struct bench_run *run, char *row, int k, bool to_window)
{
    const struct transfers *t = transfers_of(run);

    for (int64_t i = 0; i < t->blocks; i++, row += t->block) {
        char *at = run->window_base + transfer_offset(run, t, k, i);
        memcpy(to_window ? at : row, to_window ? row : at, (size_t)t->block);
    }
}

/* Bytes of the gaps that have changed. */
static int64_t gaps_wrong(const struct bench_run *run)
{
    const struct transfers *t = transfers_of(run);
    int64_t wrong = 0;

    for (int k = 0; run->entry->list && k < run->inflight; k++) {
        for (int64_t i = 0; i < t->blocks; i++) {
            const char *gap = run->window_base + transfer_offset(run, t, k, i) + t->block;
            for (int64_t b = 0; b < t->block; b++)
                wrong += gap[b] != GAP;
        }
    }
    return wrong;
}

/* Every transfer of the window. */
static int64_t bench_xfer_write_check(struct bench_run *run)
{
    int w = run->inflight;
    int64_t wrong;

    if (be_rank() == 0) {
        bench_await(1);
        bench_pattern(run, 0, run->sbuf, run->bytes * w);
        move_transfers(run, w);
        bench_notify(1);
        bench_await(1);
        return 0;
    }
    memset(run->window_base, GAP, (size_t)window_bytes(run, w));
    be_window_sync(run->window);
    bench_notify(0);
    bench_await(0);
    be_window_sync(run->window);
    for (int k = 0; k < w; k++)
        scatter_blocks(run, run->rbuf + k * run->bytes, k, false);
    wrong = bench_pattern_wrong(run, 0, run->rbuf, run->bytes * w) + gaps_wrong(run);
    bench_notify(0);
    return wrong;
}

static int64_t bench_xfer_read_check(struct bench_run *run)
{
    int w = run->inflight;
    int64_t wrong;

    if (be_rank() == 1) {
        bench_pattern(run, 1, run->sbuf, run->bytes * w);
        for (int k = 0; k < w; k++)
            scatter_blocks(run, run->sbuf + k * run->bytes, k, true);
        be_window_sync(run->window);
        bench_notify(0);
        bench_await(0);
        return 0;
    }
    bench_await(1);
    memset(run->rbuf, 0, (size_t)(run->bytes * w));
    move_transfers(run, w);
    wrong = bench_pattern_wrong(run, 1, run->rbuf, run->bytes * w);
    bench_notify(1);
    return wrong;
}

#define TRANSFER .table = BENCH_BANDWIDTH, .one_sided = true, .on_host = "transfers", .outside = true, \
    .begin = prepare_transfers, .end = free_transfers
#define WRITES TRANSFER, .sample = bench_xfer_write, .check = bench_xfer_write_check
#define READS TRANSFER, .sample = bench_xfer_read, .check = bench_xfer_read_check, .fetches = true

const struct bench_entry bench_xfer[] = {
    {.name = "write_bw", .doc = "bandwidth of transfers to the target", WRITES},
    {.name = "read_bw", .doc = "bandwidth of transfers from the target", READS},
    {.name = "write_list", .doc = "bandwidth of lists of blocks to the target", .list = true, .window = 2, WRITES},
    {.name = "read_list", .doc = "bandwidth of lists of blocks from the target", .list = true, .window = 2, READS},
    {.name = NULL},
};
