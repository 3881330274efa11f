/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * miss.c: measure the cost of one line that the other core has just written.
 * By a load, and by an atomic fetch-add. The lines hold a list in random order, so
 * that neither is begun before the one before it has its data.
 */
#include "bench/limits/limit_bench.h"

enum { LINES = 256, SAMPLES = 301 };

struct line {
    _Alignas(LIMIT_LINE) _Atomic uint64_t next;
};

struct lines {
    struct limit_flag to, from;
    struct line line[LINES];
    uint32_t order[LINES];
    int samples;
};

/* The list goes through all lines in the order drawn; high bits hold the turn. */
static void write_list(struct lines *l, uint64_t turn)
{
    for (int i = 0; i < LINES; i++)
        atomic_store_explicit(&l->line[l->order[i]].next,
                              turn << 32 | l->order[(i + 1) % LINES], memory_order_relaxed);
}

static void miss_writer(void *arg)
{
    struct lines *l = arg;

    for (int i = 1; i <= 2 * l->samples; i++) {
        limit_await(&l->to, (uint64_t)i);
        write_list(l, (uint64_t)i);
        limit_set(&l->from, (uint64_t)i);
    }
}

int main(int argc, char **argv)
{
    struct lines *l = limit_shared(sizeof(*l));
    uint64_t seed = 7, turn = 0, word;
    double v[SAMPLES], t;
    pid_t pid;

    for (uint32_t i = 0; i < LINES; i++) {
        uint32_t j;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        j = (uint32_t)(seed >> 33) % (i + 1);
        l->order[i] = l->order[j];
        l->order[j] = i;
    }
    l->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(miss_writer, l);
    for (int add = 0; add < 2; add++) {
        for (int i = 0; i < l->samples; i++) {
            limit_set(&l->to, ++turn);
            limit_await(&l->from, turn);
            word = l->order[0];
            t = limit_ns();
            for (int k = 0; k < LINES; k++) {
                struct line *at = &l->line[(uint32_t)word];
                word = add ? atomic_fetch_add(&at->next, 1)
                           : atomic_load_explicit(&at->next, memory_order_relaxed);
            }
            v[i] = (limit_ns() - t) / LINES;
            limit_check(word == (turn << 32 | l->order[0]));
        }
        limit_print(add ? "miss_fetch_add" : "miss_load", limit_median(v, l->samples), "ns",
                    add ? "fetch-add on a line that the other core has just written"
                        : "a line that the other core has just written is read");
    }
    limit_join(pid);
    return 0;
}
