/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_sleep.c: check how long a wait for a word without a doorbell sleeps.
 * A millisecond at most; it reads the word after each sleep, and does so beside other threads, too.
 *
 * The test checks the library's system calls and not the clock, which depends more on the machine: the calls by which it sleeps
 * are replaced by ones that record the time-out. Rank 0 waits and counts its sleeps in memory of rank_alloc; the last rank
 * writes the word, by a plain put, after some of them.
 *
 *   --level N   of threads; with 3 another thread waits beside, for a message
 */
#include "tests/mp/mp.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* SLEEPS: more than a thread takes in turn before it may sleep for long. */
enum { MS = 1000 * 1000, SLEEPS = 16, ROUNDS = 4, MESSAGE = 1, LAST = 2 };

/* A thread's sleeps. */
struct sleeps {
    _Atomic uint64_t *count;
    _Atomic int64_t longest; /* ns */
};

static _Thread_local struct sleeps *mine; /* of the waiting thread; NULL: not recorded */

static void sleep_begins(int64_t ns)
{
    if (!mine)
        return;
    if (ns > atomic_load(&mine->longest))
        atomic_store(&mine->longest, ns);
    atomic_fetch_add(mine->count, 1);
}

/* Both preempt libc's, for librank, too. A wait without an end is one for a lock. Most calls have fewer arguments than are
 * read, which is nothing to a sanitizer. */
__attribute__((visibility("default"), no_sanitize("address", "undefined"))) long syscall(long number, ...)
{
    static long (*_Atomic libc)(long, ...);
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!libc)
        libc = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (mine && number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3]) {
        const struct timespec *t = (const struct timespec *)a[3];
        sleep_begins((int64_t)t->tv_sec * 1000 * MS + t->tv_nsec);
    }
    return libc(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    static int (*_Atomic libc)(int, struct epoll_event *, int, int);

    if (!libc)
        libc = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
    sleep_begins(ms < 0 ? INT64_MAX : (int64_t)ms * MS);
    return libc(fd, events, most, ms);
}

struct scene {
    struct mp mp;
    rank_mem_t mem;
    struct words {
        uint64_t word;              /* what is waited for */
        _Atomic uint64_t sleeps, others; /* of the wait for it; of the wait for a message */
    } *words;
    struct sleeps waiter, other;
    bool beside, first; /* another thread waits; and has begun before */
};

/* Between two polls: the cores are others'. */
static void rest(void)
{
    nanosleep(&(struct timespec){0, 3 * MS}, NULL);
}

static void until(_Atomic uint64_t *count, uint64_t n)
{
    while (atomic_load(count) < n)
        rest();
}

/* Wait for a message, and so sleep for long as the progress owner. */
static void *wait_beside(void *arg)
{
    struct scene *s = arg;
    char c;

    if (!s->first)
        until(&s->words->sleeps, 2);
    mine = &s->other;
    MP_OK(rank_recv(&c, 1, RANK_BYTE, s->mp.size - 1, MESSAGE, s->mp.world, NULL));
    mine = NULL;
    return NULL;
}

static void wait_for_word(struct scene *s, uint64_t round)
{
    struct words *w = s->words;
    uint64_t sleeps, before;
    pthread_t other;

    if (s->beside) {
        MP_CHECK_EQ(pthread_create(&other, NULL, wait_beside, s), 0);
        if (s->first)
            until(&w->others, 1);
    }
    mine = &s->waiter;
    MP_OK(rank_wait_until(s->mem, offsetof(struct words, word), RANK_CMP_GE, round));
    mine = NULL;
    sleeps = atomic_load(&w->sleeps);
    MP_OK(rank_recv(&before, 1, RANK_UINT64, s->mp.size - 1, LAST, s->mp.world, NULL));
    if (s->beside)
        MP_CHECK_EQ(pthread_join(other, NULL), 0);
    if (s->waiter.longest > MS)
        mp_fail(__FILE__, __LINE__, "round %d: it would have slept for %.1f ms", (int)round, (double)s->waiter.longest / MS);
    /* One may have begun after a read that preceded the word. */
    if (sleeps > before + 1)
        mp_fail(__FILE__, __LINE__, "round %d: %d sleeps after the word was there", (int)round, (int)(sleeps - before));
}

static void write_word(struct scene *s, uint64_t round)
{
    uint64_t sleeps[2];
    char c = 0;

    do {
        rest();
        MP_OK(rank_get(sleeps, sizeof(sleeps), 0, s->mem, offsetof(struct words, sleeps)));
    } while (sleeps[0] < SLEEPS || (s->beside && sleeps[1] < 2));
    MP_OK(rank_put(&round, sizeof(round), 0, s->mem, offsetof(struct words, word)));
    MP_OK(rank_flush(s->mem, 0));
    atomic_thread_fence(memory_order_seq_cst);
    MP_OK(rank_get(sleeps, sizeof(sleeps[0]), 0, s->mem, offsetof(struct words, sleeps)));
    MP_OK(rank_send(sleeps, 1, RANK_UINT64, 0, LAST, s->mp.world));
    if (s->beside)
        MP_OK(rank_send(&c, 1, RANK_BYTE, 0, MESSAGE, s->mp.world));
}

int main(int argc, char **argv)
{
    rank_thread_level_t level = (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED);
    static struct scene s;
    void *part;

    mp_start_level(&s.mp, &argc, argv, level);
    MP_CHECK(s.mp.size > 1);
    s.beside = level == RANK_THREAD_MULTIPLE;
    MP_OK(rank_alloc(s.mp.world, RANK_MEM_HOST, sizeof(*s.words), &part, &s.mem));
    s.words = part;
    s.waiter.count = &s.words->sleeps;
    s.other.count = &s.words->others;
    s.words->word = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        atomic_store(&s.words->sleeps, 0);
        atomic_store(&s.words->others, 0);
        s.waiter.longest = s.other.longest = 0;
        s.first = round % 2;
        mp_case(&s.mp, !s.beside ? "alone" : s.first ? "beside a thread that has begun before" : "beside a thread that comes later");
        if (s.mp.rank == 0)
            wait_for_word(&s, round);
        else if (s.mp.rank == s.mp.size - 1)
            write_word(&s, round);
        mp_barrier(s.mp.world);
    }
    MP_OK(rank_free(&s.mem));
    mp_end(&s.mp);
    return 0;
}
