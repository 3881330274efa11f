/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finalize_after_death.c: finalize alone after a death while others wait.
 * Their waits end at once, as the rank is gone.
 *
 *   --in recv|ssend|signal|fetch-add|get   what the others do
 */
#include "tests/mp/mp.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double in_time = 8.0;
#else
static const double in_time = 3.0; /* a second for the death, one for what comes of it */
#endif

enum { LEAVER = 1, BYTES = 300000 };

static char mine[BYTES] __attribute__((aligned(64))), buf[BYTES];

struct scene {
    struct mp mp;
    double when;
    rank_mem_t own, far;
};

/* All are connected, and have the leaver's key. */
static void meet(struct scene *s)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    int64_t n;

    for (int k = 1; k < s->mp.size; k++) {
        int to = (s->mp.rank + k) % s->mp.size, from = (s->mp.rank - k + s->mp.size) % s->mp.size;
        int64_t out = k, in = 0;
        MP_OK(rank_sendrecv(&out, 1, RANK_INT64, to, 5, &in, 1, RANK_INT64, from, 5, s->mp.world, NULL));
    }
    MP_OK(rank_reg(mine, BYTES, &s->own));
    MP_OK(rank_rkey_pack(s->own, key, &len));
    n = (int64_t)len;
    MP_OK(rank_bcast(&n, 1, RANK_INT64, LEAVER, s->mp.world));
    MP_OK(rank_bcast(key, n, RANK_BYTE, LEAVER, s->mp.world));
    MP_OK(rank_rkey_open(s->mp.world, LEAVER, key, (size_t)n, &s->far));
    mp_barrier(s->mp.world);
}

static rank_status_t await(struct scene *s, const char *in)
{
    int64_t one = 1, was = 0;
    rank_status_t st = RANK_OK;

    /* a name that is none of these ends at once, with RANK_OK */
    if (strcmp(in, "recv") == 0)
        return rank_recv(buf, 8, RANK_BYTE, LEAVER, 1, s->mp.world, NULL);
    if (strcmp(in, "ssend") == 0)
        return rank_ssend(buf, BYTES, RANK_BYTE, LEAVER, 1, s->mp.world);
    if (strcmp(in, "signal") == 0)
        return rank_signal_wait(s->own, 0, RANK_CMP_NE, 0, LEAVER, NULL);
    while (!st && strcmp(in, "get") == 0)
        st = rank_get(buf, BYTES, LEAVER, s->far, 0);
    while (!st && strcmp(in, "fetch-add") == 0)
        st = rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, LEAVER, s->far, 8 * (int64_t)s->mp.rank, &was);
    return st;
}

static const char *text_option(int argc, char **argv, const char *option)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            return argv[i + 1];
    }
    return "";
}

int main(int argc, char **argv)
{
    const char *in = text_option(argc, argv, "--in");
    struct scene s = {0};
    rank_status_t st;
    double late;

    mp_start(&s.mp, &argc, argv);
    mp_case(&s.mp, in);
    meet(&s);
    if (s.mp.rank == 0)
        s.when = mp_now() + 0.1;
    MP_OK(rank_bcast(&s.when, 1, RANK_F64, 0, s.mp.world));
    if (s.mp.rank == s.mp.size - 1)
        mp_die_at(&s.when);
    if (s.mp.rank == LEAVER || s.mp.rank == s.mp.size - 1) {
        MP_STATUS(rank_recv(buf, 8, RANK_BYTE, s.mp.size - 1, 2, s.mp.world, NULL), RANK_ERR_PEER_DEAD);
        mp_end_survivor(&s.mp); /* the leaver: the other one is dead, or dies while it waits for itself */
        return 0;
    }
    st = await(&s, in);
    late = mp_now() - s.when;
    if (st != RANK_ERR_PEER_DEAD)
        mp_fail(__FILE__, __LINE__, "%s gave %d (%s), not RANK_ERR_PEER_DEAD", in, (int)st,
                rank_status_string(st));
    if (late < 0 || late > in_time)
        mp_fail(__FILE__, __LINE__, "%s: reported after %.3f s", in, late);
    /* And each later call. */
    MP_STATUS(rank_recv(buf, 8, RANK_BYTE, LEAVER, 3, s.mp.world, NULL), RANK_ERR_PEER_DEAD);
    mp_end_survivor(&s.mp);
    return 0;
}
