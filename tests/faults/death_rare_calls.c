/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_rare_calls.c: report a death to a rank that calls the library seldom.
 * In time, also if each of its calls finds a message of another rank.
 *
 * No other process may report it: the launcher's agent is stopped meanwhile, and rank 1, which sends all the time, makes no call that
 * checks liveness. So only rank 0 can find it.
 *
 *   --seed N
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double in_time = 20;
#else
static const double in_time = 5;
#endif

enum { OBSERVER, SENDER, VICTIM, NEVER = 1, NEWS = 2, COUNT = 3 };

static void compute(double seconds)
{
    double until = mp_now() + seconds;

    while (mp_now() < until)
        ;
}

/* Short messages that find credit: nothing is waited for, and nothing taken in. Their number is reported beside the library. */
static void send_all_the_time(const struct mp *mp, const int64_t *over, int64_t *count)
{
    int64_t sent = 0;

    while (!__atomic_load_n(over, __ATOMIC_ACQUIRE)) {
        MP_OK(rank_send(&sent, 1, RANK_INT64, OBSERVER, NEWS, mp->world));
        __atomic_store_n(count, ++sent, __ATOMIC_RELEASE);
        compute(2e-3);
    }
    MP_OK(rank_send(&sent, 1, RANK_INT64, OBSERVER, COUNT, mp->world));
}

static void observe(const struct mp *mp, pid_t victim, const int64_t *count, int64_t *over)
{
    rank_request_t req;
    double late = 0, t0;
    int done = 0;
    int64_t n, in, never, seen = 0;
    rank_status_t st = RANK_OK;

    MP_OK(rank_irecv(&never, 1, RANK_INT64, VICTIM, NEVER, mp->world, &req));
    /* No rank waits for the victim any more. */
    MP_OK(rank_recv(&in, 1, RANK_INT64, VICTIM, NEWS, mp->world, NULL));
    MP_OK(rank_recv(&in, 1, RANK_INT64, SENDER, NEWS, mp->world, NULL));
    MP_CHECK_EQ(kill(getppid(), SIGSTOP), 0);
    t0 = mp_now();
    if (kill(victim, SIGKILL) == 0) {
        for (; !done && late < in_time; late = mp_now() - t0) {
            compute(10e-3);
            while (__atomic_load_n(count, __ATOMIC_ACQUIRE) == seen && mp_now() - t0 < in_time)
                ;
            seen = __atomic_load_n(count, __ATOMIC_ACQUIRE);
            st = rank_test(&req, &done, NULL);
        }
    }
    kill(getppid(), SIGCONT); /* before any report of it, or the job would not end */
    if (!done)
        mp_fail(__FILE__, __LINE__, "no report of the death after %.1f s", late);
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    printf("reported after %.3f s\n", late);
    __atomic_store_n(over, 1, __ATOMIC_RELEASE);
    MP_OK(rank_recv(&n, 1, RANK_INT64, SENDER, COUNT, mp->world, NULL));
    for (int64_t i = 1; i < n; i++) {
        MP_OK(rank_recv(&in, 1, RANK_INT64, SENDER, NEWS, mp->world, NULL));
        MP_CHECK_EQ(in, i);
    }
}

int main(int argc, char **argv)
{
    int64_t mine = getpid(), pid[3];
    rank_mem_t mem;
    struct mp mp;
    void *part, *others; /* what the sender has sent; for the sender: it is over */

    mp_start(&mp, &argc, argv);
    MP_CHECK_EQ(mp.size, 3);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, sizeof(int64_t), &part, &mem));
    *(int64_t *)part = 0;
    MP_OK(rank_allgather(&mine, pid, 1, RANK_INT64, mp.world));
    mp_case(&mp, "seldom");
    if (mp.rank == VICTIM) {
        MP_OK(rank_send(&mine, 1, RANK_INT64, OBSERVER, NEWS, mp.world));
        for (;;)
            pause();
    }
    MP_OK(rank_ptr(mem, mp.rank == SENDER ? OBSERVER : SENDER, &others));
    if (mp.rank == SENDER)
        send_all_the_time(&mp, part, others);
    else
        observe(&mp, (pid_t)pid[VICTIM], part, others);
    mp_end_survivor(&mp);
    return 0;
}
