/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_differs.c: let one rank make another collective call; all return in time.
 *
 * Each scene has a team of its own, and two calls: one of the odd rank, the last one, and one of the others. A rank may
 * have left its call before the difference shows; then its next collective fails. The world goes on. Options:
 *   --checked   RANK_CHECK is set: the call itself fails on every rank
 *   --world     only one call, of the world; then all ranks finalize
 */
#include "tests/mp/mp.h"

#include <stdlib.h>

enum { LARGE = 1 << 17 };
static const double limit_s = 1;

struct scene {
    struct mp mp;
    rank_team_t team;
    bool odd; /* this rank makes the other call */
    bool checked;
    int64_t *out, *in;
};

static rank_status_t other_kind(struct scene *s)
{
    return s->odd ? rank_barrier(s->team) : rank_allreduce(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->team);
}

static rank_status_t other_class(struct scene *s)
{
    return s->odd ? rank_barrier(s->team) : rank_bcast(s->out, 1, RANK_INT64, s->mp.size - 1, s->team);
}

static rank_status_t left_early(struct scene *s)
{
    return s->odd ? rank_bcast(s->out, 1, RANK_INT64, s->mp.size - 1, s->team) : rank_barrier(s->team);
}

static rank_status_t other_count(struct scene *s)
{
    return rank_allreduce(s->out, s->in, s->odd ? 3 : 2, RANK_INT64, RANK_SUM, s->team);
}

static rank_status_t other_dtype(struct scene *s)
{
    return rank_allgather(s->out, s->in, 1, s->odd ? RANK_UINT64 : RANK_INT64, s->team);
}

static rank_status_t other_op(struct scene *s)
{
    return rank_reduce(s->out, s->in, 1, RANK_INT64, s->odd ? RANK_MAX : RANK_MIN, 0, s->team);
}

/* Both roots leave at once. */
static rank_status_t other_root(struct scene *s)
{
    return rank_bcast(s->out, 2, RANK_INT64, s->odd ? s->mp.size - 1 : 0, s->team);
}

/* In shared memory, and by messages. */
static rank_status_t other_path(struct scene *s)
{
    return rank_allreduce(s->out, s->in, s->odd ? LARGE : 4, RANK_INT64, RANK_SUM, s->team);
}

static rank_status_t other_large_count(struct scene *s)
{
    return rank_bcast(s->out, s->odd ? LARGE : LARGE - 1, RANK_INT64, 0, s->team);
}

static rank_status_t large_other_kind(struct scene *s)
{
    return s->odd ? rank_bcast(s->out, LARGE, RANK_INT64, 0, s->team)
                  : rank_allreduce(s->out, s->in, LARGE, RANK_INT64, RANK_SUM, s->team);
}

static rank_status_t nonblocking(struct scene *s)
{
    rank_request_t req;
    rank_status_t st;

    if (!s->odd)
        return rank_barrier(s->team);
    st = rank_ibcast(s->out, 1, RANK_INT64, 0, s->team, &req);
    return st ? st : rank_wait(&req, NULL);
}

static rank_status_t no_elements(struct scene *s)
{
    return rank_allreduce(s->out, s->in, s->odd ? 0 : 5, RANK_INT64, RANK_SUM, s->team);
}

static void run_scene(struct scene *s, const char *name, rank_status_t (*call)(struct scene *))
{
    rank_status_t first, next;
    int32_t failed, all = 0;
    double begun;

    mp_case(&s->mp, name);
    MP_OK(rank_team_dup(s->mp.world, &s->team));
    MP_OK(rank_barrier(s->team)); /* the calls to come are number 2 */
    mp_barrier(s->mp.world);
    begun = mp_now();
    first = call(s);
    next = rank_barrier(s->team);
    if (mp_now() - begun > limit_s)
        mp_fail(__FILE__, __LINE__, "the call took %.2f s", mp_now() - begun);
    MP_CHECK(first == RANK_OK || first == RANK_ERR_COLLECTIVE || (first == RANK_ERR_TRUNCATED && !s->checked));
    if (s->checked)
        MP_CHECK_EQ(first, RANK_ERR_COLLECTIVE);
    failed = first != RANK_OK || next != RANK_OK;
    MP_OK(rank_allreduce(&failed, &all, 1, RANK_INT32, RANK_MIN, s->mp.world));
    MP_CHECK_EQ(all, 1);
    MP_STATUS(rank_barrier(s->team), RANK_ERR_COLLECTIVE);
    MP_OK(rank_team_free(&s->team));
}

int main(int argc, char **argv)
{
    struct scene s = {.checked = mp_flag(argc, argv, "--checked")};

    mp_start(&s.mp, &argc, argv);
    s.odd = s.mp.rank == s.mp.size - 1;
    s.out = mp_alloc(sizeof(int64_t) * LARGE);
    s.in = mp_alloc(sizeof(int64_t) * LARGE);
    for (int64_t i = 0; i < LARGE; i++)
        s.out[i] = i;
    if (mp_flag(argc, argv, "--world")) {
        s.team = s.mp.world;
        MP_STATUS(other_count(&s), RANK_ERR_COLLECTIVE);
    } else {
        run_scene(&s, "kind", other_kind);
        run_scene(&s, "class", other_class);
        run_scene(&s, "left early", left_early);
        run_scene(&s, "count", other_count);
        run_scene(&s, "dtype", other_dtype);
        run_scene(&s, "op", other_op);
        run_scene(&s, "root", other_root);
        run_scene(&s, "path", other_path);
        run_scene(&s, "large count", other_large_count);
        run_scene(&s, "large kind", large_other_kind);
        run_scene(&s, "nonblocking", nonblocking);
        run_scene(&s, "no elements", no_elements);
    }
    free(s.out);
    free(s.in);
    mp_end(&s.mp);
    return 0;
}
