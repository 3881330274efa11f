/* SPDX-License-Identifier: BSD-3-Clause */
/* resource_leak.c: make and free objects again and again without a leak. */
#include "tests/mp/mp.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void teams(struct mp *mp)
{
    rank_team_t a, b;

    MP_OK(rank_team_dup(mp->world, &a));
    MP_OK(rank_team_split(a, mp->rank & 1, 0, &b));
    MP_OK(rank_barrier(b));
    MP_OK(rank_team_free(&b));
    MP_OK(rank_team_free(&a));
}

static void memory(struct mp *mp)
{
    rank_mem_t mem;
    char *p, c = 1;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 200000, (void **)&p, &mem));
    for (int r = 0; r < mp->size; r++)
        MP_OK(rank_put(&c, 1, r, mem, 100 + mp->rank));
    MP_OK(rank_flush(mem, RANK_ALL));
    MP_OK(rank_free(&mem));
}

/* Registered memory and keys, and calls on it of each sort. */
static void keys(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    static char mine[40000], buf[40000];
    char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    rank_piece_t p[3] = {{buf, 100, 8}, {buf + 100, 9000, 1000}, {buf, 0, 5}};
    int64_t one = 1, was;
    rank_request_t r[8];
    rank_envelope_t env;
    rank_mem_t own, far, bad = RANK_MEM_NULL;

    MP_OK(rank_reg(mine, sizeof(mine), &own));
    MP_OK(rank_rkey_pack(own, key, &len));
    MP_OK(rank_sendrecv(key, (int64_t)len, RANK_BYTE, to, 1, theirs, sizeof(theirs), RANK_BYTE, from, 1,
                        mp->world, &env));
    MP_OK(rank_rkey_open(mp->world, from, theirs, (size_t)env.bytes, &far));
    theirs[20] ^= 1;
    MP_STATUS(rank_rkey_open(mp->world, from, theirs, (size_t)env.bytes, &bad), RANK_ERR_HANDLE);
    for (int i = 0; i < 8; i++) {
        if (i & 1)
            MP_OK(rank_iput(buf, 1000 + i, from, far, 8, &r[i]));
        else
            MP_OK(rank_iget(buf + 20000, 2000 * (i + 1), from, far, 8, &r[i]));
    }
    MP_OK(rank_waitall(8, r, NULL));
    MP_OK(rank_putv(p, 3, from, far));
    MP_OK(rank_getv(p, 3, from, far));
    MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, from, far, 0, NULL));
    MP_OK(rank_atomic(RANK_AMO_SWAP, RANK_INT64, &one, from, far, 0, &was));
    MP_OK(rank_put_signal(buf, 100, from, far, 8, far, 39992, 1, RANK_SIGNAL_ADD));
    MP_OK(rank_flush(far, RANK_ALL));
    MP_OK(rank_rkey_close(&far));
    mp_barrier(mp->world);
    MP_OK(rank_dereg(&own));
}

/* Posted and unexpected, short and long, truncated and synchronous. */
static void messages(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    static char out[60000], in[60000];
    rank_request_t s[6], r;
    static const int64_t n[6] = {0, 20, 500, 5000, 40000, 60000};

    for (int i = 0; i < 6; i++) {
        if (i & 1)
            MP_OK(rank_isend(out, n[i], RANK_BYTE, to, i, mp->world, &s[i]));
        else
            MP_OK(rank_issend(out, n[i], RANK_BYTE, to, i, mp->world, &s[i]));
    }
    for (int i = 5; i >= 0; i--) {
        MP_OK(rank_irecv(in, i == 4 ? 100 : 60000, RANK_BYTE, from, i, mp->world, &r));
        MP_STATUS(rank_wait(&r, NULL), i == 4 ? RANK_ERR_TRUNCATED : RANK_OK);
    }
    MP_OK(rank_waitall(6, s, NULL));
}

static void collectives(struct mp *mp)
{
    static double a[5000], b[5000];
    rank_request_t r[3];

    MP_OK(rank_barrier(mp->world));
    MP_OK(rank_allreduce(a, b, 5000, RANK_F64, RANK_SUM, mp->world));
    MP_OK(rank_bcast(a, 100, RANK_F64, 0, mp->world));
    MP_OK(rank_ibarrier(mp->world, &r[0]));
    MP_OK(rank_iallreduce(a, b, 10, RANK_F64, RANK_MAX, mp->world, &r[1]));
    MP_OK(rank_ibcast(a + 2000, 1000, RANK_F64, mp->size - 1, mp->world, &r[2]));
    MP_OK(rank_waitall(3, r, NULL));
}

/* Let each rank sleep in the library once: what sleeping needs is made then. */
static void doze(struct mp *mp)
{
    const struct timespec pause = {0, 30000000};

    for (int i = 0; i < 2; i++) {
        if (mp->rank % 2 == i)
            nanosleep(&pause, NULL);
        mp_barrier(mp->world);
    }
}

static int64_t heap(void)
{
    return (int64_t)(mallinfo2().uordblks + mallinfo2().hblkhd);
}

/* A pool grows now and then, when more happens at once than ever before; a leak grows all the time.
 * So the least growth of several stretches counts. */
static void repeat(struct mp *mp, const char *name, void (*fn)(struct mp *), int times)
{
    enum { STRETCHES = 5 };
    int64_t least = INT64_MAX, before;
    int fds;

    mp_case(mp, name);
    for (int i = 0; i < 30; i++) /* pools and tables take their size */
        fn(mp);
    doze(mp);
    fds = mp_count_fds();
    for (int k = 0; k < STRETCHES; k++) {
        before = heap();
        for (int i = 0; i < times; i++)
            fn(mp);
        mp_barrier(mp->world);
        if (heap() - before < least)
            least = heap() - before;
    }
    MP_CHECK_EQ(mp_count_fds(), fds);
    /* A leak of 16 bytes each time shows. A sanitizer has a heap, and a check, of its own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (least >= 16 * times)
        mp_fail(__FILE__, __LINE__, "%s: the heap grew by %lld bytes and more in each %d rounds", name,
                (long long)least, times);
#endif
}

int main(int argc, char **argv)
{
    struct mp mp;
    int times;

    mp_start(&mp, &argc, argv);
    times = (int)mp_option(argc, argv, "--times", 200);
    repeat(&mp, "messages", messages, times);
    repeat(&mp, "teams", teams, times);
    repeat(&mp, "memory", memory, times / 4);
    repeat(&mp, "keys", keys, times / 2);
    repeat(&mp, "collectives", collectives, times);
    mp_end(&mp);
    return 0;
}
