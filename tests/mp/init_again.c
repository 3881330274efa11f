/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init_again.c: initialize and finalize many times.
 * Nothing grows but the blobs that libpmix keeps (--growth: bytes a round), and handles of an earlier life are refused.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
/* libc frames end a fast unwinding, so that it hides libpmix behind its vasprintf from lib/lsan.supp. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}
#endif

/* Rounds until memory and descriptors are at their level, and what may come on top of it. */
enum { WARM = 20, GROWTH_KB = 512 };

struct handles {
    rank_team_t world, half;
    rank_request_t receive, send;
    rank_mem_t mem;
};

/* A message to the neighbour, sums, memory; leaves objects that rank_finalize frees. */
static void one_life(struct handles *h, int64_t round)
{
    int64_t mine, got = -1, sum = -1;
    rank_envelope_t env;
    int me, n;
    void *at;

    h->world = rank_world();
    me = rank_team_rank(h->world);
    n = rank_team_size(h->world);
    mp_barrier(h->world);
    mine = round * n + me;
    MP_OK(rank_sendrecv(&mine, 1, RANK_INT64, (me + 1) % n, round, &got, 1, RANK_INT64, (me + n - 1) % n, round,
                        h->world, &env));
    MP_CHECK_EQ(got, round * n + (me + n - 1) % n);
    MP_OK(rank_allreduce(&mine, &sum, 1, RANK_INT64, RANK_SUM, h->world));
    MP_CHECK_EQ(sum, round * n * n + (int64_t)n * (n - 1) / 2);
    MP_OK(rank_team_split(h->world, me % 2, 0, &h->half));
    MP_OK(rank_alloc(h->world, RANK_MEM_HOST, 4096, &at, &h->mem));
    MP_OK(rank_put(&mine, 8, (me + 1) % n, h->mem, 0));
    MP_OK(rank_flush(h->mem, RANK_ALL));
    MP_OK(rank_barrier(h->world));
    MP_CHECK_EQ(*(int64_t *)at, round * n + (me + n - 1) % n);
    MP_OK(rank_irecv(&got, 1, RANK_INT64, 0, 1, h->half, &h->receive)); /* never matched */
    MP_OK(rank_isend(&mine, 1, RANK_INT64, me, 2, h->world, &h->send));
}

/* Handles of the life before this one. */
static void refuse(const struct handles *old)
{
    struct handles h = *old;
    int64_t a = 0;

    MP_STATUS(rank_send(&a, 1, RANK_INT64, 0, 0, h.world), RANK_ERR_HANDLE);
    MP_STATUS(rank_barrier(h.half), RANK_ERR_HANDLE);
    MP_STATUS(rank_team_free(&h.half), RANK_ERR_HANDLE);
    MP_STATUS(rank_wait(&h.receive, NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_wait(&h.send, NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_put(&a, 8, 0, h.mem, 0), RANK_ERR_HANDLE);
    MP_STATUS(rank_free(&h.mem), RANK_ERR_HANDLE);
}

int main(int argc, char **argv)
{
    int64_t rounds = mp_rounds(mp_option(argc, argv, "--rounds", 1000)), kb = 0, now;
    double seconds = (double)mp_option(argc, argv, "--seconds", 0), begin = mp_now();
    struct handles old = {0}, new;
    int fds = 0, go = 1;

    setenv("RANK_ERRORS", "quiet", 1);
    for (int64_t r = 0; r < rounds && go; r++) {
        MP_OK(rank_init(NULL));
        MP_CHECK_EQ(rank_initialized(), 1);
        one_life(&new, r);
        if (r)
            refuse(&old);
        old = new;
        if (seconds > 0) { /* rank 0 decides when it is enough */
            go = r < WARM || mp_now() - begin < seconds;
            MP_OK(rank_bcast(&go, 1, RANK_INT32, 0, new.world));
        }
        MP_OK(rank_finalize());
        MP_STATUS(rank_finalize(), RANK_ERR_STATE);
        if (r == WARM) {
            kb = mp_status_kb("VmRSS");
            fds = mp_count_fds();
        }
        if (r > WARM && mp_count_fds() > fds)
            mp_fail(__FILE__, __LINE__, "%d descriptors after %lld rounds, %d before", mp_count_fds(), (long long)r, fds);
        if (!go)
            rounds = r + 1;
    }
    now = mp_status_kb("VmRSS");
    printf("%lld rounds: %lld kB, then %lld kB\n", (long long)rounds, (long long)kb, (long long)now);
#ifndef __SANITIZE_ADDRESS__
    if (rounds > WARM && now - kb > GROWTH_KB + rounds * mp_option(argc, argv, "--growth", 0) / 1000)
        mp_fail(__FILE__, __LINE__, "%lld kB after %lld rounds, %lld before", (long long)now, (long long)rounds, (long long)kb);
#endif
    printf("mp: done\n");
    return 0;
}
