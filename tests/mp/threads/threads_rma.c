/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_rma.c: make one-sided calls from several threads at once.
 * Atomics on one counter, puts and gets with flushes between, nonblocking ones, signals that a thread waits for while others go on,
 * allocations on a team for each thread, flushes beside each other.
 */
#include "tests/mp/threads/worker_threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT = 4096, PAYLOAD = 1500 };

struct field {
    rank_mem_t mem;
    char *mine;
    rank_team_t team[WORKERS_MAX];
    _Atomic uint64_t drawn; /* the sum of what fetch-adds gave */
};

/* Layout of each part: a counter, a signal for each thread, then a slot for each (rank, thread). */
static int64_t signal_at(int t) { return 64 + t * 8; }
static int64_t slot_at(const struct hand *me, int rank, int t)
{
    return 4096 + ((int64_t)rank * me->workers->threads + t) * SLOT;
}

static void count(struct hand *me)
{
    struct field *f = me->arg;
    uint64_t one = 1, before, sum = 0;

    for (int i = 0; i < me->workers->rounds; i++) {
        if (i % 3 == 2) {
            uint64_t expected, now;
            MP_OK(rank_get(&now, 8, 0, f->mem, 0));
            do {
                uint64_t next = now + 1;
                expected = now;
                MP_OK(rank_atomic_cas(RANK_UINT64, &expected, &next, 0, f->mem, 0, &now));
            } while (now != expected);
            before = now;
        } else {
            MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &one, 0, f->mem, 0, &before));
        }
        sum += before;
    }
    atomic_fetch_add(&f->drawn, sum);
}

static void put_and_get(struct hand *me)
{
    struct field *f = me->arg;
    struct mp *mp = me->mp;
    char out[PAYLOAD], in[PAYLOAD];

    for (int i = 0; i < me->workers->rounds; i++) {
        int peer = (mp->rank + i) % mp->size;
        int64_t at = slot_at(me, mp->rank, me->t) + (int64_t)mp_below(&me->random, SLOT - PAYLOAD + 1);
        size_t n = 1 + mp_below(&me->random, PAYLOAD);
        rank_request_t req;

        mp_fill(out, n, (uint64_t)i);
        memset(in, 0, sizeof(in));
        if (i % 2) {
            MP_OK(rank_put(out, (int64_t)n, peer, f->mem, at));
        } else {
            MP_OK(rank_iput(out, (int64_t)n, peer, f->mem, at, &req));
            MP_OK(rank_wait(&req, NULL));
        }
        MP_OK(rank_flush(f->mem, i % 5 ? peer : RANK_ALL));
        if (i % 3) {
            MP_OK(rank_get(in, (int64_t)n, peer, f->mem, at));
        } else {
            MP_OK(rank_iget(in, (int64_t)n, peer, f->mem, at, &req));
            MP_OK(rank_wait(&req, NULL));
        }
        MP_CHECK_EQ(mp_verify(in, n, (uint64_t)i), -1);
        if (i % 7 == 0)
            MP_OK(rank_fence(f->mem));
    }
}

/* A ring for each thread: wait for the signal of the one before, give it to the next. */
static void pass_on(struct hand *me)
{
    struct field *f = me->arg;
    struct mp *mp = me->mp;
    int next = (mp->rank + 1) % mp->size;
    uint64_t word = 0;

    for (int i = 1; i <= me->workers->rounds; i++) {
        if (mp->rank > 0) {
            if (i % 2)
                MP_OK(rank_signal_wait(f->mem, signal_at(me->t), RANK_CMP_GE, (uint64_t)i, RANK_ANY_SOURCE, NULL));
            else
                MP_OK(rank_wait_until(f->mem, signal_at(me->t), RANK_CMP_GE, (uint64_t)i));
            memcpy(&word, f->mine + slot_at(me, 0, me->t), sizeof(word));
            MP_CHECK(word >= (uint64_t)i); /* it came before the signal */
        }
        word = (uint64_t)i;
        MP_OK(rank_put_signal(&word, 8, next, f->mem, slot_at(me, 0, me->t), f->mem, signal_at(me->t), (uint64_t)i,
                              RANK_SIGNAL_SET));
        if (mp->rank == 0)
            MP_OK(rank_wait_until(f->mem, signal_at(me->t), RANK_CMP_GE, (uint64_t)i));
    }
}

