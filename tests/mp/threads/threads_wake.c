/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_wake.c: wake sleeping threads, and make progress beside callbacks.
 * The progress thread goes on while a callback runs in the one thread that waits, and when all waits are over. A thread that sleeps in
 * a wait is woken beside one with an event loop of its own, and that loop gets each event that others handle in its place.
 *
 * Rank 0 is tested, rank 1 answers it.
 */
#include "tests/mp/threads/worker_threads.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { LARGE = 1 << 20, ANSWERS = 40, QUESTIONS = 200, TRIES = 5, PROBES = 20, ROUNDS = 20 };

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

static void callbacks(struct workers *workers)
{
    struct mp *mp = workers->mp;
    char *large = calloc(1, LARGE);
    struct busy b = {.called = 0};
    rank_mem_t mem;
    uint64_t *mine;

    mp_case(mp, "while a callback runs");
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8, (void **)&mine, &mem));
    b.ended = (_Atomic uint64_t *)mine;
    for (b.round = 1; b.round <= 20; b.round++) {
        rank_request_t first, second;
        uint64_t word = b.round, in, end;

        if (mp->rank == 0) {
            MP_OK(rank_irecv(&in, 1, RANK_UINT64, 1, 1, mp->world, &first));
            MP_OK(rank_irecv(large, LARGE, RANK_BYTE, 1, 2, mp->world, &second));
            MP_OK(rank_on_done(&first, be_busy, &b));
            MP_OK(rank_send(&word, 1, RANK_UINT64, 1, 3, mp->world));
            MP_OK(rank_recv(&end, 1, RANK_UINT64, 1, 4, mp->world, NULL)); /* here it is called, mostly */
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

static void rest(int ms)
{
    struct timespec t = {0, ms * 1000 * 1000};

    nanosleep(&t, NULL);
}

/* ------------------------------------------------------------- when all waits are over */

struct over {
    _Atomic uint64_t *ended;
    rank_request_t asked;
};

/* Both wait so long that the progress thread sleeps for long, and what they wait for comes at once. Then they call nothing
 * until rank 1 has sent a message that only progress of ours can take. */
static void wait_and_compute(struct hand *me)
{
    struct over *o = me->arg;
    rank_team_t world = me->mp->world;
    uint64_t word = 0, taken;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        double start;

        if (me->t == 0) {
            MP_OK(rank_irecv(&taken, 1, RANK_UINT64, 1, 8, world, &o->asked));
            MP_OK(rank_send(&round, 1, RANK_UINT64, 1, 5, world));
        }
        MP_OK(rank_recv(&word, 1, RANK_UINT64, 1, 6 + me->t, world, NULL));
        MP_CHECK_EQ(word, round);
        start = mp_now();
        while (*o->ended < round) {
            MP_CHECK(mp_now() < start + 20);
            rest(1); /* the cores are for the others, which would be late else */
        }
        if (me->t == 0)
            MP_OK(rank_wait(&o->asked, NULL));
    }
}

static void after_waits(struct workers *workers)
{
    struct mp *mp = workers->mp;
    rank_mem_t mem;
    uint64_t *mine;
    struct over o;
    int late = 0;

    mp_case(mp, "when all waits are over");
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8, (void **)&mine, &mem));
    o.ended = (_Atomic uint64_t *)mine;
    if (mp->rank == 0)
        workers_run(workers, wait_and_compute, &o);
    for (uint64_t round = 1; mp->rank == 1 && round <= ROUNDS; round++) {
        uint64_t word;
        double start;

        MP_OK(rank_recv(&word, 1, RANK_UINT64, 0, 5, mp->world, NULL));
        rest(25);
        MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 6, mp->world));
        MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 7, mp->world));
        rest(3); /* by then both are back, mostly */
        start = mp_now();
        MP_OK(rank_ssend(&word, 1, RANK_UINT64, 0, 8, mp->world));
        late += mp_now() - start > 0.05;
        MP_OK(rank_put(&round, 8, 0, mem, 0));
        MP_OK(rank_flush(mem, 0));
    }
    /* A thread that is not woken polls after a tenth of a second, in nearly each round; a busy machine is late now and then, too. */
    if (late > ROUNDS * 3 / 4)
        mp_fail(__FILE__, __LINE__, "of %d messages %d were taken late", ROUNDS, late);
    MP_OK(rank_free(&mem));
}

/* ------------------------------------------------------------------ beside an event loop */

struct beside {
    _Atomic int answers; /* that have come */
    int slow;
};

