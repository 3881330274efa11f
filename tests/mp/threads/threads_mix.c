/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_mix.c: run all calls at random at RANK_THREAD_MULTIPLE.
 * Threads of two ranks use their own team and a common one, while a third rank dies.
 *
 * Thread t of rank 0 and thread t of rank 1 draw the same steps from one seed, which the run prints: those of conn_steps.h,
 * probes that take what comes, callbacks, cancelled receives, a common counter, messages to oneself. One more thread of each
 * talks to rank 2 until that is dead.
 *
 * --seconds N: how long (2); --threads N; --seed N
 */
#include "tests/conn/conn_steps.h"
#include "tests/mp/threads/worker_threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 100 * 1000, HERD = 6 };

struct mix {
    double dies, ends;
    rank_team_t pair;           /* of ranks 0 and 1, all threads' */
    rank_team_t own[WORKERS_MAX];  /* of them, a thread's */
    rank_team_t self[WORKERS_MAX]; /* of this rank */
    rank_mem_t mem;
    char *mine;
    _Atomic uint64_t counted;   /* fetch-adds of this rank's threads */
    _Atomic uint64_t taken, sent; /* the herd: sums of what was taken, and sent */
    _Atomic int called;
};

struct part {
    struct hand *hand;
    struct mix *mix;
    struct mp *mp;
    rank_team_t team;
    int t, other;
    uint64_t common; /* the partner's, too */
    struct steps steps;
    char *in, *out;
};

/* On the common team any thread's message is as good as mine: as many are received as are sent, and none twice. */
static void herd(struct part *p)
{
    uint64_t value, out[HERD];
    rank_request_t req[HERD];
    rank_message_t message;
    rank_envelope_t e = {0};

    for (int i = 0; i < HERD; i++) {
        out[i] = mp_random(&p->hand->random) >> 20;
        atomic_fetch_add(&p->mix->sent, out[i]);
        MP_OK(rank_isend(&out[i], 1, RANK_UINT64, p->other, 1 + p->t, p->mix->pair, &req[i]));
    }
    for (int i = 0; i < HERD; i++) {
        MP_OK(rank_mprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, p->mix->pair, &message, &e));
        MP_CHECK_EQ(e.source, p->other);
        MP_OK(rank_mrecv(&value, 1, RANK_UINT64, &message, NULL));
        atomic_fetch_add(&p->mix->taken, value);
    }
    MP_OK(rank_waitall(HERD, req, NULL));
}

/* One counter of all threads. */
static void count(struct part *p)
{
    uint64_t one = 1, was;

    MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &one, 0, p->mix->mem, 0, &was));
    MP_OK(rank_flush(p->mix->mem, RANK_ALL));
    atomic_fetch_add(&p->mix->counted, 1);
}

static void step(struct part *p)
{
    steps_next(&p->steps);
}

static void count_one(const rank_envelope_t *e, void *arg)
{
    struct mix *mix = arg;

    MP_CHECK_EQ(e->status, RANK_OK);
    mix->called++;
}

/* Only the callback waits for these. The buffers have to stay. */
static void called_back(struct part *p)
{
    rank_request_t req;
    uint64_t in = 0, out = 7;
    int64_t at = -1;

    MP_OK(rank_irecv(NULL, 0, RANK_BYTE, p->other, 4, p->team, &req));
    MP_OK(rank_on_done(&req, count_one, p->mix));
    MP_OK(rank_send(NULL, 0, RANK_BYTE, p->other, 4, p->team));
    /* One that never comes is cancelled. */
    MP_OK(rank_irecv(&at, 1, RANK_INT64, p->other, 5, p->team, &req));
    MP_OK(rank_cancel(&req));
    MP_STATUS(rank_wait(&req, NULL), RANK_ERR_CANCELED);
    MP_OK(rank_sendrecv(&out, 1, RANK_UINT64, 0, 6, &in, 1, RANK_UINT64, 0, 6, p->mix->self[p->t], NULL));
    MP_OK(rank_sendrecv(&out, 1, RANK_UINT64, p->mp->rank, 6, &in, 1, RANK_UINT64, p->mp->rank, 6, p->team, NULL));
    MP_CHECK_EQ(in, 7);
}

