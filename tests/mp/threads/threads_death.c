/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_death.c: kill a rank while threads of the others wait for it.
 * Each thread waits in another way; all waits end, and soon. Threads that wait for living ranks go on.
 */
#include "tests/mp/threads/worker_threads.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { KINDS = 11, SHARED = 8 /* and the kinds behind use its team, too */ };

struct scene {
    int victim;
    double dies; /* when */
    rank_team_t team[WORKERS_MAX];
    rank_mem_t mem;
    _Atomic int ended; /* threads with a wait that ended with the death */
};

static void wait_somehow(struct hand *me)
{
    struct scene *s = me->arg;
    struct mp *mp = me->mp;
    char *big = mp_alloc(1 << 20);
    rank_request_t req[2];
    rank_message_t message;
    rank_envelope_t e;
    uint64_t in, other;
    int64_t index;

    switch (me->t) {
    case 0:
        MP_STATUS(rank_recv(&in, 1, RANK_UINT64, s->victim, 1, mp->world, NULL), RANK_ERR_PEER_DEAD);
        break;
    case 1:
        MP_OK(rank_irecv(&in, 1, RANK_UINT64, s->victim, 2, mp->world, &req[0]));
        MP_OK(rank_isend(big, 1 << 20, RANK_BYTE, s->victim, 2, mp->world, &req[1]));
        MP_STATUS(rank_waitall(2, req, NULL), RANK_ERR_PEER_DEAD);
        break;
    case 2:
        MP_STATUS(rank_barrier(s->team[me->t]), RANK_ERR_PEER_DEAD);
        break;
    case 3:
        MP_STATUS(rank_mprobe(s->victim, 3, s->team[me->t], &message, &e), RANK_ERR_PEER_DEAD);
        break;
    case 4:
        MP_STATUS(rank_recv(&in, 1, RANK_UINT64, RANK_ANY_SOURCE, 4, s->team[me->t], NULL), RANK_ERR_PEER_DEAD);
        break;
    case 5:
        MP_OK(rank_irecv(&in, 1, RANK_UINT64, s->victim, 5, mp->world, &req[0]));
        MP_OK(rank_irecv(&other, 1, RANK_UINT64, s->victim, 6, mp->world, &req[1]));
        MP_STATUS(rank_waitany(2, req, &index, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_wait(&req[1 - index], NULL), RANK_ERR_PEER_DEAD);
        break;
    case 6:
        MP_STATUS(rank_wait_until(s->mem, 0, RANK_CMP_NE, 0), RANK_ERR_PEER_DEAD);
        break;
    case SHARED: /* each wait for any source reports it */
        if (s->dies - mp_now() > 0.2) /* not too late for that */
            MP_STATUS(rank_probe(RANK_ANY_SOURCE, 8, s->team[SHARED], NULL), RANK_ERR_PEER_DEAD);
        break;
    case SHARED + 1:
        if (s->dies - mp_now() > 0.2)
            MP_STATUS(rank_mprobe(RANK_ANY_SOURCE, 8, s->team[SHARED], &message, &e), RANK_ERR_PEER_DEAD);
        break;
    case SHARED + 2:
        MP_OK(rank_irecv(&in, 1, RANK_UINT64, RANK_ANY_SOURCE, 9, s->team[SHARED], &req[0]));
        if (s->dies - mp_now() > 0.2)
            MP_STATUS(rank_wait(&req[0], NULL), RANK_ERR_PEER_DEAD);
        break;
    default: { /* messages to ourselves go on, before and after */
        uint64_t out = 7;
        do {
            MP_OK(rank_sendrecv(&out, 1, RANK_UINT64, mp->rank, 7, &in, 1, RANK_UINT64, mp->rank, 7, mp->world, NULL));
        } while (s->ended < KINDS - 1 && mp_now() < s->dies + 10);
        break;
    }
    }
    s->ended++;
    free(big);
}

int main(int argc, char **argv)
{
    static struct scene s; /* the time has to stay for mp_die_at */
    struct workers workers;
    uint64_t *mine;
    struct mp mp;

    workers_start(&workers, &mp, &argc, argv);
    workers.threads = KINDS;
    s.victim = mp.size - 1;
    for (int t = 0; t < KINDS; t++)
        MP_OK(rank_team_dup(mp.world, &s.team[t]));
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 8, (void **)&mine, &s.mem));
    mp_case(&mp, "death");
    s.dies = mp_now() + 0.5;
    if (mp.rank == s.victim) {
        mp_die_at(&s.dies);
        while (mp_now() < s.dies + 60) /* not in a call */
            ;
    }
    workers_run(&workers, wait_somehow, &s);
    MP_CHECK_EQ(s.ended, KINDS);
    MP_CHECK(mp_now() < s.dies + 5);
    mp_end_survivor(&mp);
    return 0;
}
