/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_restarts.c: start persistent collectives again and again, in random order.
 *
 * Each slot holds a request of a random kind, root and size. All ranks draw the same program: make a slot anew, start one
 * or several, or make another collective call. Each rank waits in an order of its own. Inputs differ in each start.
 */
#include "tests/coll/affine_maps.h"
#include "tests/coll/mp_coll.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8, ROUNDS = 400, GAP = 3 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, SCAN, EXSCAN, ALLGATHERV, GATHERV, SCATTERV, ALLTOALLV,
       REDUCE_SCATTERV, KINDS };
enum { PAIR = 1 << 20 /* ALLTOALLV: elements for rank r begin at r times this in the numbering of inputs */ };

struct slot {
    int kind, root;
    bool in_place, user, started;
    int64_t count;
    int64_t *counts, *displs; /* of blocks with lengths of their own */
    uint64_t key;             /* of the present start */
    uint64_t *in, *out;
    rank_request_t req;
};

static uint64_t value(uint64_t key, int rank, int64_t i)
{
    return affine_mix(key + (uint64_t)rank * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xd1342543de82ef95u);
}

static void add(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg)
{
    (void)dtype, (void)arg;
    for (int64_t i = 0; i < count; i++)
        ((uint64_t *)inout)[i] += ((const uint64_t *)in)[i];
}

static bool reduces(int kind)
{
    return kind == REDUCE || kind == ALLREDUCE || kind == REDUCE_SCATTER || kind == REDUCE_SCATTERV || kind == SCAN || kind == EXSCAN;
}

static bool has_counts(int kind)
{
    return kind >= ALLGATHERV;
}

/* Elements of the larger buffer of any kind. */
static int64_t room_of(const struct coll_test *t, const struct slot *s)
{
    return (s->count + t->size + GAP) * t->size;
}

/* -------------------------------------------------------------------- the calls */

static void init(struct coll_test *t, struct slot *s)
{
    rank_dtype_t d = RANK_UINT64;
    rank_op_t op = RANK_SUM;
    rank_team_t w = t->team;
    bool root = t->rank == s->root;
    const void *in = s->in;
    void *out = s->out;
    int64_t own = s->counts[t->rank], n = s->count;
    rank_status_t st = RANK_OK;

    if (s->user)
        MP_OK(rank_op_create(add, NULL, RANK_OP_COMMUTATIVE, &op));
    if (s->in_place && (s->kind == ALLREDUCE || s->kind == ALLGATHER || s->kind == ALLGATHERV || s->kind == ALLTOALL || s->kind == ALLTOALLV ||
                        s->kind == REDUCE_SCATTER ||
                        s->kind == REDUCE_SCATTERV || s->kind == SCAN || s->kind == EXSCAN || (root && (s->kind == REDUCE || s->kind == GATHER || s->kind == GATHERV))))
        in = RANK_IN_PLACE;
    if (s->in_place && root && (s->kind == SCATTER || s->kind == SCATTERV))
        out = RANK_IN_PLACE;
    switch (s->kind) {
    case BARRIER: st = rank_barrier_init(w, &s->req); break;
    case BCAST: st = rank_bcast_init(out, n, d, s->root, w, &s->req); break;
    case REDUCE: st = rank_reduce_init(in, out, n, d, op, s->root, w, &s->req); break;
    case ALLREDUCE: st = rank_allreduce_init(in, out, n, d, op, w, &s->req); break;
    case GATHER: st = rank_gather_init(in, out, n, d, s->root, w, &s->req); break;
    case ALLGATHER: st = rank_allgather_init(in, out, n, d, w, &s->req); break;
    case SCATTER: st = rank_scatter_init(in, out, n, d, s->root, w, &s->req); break;
    case REDUCE_SCATTER: st = rank_reduce_scatter_init(in, out, n, d, op, w, &s->req); break;
    case ALLTOALL: st = rank_alltoall_init(in, out, n, d, w, &s->req); break;
    case SCAN: st = rank_scan_init(in, out, n, d, op, w, &s->req); break;
    case EXSCAN: st = rank_exscan_init(in, out, n, d, op, w, &s->req); break;
    case REDUCE_SCATTERV: st = rank_reduce_scatterv_init(in, out, s->counts, d, op, w, &s->req); break;
    case ALLGATHERV: st = rank_allgatherv_init(in, own, out, s->counts, s->displs, d, w, &s->req); break;
    case GATHERV: st = rank_gatherv_init(in, own, out, root ? s->counts : NULL, root ? s->displs : NULL, d, s->root, w, &s->req); break;
    case ALLTOALLV: st = rank_alltoallv_init(in, s->counts, s->displs, out, s->counts, s->displs, d, w, &s->req); break;
    default: st = rank_scatterv_init(in, root ? s->counts : NULL, root ? s->displs : NULL, out, own, d, s->root, w, &s->req); break;
    }
    MP_OK(st);
    if (s->user)
        MP_OK(rank_op_free(&op)); /* the request keeps it */
}