static void until_dead(struct part *p)
{
    rank_status_t st = RANK_OK;
    uint64_t word = 1;

    for (uint64_t i = 0; st == RANK_OK; i++) {
        MP_CHECK(mp_now() < p->mix->dies + 20);
        if (i % 3 == 0) {
            rank_request_t req[2];
            MP_OK(rank_irecv(p->in, LONG, RANK_BYTE, 2, 1, p->mp->world, &req[0]));
            MP_OK(rank_isend(p->out, LONG, RANK_BYTE, 2, 1, p->mp->world, &req[1]));
            st = rank_waitall(2, req, NULL);
        } else {
            st = rank_send(&word, 1, RANK_UINT64, 2, 1, p->mp->world);
            if (!st)
                st = rank_recv(&word, 1, RANK_UINT64, i % 3 == 1 ? 2 : RANK_ANY_SOURCE, 1, p->mp->world, NULL);
        }
    }
    MP_CHECK_EQ(st, RANK_ERR_PEER_DEAD);
}

static void play(struct hand *me)
{
    static void (*const steps[])(struct part *) = {step, step, step, herd, count, called_back};
    struct mix *mix = me->arg;
    struct part p = {.hand = me, .mix = mix, .mp = me->mp, .t = me->t, .team = mix->own[me->t],
                     .other = 1 - me->mp->rank, .common = me->mp->seed * 77 + (uint64_t)me->t};

    p.in = mp_alloc(LONG);
    p.out = calloc(1, LONG);
    if (me->t == me->workers->threads - 1) {
        until_dead(&p);
    } else {
        steps_open(&p.steps, RANK_CTX_NULL, p.team, p.common);
        p.steps.source = p.other;
        p.steps.size_bits = 16;
        /* Rank 0 decides whether it goes on. */
        for (int more = 1; more;) {
            for (int i = 0; i < 20; i++)
                steps[mp_below(&p.common, sizeof(steps) / sizeof(steps[0]))](&p);
            more = mp_now() < mix->ends;
            MP_OK(rank_bcast(&more, 1, RANK_INT32, 0, p.team));
        }
        steps_close(&p.steps);
    }
    free(p.in);
    free(p.out);
}

/* Rank 2 answers all that comes, until it dies. */
static void serve(struct mp *mp, struct mix *mix)
{
    char *in = mp_alloc(LONG);
    rank_envelope_t e = {0};

    mp_die_at(&mix->dies);
    for (;;) {
        MP_OK(rank_recv(in, LONG, RANK_BYTE, RANK_ANY_SOURCE, 1, mp->world, &e));
        MP_OK(rank_send(in, e.bytes, RANK_BYTE, e.source, 1, mp->world));
    }
}

static void check_sums(struct mix *mix)
{
    uint64_t mine[3] = {mix->counted, mix->sent, mix->taken}, all[3], counter;

    MP_OK(rank_allreduce(mine, all, 3, RANK_UINT64, RANK_SUM, mix->pair));
    MP_CHECK_EQ(all[1], all[2]);
    MP_OK(rank_get(&counter, 8, 0, mix->mem, 0));
    MP_CHECK_EQ(counter, all[0]);
    MP_OK(rank_barrier(mix->pair));
}

int main(int argc, char **argv)
{
    static struct mix mix; /* the time has to stay for mp_die_at */
    struct workers workers;
    struct mp mp;
    double seconds;

    workers_start(&workers, &mp, &argc, argv);
    MP_CHECK_EQ(mp.size, 3);
    seconds = (double)mp_option(argc, argv, "--seconds", 2);
    workers.threads++;
    if (mp.rank == 0)
        printf("seed %llu\n", (unsigned long long)mp.seed);
    for (int t = 0; t < workers.threads; t++) {
        MP_OK(rank_team_split(mp.world, mp.rank == 2, 0, &mix.own[t]));
        MP_OK(rank_team_split(mp.world, mp.rank, 0, &mix.self[t]));
    }
    MP_OK(rank_team_split(mp.world, mp.rank == 2, 0, &mix.pair));
    MP_OK(rank_alloc(mix.pair, RANK_MEM_HOST, 4096, (void **)&mix.mine, &mix.mem));
    mp_case(&mp, "mix");
    mix.dies = mp_now() + seconds / 2;
    mix.ends = mp_now() + seconds;
    if (mp.rank == 2)
        serve(&mp, &mix);
    workers_run(&workers, play, &mix);
    check_sums(&mix);
    mp_end_survivor(&mp);
    return 0;
}