/* Send requests to rank 1, with replies that take so long that this thread sleeps. */
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

static void event_loop(struct workers *workers)
{
    struct beside b = {.answers = 0};

    mp_case(workers->mp, "beside an event loop");
    if (workers->mp->rank == 0)
        workers_run(workers, each, &b);
    else if (workers->mp->rank == 1)
        answer(workers->mp);
    /* A lost wake is found after a tenth of a second; a busy machine is late now and then, too. */
    if (b.slow > ANSWERS / 2)
        mp_fail(__FILE__, __LINE__, "of %d answers %d came late", ANSWERS, b.slow);
    mp_barrier(workers->mp->world);
}

/* --------------------------------------------------------- in the event loop's place */

struct place {
    rank_team_t team; /* of this rank alone */
    pthread_barrier_t meet;
    _Atomic int asked, done;
    int late;
    rank_mem_t mem; /* a signal that this rank gives to itself */
    uint64_t *signal;
    double given;
};

static int descriptor(void)
{
    int fd;

    MP_OK(rank_progress_fd(&fd));
    return fd;
}

static void arm(void)
{
    rank_status_t st;

    while ((st = rank_progress_arm()) == RANK_ERR_AGAIN)
        ;
    MP_OK(st);
}

/* False: there was something, poll again. */
static bool armed(void)
{
    rank_status_t st = rank_progress_arm();

    if (st != RANK_ERR_AGAIN)
        MP_OK(st);
    return st == RANK_OK;
}

/* Whatever happens, it does so by itself after an eighth of a second: later than this is never. True: earlier. */
static bool sleep_on(int fd)
{
    double start = mp_now();

    MP_CHECK_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000), 1);
    return mp_now() - start < 0.1;
}

/* One watches all the time, the other sleeps and takes the wakes. */
static void beside_sleeps(struct hand *me)
{
    struct place *p = me->arg;
    uint64_t word = 1;

    if (me->t == 0) {
        int fd = descriptor();
        while (p->asked < QUESTIONS) {
            arm();
            sleep_on(fd);
            MP_OK(rank_progress());
        }
        return;
    }
    for (; p->asked < QUESTIONS; p->asked++) {
        MP_OK(rank_send(&word, 1, RANK_UINT64, 1, 1, me->mp->world));
        MP_OK(rank_recv(&word, 1, RANK_UINT64, 1, 1, me->mp->world, NULL));
    }
}

/* Progress of another's is no reason to sleep for ever. */
static void beside_progress(struct hand *me)
{
    struct place *p = me->arg;

    for (int i = 0; i < 3; i++) {
        if (me->t == 0)
            arm();
        pthread_barrier_wait(&p->meet);
        if (me->t == 1)
            MP_OK(rank_progress());
        pthread_barrier_wait(&p->meet);
        if (me->t == 0)
            sleep_on(descriptor());
    }
}

/* The other does what is waited for, by a send to itself on the world or on a team of its own. */
static void beside_sends(struct hand *me)
{
    struct place *p = me->arg;
    uint64_t word = 1;
    int fd = descriptor(), done;

    for (int i = 0; i < 2 * TRIES; i++) {
        rank_team_t team = i % 2 ? p->team : me->mp->world;
        rank_request_t req;

        if (me->t == 0) {
            MP_OK(rank_irecv(&word, 1, RANK_UINT64, rank_team_rank(team), 1, team, &req));
            arm();
        }
        pthread_barrier_wait(&p->meet);
        if (me->t == 1) {
            MP_OK(rank_send(&word, 1, RANK_UINT64, rank_team_rank(team), 1, team));
        } else {
            for (done = 0; !done;) {
                p->late += !sleep_on(fd);
                MP_OK(rank_progress());
                do
                    MP_OK(rank_test(&req, &done, NULL));
                while (!done && !armed());
            }
        }
    }
}

/* The other thread signals its own rank: a thread that waits for that sleeps, or watches. */
static void beside_signals(struct hand *me)
{
    struct place *p = me->arg;
    int fd = descriptor();

    for (uint64_t i = 1; i <= 2 * TRIES; i++) {
        if (me->t == 0 && i % 2)
            arm();
        pthread_barrier_wait(&p->meet);
        if (me->t == 1) {
            rest(10);
            p->given = mp_now();
            MP_OK(rank_put_signal(NULL, 0, me->mp->rank, p->mem, 0, p->mem, 0, i, RANK_SIGNAL_SET));
        } else if (i % 2) {
            do
                p->late += !sleep_on(fd);
            while (__atomic_load_n(p->signal, __ATOMIC_ACQUIRE) < i && (arm(), true));
            MP_OK(rank_progress());
        } else {
            MP_OK(rank_signal_wait(p->mem, 0, RANK_CMP_GE, i, me->mp->rank, NULL));
            p->late += mp_now() - p->given > 0.05;
        }
        pthread_barrier_wait(&p->meet);
    }
}

