/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_p2p.h: stand in for lib/p2p below schedules, without channels.
 * The ranks of a team are in one process.
 *
 * A send meets its receive some time after both are there, in random order
 * (fake_deliver). Sends are synchronous on demand: they complete when they
 * are received, so that a schedule that would wait in a circle does so here.
 */
#ifndef TESTS_COLL_FAKE_P2P_H
#define TESTS_COLL_FAKE_P2P_H

#include "collectives/algo.h"

enum { FAKE_MAX = 64 };

struct fake_world {
    struct rk_ctx ctx;
    struct rk_scheds scheds;
    struct rank_team team[FAKE_MAX];
    int size;
    bool synchronous;
    uint64_t seed;
    struct rk_link sends[FAKE_MAX], recvs[FAKE_MAX]; /* to each rank, by request link */
    int nsends, nrecvs, recvs_of[FAKE_MAX];
    long delivered;
};

void fake_open(struct fake_world *w, int size, bool synchronous, uint64_t seed);
void fake_close(struct fake_world *w);
/* Let one random pair of send and receive meet; false if none can. */
bool fake_deliver(struct fake_world *w);
/* Deliver all that can be. */
void fake_run(struct fake_world *w);

#endif
