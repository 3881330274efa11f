/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_rules.c: check what one-sided calls have in common on all channels.
 * There is a request behind each nonblocking call, with callbacks and cancel as others have. Overlapping ranges are refused. Words
 * are never seen half written. wait_sleep.c tests how soon a waiting rank sees a plain put.
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000 };

static void count(const rank_envelope_t *envelope, void *arg)
{
    MP_CHECK_EQ(envelope->status, RANK_OK);
    ++*(int *)arg;
}

static void await(const int *calls, int n)
{
    double end = mp_now() + 20;

    while (*calls < n) {
        MP_CHECK(mp_now() < end);
        MP_OK(rank_progress());
        sched_yield();
    }
}

/* For itself and for a neighbour, nothing, a word and much. */
static void requests(struct mp *mp, rank_mem_t mem, char *part)
{
    static char out[BYTES], in[BYTES];
    const int64_t sizes[] = {0, 8, BYTES};
    int calls = 0, reported = 0;
    rank_request_t req;

    for (int to = mp->rank;; to = (mp->rank + 1) % mp->size) {
        for (size_t i = 0; i < 3; i++) {
            mp_fill(out, BYTES, i + 1);
            MP_OK(rank_iput(out, sizes[i], to, mem, 0, &req));
            MP_CHECK(req != RANK_REQUEST_NULL);
            MP_OK(rank_cancel(&req)); /* it has begun: nothing happens */
            MP_OK(rank_on_done(&req, count, &calls));
            MP_CHECK(req == RANK_REQUEST_NULL);
            await(&calls, ++reported);
            MP_OK(rank_flush(mem, to));
            memset(in, 0, sizeof(in));
            MP_OK(rank_iget(in, sizes[i], to, mem, 0, &req));
            MP_CHECK(req != RANK_REQUEST_NULL);
            MP_OK(rank_cancel(&req));
            MP_OK(rank_on_done(&req, count, &calls));
            await(&calls, ++reported);
            MP_CHECK(memcmp(in, out, (size_t)sizes[i]) == 0);
            MP_OK(rank_iput(out, sizes[i], to, mem, 0, &req));
            MP_OK(rank_wait(&req, NULL));
            MP_CHECK(req == RANK_REQUEST_NULL);
        }
        MP_OK(rank_flush(mem, to));
        MP_STATUS(rank_iput(out, BYTES, to, mem, 1, &req), RANK_ERR_BOUNDS);
        mp_barrier(mp->world);
        if (to != mp->rank || mp->size == 1)
            break;
    }
    MP_CHECK_EQ(mp_verify(part, BYTES, 3), -1);
    mp_barrier(mp->world);
}

#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
/* Puts and gets between two places of one's own part, which share a byte. */
static void own_part(struct mp *mp, rank_mem_t mem, char *part)
{
    rank_piece_t p = {part + 100, 50, 149};
    rank_request_t req;

    MP_STATUS(rank_put(part + 100, 50, mp->rank, mem, 149), RANK_ERR_ARG);
    MP_STATUS(rank_put(part + 100, 50, mp->rank, mem, 100), RANK_ERR_ARG);
    MP_STATUS(rank_get(part + 100, 50, mp->rank, mem, 51), RANK_ERR_ARG);
    MP_STATUS(rank_iput(part, 50, mp->rank, mem, 49, &req), RANK_ERR_ARG);
    MP_STATUS(rank_iget(part, 50, mp->rank, mem, 49, &req), RANK_ERR_ARG);
    MP_STATUS(rank_putv(&p, 1, mp->rank, mem), RANK_ERR_ARG);
    MP_STATUS(rank_put_signal(part + 100, 50, mp->rank, mem, 149, mem, 0, 1, RANK_SIGNAL_SET), RANK_ERR_ARG);
    MP_OK(rank_put(part + 100, 50, mp->rank, mem, 150));
    MP_OK(rank_get(part + 100, 50, mp->rank, mem, 50));
}

