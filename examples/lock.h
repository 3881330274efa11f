/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h: lock all ranks of a team out but one.
 *
 * Waiters stand in a queue (the lock of Mellor-Crummey and Scott): each waits for a
 * signal in memory of its own, so that waiting costs the others nothing.
 *
 * It does not hide a death: the holder of the lock may have died, and what it
 * protects be half changed. Each rank that waits, or has to wait later, gets
 * RANK_ERR_PEER_DEAD when a rank of the team has died, and then for ever.
 * What is done under the lock is to be flushed before it is released.
 */
#ifndef EXAMPLES_LOCK_H
#define EXAMPLES_LOCK_H

#include <rank.h>

struct lock {
    rank_mem_t mem;
    uint64_t *mine; /* my words of it */
    int me, broken;
};

/* Both are collective. */
rank_status_t lock_create(rank_team_t team, struct lock *lock);
rank_status_t lock_destroy(struct lock *lock);

rank_status_t lock_acquire(struct lock *lock);
rank_status_t lock_release(struct lock *lock);

#endif
