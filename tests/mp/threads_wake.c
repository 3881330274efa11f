/*
 * threads_wake.c: threads that keep each other from nothing: the progress thread goes on while a callback runs in the one
 * thread that waits, and a thread that sleeps in a wait is woken beside one with an event loop of its own.
 *
 * Rank 0 is looked at, rank 1 answers it.
 */
#include "tests/mp/crew.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { LARGE = 1 << 20, ANSWERS = 40 };

/* -------------------------------------------------------------- while a callback runs */

struct busy {
    _Atomic uint64_t *ended; /* what rank 1 puts into our memory */
    uint64_t round;
    _Atomic uint64_t called;
};

/* Calls nothing until rank 1 has sent a message that only progress of ours can take. */
static void be_busy(const rank_envelope_t *e, void *arg)
{
    struct busy *b = arg;
    double start = mp_now();

    MP_CHECK_EQ(e->status, RANK_OK);
    while (*b->ended < b->round)
        MP_CHECK(mp_now() < start + 20);
    b->called++;
}

static void callbacks(struct crew *crew)
{
    struct mp *mp = crew->mp;
    char *large = calloc(1, LARGE);
    struct busy b = {.called = 0};
    rank_mem_t mem;
    uint64_t *mine;

    mp_case(mp, "while a callback runs");
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8, 0, (void **)&mine, &mem));
    b.ended = (_Atomic uint64_t *)mine;
    for (b.round = 1; b.round <= 20; b.round++) {
        rank_request_t first, second;
        uint64_t word = b.round;

        if (mp->rank == 0) {
            MP_OK(rank_irecv(&word, 1, RANK_UINT64, 1, 1, mp->world, &first));
            MP_OK(rank_irecv(large, LARGE, RANK_BYTE, 1, 2, mp->world, &second));
            MP_OK(rank_on_done(&first, be_busy, &b));
            MP_OK(rank_send(&word, 1, RANK_UINT64, 1, 3, mp->world));
            MP_OK(rank_recv(&word, 1, RANK_UINT64, 1, 4, mp->world, NULL)); /* here it is called, mostly */
            MP_OK(rank_wait(&second, NULL));
            while (b.called < b.round) /* another thread may be in it still; bounded there */
                MP_OK(rank_progress());
        } else if (mp->rank == 1) {
            MP_OK(rank_recv(&word, 1, RANK_UINT64, 0, 3, mp->world, NULL));
            MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 1, mp->world));
            MP_OK(rank_ssend(large, LARGE, RANK_BYTE, 0, 2, mp->world));
            MP_OK(rank_put(&b.round, 8, 0, mem, 0));
            MP_OK(rank_flush(mem, 0));
            MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 4, mp->world));
        }
    }
    MP_OK(rank_free(&mem));
    free(large);
}

/* ------------------------------------------------------------------ beside an event loop */

struct beside {
    _Atomic int answers; /* that have come */
    int slow;
};

static void rest(int ms)
{
    struct timespec t = {0, ms * 1000 * 1000};

    nanosleep(&t, NULL);
}

/* Asks rank 1 over and over, whose answers take so long that we sleep. */
static void ask(struct hand *me, struct beside *b)
{
    uint64_t word = 1;

    while (b->answers < ANSWERS) {
        double start = mp_now();
        MP_OK(rank_send(&word, 1, RANK_UINT64, 1, 1, me->mp->world));
        MP_OK(rank_recv(&word, 1, RANK_UINT64, 1, 1, me->mp->world, NULL));
        b->slow += mp_now() - start > 0.05;
        b->answers++;
    }
}

/* Begins to watch, comes back, and is away until the answer has come. */
static void come_by(struct beside *b)
{
    rank_status_t st;
    int fd;

    MP_OK(rank_progress_fd(&fd));
    while (b->answers < ANSWERS) {
        int before = b->answers;
        double start = mp_now();

        rest(4); /* by now the other sleeps, mostly */
        st = rank_progress_arm();
        MP_CHECK(st == RANK_OK || st == RANK_ERR_AGAIN);
        MP_OK(rank_progress());
        while (b->answers == before && mp_now() < start + 1)
            rest(1);
    }
}

static void answer(struct mp *mp)
{
    uint64_t word;

    for (int i = 0; i < ANSWERS; i++) {
        MP_OK(rank_recv(&word, 1, RANK_UINT64, 0, 1, mp->world, NULL));
        rest(10);
        MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 1, mp->world));
    }
}

static void each(struct hand *me)
{
    if (me->t == 0)
        ask(me, me->arg);
    else
        come_by(me->arg);
}

static void event_loop(struct crew *crew)
{
    struct beside b = {.answers = 0};

    mp_case(crew->mp, "beside an event loop");
    if (crew->mp->rank == 0)
        crew_run(crew, each, &b);
    else if (crew->mp->rank == 1)
        answer(crew->mp);
    /* A lost ring is found after a tenth of a second; a busy machine is late now and then, too. */
    if (b.slow > ANSWERS / 2)
        mp_fail(__FILE__, __LINE__, "of %d answers %d came late", ANSWERS, b.slow);
    mp_barrier(crew->mp->world);
}

int main(int argc, char **argv)
{
    struct crew crew;
    struct mp mp;

    crew_start(&crew, &mp, &argc, argv);
    crew.threads = 2;
    if (mp_flag(argc, argv, "--callbacks"))
        callbacks(&crew);
    else
        event_loop(&crew);
    mp_end(&mp);
    return 0;
}
