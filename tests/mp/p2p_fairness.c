/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_fairness.c: check that receives from any source serve all senders alike.
 *
 * All ranks send to rank 0 as fast as they can. The counts of its receives agree within a factor of 3, in one of some stretches of
 * time or in all so far. Cores are given out in slices, and a neighbour's load may take one sender off its core for most of a
 * stretch, but not of all. Where senders share cores, one with a slice at the receiver's time sends a hundred times as much as one
 * that waits for its slice: over many slices all have their share. A sender that the library starves is starved in each stretch.
 * Each rank changes its core by chance now and then: one that shares the receiver's core can send no more than a fifo in each of its
 * turns, and the kernel may leave it there for long.
 *
 *   --bytes N
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, STOP = 2, LAST = 3, STRETCHES = 40, RANKS = 64 };
static const double stretch = 0.2;

static void wander(const struct mp *mp)
{
    static cpu_set_t mine;
    static uint64_t last;
    uint64_t now = (uint64_t)(mp_now() * 50), chance = (now * RANKS + (uint64_t)mp->rank) * 0x9e3779b97f4a7c15ull;
    cpu_set_t one;
    int nth;

    chance = (chance ^ chance >> 29) * 0xbf58476d1ce4e5b9ull; /* of each rank by itself */
    chance = (chance ^ chance >> 32) * 0x94d049bb133111ebull;

    if (now == last)
        return;
    last = now;
    if (CPU_COUNT(&mine) == 0)
        MP_CHECK(sched_getaffinity(0, sizeof(mine), &mine) == 0);
    nth = (int)((chance >> 32) % (uint64_t)CPU_COUNT(&mine));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &mine) || nth-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

static bool is_fair(const struct mp *mp, const int64_t *got, int64_t *least, int64_t *most)
{
    *least = *most = got[1];
    for (int r = 2; r < mp->size; r++) {
        *least = got[r] < *least ? got[r] : *least;
        *most = got[r] > *most ? got[r] : *most;
    }
    return *most <= 3 * *least;
}

static void take(struct mp *mp, char *buf, int64_t bytes)
{
    rank_envelope_t env;
    bool fair = false;
    int64_t got[RANKS], all[RANKS] = {0}, least, most;
    int left = mp->size - 1;

    for (int i = 0; i < STRETCHES && !fair; i++) {
        double end = mp_now() + stretch;
        memset(got, 0, sizeof(got));
        while (mp_now() < end) {
            wander(mp);
            for (int k = 0; k < 50; k++) {
                MP_OK(rank_recv(buf, bytes, RANK_BYTE, RANK_ANY_SOURCE, DATA, mp->world, &env));
                got[env.source]++;
            }
        }
        for (int r = 1; r < mp->size; r++)
            all[r] += got[r];
        fair = is_fair(mp, got, &least, &most) || is_fair(mp, all, &least, &most);
    }
    for (int r = 1; r < mp->size; r++)
        MP_OK(rank_send(NULL, 0, RANK_BYTE, r, STOP, mp->world));
    while (left > 0) {
        MP_OK(rank_recv(buf, bytes, RANK_BYTE, RANK_ANY_SOURCE, RANK_ANY_TAG, mp->world, &env));
        left -= env.tag == LAST;
    }
    if (!fair)
        mp_fail(__FILE__, __LINE__, "in %d stretches %lld messages came from one rank and %lld from another",
                STRETCHES, (long long)least, (long long)most);
}

static void give(struct mp *mp, const char *buf, int64_t bytes)
{
    rank_request_t stop;
    int done = 0;

    MP_OK(rank_irecv(NULL, 0, RANK_BYTE, 0, STOP, mp->world, &stop));
    while (!done) {
        wander(mp);
        for (int i = 0; i < 16; i++)
            MP_OK(rank_send(buf, bytes, RANK_BYTE, 0, DATA, mp->world));
        MP_OK(rank_test(&stop, &done, NULL));
    }
    MP_OK(rank_send(buf, 0, RANK_BYTE, 0, LAST, mp->world));
}

int main(int argc, char **argv)
{
    int64_t bytes;
    struct mp mp;
    char *buf;

    mp_start(&mp, &argc, argv);
    MP_CHECK(mp.size >= 2 && mp.size <= RANKS);
    bytes = mp_option(argc, argv, "--bytes", 8);
    buf = mp_alloc((size_t)bytes);
    memset(buf, 0, (size_t)bytes);
    mp_case(&mp, "fair");
    if (mp.rank == 0)
        take(&mp, buf, bytes);
    else
        give(&mp, buf, bytes);
    free(buf);
    mp_end(&mp);
    return 0;
}
