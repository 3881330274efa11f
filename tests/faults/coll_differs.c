/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_differs.c: let one rank make another call; all return, without wrong data.
 *
 * Each scene has a team of its own, and two calls: one of the odd rank, and one of the others. A rank may have left its
 * call before the difference shows, if it receives nothing that depends on the odd rank; then its next collective fails.
 * The world goes on. First come named scenes, then random ones of all collectives and forms: those that do not block are
 * under way at once. Options:
 *   --world     only one call, of the world; then all ranks finalize
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 17, BLOCKING_SCENES = 12, SCENES_AT_ONCE = 40 };

struct scene {
    struct mp mp;
    rank_team_t team;
    bool odd; /* this rank makes the other call */
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

/* After the call the team's collectives fail, on each rank. */
static void check_after(struct scene *s, rank_status_t first)
{
    rank_status_t next = rank_barrier(s->team);
    int32_t failed = first != RANK_OK || next != RANK_OK, all = 0;

    MP_CHECK(first == RANK_OK || first == RANK_ERR_COLLECTIVE || first == RANK_ERR_TRUNCATED);
    MP_OK(rank_allreduce(&failed, &all, 1, RANK_INT32, RANK_MIN, s->mp.world));
    MP_CHECK_EQ(all, 1);
    MP_STATUS(rank_barrier(s->team), RANK_ERR_COLLECTIVE);
    MP_OK(rank_team_free(&s->team));
}

static void run_scene(struct scene *s, const char *name, rank_status_t (*call)(struct scene *))
{
    rank_status_t first;

    mp_case(&s->mp, name);
    MP_OK(rank_team_dup(s->mp.world, &s->team));
    MP_OK(rank_barrier(s->team)); /* the calls to come are number 2 */
    mp_barrier(s->mp.world);
    first = call(s);
    check_after(s, first);
}

/* ------------------------------------------------------------------------ random scenes */

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, ALLGATHERV, SCATTER, REDUCE_SCATTER, ALLTOALL, GATHERV, SCATTERV,
            ALLTOALLV, REDUCE_SCATTERV, SCAN, EXSCAN, KINDS };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
enum change { KIND, FORM, COUNT, NO_COUNT, DTYPE, OP, ROOT, CHANGES };

struct call {
    enum kind kind;
    enum form form;
    int64_t count;
    rank_dtype_t dtype;
    rank_op_t op;
    int root;
};

static bool own_counts(enum kind k)
{
    return k == GATHERV || k == SCATTERV || k == ALLTOALLV;
}

static bool rooted(enum kind k)
{
    return k == BCAST || k == REDUCE || k == GATHER || k == SCATTER || k == GATHERV || k == SCATTERV;
}

static bool reduces(enum kind k)
{
    return k == REDUCE || k == ALLREDUCE || k == REDUCE_SCATTER || k == REDUCE_SCATTERV || k == SCAN || k == EXSCAN;
}

/* Does rank me get data from rank from, or wait for it? */
static bool depends(const struct call *c, int me, int from)
{
    if (c->kind == BCAST || c->kind == SCATTER || c->kind == SCATTERV)
        return from == c->root && me != c->root;
    if (c->kind == REDUCE || c->kind == GATHER || c->kind == GATHERV)
        return me == c->root && from != me;
    if (c->kind == SCAN || c->kind == EXSCAN)
        return from < me;
    return me != from;
}

/* The odd rank's call. Returns false if ranks need not agree on that argument. */
static bool change_call(struct call *c, enum change what, int size, uint64_t *seed)
{
    enum kind before = c->kind;

    switch (what) {
    case KIND:
        c->kind = (enum kind)((c->kind + 1 + (int)mp_below(seed, KINDS - 1)) % KINDS);
        return c->kind != before;
    case FORM:
        c->form = (enum form)((c->form + 1 + (int)mp_below(seed, FORMS - 1)) % FORMS);
        return true;
    case COUNT:
        c->count += 1 + (int64_t)mp_below(seed, 3);
        return c->kind != BARRIER && !own_counts(c->kind);
    case NO_COUNT:
        c->count = 0;
        return c->kind != BARRIER && !own_counts(c->kind);
    case DTYPE:
        c->dtype = c->dtype == RANK_INT64 ? RANK_UINT64 : RANK_INT64;
        return c->kind != BARRIER;
    case OP:
        c->op = c->op == RANK_SUM ? RANK_MAX : RANK_SUM;
        return reduces(c->kind);
    default:
        c->root = (c->root + 1 + (int)mp_below(seed, (uint64_t)size - 1)) % size;
        return rooted(c->kind);
    }
}

