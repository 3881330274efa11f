/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primes.c: hand out work of uneven weight by a shared counter.
 *
 *     xcc primes.c -o primes && xrun -n 4 ./primes [limit]
 *
 * Each rank takes the next block of numbers by one fetch-add, as long as there is
 * any, and counts the primes in it. At the end each puts its sum at rank 0 with a signal
 * that counts how many have done so.
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1000 };

/* In each rank's memory; rank 0's is used. results follows. */
struct shared {
    int64_t next;
    uint64_t arrived;
};

struct result {
    int64_t primes, blocks;
};

static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "primes: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

static int is_prime(int64_t n)
{
    if (n < 4)
        return n > 1;
    if (n % 2 == 0)
        return 0;
    for (int64_t d = 3; d * d <= n; d += 2) {
        if (n % d == 0)
            return 0;
    }
    return 1;
}

static struct result take_part(rank_mem_t mem, int64_t limit)
{
    struct result r = {0, 0};
    int64_t step = BLOCK, first;

    for (;;) {
        must(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &step, 0, mem, offsetof(struct shared, next),
                         &first),
             "fetch-add");
        if (first >= limit)
            return r;
        r.blocks++;
        for (int64_t n = first; n < first + BLOCK && n < limit; n++)
            r.primes += is_prime(n);
    }
}

int main(int argc, char **argv)
{
    int64_t limit = argc > 1 ? atoll(argv[1]) : 1000000, primes = 0, blocks = 0;
    struct shared *shared;
    struct result mine, *all;
    rank_mem_t mem;
    int me, size;

    must(rank_init(NULL), "rank_init");
    me = rank_team_rank(rank_world());
    size = rank_team_size(rank_world());
    if (limit < 1)
        rank_abort(2, "primes: below which number?");
    must(rank_alloc(rank_world(), RANK_MEM_HOST,
                    (int64_t)(sizeof(*shared) + (size_t)size * sizeof(*all)), (void **)&shared,
                    &mem),
         "rank_alloc");
    mine = take_part(mem, limit);
    must(rank_put_signal(&mine, sizeof(mine), 0, mem,
                         (int64_t)(sizeof(*shared) + (size_t)me * sizeof(mine)), mem,
                         offsetof(struct shared, arrived), 1, RANK_SIGNAL_ADD),
         "put_signal");
    if (me == 0) {
        must(rank_signal_wait(mem, offsetof(struct shared, arrived), RANK_CMP_EQ, (uint64_t)size,
                              RANK_ANY_SOURCE, NULL),
             "signal_wait");
        all = (struct result *)(shared + 1);
        for (int r = 0; r < size; r++) {
            primes += all[r].primes;
            blocks += all[r].blocks;
        }
        printf("%lld primes below %lld, in %lld blocks by %d ranks\n", (long long)primes,
               (long long)limit, (long long)blocks, size);
        if (blocks != (limit + BLOCK - 1) / BLOCK)
            rank_abort(1, "primes: a block was lost, or counted twice");
    }
    must(rank_free(&mem), "rank_free");
    return rank_finalize() ? 1 : 0;
}