static void make_slot(struct coll_test *t, struct slot *s)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 64, 65, 513, 9000};
    int64_t at = 0;

    s->kind = (int)mp_below(&t->seed, KINDS);
    s->root = (int)mp_below(&t->seed, (uint64_t)t->size);
    s->count = sizes[mp_below(&t->seed, mp_below(&t->seed, 6) ? 7 : 8)];
    s->in_place = mp_below(&t->seed, 3) == 0;
    s->user = reduces(s->kind) && mp_below(&t->seed, 3) == 0;
    s->counts = mp_alloc((size_t)t->size * sizeof(int64_t));
    s->displs = mp_alloc((size_t)t->size * sizeof(int64_t));
    for (int r = t->size; r-- > 0;) { /* the blocks lie backwards, with gaps */
        s->counts[r] = s->count ? (s->count + r + (s->kind == ALLTOALLV ? t->rank : 0)) % (s->count + 2) : 0;
        s->displs[r] = at;
        at += s->counts[r] + GAP;
    }
    s->in = mp_alloc((size_t)room_of(t, s) * 8);
    s->out = mp_alloc((size_t)room_of(t, s) * 8);
    {
        int64_t *counts = s->counts, *displs = s->displs;
        size_t bytes = (size_t)t->size * sizeof(int64_t);

        s->counts = mp_alloc(bytes);
        s->displs = mp_alloc(bytes);
        memcpy(s->counts, counts, bytes);
        memcpy(s->displs, displs, bytes);
        init(t, s);
        memset(s->counts, 0xff, bytes); /* they are copied */
        memset(s->displs, 0xff, bytes);
        free(s->counts);
        free(s->displs);
        s->counts = counts;
        s->displs = displs;
    }
}

static void free_slot(struct slot *s)
{
    MP_OK(rank_request_free(&s->req));
    MP_CHECK(s->req == RANK_REQUEST_NULL);
    free(s->counts);
    free(s->displs);
    free(s->in);
    free(s->out);
    memset(s, 0, sizeof(*s));
}

/* Write the inputs of the next start; no result remains from the last one. */
static void fill(struct coll_test *t, struct slot *s)
{
    int64_t room = room_of(t, s), n = s->count;
    bool root = t->rank == s->root;
    uint64_t *in = s->in;
    int64_t at = 0;

    s->key = mp_random(&t->seed);
    memset(s->in, 0x11, (size_t)room * 8);
    memset(s->out, 0x22, (size_t)room * 8);
    switch (s->kind) {
    case BARRIER: return;
    case BCAST:
        if (root)
            for (int64_t i = 0; i < n; i++)
                s->out[i] = value(s->key, t->rank, i);
        return;
    case ALLREDUCE: case ALLTOALL: case REDUCE_SCATTER: case REDUCE_SCATTERV: case SCAN: case EXSCAN: in = s->in_place ? s->out : s->in; break;
    case REDUCE: in = s->in_place && root ? s->out : s->in; break;
    case ALLGATHER: at = s->in_place ? t->rank * n : 0; in = s->in_place ? s->out : s->in; break;
    case GATHER: at = s->in_place && root ? t->rank * n : 0; in = s->in_place && root ? s->out : s->in; break;
    case ALLGATHERV: at = s->in_place ? s->displs[t->rank] : 0; in = s->in_place ? s->out : s->in; break;
    case GATHERV: at = s->in_place && root ? s->displs[t->rank] : 0; in = s->in_place && root ? s->out : s->in; break;
    case ALLTOALLV:
        in = s->in_place ? s->out : s->in;
        for (int r = 0; r < t->size; r++)
            for (int64_t i = 0; i < s->counts[r]; i++)
                in[s->displs[r] + i] = value(s->key, t->rank, (int64_t)r * PAIR + i);
        return;
    default: break;
    }
    if (s->kind == ALLTOALL || s->kind == REDUCE_SCATTER || s->kind == SCATTER)
        n *= t->size;
    else if (s->kind == SCATTERV || s->kind == REDUCE_SCATTERV)
        n = room;
    else if (has_counts(s->kind))
        n = s->counts[t->rank];
    for (int64_t i = 0; i < n; i++)
        in[at + i] = value(s->key, t->rank, i);
}

