/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_loop.c: run the library in an event loop of the program's own.
 *
 * The loop is one epoll over rank_progress_fd and a timer. A token goes round, with pauses; no rank spins, and no message is slept
 * through.
 *
 * --idle MS: how long the idle part lasts (1000)
 * --stalled: only a long message, which stops on its way as long as its receiver computes
 */
#include "tests/mp/mp.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 3, LAPS = 40 };

struct loop {
    struct mp *mp;
    int epoll, timer, lib;
    int64_t token, out, laps, wakes, ticks;
    rank_request_t recv;
};

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set_timer(struct loop *l, int64_t ms)
{
    struct itimerspec t = {.it_value = {ms / 1000, ms % 1000 * 1000000},
                           .it_interval = {ms / 1000, ms % 1000 * 1000000}};

    MP_CHECK(timerfd_settime(l->timer, 0, &t, NULL) == 0);
}

static void watch(struct loop *l, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

    MP_CHECK(epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == 0);
}

static int before(const struct mp *mp) { return (mp->rank - 1 + mp->size) % mp->size; }

static void pass(struct loop *l)
{
    rank_request_t send;

    l->out = l->token + 1;
    MP_OK(rank_isend(&l->out, 1, RANK_INT64, (l->mp->rank + 1) % l->mp->size, TAG, l->mp->world,
                     &send));
    MP_OK(rank_wait(&send, NULL)); /* small: it has left */
}

/* Has the token come? Then it goes on. */
static bool look(struct loop *l)
{
    int done;

    if (!l->recv)
        return false;
    MP_OK(rank_test(&l->recv, &done, NULL));
    if (!done)
        return false;
    if (++l->laps < LAPS || l->mp->rank != 0)
        pass(l);
    if (l->laps < LAPS)
        MP_OK(rank_irecv(&l->token, 1, RANK_INT64, before(l->mp), TAG, l->mp->world, &l->recv));
    return true;
}

/* Sleep until something is there, at most ms. */
static void step(struct loop *l, int ms)
{
    struct epoll_event ev[4];
    uint64_t expired;
    rank_status_t st;
    int n;

    do {
        while (look(l))
            ;
        st = rank_progress_arm();
    } while (st == RANK_ERR_AGAIN);
    MP_OK(st);
    if (l->laps == LAPS && l->recv == RANK_REQUEST_NULL && ms > 1000)
        return; /* that was the last */
    n = epoll_wait(l->epoll, ev, 4, ms);
    for (int i = 0; i < n; i++) {
        if (ev[i].data.fd == l->timer) {
            MP_CHECK(read(l->timer, &expired, sizeof(expired)) == sizeof(expired));
            l->ticks += (int64_t)expired;
        } else {
            l->wakes++;
        }
    }
    MP_OK(rank_progress());
}

static void round_and_round(struct loop *l)
{
    double end = mp_now() + 60;

    l->laps = 0;
    MP_OK(rank_irecv(&l->token, 1, RANK_INT64, before(l->mp), TAG, l->mp->world, &l->recv));
    if (l->mp->rank == 0)
        pass(l);
    while (l->laps < LAPS) {
        step(l, 10000);
        MP_CHECK(mp_now() < end);
    }
}

/* Nothing to do but the timer's ticks: next to no time is used. */
static void idle(struct loop *l, int64_t ms)
{
    double cpu, begin;

    mp_barrier(l->mp->world);
    l->recv = RANK_REQUEST_NULL;
    set_timer(l, 50);
    for (double settled = mp_now() + 0.3; mp_now() < settled;)
        step(l, 100);
    /* What a machine takes away from a process that runs, counts as its time: not three times in turn. */
    for (int tries = 3; tries > 0; tries--) {
        l->ticks = l->wakes = 0;
        begin = mp_now();
        cpu = cpu_seconds();
        while (mp_now() - begin < (double)ms * 1e-3)
            step(l, 1000);
        cpu = (cpu_seconds() - cpu) / (mp_now() - begin);
        printf("rank %d: %.2f %% of a core, %lld ticks, %lld wakes\n", l->mp->rank, cpu * 100, (long long)l->ticks,
               (long long)l->wakes);
        if (cpu < 0.02)
            break;
    }
    set_timer(l, 0);
    MP_CHECK(l->ticks >= 5);
    MP_CHECK(l->wakes < 100);
#if !defined(__SANITIZE_THREAD__)
    MP_CHECK(cpu < 0.02);
#endif
}

