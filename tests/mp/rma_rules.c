/*
 * rma_rules.c: what one-sided calls have in common on all channels: there is a request behind each nonblocking call,
 * with callbacks and cancel as others have; what would lie on itself is refused.
 */
#include "tests/mp/mp.h"

#include <sched.h>
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
    int calls = 0, told = 0;
    rank_request_t req;

    for (int to = mp->rank;; to = (mp->rank + 1) % mp->size) {
        for (size_t i = 0; i < 3; i++) {
            mp_fill(out, BYTES, i + 1);
            MP_OK(rank_iput(out, sizes[i], to, mem, 0, &req));
            MP_CHECK(req != RANK_REQUEST_NULL);
            MP_OK(rank_cancel(&req)); /* it has begun: nothing happens */
            MP_OK(rank_on_done(&req, count, &calls));
            MP_CHECK(req == RANK_REQUEST_NULL);
            await(&calls, ++told);
            MP_OK(rank_flush(mem, to));
            memset(in, 0, sizeof(in));
            MP_OK(rank_iget(in, sizes[i], to, mem, 0, &req));
            MP_CHECK(req != RANK_REQUEST_NULL);
            MP_OK(rank_cancel(&req));
            MP_OK(rank_on_done(&req, count, &calls));
            await(&calls, ++told);
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

/* Blocks that lie on one another are always found, pieces and buffers where builds look for them. */
static void overlaps(struct mp *mp, rank_mem_t mem)
{
    int to = (mp->rank + 1) % mp->size;
    static char here[4096];
    rank_piece_t p[3] = {{here + 100, 50, 0}, {here, 100, 50}, {here + 149, 10, 200}};

    MP_STATUS(rank_put_strided(here, 8, 64, 3, to, mem, 0, 63), RANK_ERR_ARG);
    MP_STATUS(rank_put_strided(here, 64, 64, 3, to, mem, 1000, -63), RANK_ERR_ARG);
    MP_STATUS(rank_get_strided(here, 0, 64, 3, to, mem, 0, 64), RANK_ERR_ARG);
    /* Read twice is fine, and so is one block. */
    MP_OK(rank_get_strided(here, 64, 64, 3, to, mem, 0, 8));
    MP_OK(rank_put_strided(here, 0, 64, 1, to, mem, 0, 0));
    MP_OK(rank_flush(mem, to));
    MP_OK(rank_getv(p, 2, to, mem));
    MP_OK(rank_putv(p, 3, to, mem));
    MP_OK(rank_flush(mem, to));
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
    MP_STATUS(rank_getv(p, 3, to, mem), RANK_ERR_ARG);
    MP_STATUS(rank_sendrecv(here, 10, RANK_BYTE, mp->rank, 1, here + 9, 10, RANK_BYTE, mp->rank, 1, mp->world, NULL),
              RANK_ERR_ARG);
    MP_STATUS(rank_sendrecv(here + 19, 10, RANK_BYTE, mp->rank, 1, here, 20, RANK_BYTE, mp->rank, 1, mp->world, NULL),
              RANK_ERR_ARG);
#endif
    MP_OK(rank_sendrecv(here, 10, RANK_BYTE, mp->rank, 1, here + 10, 10, RANK_BYTE, mp->rank, 1, mp->world, NULL));
    mp_barrier(mp->world);
}

int main(int argc, char **argv)
{
    rank_mem_t mem;
    struct mp mp;
    void *part;

    mp_start(&mp, &argc, argv);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, BYTES, 0, &part, &mem));
    mp_case(&mp, "requests");
    requests(&mp, mem, part);
    mp_case(&mp, "overlaps");
    overlaps(&mp, mem);
    MP_OK(rank_free(&mem));
    mp_end(&mp);
    return 0;
}
