/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * account.c: change one balance from all ranks, each with the lock in hand.
 *
 *     xcc account.c lock.c -o account && xrun -n 4 ./account [rounds]
 *     xrun -n 4 --on-failure continue ./account 1000 --die 2
 *
 * The balance lies at rank 0 and is changed by a get and a put, which no other rank
 * may come between. With --die that rank is killed with the lock in its hands, half through its rounds or later; the others go on
 * until a call reports it, and print how long that call took.
 */
#include "lock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "account: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

enum { BALANCE, BEGUN, WORDS }; /* at rank 0; BEGUN: ranks that are there */

/* Have all come? The others would meet an earlier death in rank_alloc still. */
static int all_have_begun(rank_mem_t mem)
{
    int64_t begun = 0;

    return rank_get(&begun, 8, 0, mem, BEGUN * 8) == RANK_OK && begun == rank_team_size(rank_world());
}

/* A get and a put; the holder of the balance may die as others do. */
static rank_status_t deposit(rank_mem_t mem, int64_t amount)
{
    int64_t balance;
    rank_status_t st = rank_get(&balance, 8, 0, mem, BALANCE * 8);

    if (st)
        return st;
    balance += amount;
    st = rank_put(&balance, 8, 0, mem, BALANCE * 8);
    return st ? st : rank_flush(mem, 0);
}

/* The rounds that were made, all or before a death; *took: the seconds of the call that reported it, or -1. */
static long work(struct lock *lock, rank_mem_t mem, long rounds, int dies, double *took)
{
    int64_t one = 1;
    long made = 0;

    /* Rank 0 may have died of it before it answers: the first round shows it. */
    if (rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, 0, mem, BEGUN * 8, NULL) == RANK_OK)
        rank_flush(mem, 0);
    for (*took = -1; made < rounds || dies >= 0; made++) {
        double begin = rank_wtime();
        rank_status_t st;
        rank_progress(); /* calls on memory of one's own make none, and ranks of other hosts need rank 0 */
        st = lock_acquire(lock);
        if (!st && lock->me == dies && made >= rounds / 2 && all_have_begun(mem))
            raise(SIGKILL);
        if (!st) {
            begin = rank_wtime();
            st = deposit(mem, lock->me + 1);
        }
        if (!st) {
            begin = rank_wtime();
            st = lock_release(lock);
        }
        if (st == RANK_ERR_PEER_DEAD) {
            *took = rank_wtime() - begin;
            return made;
        }
        must(st, "a round");
    }
    return made;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000, made;
    int dies = argc > 3 && strcmp(argv[2], "--die") == 0 ? atoi(argv[3]) : -1;
    int64_t *balance, expected;
    double took;
    struct lock lock;
    rank_mem_t mem;
    int size;

    must(rank_init(NULL), "rank_init");
    size = rank_team_size(rank_world());
    if (rounds < 1)
        rank_abort(2, "account: how many rounds?");
    must(lock_create(rank_world(), &lock), "lock_create");
    must(rank_alloc(rank_world(), RANK_MEM_HOST, WORDS * 8, (void **)&balance, &mem), "rank_alloc");
    if (dies >= size)
        rank_abort(2, "account: --die needs a rank");
    made = work(&lock, mem, rounds, dies, &took);
    if (took >= 0) {
        printf("rank %d: the lock is broken after %ld rounds, for a peer died; reported in %.2f s\n", lock.me, made, took);
        return dies < 0 || rank_finalize() ? 1 : 0;
    }
    must(rank_barrier(rank_world()), "barrier");
    expected = (int64_t)rounds * size * (size + 1) / 2;
    if (lock.me == 0)
        printf("%d ranks, %ld rounds each: the balance is %lld (%s)\n", size, rounds,
               (long long)*balance, *balance == expected ? "right" : "wrong");
    if (lock.me == 0 && *balance != expected)
        rank_abort(1, "account: an update was lost");
    must(rank_free(&mem), "rank_free");
    must(lock_destroy(&lock), "lock_destroy");
    return rank_finalize() ? 1 : 0;
}