/* One rank sleeps in poll(); the others send after a while: it wakes at once. */
static void wake_up(struct loop *l)
{
    struct pollfd p = {.fd = l->lib, .events = POLLIN};
    struct mp *mp = l->mp;
    double begin;
    int64_t x = 5;

    if (mp->size < 2)
        return;
    if (mp->rank == 0) {
        rank_request_t req;
        int done = 0;
        MP_OK(rank_irecv(&x, 1, RANK_INT64, 1, TAG + 1, mp->world, &req));
        begin = mp_now();
        while (!done) {
            if (rank_progress_arm() == RANK_OK)
                MP_CHECK(poll(&p, 1, 10000) == 1);
            MP_OK(rank_test(&req, &done, NULL));
            MP_CHECK(mp_now() < begin + 20);
        }
        MP_CHECK_EQ(x, 17);
    } else if (mp->rank == 1) {
        struct timespec pause = {0, 300 * 1000 * 1000}; /* so that the other one surely sleeps */
        nanosleep(&pause, NULL);
        x = 17;
        MP_OK(rank_send(&x, 1, RANK_INT64, 0, TAG + 1, mp->world));
    }
    mp_barrier(mp->world);
}

enum { FLOOD = 20000, BUSY_MS = 700 };

/* Rank 1 computes while rank 0's sends to it wait for room: rank 0 sleeps nearly all of the time, in a call
 * (by_loop: in its own loop), and notices when there is room. */
static void wait_for_room(struct loop *l, bool by_loop)
{
    static int64_t value[FLOOD];
    static rank_request_t reqs[FLOOD];
    double begin, cpu, end, spent;

    mp_barrier(l->mp->world);
    if (l->mp->rank == 1) {
        struct timespec busy = {0, BUSY_MS * 1000000};
        nanosleep(&busy, NULL);
        for (int i = 0; i < FLOOD; i++) {
            MP_OK(rank_recv(&value[i], 1, RANK_INT64, 0, TAG, l->mp->world, NULL));
            MP_CHECK_EQ(value[i], i);
        }
    } else if (l->mp->rank == 0) {
        for (int i = 0; i < FLOOD; i++) {
            value[i] = i;
            MP_OK(rank_isend(&value[i], 1, RANK_INT64, 1, TAG, l->mp->world, &reqs[i]));
        }
        begin = mp_now();
        cpu = cpu_seconds();
        for (int done = 0; by_loop && !done;) {
            struct epoll_event ev;
            rank_status_t st = rank_progress_arm();
            MP_CHECK(st == RANK_OK || st == RANK_ERR_AGAIN);
            MP_OK(rank_test(&reqs[FLOOD - 1], &done, NULL));
            if (!done && (st = rank_progress_arm()) == RANK_OK)
                MP_CHECK(epoll_wait(l->epoll, &ev, 1, 10000) >= 0);
            MP_CHECK(mp_now() - begin < 60);
        }
        MP_OK(rank_wait(&reqs[FLOOD - 1], NULL));
        end = mp_now();
        spent = cpu_seconds() - cpu;
        /* Else there was room for all of it. UCX does not let us sleep while a queue of its own is
         * full. */
        if (end - begin > 0.5 * BUSY_MS / 1000 && !strcmp(rank_channel_name(l->mp->world, 1), "shm"))
            MP_CHECK(spent < 0.15 * (end - begin));
        MP_OK(rank_waitall(FLOOD, reqs, NULL));
    }
    mp_barrier(l->mp->world);
}

enum { STREAM = 4 << 20, STALL_MS = 300 };

/* Until there was a tick of our timer; returns how long it took. */
static double until_tick(struct loop *l)
{
    double begin = mp_now();

    l->ticks = 0;
    set_timer(l, STALL_MS);
    while (l->ticks == 0)
        step(l, 1000);
    set_timer(l, 0);
    return mp_now() - begin;
}