static void allocate(struct hand *me)
{
    struct field *f = me->arg;
    struct mp *mp = me->mp;

    for (int i = 0; i < me->workers->rounds / 40 + 1; i++) {
        int next = (mp->rank + 1) % mp->size;
        uint64_t word = (uint64_t)(mp->rank * 1000 + me->t), *mine;
        rank_mem_t mem;

        MP_OK(rank_alloc(f->team[me->t], RANK_MEM_HOST, 8 * (i + 1), (void **)&mine, &mem));
        MP_OK(rank_put(&word, 8, next, mem, 8 * i));
        MP_OK(rank_flush(mem, next));
        MP_OK(rank_barrier(f->team[me->t]));
        MP_CHECK_EQ(mine[i], (mp->rank + mp->size - 1) % mp->size * 1000 + me->t);
        MP_OK(rank_free(&mem));
    }
}

/* Registered memory, and keys that travel in messages. */
static void keys(struct hand *me)
{
    struct mp *mp = me->mp;
    int next = (mp->rank + 1) % mp->size, before = (mp->rank + mp->size - 1) % mp->size;

    for (int i = 0; i < me->workers->rounds / 20 + 1; i++) {
        uint64_t value = (uint64_t)(mp->rank + me->t + i), got = 0;
        char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
        size_t len = sizeof(key);
        rank_envelope_t e;
        rank_mem_t mem, open;
        int none = 0, theirs_too;

        MP_OK(rank_reg(&value, 8, &mem));
        MP_OK(rank_rkey_pack(mem, key, &len));
        MP_OK(rank_sendrecv(key, (int64_t)len, RANK_BYTE, next, me->t, theirs, sizeof(theirs), RANK_BYTE, before, me->t,
                            mp->world, &e));
        MP_OK(rank_rkey_open(mp->world, before, theirs, (size_t)e.bytes, &open));
        MP_OK(rank_get(&got, 8, before, open, 0));
        MP_CHECK_EQ(got, before + me->t + i);
        MP_OK(rank_rkey_close(&open));
        MP_OK(rank_sendrecv(&none, 1, RANK_INT32, before, 100 + me->t, &theirs_too, 1, RANK_INT32, next, 100 + me->t,
                            mp->world, NULL));
        MP_OK(rank_dereg(&mem));
    }
}

/* ------------------------------------------------------------------ flushes beside each other */

enum { PAGE = 4096, SLEEP_MS = 20 };

/* Rank 1's memory: a page of a file that it has mapped twice, so that no peer can map what is registered and each has to reach
 * for it in another way, but can read the page itself. */
struct yard {
    rank_mem_t mem[2]; /* two handles for it */
    const uint64_t *page;
    pthread_barrier_t meet;
    _Atomic int flushing;
};

struct gate {
    int pid, fd;
    size_t len;
    char key[RANK_RKEY_MAX];
};

static void pause_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* All have put when the first begins to flush, and the others do when it waits. */
static void flush_beside(struct hand *me)
{
    struct yard *y = me->arg;
    rank_mem_t mem = y->mem[me->t % 2];

    for (int i = 1; i <= 6; i++) {
        uint64_t word = (uint64_t)i;

        if (me->t == 0) {
            MP_OK(rank_send(&i, 1, RANK_INT32, 1, 1, me->mp->world));
            pause_ms(SLEEP_MS / 10); /* it has left the library by now, or soon */
        }
        pthread_barrier_wait(&y->meet);
        MP_OK(rank_put(&word, 8, 1, mem, 8 * me->t));
        pthread_barrier_wait(&y->meet);
        if (me->t == 0) {
            y->flushing = i;
        } else {
            while (y->flushing < i)
                sched_yield();
            pause_ms(SLEEP_MS / 10);
        }
        if (i % 3 == 0)
            MP_OK(rank_flush(mem, RANK_ALL));
        else
            MP_OK(rank_flush(mem, 1));
        MP_CHECK_EQ(__atomic_load_n(&y->page[me->t], __ATOMIC_ACQUIRE), i);
        pthread_barrier_wait(&y->meet);
    }
}

