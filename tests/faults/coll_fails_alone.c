/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_fails_alone.c: let allocations of one rank fail; no collective hangs.
 *
 * Each round has a team of its own. Its victim's allocation number k fails, for k from 0 until the call makes no such
 * allocation. Then the other ranks have the result, or RANK_ERR_COLLECTIVE within a second, and so has each later
 * collective of that team. The world goes on. A round that takes longer is repeated: a busy machine delays one, a fault
 * in the library all of them. Options:
 *   --earlier   instead, a call that is truncated on one rank, and an earlier one that completes
 *   --teams N   that for new teams alone, until each allocation has failed N times, on all ranks together
 */
#include "tests/mp/mp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 40, ROUNDS_MAX = 200, TRIES = 3 };
static const double limit_s = 1;

/* ------------------------------------------------------------- failing allocations */

static _Thread_local long fails_in = -1; /* allocations before the one that fails; -1: none does */
static _Thread_local bool has_failed;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_FAIL 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

#pragma GCC visibility push(default)
void *malloc(size_t n);
void *calloc(size_t n, size_t each);
void *realloc(void *p, size_t n);
void *aligned_alloc(size_t align, size_t n);
#pragma GCC visibility pop

static bool allocation_fails(void)
{
    if (fails_in < 0 || fails_in-- > 0)
        return false;
    has_failed = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return allocation_fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    return allocation_fails() ? NULL : __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
    return allocation_fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return allocation_fails() ? NULL : __libc_memalign(align, n);
}
#else
#define CAN_FAIL 0
#endif

/* ------------------------------------------------------------------------- scenes */

struct scene {
    struct mp mp;
    rank_team_t team;
    int64_t count;
    double *out, *in;
    int failures; /* of allocations here */
};

static rank_status_t large_allreduce(struct scene *s)
{
    return rank_allreduce(s->out, s->in, s->count, RANK_F64, RANK_SUM, s->team);
}

static rank_status_t large_reduce(struct scene *s)
{
    return rank_reduce(s->out, s->in, s->count, RANK_F64, RANK_SUM, 0, s->team);
}

static rank_status_t blocks_to_all(struct scene *s)
{
    return rank_alltoall(s->out, s->in, s->count / s->mp.size, RANK_F64, s->team);
}

/* Through cells: of equal blocks, and of blocks with lengths of their own. */
static rank_status_t short_allreduce(struct scene *s)
{
    return rank_allreduce(s->out, s->in, 4096, RANK_F64, RANK_SUM, s->team);
}

static rank_status_t own_blocks(struct scene *s)
{
    int64_t counts[16], displs[16];

    MP_CHECK(s->mp.size <= 16);
    for (int r = 0; r < s->mp.size; r++) {
        counts[r] = 4096 + r;
        displs[r] = r * 5000;
    }
    return rank_allgatherv(s->out, counts[s->mp.rank], s->in, counts, displs, RANK_F64, s->team);
}

/* A request that is started twice, if it can be made. */
static rank_status_t persistent(struct scene *s)
{
    rank_request_t req = RANK_REQUEST_NULL;
    rank_status_t st = rank_reduce_scatter_init(s->out, s->in, s->count / s->mp.size, RANK_F64, RANK_SUM, s->team, &req);

    for (int i = 0; i < 2 && !st; i++) {
        st = rank_start(&req);
        st = st ? st : rank_wait(&req, NULL);
    }
    if (req != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(&req));
    return st;
}

/* More schedules and requests than any pool has. */
static rank_status_t many_at_once(struct scene *s)
{
    rank_request_t req[MANY];
    rank_status_t st = RANK_OK, first = RANK_OK;
    int n = 0;

    while (n < MANY && !st) {
        st = rank_iallreduce(&s->out[n], &s->in[n], 1, RANK_F64, RANK_SUM, s->team, &req[n]);
        n += !st;
    }
    for (int i = 0; i < n; i++) {
        rank_status_t one = rank_wait(&req[i], NULL);
        first = first ? first : one;
    }
    return first ? first : st;
}

static rank_status_t new_team(struct scene *s)
{
    rank_team_t team = RANK_TEAM_NULL;
    rank_status_t st = rank_team_split(s->team, 0, -s->mp.rank, &team);

    if (st)
        return st;
    st = rank_barrier(team);
    MP_OK(rank_team_free(&team));
    return st;
}

