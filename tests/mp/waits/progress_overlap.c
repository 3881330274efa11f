/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_overlap.c: serve peers by the progress thread of a computing rank.
 * A large message comes in, one goes out, and the rank's memory is read and counted in where only it can do that.
 *
 * The computing rank signals through memory, and not by a call, when it begins and when it may end, so that nothing
 * is measured in time: the other ends its operations while this one is still in its loop, or the test hangs and fails.
 * Small messages are the exception: none of a few that are sent one after the other waits until the thread wakes by itself.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

enum { LARGE = 8 << 20 };

struct both { /* a file that both ranks map */
    _Atomic int computing, done;
};

static struct both *share(struct mp *mp)
{
    char path[64];
    int pid = (int)getpid(), fd = -1;
    struct both *b;

    if (mp->rank == 0) {
        fd = memfd_create("overlap", 0);
        MP_CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    }
    for (int r = 1; r < mp->size && mp->rank == 0; r++) {
        int what[2] = {pid, fd};
        MP_OK(rank_send(what, 2, RANK_INT32, r, 1, mp->world));
    }
    if (mp->rank > 0) {
        int what[2];
        MP_OK(rank_recv(what, 2, RANK_INT32, 0, 1, mp->world, NULL));
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", what[0], what[1]);
        fd = open(path, O_RDWR);
        MP_CHECK(fd >= 0);
    }
    b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MP_CHECK(b != MAP_FAILED);
    mp_barrier(mp->world);
    close(fd);
    return b;
}

/* Rank 1 computes, all that while. */
static void compute(struct both *b)
{
    double start = mp_now();

    b->computing = 1;
    while (!b->done)
        MP_CHECK(mp_now() < start + 50);
}

enum { PAIRS = 20 };
static const double LATE = 0.06; /* seconds; the thread sleeps for 0.1 */

/* Rank 1 sends two messages, when its thread sleeps, and then calls nothing until the other has both. A machine that stands still may
 * make some late, but not most. */
static void pairs(struct mp *mp, struct both *b)
{
    const struct timespec idle = {0, 5000000}, while_it_waits = {0, 200000};
    int late = 0;

    b->done = 0;
    mp_case(mp, "pairs of small messages");
    for (int32_t i = 1; i <= PAIRS; i++) {
        int32_t x;
        if (mp->rank == 1) {
            double begin;
            nanosleep(&idle, NULL);
            for (int k = 0; k < 2; k++)
                MP_OK(rank_send(&i, 1, RANK_INT32, 0, 3, mp->world));
            begin = mp_now();
            while (b->done < i) {
                nanosleep(&while_it_waits, NULL);
                MP_CHECK(mp_now() < begin + 50);
            }
            late += mp_now() - begin > LATE;
        } else {
            for (int k = 0; k < 2; k++) {
                MP_OK(rank_recv(&x, 1, RANK_INT32, 1, 3, mp->world, NULL));
                MP_CHECK_EQ(x, i);
            }
            b->done = i;
        }
    }
    if (mp->rank == 1)
        printf("rank 1: %d of %d late\n", late, PAIRS);
    MP_CHECK(late < PAIRS / 2);
}

int main(int argc, char **argv)
{
    char *in = mp_alloc(LARGE), *out = mp_alloc(LARGE);
    uint64_t *mine, one = 1, before, word;
    rank_request_t req[2];
    struct both *b;
    rank_mem_t mem;
    struct mp mp;

    mp_start_level(&mp, &argc, argv, (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED));
    MP_CHECK_EQ(mp.size, 2);
    b = share(&mp);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 4096, (void **)&mine, &mem));
    mine[1] = 40 + (uint64_t)mp.rank;
    for (int i = 0; i < 8; i++) {
        mp_case(&mp, "overlap");
        b->computing = b->done = 0;
        mp_barrier(mp.world);
        mp_fill(out, LARGE, (uint64_t)(i * 2 + mp.rank));
        MP_OK(rank_irecv(in, LARGE, RANK_BYTE, 1 - mp.rank, 2, mp.world, &req[0]));
        MP_OK(rank_isend(out, LARGE, RANK_BYTE, 1 - mp.rank, 2, mp.world, &req[1]));
        if (mp.rank == 1) {
            compute(b);
            for (int k = 0; k < 2; k++) { /* over when the computing was */
                int done;
                MP_OK(rank_test(&req[k], &done, NULL));
                MP_CHECK(done || k == 0);
                if (!done)
                    MP_OK(rank_wait(&req[k], NULL));
            }
        } else {
            while (!b->computing)
                ;
            MP_OK(rank_waitall(2, req, NULL));
            MP_OK(rank_get(&word, 8, 1, mem, 8));
            MP_CHECK_EQ(word, 41);
            MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &one, 1, mem, 0, &before));
            MP_CHECK_EQ(before, i);
            MP_OK(rank_put(&one, 8, 1, mem, 16));
            MP_OK(rank_flush(mem, 1));
            b->done = 1;
        }
        MP_CHECK_EQ(mp_verify(in, LARGE, (uint64_t)(i * 2 + 1 - mp.rank)), -1);
    }
    pairs(&mp, b);
    MP_OK(rank_free(&mem));
    munmap(b, 4096);
    free(in);
    free(out);
    mp_end(&mp);
    return 0;
}