static void check_run(const struct slot *s, const uint64_t *got, int from, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (got[i] != value(s->key, from, first + i))
            mp_fail(__FILE__, __LINE__, "kind %d count %lld root %d in place %d: element %lld from rank %d is wrong", s->kind,
                    (long long)s->count, s->root, s->in_place, (long long)i, from);
    }
}

/* Blocks of the result in out: the i-th one has *n elements at *at. False: there is none. */
static bool result_block(const struct coll_test *t, const struct slot *s, int i, int64_t *at, int64_t *n)
{
    bool root = t->rank == s->root, all = s->kind == ALLGATHER || s->kind == ALLTOALL || (s->kind == GATHER && root);
    bool uneven = s->kind == ALLGATHERV || s->kind == ALLTOALLV || (s->kind == GATHERV && root);

    *at = uneven ? s->displs[i % t->size] : i * s->count;
    *n = uneven ? s->counts[i % t->size] : s->kind == SCATTERV || s->kind == REDUCE_SCATTERV ? s->counts[t->rank] : s->count;
    if (s->kind == BARRIER || ((s->kind == REDUCE || s->kind == GATHER || s->kind == GATHERV) && !root) ||
        (s->kind == EXSCAN && t->rank == 0))
        return false;
    return i < (all || uneven ? t->size : 1);
}

/* Nothing beside the result has been written. */
static void check_rest(const struct coll_test *t, const struct slot *s)
{
    int64_t room = room_of(t, s), at, n;
    bool *is_result = mp_alloc((size_t)room * sizeof(bool));

    memset(is_result, 0, (size_t)room * sizeof(bool));
    for (int i = 0; result_block(t, s, i, &at, &n); i++) {
        for (int64_t k = at; k < at + n; k++)
            is_result[k] = true;
    }
    for (int64_t i = 0; i < room; i++) {
        if (!is_result[i] && s->out[i] != UINT64_C(0x2222222222222222))
            mp_fail(__FILE__, __LINE__, "kind %d count %lld root %d: element %lld beside the result is written", s->kind,
                    (long long)s->count, s->root, (long long)i);
    }
    free(is_result);
}

static void check(struct coll_test *t, const struct slot *s)
{
    int64_t n = s->count;
    bool root = t->rank == s->root;
    const uint64_t *own = s->in_place && root && (s->kind == SCATTER || s->kind == SCATTERV) ? NULL : s->out;

    if (reduces(s->kind) && (root || s->kind != REDUCE)) {
        int64_t first = s->kind == REDUCE_SCATTER ? t->rank * n : 0;
        int ranks = s->kind == SCAN ? t->rank + 1 : s->kind == EXSCAN ? t->rank : t->size;

        for (int r = 0; s->kind == REDUCE_SCATTERV && r < t->rank; r++)
            first += s->counts[r];
        n = s->kind == REDUCE_SCATTERV ? s->counts[t->rank] : ranks ? n : 0;
        for (int64_t i = 0; i < n; i++) {
            uint64_t sum = 0;

            for (int r = 0; r < ranks; r++)
                sum += value(s->key, r, first + i);
            if (s->out[i] != sum)
                mp_fail(__FILE__, __LINE__, "kind %d count %lld root %d in place %d user %d: sum %lld is wrong", s->kind,
                        (long long)n, s->root, s->in_place, s->user, (long long)i);
        }
    }
    if (s->kind == BCAST)
        check_run(s, s->out, s->root, 0, n);
    if (s->kind == SCATTER && own)
        check_run(s, own, s->root, t->rank * n, n);
    if (s->kind == SCATTERV && own)
        check_run(s, own, s->root, s->displs[t->rank], s->counts[t->rank]);
    for (int r = 0; r < t->size; r++) {
        if (s->kind == ALLGATHER || (s->kind == GATHER && root))
            check_run(s, s->out + r * n, r, 0, n);
        if (s->kind == ALLTOALL)
            check_run(s, s->out + r * n, r, t->rank * n, n);
        if (s->kind == ALLTOALLV)
            check_run(s, s->out + s->displs[r], r, (int64_t)t->rank * PAIR, s->counts[r]);
        if (s->kind == ALLGATHERV || (s->kind == GATHERV && root))
            check_run(s, s->out + s->displs[r], r, 0, s->counts[r]);
    }
    if (!s->in_place)
        check_rest(t, s);
    t->checks++;
}