#define FORMS_OF(name, ...)                                                                                                \
    (c->form == BLOCKING      ? rank_##name(__VA_ARGS__, team)                                                             \
     : c->form == NONBLOCKING ? rank_i##name(__VA_ARGS__, team, req)                                                       \
                              : rank_##name##_init(__VA_ARGS__, team, req))

/* Begin the call. *req is null if it blocks. */
static rank_status_t begin_call(const struct call *c, int size, int64_t *out, int64_t *in, rank_team_t team, rank_request_t *req)
{
    int64_t n = c->count, counts[64], displs[64];
    rank_dtype_t t = c->dtype;
    rank_status_t st;

    for (int r = 0; r < size; r++) {
        counts[r] = n;
        displs[r] = r * n;
    }
    *req = RANK_REQUEST_NULL;
    switch (c->kind) {
    case BARRIER:
        st = c->form == BLOCKING ? rank_barrier(team) : c->form == NONBLOCKING ? rank_ibarrier(team, req) : rank_barrier_init(team, req);
        break;
    case BCAST: st = FORMS_OF(bcast, out, n, t, c->root); break;
    case REDUCE: st = FORMS_OF(reduce, out, in, n, t, c->op, c->root); break;
    case ALLREDUCE: st = FORMS_OF(allreduce, out, in, n, t, c->op); break;
    case GATHER: st = FORMS_OF(gather, out, in, n, t, c->root); break;
    case ALLGATHER: st = FORMS_OF(allgather, out, in, n, t); break;
    case ALLGATHERV: st = FORMS_OF(allgatherv, out, n, in, counts, displs, t); break;
    case SCATTER: st = FORMS_OF(scatter, out, in, n, t, c->root); break;
    case REDUCE_SCATTER: st = FORMS_OF(reduce_scatter, out, in, n, t, c->op); break;
    case ALLTOALL: st = FORMS_OF(alltoall, out, in, n, t); break;
    case GATHERV: st = FORMS_OF(gatherv, out, n, in, counts, displs, t, c->root); break;
    case SCATTERV: st = FORMS_OF(scatterv, out, counts, displs, in, n, t, c->root); break;
    case ALLTOALLV: st = FORMS_OF(alltoallv, out, counts, displs, in, counts, displs, t); break;
    case REDUCE_SCATTERV: st = FORMS_OF(reduce_scatterv, out, in, counts, t, c->op); break;
    case SCAN: st = FORMS_OF(scan, out, in, n, t, c->op); break;
    default: st = FORMS_OF(exscan, out, in, n, t, c->op); break;
    }
    return st || c->form != PERSISTENT ? st : rank_start(req);
}

struct random_scene {
    struct scene base;
    struct call all, mine;
    int odd;
    enum change change;
    int64_t *out, *in;
    rank_request_t req;
    rank_status_t status;
};

static void begin_random(struct random_scene *x, const struct scene *s, enum form form, uint64_t *seed)
{
    static const int64_t counts[] = {1, 5, 100, 600, 3000, 20000};
    struct call other;
    size_t bytes;

    *x = (struct random_scene){.base = *s};
    do {
        x->all = (struct call){(enum kind)mp_below(seed, KINDS), form, counts[mp_below(seed, 6)], RANK_INT64, RANK_SUM,
                               (int)mp_below(seed, (uint64_t)s->mp.size)};
        x->odd = (int)mp_below(seed, (uint64_t)s->mp.size);
        x->change = (enum change)mp_below(seed, CHANGES);
        other = x->all;
    } while (!change_call(&other, x->change, s->mp.size, seed) || (form != BLOCKING && other.form == BLOCKING));
    x->mine = s->mp.rank == x->odd ? other : x->all;
    bytes = (size_t)(x->mine.count + 1) * (size_t)s->mp.size * sizeof(int64_t);
    x->out = mp_alloc(bytes);
    x->in = mp_alloc(bytes);
    mp_fill(x->out, bytes, (uint64_t)s->mp.rank);
    MP_OK(rank_team_dup(s->mp.world, &x->base.team));
    x->status = begin_call(&x->mine, s->mp.size, x->out, x->in, x->base.team, &x->req);
}

/* Check a rank's result. Success needs a call that does not depend on the odd rank. */
static void check_random(struct random_scene *x)
{
    int me = x->base.mp.rank, size = x->base.mp.size;
    const struct call *c = &x->mine;
    bool may_succeed = true;
    size_t bytes = (size_t)c->count * sizeof(int64_t);

    if (x->req && x->status)
        MP_OK(rank_request_free(&x->req));
    else if (x->req)
        x->status = rank_wait(&x->req, NULL);
    if (x->req)
        MP_OK(rank_request_free(&x->req));
    for (int r = 0; r < size && c->count; r++)
        may_succeed = may_succeed && (!depends(c, me, r) || (r != x->odd && me != x->odd));
    if (x->status == RANK_OK && !may_succeed)
        mp_fail(__FILE__, __LINE__, "collective %d, form %d, count %lld, root %d: change %d of rank %d: success", c->kind, c->form,
                (long long)x->all.count, x->all.root, x->change, x->odd);
    if (x->status == RANK_OK && c->kind == BCAST)
        MP_CHECK_EQ(mp_verify(x->out, bytes, (uint64_t)c->root), -1);
    check_after(&x->base, x->status);
    free(x->out);
    free(x->in);
}

static void run_random(struct scene *s)
{
    static struct random_scene x[SCENES_AT_ONCE];
    uint64_t seed = s->mp.seed;

    mp_case(&s->mp, "random blocking");
    for (int i = 0; i < BLOCKING_SCENES; i++) {
        begin_random(&x[0], s, BLOCKING, &seed);
        check_random(&x[0]);
    }
    mp_case(&s->mp, "random, at once");
    for (int i = 0; i < SCENES_AT_ONCE; i++)
        begin_random(&x[i], s, i % 2 ? PERSISTENT : NONBLOCKING, &seed);
    for (int i = 0; i < SCENES_AT_ONCE; i++)
        check_random(&x[i]);
}

int main(int argc, char **argv)
{
    struct scene s = {.out = NULL};

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
        run_random(&s);
    }
    free(s.out);
    free(s.in);
    mp_end(&s.mp);
    return 0;
}
