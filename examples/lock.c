/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.c: see lock.h. */
#include "lock.h"

/* Words of each rank's part. Ranks stand there as their number + 1, 0 is none. */
enum { TAIL, NEXT, GRANTED, WORDS };

rank_status_t lock_create(rank_team_t team, struct lock *lock)
{
    void *mine;
    rank_status_t st = rank_alloc(team, RANK_MEM_HOST, WORDS * 8, &mine, &lock->mem);

    lock->mine = mine;
    lock->me = rank_team_rank(team);
    lock->broken = 0;
    return st;
}

rank_status_t lock_destroy(struct lock *lock)
{
    return rank_free(&lock->mem);
}

static rank_status_t signal_rank(struct lock *lock, uint64_t target, int word, uint64_t value)
{
    return rank_put_signal(NULL, 0, (int)target - 1, lock->mem, 0, lock->mem, word * 8, value,
                           RANK_SIGNAL_SET);
}

/* Wait until a rank has written there. A single peer's death does not end it: each rank in between
 * gives up too, and then none is left to write. */
static rank_status_t wait_for(struct lock *lock, int word, uint64_t *value)
{
    rank_status_t st =
        rank_signal_wait(lock->mem, word * 8, RANK_CMP_NE, 0, RANK_ANY_SOURCE, value);

    return st;
}

static rank_status_t acquire(struct lock *lock)
{
    uint64_t me = (uint64_t)lock->me + 1, before, granted;
    rank_status_t st;

    __atomic_store_n(&lock->mine[NEXT], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->mine[GRANTED], 0, __ATOMIC_RELAXED);
    /* behind the last waiter, which is in rank 0's word */
    st = rank_atomic(RANK_AMO_SWAP, RANK_UINT64, &me, 0, lock->mem, TAIL * 8, &before);
    if (st || before == 0)
        return st;
    st = signal_rank(lock, before, NEXT, me);
    return st ? st : wait_for(lock, GRANTED, &granted);
}

static rank_status_t release(struct lock *lock)
{
    uint64_t me = (uint64_t)lock->me + 1, none = 0, was, next;
    rank_status_t st;

    st = rank_atomic_cas(RANK_UINT64, &me, &none, 0, lock->mem, TAIL * 8, &was);
    if (st || was == me)
        return st; /* no rank waits */
    st = wait_for(lock, NEXT, &next); /* it is about to write */
    return st ? st : signal_rank(lock, next, GRANTED, 1);
}

/* Where a death was met: for ever, whichever call met it, as the queue is broken there. */
static rank_status_t keep(struct lock *lock, rank_status_t st)
{
    lock->broken |= st == RANK_ERR_PEER_DEAD;
    return st;
}

rank_status_t lock_acquire(struct lock *lock)
{
    return lock->broken ? RANK_ERR_PEER_DEAD : keep(lock, acquire(lock));
}

rank_status_t lock_release(struct lock *lock)
{
    return keep(lock, release(lock));
}