static void end(struct coll_test *t, struct slot *s, bool poll)
{
    int done = 0;

    while (poll && !done)
        MP_OK(rank_test(&s->req, &done, NULL));
    if (!poll)
        MP_OK(rank_wait(&s->req, NULL));
    MP_CHECK(s->req != RANK_REQUEST_NULL);
    s->started = false;
    check(t, s);
}

/* ------------------------------------------------------------------------- parts */

static void random_program(struct coll_test *t)
{
    int64_t rounds = t->full ? ROUNDS * 10 : mp_rounds(ROUNDS);
    uint64_t own = t->seed + (uint64_t)t->rank * 77; /* each rank waits in its own order */
    struct slot slots[SLOTS];

    memset(slots, 0, sizeof(slots));
    for (int64_t k = 0; k < rounds; k++) {
        struct slot *s = &slots[mp_below(&t->seed, SLOTS)];
        int what = (int)mp_below(&t->seed, 8);

        if (s->started)
            end(t, s, mp_below(&own, 2));
        if (!s->req || what == 0) {
            if (s->req)
                free_slot(s);
            make_slot(t, s);
        } else if (what == 1) { /* between them, other forms */
            int64_t x = t->rank, sum = 0;

            MP_OK(rank_allreduce(&x, &sum, 1, RANK_INT64, RANK_SUM, t->team));
            MP_CHECK_EQ(sum, (int64_t)t->size * (t->size - 1) / 2);
        } else if (what == 2) {
            rank_request_t reqs[SLOTS], back[SLOTS];
            int n = 0;

            for (int i = 0; i < SLOTS; i++) {
                if (slots[i].started)
                    end(t, &slots[i], false);
                if (slots[i].req) {
                    fill(t, &slots[i]);
                    slots[i].started = true;
                    reqs[n++] = slots[i].req;
                }
            }
            memcpy(back, reqs, sizeof(back));
            MP_OK(rank_startall(n, reqs));
            MP_CHECK(memcmp(back, reqs, (size_t)n * sizeof(reqs[0])) == 0);
        } else {
            fill(t, s);
            MP_OK(rank_start(&s->req));
            s->started = true;
        }
        if (mp_below(&own, 3) == 0) {
            s = &slots[mp_below(&own, SLOTS)];
            if (s->started)
                end(t, s, false);
        }
    }
    for (int i = SLOTS - 1; i >= 0; i--) {
        if (slots[i].started)
            end(t, &slots[i], false);
        if (slots[i].req)
            free_slot(&slots[i]);
    }
}

/* One rank is first, so its request is pending; the request of a freed team can only be freed. */
static void refused(struct coll_test *t)
{
    rank_request_t req, other, never, null = RANK_REQUEST_NULL;
    rank_team_t dup;
    double x = 1, y = 0;

    MP_STATUS(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, t->team, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce_init(&x, &y, -1, RANK_F64, RANK_SUM, t->team, &null), RANK_ERR_COUNT);
    MP_STATUS(rank_allreduce_init(&x, NULL, 1, RANK_F64, RANK_SUM, t->team, &null), RANK_ERR_ARG);
    MP_STATUS(rank_bcast_init(&x, 1, RANK_F64, t->size, t->team, &null), RANK_ERR_RANK);
    MP_STATUS(rank_barrier_init(RANK_TEAM_NULL, &null), RANK_ERR_HANDLE);
    MP_CHECK(null == RANK_REQUEST_NULL);
    MP_OK(rank_barrier_init(t->team, &req));
    MP_OK(rank_wait(&req, NULL)); /* not started: complete */
    if (t->size > 1 && t->rank == 0) {
        MP_OK(rank_start(&req));
        MP_STATUS(rank_start(&req), RANK_ERR_STATE);
        MP_STATUS(rank_request_free(&req), RANK_ERR_NOT_SUPPORTED);
        MP_STATUS(rank_cancel(&req), RANK_ERR_NOT_SUPPORTED);
        for (int r = 1; r < t->size; r++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, r, 3, t->team));
    } else {
        if (t->size > 1)
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, 3, t->team, NULL));
        MP_OK(rank_start(&req));
    }
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_request_free(&req));

    MP_OK(rank_team_dup(t->team, &dup));
    MP_OK(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, dup, &other));
    MP_OK(rank_start(&other));
    MP_OK(rank_wait(&other, NULL));
    MP_CHECK(y == t->size);
    MP_OK(rank_team_free(&dup));
    MP_STATUS(rank_start(&other), RANK_ERR_HANDLE);
    MP_OK(rank_request_free(&other));
    MP_OK(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, t->team, &never)); /* rank_finalize frees it */
    t->checks += 10;
}

void coll_restarts(struct coll_test *t)
{
    refused(t);
    random_program(t);
}
