/*
 * account.c: all ranks change one balance, each with the lock in hand.
 *
 *     xcc account.c lock.c -o account && xrun -n 4 ./account [rounds]
 *     xrun -n 4 --on-failure continue ./account 1000 --die 2
 *
 * The balance lies at rank 0 and is changed by a get and a put, which nobody
 * may come between. With --die that rank is killed with the lock in its hands, and the others
 * learn it.
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

static void deposit(rank_mem_t mem, int64_t amount)
{
    int64_t balance;

    must(rank_get(&balance, 8, 0, mem, 0), "get");
    balance += amount;
    must(rank_put(&balance, 8, 0, mem, 0), "put");
    must(rank_flush(mem, 0), "flush");
}

/* The rounds that were made before somebody died. */
static long work(struct lock *lock, rank_mem_t mem, long rounds, int dies)
{
    for (long i = 0; i < rounds; i++) {
        rank_status_t st = lock_acquire(lock);
        if (st == RANK_ERR_PEER_DEAD)
            return i;
        must(st, "acquire");
        deposit(mem, lock->me + 1);
        if (lock->me == dies && i == rounds / 2)
            raise(SIGKILL);
        st = lock_release(lock);
        if (st == RANK_ERR_PEER_DEAD)
            return i + 1;
        must(st, "release");
    }
    return rounds;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000, made;
    int dies = argc > 3 && strcmp(argv[2], "--die") == 0 ? atoi(argv[3]) : -1;
    int64_t *balance, expected;
    struct lock lock;
    rank_mem_t mem;
    int size;

    must(rank_init(NULL), "rank_init");
    size = rank_team_size(rank_world());
    if (rounds < 1)
        rank_abort(2, "account: how many rounds?");
    must(lock_create(rank_world(), &lock), "lock_create");
    must(rank_alloc(rank_world(), RANK_MEM_HOST, 8, 0, (void **)&balance, &mem), "rank_alloc");
    made = work(&lock, mem, rounds, dies);
    if (dies >= 0) {
        printf("rank %d: the lock is broken after %ld rounds, for a peer died\n", lock.me, made);
        return rank_finalize() || made == rounds ? 1 : 0;
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