/* Two receives that wait, and would both write there. */
static void receives(struct mp *mp)
{
    static char buf[300];
    rank_iov_t iov = {.base = buf + 190, .bytes = 20}, beside = {.base = buf + 200, .bytes = 20};
    rank_request_t one, two, three, again;

    MP_OK(rank_irecv(buf + 100, 100, RANK_BYTE, mp->rank, 31, mp->world, &one));
    MP_STATUS(rank_irecv(buf + 199, 10, RANK_BYTE, mp->rank, 32, mp->world, &two), RANK_ERR_ARG);
    MP_STATUS(rank_irecv(buf, 101, RANK_BYTE, RANK_ANY_SOURCE, 32, mp->world, &two), RANK_ERR_ARG);
    MP_STATUS(rank_recv(buf, 300, RANK_BYTE, mp->rank, 32, mp->world, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_irecvv(&iov, 1, mp->rank, 32, mp->world, &two), RANK_ERR_ARG);
    MP_STATUS(rank_sendrecv(buf, 1, RANK_BYTE, mp->rank, 32, buf + 150, 1, RANK_BYTE, mp->rank, 32, mp->world, NULL),
              RANK_ERR_ARG);
    MP_OK(rank_irecv(buf, 100, RANK_BYTE, mp->rank, 32, mp->world, &two)); /* beside it */
    MP_OK(rank_irecvv(&beside, 1, mp->rank, 33, mp->world, &three));
    MP_OK(rank_irecv(buf + 100, 0, RANK_BYTE, mp->rank, 34, mp->world, &again));
    for (int64_t tag = 31; tag <= 34; tag++)
        MP_OK(rank_send(buf + 250, 0, RANK_BYTE, mp->rank, tag, mp->world));
    MP_OK(rank_wait(&one, NULL));
    MP_OK(rank_wait(&two, NULL));
    MP_OK(rank_wait(&three, NULL));
    MP_OK(rank_wait(&again, NULL));
    MP_OK(rank_irecv(buf + 199, 10, RANK_BYTE, mp->rank, 32, mp->world, &two)); /* without a wait */
    MP_OK(rank_send(buf, 0, RANK_BYTE, mp->rank, 32, mp->world));
    MP_OK(rank_wait(&two, NULL));
}

/* The same on every rank, or some would wait for the others. */
static void collectives(struct mp *mp)
{
    int64_t n = mp->size, *v = calloc((size_t)n * 4 + 2, sizeof(*v)), counts[64], displs[64];

    MP_CHECK(v && n <= 64);
    MP_STATUS(rank_allreduce(v, v + 1, 2, RANK_INT64, RANK_SUM, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce(v, v, 2, RANK_INT64, RANK_SUM, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_allgather(v + n, v, 2, RANK_INT64, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_alltoall(v, v + n - 1, 1, RANK_INT64, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatter(v, v + n - 1, 1, RANK_INT64, RANK_SUM, mp->world), RANK_ERR_ARG);
    for (int r = 0; r < n; r++) {
        counts[r] = 2;
        displs[r] = r; /* they lie on one another, if there are two */
    }
    if (n > 1)
        MP_STATUS(rank_allgatherv(v + 3 * n, 2, v, counts, displs, RANK_INT64, mp->world), RANK_ERR_ARG);
    for (int r = 0; r < n; r++)
        displs[r] = 2 * r;
    MP_STATUS(rank_allgatherv(v, 2, v, counts, displs, RANK_INT64, mp->world), RANK_ERR_ARG);
    MP_OK(rank_allgatherv(v + 2 * n, 2, v, counts, displs, RANK_INT64, mp->world));
    MP_OK(rank_allreduce(v, v + 2, 2, RANK_INT64, RANK_SUM, mp->world));
    MP_OK(rank_allreduce(RANK_IN_PLACE, v, 2, RANK_INT64, RANK_SUM, mp->world));
    if (n == 1) { /* of roots; others do not read that */
        MP_STATUS(rank_reduce(v, v + 1, 2, RANK_INT64, RANK_SUM, 0, mp->world), RANK_ERR_ARG);
        MP_STATUS(rank_gather(v, v + 1, 2, RANK_INT64, 0, mp->world), RANK_ERR_ARG);
        MP_STATUS(rank_scatter(v, v + 1, 2, RANK_INT64, 0, mp->world), RANK_ERR_ARG);
    }
    free(v);
}
#endif

/* Blocks that lie on one another are always found, pieces and buffers where builds check for them. */
static void overlaps(struct mp *mp, rank_mem_t mem, char *part)
{
    int to = (mp->rank + 1) % mp->size;
    static char here[4096];
    rank_piece_t p[3] = {{here + 100, 50, 0}, {here, 100, 50}, {here + 149, 10, 200}};

    (void)part; /* which no rank reads */
    MP_STATUS(rank_put_strided(here, 8, 64, 3, to, mem, 0, 63), RANK_ERR_ARG);
    MP_STATUS(rank_put_strided(here, 64, 64, 3, to, mem, 1000, -63), RANK_ERR_ARG);
    MP_STATUS(rank_get_strided(here, 0, 64, 3, to, mem, 0, 64), RANK_ERR_ARG);
    /* Nor may they lie where no address is. */
    MP_STATUS(rank_put_strided(here, INT64_MAX / 2, 8, 4, to, mem, 0, 8), RANK_ERR_COUNT);
    MP_STATUS(rank_get_strided(here, INT64_MIN / 2, 8, 3, to, mem, 0, 8), RANK_ERR_COUNT);
    MP_STATUS(rank_put_strided(here, -((int64_t)(uintptr_t)here), 8, 3, to, mem, 0, 8), RANK_ERR_COUNT);
    /* Read twice is fine, and so is one block. */
    MP_OK(rank_get_strided(here, 64, 64, 3, to, mem, 0, 8));
    MP_OK(rank_put_strided(here, 0, 64, 1, to, mem, 0, 0));
    MP_OK(rank_flush(mem, to));
    MP_OK(rank_getv(p, 2, to, mem));
    MP_OK(rank_putv(p, 3, to, mem));
    MP_OK(rank_flush(mem, to));
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
    own_part(mp, mem, part);
    receives(mp);
    collectives(mp);
    MP_STATUS(rank_getv(p, 3, to, mem), RANK_ERR_ARG);
    MP_STATUS(rank_sendrecv(here, 10, RANK_BYTE, mp->rank, 1, here + 9, 10, RANK_BYTE, mp->rank, 1, mp->world, NULL),
              RANK_ERR_ARG);
    MP_STATUS(rank_sendrecv(here + 19, 10, RANK_BYTE, mp->rank, 1, here, 20, RANK_BYTE, mp->rank, 1, mp->world, NULL),
              RANK_ERR_ARG);
#endif
    MP_OK(rank_sendrecv(here, 10, RANK_BYTE, mp->rank, 1, here + 10, 10, RANK_BYTE, mp->rank, 1, mp->world, NULL));
    mp_barrier(mp->world);
}

/* Two ranks put words with equal halves to one another, and read each other's and their own. */
static void torn(struct mp *mp, rank_mem_t mem, char *part)
{
    enum { TURNS = 30000 };
    int to = mp->size - 1 - mp->rank; /* the one in the middle to itself */
    const uint64_t *mine = (const uint64_t *)(const void *)part;
    uint64_t seed = mp->seed + (uint64_t)mp->rank, v, got;
    uint32_t half, *low = (uint32_t *)(void *)(part + 12);
    double end = mp_now() + 1.0;
    int64_t seen = 0, changes = 0;

    memset(part, 0, 64);
    mp_barrier(mp->world);
    for (int i = 0; i < TURNS && (i < 100 || mp_now() < end); i++) {
        half = (uint32_t)mp_random(&seed);
        v = (uint64_t)half << 32 | half;
        MP_OK(rank_put(&v, 8, to, mem, 0));
        half = (half & 0xffff) | half << 16; /* a word of 32 bits, too */
        MP_OK(rank_put(&half, 4, to, mem, 12));
        if (i % 64 == 0)
            MP_OK(rank_flush(mem, to));
        v = __atomic_load_n(mine, __ATOMIC_ACQUIRE);
        if (v >> 32 != (uint32_t)v)
            mp_fail(__FILE__, __LINE__, "a word of my own is %016llx", (unsigned long long)v);
        changes += (int64_t)v != seen;
        seen = (int64_t)v;
        half = __atomic_load_n(low, __ATOMIC_ACQUIRE);
        if (half >> 16 != (half & 0xffff))
            mp_fail(__FILE__, __LINE__, "a short word of my own is %08x", half);
        if (i % 4)
            continue;
        MP_OK(rank_get(&got, 8, to, mem, 0));
        if (got >> 32 != (uint32_t)got)
            mp_fail(__FILE__, __LINE__, "a word of rank %d is %016llx", to, (unsigned long long)got);
        MP_OK(rank_get(&half, 4, to, mem, 12));
        if (half >> 16 != (half & 0xffff))
            mp_fail(__FILE__, __LINE__, "a short word of rank %d is %08x", to, half);
    }
    MP_OK(rank_flush(mem, to));
    mp_barrier(mp->world);
    MP_CHECK(__atomic_load_n(mine, __ATOMIC_ACQUIRE) != 0 && (changes > 0 || mp->size > 1));
    mp_barrier(mp->world);
}

int main(int argc, char **argv)
{
    rank_mem_t mem;
    struct mp mp;
    void *part;

    mp_start(&mp, &argc, argv);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, BYTES, &part, &mem));
    mp_case(&mp, "requests");
    requests(&mp, mem, part);
    mp_case(&mp, "overlaps");
    overlaps(&mp, mem, part);
    mp_case(&mp, "torn");
    torn(&mp, mem, part);
    MP_OK(rank_free(&mem));
    mp_end(&mp);
    return 0;
}