/* The other thread does it between the last poll and the arming: the arming reports it, and no thread sleeps. */
static void before_arming(struct hand *me)
{
    struct place *p = me->arg;
    uint64_t word = 1;

    for (int i = 0, done; i < 2 * TRIES; i++) {
        rank_team_t team = i % 2 ? p->team : me->mp->world;
        rank_request_t req = RANK_REQUEST_NULL;

        if (me->t == 0) {
            MP_OK(rank_irecv(&word, 1, RANK_UINT64, rank_team_rank(team), 1, team, &req));
            arm();
            MP_OK(rank_progress());
            MP_OK(rank_test(&req, &done, NULL));
            MP_CHECK(!done);
        }
        pthread_barrier_wait(&p->meet);
        if (me->t == 1)
            MP_OK(rank_send(&word, 1, RANK_UINT64, rank_team_rank(team), 1, team));
        pthread_barrier_wait(&p->meet);
        if (me->t == 0) {
            MP_STATUS(rank_progress_arm(), RANK_ERR_AGAIN);
            MP_OK(rank_test(&req, &done, NULL));
            MP_CHECK(done);
        }
    }
}

/* The other never waits, but its probes take what comes. */
static void beside_probes(struct hand *me)
{
    struct place *p = me->arg;
    uint64_t word = 1;
    int fd = descriptor(), found;

    while (me->t == 1 && !p->done)
        MP_OK(rank_iprobe(1, 99, me->mp->world, &found, NULL));
    for (int i = 0, done; me->t == 0 && i < PROBES; i++) {
        rank_request_t req;
        MP_OK(rank_irecv(&word, 1, RANK_UINT64, 1, 1, me->mp->world, &req));
        MP_OK(rank_send(&word, 1, RANK_UINT64, 1, 1, me->mp->world));
        for (done = 0; !done;) {
            MP_OK(rank_test(&req, &done, NULL));
            if (!done && armed())
                p->late += !sleep_on(fd);
        }
    }
    p->done = 1;
}

static void answer_at_once(struct mp *mp, int n)
{
    uint64_t word;

    for (int i = 0; i < n; i++) {
        MP_OK(rank_recv(&word, 1, RANK_UINT64, 0, 1, mp->world, NULL));
        rest(i % 2);
        MP_OK(rank_send(&word, 1, RANK_UINT64, 0, 1, mp->world));
    }
}

/* A busy machine is late now and then. */
static void in_time(struct place *p, int n)
{
    if (p->late > n / 2)
        mp_fail(__FILE__, __LINE__, "of %d times %d were late", n, p->late);
    p->late = 0;
}

static void in_its_place(struct workers *workers)
{
    struct mp *mp = workers->mp;
    struct place p = {.late = 0};

    mp_case(mp, "in the event loop's place");
    MP_OK(rank_team_split(mp->world, mp->rank, 0, &p.team));
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8, (void **)&p.signal, &p.mem));
    pthread_barrier_init(&p.meet, NULL, 2);
    if (mp->rank == 0) {
        workers_run(workers, beside_sleeps, &p);
        workers_run(workers, beside_progress, &p);
        workers_run(workers, beside_sends, &p);
        in_time(&p, 2 * TRIES);
        workers_run(workers, beside_signals, &p);
        in_time(&p, 2 * TRIES);
        workers_run(workers, before_arming, &p);
        workers_run(workers, beside_probes, &p);
        in_time(&p, PROBES);
    } else if (mp->rank == 1) {
        answer_at_once(mp, QUESTIONS + PROBES);
    }
    pthread_barrier_destroy(&p.meet);
    MP_OK(rank_free(&p.mem));
    MP_OK(rank_team_free(&p.team));
    mp_barrier(mp->world);
}

int main(int argc, char **argv)
{
    struct workers workers;
    struct mp mp;

    workers_start(&workers, &mp, &argc, argv);
    workers.threads = 2;
    if (mp_flag(argc, argv, "--callbacks")) {
        callbacks(&workers);
        after_waits(&workers);
    } else {
        event_loop(&workers);
        in_its_place(&workers);
    }
    mp_end(&mp);
    return 0;
}