static void be_written_to(struct mp *mp)
{
    int fd = memfd_create("yard", MFD_CLOEXEC), round;
    struct gate gate = {.pid = getpid(), .fd = fd, .len = sizeof(gate.key)};
    char *base = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rank_mem_t mem;

    MP_CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0 && base != MAP_FAILED);
    for (int i = 0; i < 2; i++)
        MP_CHECK(mmap(base + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    MP_OK(rank_reg(base, 2 * PAGE, &mem));
    MP_OK(rank_rkey_pack(mem, gate.key, &gate.len));
    MP_OK(rank_send(&gate, sizeof(gate), RANK_BYTE, 0, 1, mp->world));
    do {
        MP_OK(rank_recv(&round, 1, RANK_INT32, 0, 1, mp->world, NULL));
        pause_ms(SLEEP_MS); /* and makes no progress */
    } while (round > 0);
    MP_OK(rank_dereg(&mem));
    munmap(base, 2 * PAGE);
    close(fd);
}

/* Rank 0's threads flush what they have put to one that is busy: a flush beside another's ends no sooner. */
static void flushes(struct workers *workers)
{
    struct mp *mp = workers->mp;
    struct yard y = {.flushing = 0};
    struct gate gate;
    char path[64];
    int fd, end = 0;

    if (mp->rank == 1)
        be_written_to(mp);
    if (mp->rank == 0 && mp->size > 1) {
        MP_OK(rank_recv(&gate, sizeof(gate), RANK_BYTE, 1, 1, mp->world, NULL));
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", gate.pid, gate.fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        MP_CHECK(fd >= 0);
        y.page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
        MP_CHECK(y.page != MAP_FAILED);
        close(fd);
        for (int i = 0; i < 2; i++)
            MP_OK(rank_rkey_open(mp->world, 1, gate.key, gate.len, &y.mem[i]));
        MP_CHECK_EQ(pthread_barrier_init(&y.meet, NULL, (unsigned)workers->threads), 0);
        workers_run(workers, flush_beside, &y);
        pthread_barrier_destroy(&y.meet);
        for (int i = 0; i < 2; i++)
            MP_OK(rank_rkey_close(&y.mem[i]));
        munmap((void *)(uintptr_t)y.page, PAGE);
        MP_OK(rank_send(&end, 1, RANK_INT32, 1, 1, mp->world));
    }
    mp_barrier(mp->world);
}

int main(int argc, char **argv)
{
    struct field f = {.drawn = 0};
    uint64_t total, drawn, sum = 0, now;
    struct workers workers;
    struct mp mp;

    workers_start(&workers, &mp, &argc, argv);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 4096 + (int64_t)mp.size * workers.threads * SLOT, (void **)&f.mine,
                     &f.mem));
    for (int t = 0; t < workers.threads; t++)
        MP_OK(rank_team_dup(mp.world, &f.team[t]));
    mp_case(&mp, "a counter");
    workers_run(&workers, count, &f);
    drawn = f.drawn;
    MP_OK(rank_allreduce(&drawn, &sum, 1, RANK_UINT64, RANK_SUM, mp.world));
    total = (uint64_t)mp.size * (uint64_t)workers.threads * (uint64_t)workers.rounds;
    MP_OK(rank_get(&now, 8, 0, f.mem, 0));
    MP_CHECK_EQ(now, total);
    MP_CHECK_EQ(sum, total * (total - 1) / 2); /* every number was drawn once */
    mp_case(&mp, "puts and gets");
    workers_run(&workers, put_and_get, &f);
    mp_case(&mp, "signals");
    workers_run(&workers, pass_on, &f);
    mp_case(&mp, "keys");
    workers_run(&workers, keys, &f);
    mp_case(&mp, "memory for each thread");
    workers_run(&workers, allocate, &f);
    mp_case(&mp, "flushes beside each other");
    flushes(&workers);
    for (int t = 0; t < workers.threads; t++)
        MP_OK(rank_team_free(&f.team[t]));
    MP_OK(rank_free(&f.mem));
    mp_end(&mp);
    return 0;
}