/* Run the call with failing allocations of each rank; ends when all have been made. */
static void run_scene(struct scene *s, const char *name, rank_status_t (*call)(struct scene *), bool keeps_team)
{
    rank_team_t world = s->mp.world;
    int tries = 0; /* of this round; each took too long */

    mp_case(&s->mp, name);
    for (int k = 0; k < ROUNDS_MAX; k++) {
        int victim = k % s->mp.size;
        int32_t mine[3], all[3] = {0, 0, 0};
        rank_status_t st, next;
        double begun, took;

        MP_OK(rank_team_dup(world, &s->team));
        mp_barrier(world);
        begun = mp_now();
        has_failed = false;
        fails_in = s->mp.rank == victim ? k / s->mp.size : -1;
        st = call(s);
        fails_in = -1;
        took = mp_now() - begun;
        if (st && s->mp.rank != victim)
            MP_CHECK(st == RANK_ERR_COLLECTIVE || (keeps_team && st == RANK_ERR_NO_MEMORY));
        mine[0] = st != RANK_OK;
        mine[1] = has_failed;
        mine[2] = took > limit_s;
        s->failures += has_failed;
        MP_OK(rank_allreduce(mine, all, 3, RANK_INT32, RANK_MAX, world));
        tries = all[2] ? tries + 1 : 0;
        if (mine[2] && tries == TRIES)
            mp_fail(__FILE__, __LINE__, "allocation %d of rank %d: the call took %.1f s", k / s->mp.size, victim, took);
        next = rank_barrier(s->team);
        if (all[0] && !keeps_team)
            MP_CHECK_EQ(next, RANK_ERR_COLLECTIVE);
        else if (!all[0])
            MP_CHECK_EQ(next, RANK_OK);
        MP_OK(rank_team_free(&s->team));
        if (tries > 0)
            k--;
        else if (!all[1] && victim == s->mp.size - 1)
            break;
    }
}

/* A call fails on rank 0 while an earlier one waits for the last rank. The earlier one completes. */
static void test_earlier(struct scene *s)
{
    const int last = s->mp.size - 1;
    int64_t scounts[16], rcounts[16], displs[16];
    double sent[32] = {0}, received[32];
    rank_request_t first, second;
    rank_status_t st;
    char go = 0;

    MP_CHECK(s->mp.size >= 3 && s->mp.size <= 16);
    for (int r = 0; r <= last; r++) {
        scounts[r] = s->mp.rank == 1 && r == 0 ? 2 : 1; /* more than rank 0 expects */
        rcounts[r] = 1;
        displs[r] = 2 * r;
    }
    MP_OK(rank_team_dup(s->mp.world, &s->team));
    if (s->mp.rank == last)
        MP_OK(rank_recv(&go, 1, RANK_BYTE, 0, 0, s->mp.world, NULL));
    MP_OK(rank_iallreduce(s->out, s->in, s->count, RANK_F64, RANK_SUM, s->team, &first));
    st = rank_ialltoallv(sent, scounts, displs, received, rcounts, displs, RANK_F64, s->team, &second);
    if (s->mp.rank == 0) {
        MP_OK(st);
        MP_STATUS(rank_wait(&second, NULL), RANK_ERR_TRUNCATED);
        MP_OK(rank_send(&go, 1, RANK_BYTE, last, 0, s->mp.world));
    }
    MP_OK(rank_wait(&first, NULL));
    for (int64_t i = 0; i < s->count; i++)
        MP_CHECK(s->in[i] == s->mp.size);
    if (s->mp.rank > 0) {
        st = st ? st : rank_wait(&second, NULL);
        MP_STATUS(st, RANK_ERR_COLLECTIVE);
    }
    MP_OK(rank_team_free(&s->team));
}

int main(int argc, char **argv)
{
    struct scene s = {.count = 1 << 20};

    mp_start(&s.mp, &argc, argv);
    s.out = mp_alloc((size_t)s.count * sizeof(double));
    s.in = mp_alloc((size_t)s.count * sizeof(double));
    for (int64_t i = 0; i < s.count; i++)
        s.out[i] = 1;
    if (!CAN_FAIL && s.mp.rank == 0)
        printf("no allocation fails in this build\n");
    if (mp_option(argc, argv, "--teams", 0) > 0) { /* a failed team keeps none of the node's arenas */
        for (int64_t i = mp_option(argc, argv, "--teams", 0); i > 0; i -= s.mp.size)
            run_scene(&s, "new team", new_team, true);
        free(s.out);
        free(s.in);
        mp_end(&s.mp);
        return 0;
    }
    if (mp_flag(argc, argv, "--earlier")) {
        test_earlier(&s);
        free(s.out);
        free(s.in);
        mp_end(&s.mp);
        return 0;
    }
    run_scene(&s, "many at once", many_at_once, false);
    run_scene(&s, "allreduce", large_allreduce, false);
    run_scene(&s, "reduce", large_reduce, false);
    run_scene(&s, "alltoall", blocks_to_all, false);
    run_scene(&s, "allreduce in cells", short_allreduce, false);
    run_scene(&s, "allgatherv", own_blocks, false);
    run_scene(&s, "persistent", persistent, false);
    run_scene(&s, "new team", new_team, true);
    MP_CHECK(!CAN_FAIL || s.failures > 0);
    free(s.out);
    free(s.in);
    mp_end(&s.mp);
    return 0;
}
