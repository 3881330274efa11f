/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gups.c: update random words of a table that is spread over all ranks.
 *
 *     xcc gups.c -o gups && xrun -n 4 ./gups [log2 of the words] [updates per word]
 *
 * Each update is an atomic xor of a random word. Made a second time, all
 * updates undo the first: the table must be as it was, to the bit.
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "gups: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* splitmix64 */
static uint64_t shuffle(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The words' numbers follow each other round the ranks: a word's owner is its number modulo them. */
static void update(rank_mem_t mem, int me, int size, uint64_t words, uint64_t updates)
{
    uint64_t state = (uint64_t)me << 40;

    for (uint64_t i = 0; i < updates; i++) {
        uint64_t v = shuffle(state += 0x9e3779b97f4a7c15u), at = shuffle(v) % words;
        must(rank_atomic(RANK_AMO_XOR, RANK_UINT64, &v, (int)(at % (uint64_t)size), mem,
                         (int64_t)(at / (uint64_t)size * 8), NULL),
             "xor");
    }
    must(rank_flush(mem, RANK_ALL), "flush");
    must(rank_barrier(rank_world()), "barrier");
}

int main(int argc, char **argv)
{
    int log2 = argc > 1 ? atoi(argv[1]) : 20, per_word = argc > 2 ? atoi(argv[2]) : 4;
    uint64_t words, local, updates, *mine;
    int64_t sums[2] = {0, 0}, total[2]; /* words that changed, words that did not come back */
    double start, took;
    rank_mem_t mem;
    int me, size;

    must(rank_init(NULL), "rank_init");
    me = rank_team_rank(rank_world());
    size = rank_team_size(rank_world());
    if (log2 < 0 || log2 > 40 || per_word < 1)
        rank_abort(2, "gups: the table has 2^0 to 2^40 words, and each gets 1 update or more");
    words = 1ull << log2;
    local = (words + (uint64_t)size - 1) / (uint64_t)size;
    updates = local * (uint64_t)per_word;
    must(rank_alloc(rank_world(), RANK_MEM_HOST, (int64_t)local * 8, (void **)&mine, &mem),
         "rank_alloc");
    for (uint64_t i = 0; i < local; i++)
        mine[i] = i * (uint64_t)size + (uint64_t)me;
    must(rank_barrier(rank_world()), "barrier");

    start = seconds();
    update(mem, me, size, words, updates);
    took = seconds() - start;
    for (uint64_t i = 0; i < local; i++)
        sums[0] += mine[i] != i * (uint64_t)size + (uint64_t)me;
    must(rank_barrier(rank_world()), "barrier"); /* all have read */
    update(mem, me, size, words, updates);
    for (uint64_t i = 0; i < local; i++)
        sums[1] += mine[i] != i * (uint64_t)size + (uint64_t)me;
    must(rank_allreduce(sums, total, 2, RANK_INT64, RANK_SUM, rank_world()), "allreduce");
    if (me == 0)
        printf("%llu words over %d ranks, %llu updates: %.4f billion a second; %s\n",
               (unsigned long long)words, size, (unsigned long long)updates * (unsigned)size,
               1e-9 * (double)updates * size / took,
               total[1] == 0 && total[0] > 0 ? "all undone (right)" : "not all undone (wrong)");
    if (total[1] || total[0] == 0)
        rank_abort(1, "gups: updates were lost");
    must(rank_free(&mem), "rank_free");
    return rank_finalize() ? 1 : 0;
}