/* Rank 1 has posted a receive for a long message of rank 0's, and calls nothing. by_loop: until rank 0's timer has been served: the library does
 * not keep rank 0 from that. Else for a while, and rank 0 waits in a call. It sleeps nearly all of the time. */
static void stalled_stream(struct loop *l, bool by_loop)
{
    struct mp *mp = l->mp;
    char *buf = mp_alloc(STREAM);
    const struct timespec pause = {0, 1000000}, busy = {0, 2 * STALL_MS * 1000000};
    uint64_t *mine, one = 1;
    rank_request_t req;
    rank_mem_t mem;
    int64_t x = 1;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&mine, &mem));
    *mine = 0;
    mp_barrier(mp->world);
    if (mp->rank == 1) {
        double end = mp_now() + 30;
        MP_OK(rank_irecv(buf, STREAM, RANK_BYTE, 0, TAG, mp->world, &req));
        MP_OK(rank_recv(&x, 1, RANK_INT64, 0, TAG + 1, mp->world, NULL)); /* it was sent behind the other */
        if (!by_loop)
            nanosleep(&busy, NULL);
        while (by_loop && !__atomic_load_n(mine, __ATOMIC_ACQUIRE)) {
            nanosleep(&pause, NULL);
            MP_CHECK(mp_now() < end);
        }
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK_EQ(mp_verify(buf, STREAM, 5), -1);
    } else if (mp->rank == 0) {
        double begin = mp_now(), cpu, took;
        mp_fill(buf, STREAM, 5);
        l->recv = RANK_REQUEST_NULL;
        MP_OK(rank_isend(buf, STREAM, RANK_BYTE, 1, TAG, mp->world, &req));
        MP_OK(rank_send(&x, 1, RANK_INT64, 1, TAG + 1, mp->world));
        cpu = cpu_seconds();
        if (by_loop) {
            took = until_tick(l);
            cpu = cpu_seconds() - cpu;
            MP_OK(rank_put(&one, 8, 1, mem, 0));
            MP_OK(rank_wait(&req, NULL));
        } else {
            MP_OK(rank_wait(&req, NULL));
            took = mp_now() - begin;
            cpu = cpu_seconds() - cpu;
        }
        if (took > 0.5 * STALL_MS / 1000) /* else nothing stopped */
            MP_CHECK(cpu < 0.3 * took);
    }
    mp_barrier(mp->world);
    MP_OK(rank_free(&mem));
    free(buf);
}

int main(int argc, char **argv)
{
    bool stalled = mp_flag(argc, argv, "--stalled");
    struct loop l = {.laps = 0};
    struct mp mp;
    int fd;

    MP_STATUS(rank_progress_arm(), RANK_ERR_STATE);
    MP_STATUS(rank_progress_fd(&fd), RANK_ERR_STATE);
    mp_start(&mp, &argc, argv);
    l.mp = &mp;
    MP_STATUS(rank_progress_arm(), RANK_ERR_STATE);
    MP_STATUS(rank_progress_fd(NULL), RANK_ERR_ARG);
    MP_OK(rank_progress_fd(&l.lib));
    MP_OK(rank_progress_fd(&fd));
    MP_CHECK_EQ(fd, l.lib);
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    l.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    MP_CHECK(l.epoll >= 0 && l.timer >= 0);
    watch(&l, l.lib);
    watch(&l, l.timer);
    if (stalled) {
        mp_case(&mp, "a stalled stream");
        stalled_stream(&l, false);
        stalled_stream(&l, true);
        goto end;
    }
    mp_case(&mp, "round and round");
    round_and_round(&l);
    mp_case(&mp, "wake up");
    wake_up(&l);
    mp_case(&mp, "idle");
    idle(&l, mp_option(argc, argv, "--idle", 1000));
    mp_case(&mp, "round again, and blocking calls between");
    round_and_round(&l);
    set_timer(&l, 0);
    if (mp.size > 1) {
        mp_case(&mp, "room without a doorbell");
        wait_for_room(&l, false);
        wait_for_room(&l, true);
    }
end:
    mp_barrier(mp.world);
    close(l.timer);
    close(l.epoll);
    mp_end(&mp);
    return 0;
}
