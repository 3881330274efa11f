/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_user_ops.c: reduce by operations of the program, and move its datatypes.
 *
 * The operation composes maps, so a result shows the order of its operands. Each round draws collective, form, root,
 * size of an element and count. Datatype and operation of a nonblocking one are freed before it is complete.
 */
#include "tests/coll/affine_maps.h"
#include "tests/coll/mp_coll.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 120, GUARD = 64, PAD = 0x5a };

struct user_case {
    int kind, root; /* kind: reduce, allreduce, reduce_scatter */
    int64_t count, maps;
    bool in_place, blocking, commutative;
    uint64_t key;
    struct affine_op arg;
};

/* x -> x + c only: the maps commute. */
static struct affine_map input(const struct user_case *u, int rank, int64_t i)
{
    struct affine_map map = affine_input(u->key, rank, i);

    return u->commutative ? (struct affine_map){1, map.c} : map;
}

static struct affine_map result(const struct user_case *u, int size, int64_t i)
{
    struct affine_map sum = input(u, 0, i);

    for (int r = 1; r < size; r++)
        sum = affine_then(sum, input(u, r, i));
    return sum;
}

static rank_status_t user_call(const struct user_case *u, const void *in, void *out, rank_op_t op, rank_team_t team,
                               rank_request_t *req)
{
    rank_dtype_t d = u->arg.dtype;

    switch (u->kind) {
    case 0:
        return u->blocking ? rank_reduce(in, out, u->count, d, op, u->root, team)
                           : rank_ireduce(in, out, u->count, d, op, u->root, team, req);
    case 1:
        return u->blocking ? rank_allreduce(in, out, u->count, d, op, team)
                           : rank_iallreduce(in, out, u->count, d, op, team, req);
    default:
        return u->blocking ? rank_reduce_scatter(in, out, u->count, d, op, team)
                           : rank_ireduce_scatter(in, out, u->count, d, op, team, req);
    }
}

static void user_reduce(struct coll_test *t, struct user_case *u)
{
    int64_t maps = u->count * u->maps, n = maps * (u->kind == 2 ? t->size : 1), first = u->kind == 2 ? t->rank * maps : 0;
    size_t bytes = (size_t)n * sizeof(struct affine_map);
    struct affine_map *in = mp_alloc(bytes + GUARD), *out = mp_alloc(bytes + GUARD), *from, map;
    bool receives = u->kind != 0 || t->rank == u->root, in_place = u->in_place && receives;
    rank_request_t req = RANK_REQUEST_NULL;
    rank_op_t op;

    memset(in, PAD, bytes + GUARD);
    memset(out, PAD, bytes + GUARD);
    from = in_place ? out : in;
    for (int64_t i = 0; i < n; i++)
        from[i] = input(u, t->rank, i);
    MP_OK(rank_dtype_create(u->maps * (int64_t)sizeof(struct affine_map), &u->arg.dtype));
    MP_OK(rank_op_create(affine_compose, &u->arg, u->commutative ? RANK_OP_COMMUTATIVE : 0, &op));
    {
        rank_dtype_t d = u->arg.dtype;

        MP_OK(user_call(u, in_place ? RANK_IN_PLACE : in, receives ? out : NULL, op, t->team, &req));
        MP_OK(rank_dtype_free(&d));
    }
    MP_OK(rank_op_free(&op));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(u->arg.wrong, 0);
    for (int64_t i = 0; receives && i < maps; i++) {
        map = result(u, t->size, first + i);
        if (memcmp(&out[i], &map, sizeof(map)) != 0)
            mp_fail(__FILE__, __LINE__, "kind %d: map %lld of %lld elements of %lld maps is wrong (root %d, in place %d, commutative %d)",
                    u->kind, (long long)i, (long long)u->count, (long long)u->maps, u->root, u->in_place, u->commutative);
    }
    for (int64_t i = 0; !in_place && i < n; i++) {
        map = input(u, t->rank, i);
        MP_CHECK(memcmp(&in[i], &map, sizeof(map)) == 0);
    }
    for (int i = 0; i < GUARD; i++)
        MP_CHECK(((char *)out)[bytes + (size_t)i] == PAD);
    t->checks++;
    free(in);
    free(out);
}

/* Elements of any size through the calls that move data. */
static void user_move(struct coll_test *t, int64_t elem, int64_t count, int root)
{
    size_t bytes = (size_t)(elem * count);
    char *in = mp_alloc(bytes), *all = mp_alloc(bytes * (size_t)t->size);
    rank_envelope_t env;
    rank_dtype_t d;
    int right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;

    MP_OK(rank_dtype_create(elem, &d));
    mp_fill(in, bytes, (uint64_t)t->rank);
    MP_OK(rank_allgather(in, all, count, d, t->team));
    for (int r = 0; r < t->size; r++)
        MP_CHECK_EQ(mp_verify(all + (size_t)r * bytes, bytes, (uint64_t)r), -1);
    if (t->rank == root)
        mp_fill(all, bytes, 1000);
    MP_OK(rank_bcast(all, count, d, root, t->team));
    MP_CHECK_EQ(mp_verify(all, bytes, 1000), -1);
    MP_OK(rank_sendrecv(in, count, d, right, 5, all, count, d, left, 5, t->team, &env));
    MP_CHECK_EQ(env.count, count);
    MP_CHECK_EQ(mp_verify(all, bytes, (uint64_t)left), -1);
    MP_OK(rank_dtype_free(&d));
    t->checks += 3;
    free(in);
    free(all);
}

void coll_user_ops(struct coll_test *t)
{
    static const int64_t counts[] = {0, 1, 1, 2, 3, 7, 16, 61, 300, 2000};
    static const int64_t maps[] = {1, 1, 2, 5, 31, 256, 300};
    static const int64_t elems[] = {1, 3, 255, 256, 257, 5000, 1 << 20};
    int64_t rounds = t->full ? ROUNDS * 10 : mp_rounds(ROUNDS);

    for (int64_t k = 0; k < rounds; k++) {
        struct user_case u = {.kind = (int)mp_below(&t->seed, 3),
                              .root = (int)mp_below(&t->seed, (uint64_t)t->size),
                              .count = counts[mp_below(&t->seed, sizeof(counts) / sizeof(counts[0]))],
                              .maps = maps[mp_below(&t->seed, sizeof(maps) / sizeof(maps[0]))],
                              .in_place = mp_below(&t->seed, 2),
                              .blocking = mp_below(&t->seed, 2),
                              .commutative = mp_below(&t->seed, 3) == 0,
                              .key = mp_random(&t->seed)};

        if (u.count * u.maps > 20000)
            u.count = 20000 / u.maps;
        if (k == 0) { /* the largest element: above all scratch and segments */
            u.maps = (1 << 20) / (int64_t)sizeof(struct affine_map);
            u.count = 2;
        }
        u.arg.maps = u.maps;
        user_reduce(t, &u);
    }
    for (size_t i = 0; i < sizeof(elems) / sizeof(elems[0]); i++)
        user_move(t, elems[i], elems[i] > 5000 ? 1 : (int64_t)mp_below(&t->seed, 40), (int)mp_below(&t->seed, (uint64_t)t->size));
}
