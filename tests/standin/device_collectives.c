/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_collectives.c: run all collectives, at random, against a model.
 *
 * Each rank and buffer has memory of any kind.
 *
 *   --only N   device buffers only, of memory that others can map, and collective N of the list below only
 *   --copies N the copies and kernels of a call, with N devices
 *   --private    the same, of memory that others cannot map
 *   --without R  rank R has no kind but host memory
 *   --fails    a call of the driver fails on rank 0 (BREAK_RANK_0): the collective ends on all ranks
 *   --die      the last rank dies: the others learn of it
 */
#include "tests/coll/reference_values.h"
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <stdlib.h>
#include <string.h>

enum coll {
    BCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, ALLGATHERV, SCATTER, REDUCE_SCATTER, ALLTOALL, GATHERV, SCATTERV, ALLTOALLV,
    REDUCE_SCATTERV, SCAN, COLLS
};
enum { ROUNDS = 150, RANKS = 64, STARTS = 3, LONGEST = 3 << 20 };

/* Blocks for each rank; the root's alone; does it reduce? */
static const struct {
    bool s_all, r_all, s_root, r_root, sums, counts;
} shapes[COLLS] = {
    [BCAST] = {.s_root = true},
    [REDUCE] = {.r_root = true, .sums = true},
    [ALLREDUCE] = {.sums = true},
    [GATHER] = {.r_all = true, .r_root = true},
    [ALLGATHER] = {.r_all = true},
    [ALLGATHERV] = {.r_all = true, .counts = true},
    [SCATTER] = {.s_all = true, .s_root = true},
    [REDUCE_SCATTER] = {.s_all = true, .sums = true},
    [ALLTOALL] = {.s_all = true, .r_all = true},
    [GATHERV] = {.r_all = true, .r_root = true, .counts = true},
    [SCATTERV] = {.s_all = true, .s_root = true, .counts = true},
    [ALLTOALLV] = {.s_all = true, .r_all = true, .counts = true},
    [REDUCE_SCATTERV] = {.s_all = true, .sums = true, .counts = true},
    [SCAN] = {.sums = true},
};

static const double limit_s = 5;
static const struct rk_kind *device;
static bool private_only;

/* The same on all ranks but for the kinds of buffers. */
struct plan {
    enum coll coll;
    rank_dtype_t dtype;
    rank_op_t op;
    int64_t count; /* of a block; of the longest one */
    uint64_t key;
    int root;
    bool in_place, split;
    enum { BLOCKING, NONBLOCKING, PERSISTENT } form;
    const struct rk_kind *send, *recv;
};

static struct plan draw_plan(const struct mp *mp, uint64_t *random, int only)
{
    struct plan p = {.coll = only >= 0 ? (enum coll)only : mp_random(random) % COLLS, .split = mp_random(random) % 4 == 0,
                     .in_place = mp_random(random) % 3 == 0, .form = mp_random(random) % 3, .key = mp_random(random)};
    uint64_t bytes = mp_random(random) % 4 ? mp_random(random) % 100000 : mp_random(random) % (mp_random(random) % 4 ? 9000 : LONGEST);
    int mix = (int)(mp_random(random) % 4), host_rank = (int)(mp_random(random) % (uint64_t)mp->size);
    uint64_t draws[RANKS];

    do {
        p.dtype = value_dtypes[mp_random(random) % VALUE_DTYPES];
        p.op = value_ops[mp_random(random) % VALUE_OPS];
    } while (shapes[p.coll].sums && (!value_defined(p.op, p.dtype) || (p.coll == SCAN && p.op == RANK_AVG)));
    p.count = (int64_t)(bytes / value_size(p.dtype)) + 1;
    p.root = (int)(mp_random(random) % RANKS); /* modulo the team's size */
    for (int r = 0; r < mp->size; r++)
        draws[r] = mp_random(random);
    p.send = p.recv = device;
    if (only < 0 && mix == 0 && host_rank == mp->rank) {
        p.send = p.recv = NULL;
    } else if (only < 0 && mix == 1) {
        p.send = draws[mp->rank] & 1 ? device : NULL;
        p.recv = draws[mp->rank] & 2 ? device : NULL;
    }
    if (only >= 0)
        p.count += (p.count % 3 ? 100000 : LONGEST) / (int64_t)value_size(p.dtype);
    if (only >= 0 && (p.coll == ALLTOALL || p.coll == ALLTOALLV)) /* results where others read go through the host */
        p.in_place = false;
    return p;
}

/* Elements from rank s to rank d; symmetric. */
static int64_t count_of(const struct plan *p, int s, int d)
{
    return shapes[p->coll].counts ? p->count - p->count * ((s + d) % 3) / 3 : p->count;
}

static void fill_bytes(char *to, const struct plan *p, int s, int d, int64_t count)
{
    mp_fill(to, (size_t)count * value_size(p->dtype), p->key + (uint64_t)(s * RANKS + d));
}

#define RUN(name, ...)                                                                                                 \
    do {                                                                                                               \
        if (p->form == BLOCKING)                                                                                       \
            MP_OK(rank_##name(__VA_ARGS__, team));                                                                     \
        else if (p->form == NONBLOCKING)                                                                               \
            MP_OK(rank_i##name(__VA_ARGS__, team, req));                                                               \
        else                                                                                                           \
            MP_OK(rank_##name##_init(__VA_ARGS__, team, req));                                                         \
        return;                                                                                                        \
    } while (0)

/* Begin the call; a persistent one is created only. s, d: count arrays and displacements of one block for each rank. */
static void call(const struct plan *p, const void *s, void *r, int root, rank_team_t team, rank_request_t *req)
{
    int64_t counts[RANKS], at[RANKS];
    int me = rank_team_rank(team);
    int64_t own = p->coll == ALLTOALLV ? 0 : count_of(p, me, 0);

    for (int i = 0; i < rank_team_size(team); i++) {
        counts[i] = count_of(p, i, p->coll == ALLTOALLV ? me : 0);
        at[i] = i * p->count;
    }
    switch (p->coll) {
    case BCAST:
        RUN(bcast, r, p->count, p->dtype, root);
    case REDUCE:
        RUN(reduce, s, r, p->count, p->dtype, p->op, root);
    case ALLREDUCE:
        RUN(allreduce, s, r, p->count, p->dtype, p->op);
    case GATHER:
        RUN(gather, s, r, p->count, p->dtype, root);
    case ALLGATHER:
        RUN(allgather, s, r, p->count, p->dtype);
    case ALLGATHERV:
        RUN(allgatherv, s, own, r, counts, at, p->dtype);
    case SCATTER:
        RUN(scatter, s, r, p->count, p->dtype, root);
    case REDUCE_SCATTER:
        RUN(reduce_scatter, s, r, p->count, p->dtype, p->op);
    case ALLTOALL:
        RUN(alltoall, s, r, p->count, p->dtype);
    case GATHERV:
        RUN(gatherv, s, own, r, counts, at, p->dtype, root);
    case SCATTERV:
        RUN(scatterv, s, counts, at, r, own, p->dtype, root);
    case ALLTOALLV:
        RUN(alltoallv, s, counts, at, r, counts, at, p->dtype);
    case REDUCE_SCATTERV:
        RUN(reduce_scatterv, s, r, counts, p->dtype, p->op);
    default:
        RUN(scan, s, r, p->count, p->dtype, p->op);
    }
}

/* What this rank sends, block by block at its place in a buffer of block_bytes each. */
static void fill_input(char *in, const struct plan *p, int me, int size)
{
    size_t block = (size_t)p->count * value_size(p->dtype);
    int64_t first = 0;

    if (!shapes[p->coll].sums) {
        for (int d = 0; d < (shapes[p->coll].s_all ? size : 1); d++)
            fill_bytes(in + (size_t)d * block, p, me, d, p->coll == ALLTOALLV ? count_of(p, me, d) : count_of(p, shapes[p->coll].s_all ? d : me, 0));
        return;
    }
    for (int d = 0; d < (shapes[p->coll].s_all ? size : 1); d++)
        first += count_of(p, d, 0);
    value_fill(in, p->dtype, p->op, me, size, 0, first);
}

/* Is the result as the model has it? */
static void check_output(const char *out, const struct plan *p, int me, int size, int root)
{
    size_t block = (size_t)p->count * value_size(p->dtype);
    int64_t first = 0, bad;

    if (shapes[p->coll].sums) {
        for (int d = 0; shapes[p->coll].s_all && d < me; d++)
            first += count_of(p, d, 0);
        bad = p->coll == SCAN ? value_check_prefix(out, p->dtype, p->op, me + 1, size, 0, p->count)
                              : value_check(out, p->dtype, p->op, size, first, count_of(p, me, 0));
        if (bad >= 0)
            mp_fail(__FILE__, __LINE__, "collective %d, dtype %llx, op %llx: element %lld of %lld is wrong", (int)p->coll,
                    (unsigned long long)p->dtype, (unsigned long long)p->op, (long long)bad, (long long)p->count);
        return;
    }
    for (int s = 0; s < (shapes[p->coll].r_all ? size : 1); s++) {
        int from = shapes[p->coll].r_all ? s : root, to = shapes[p->coll].s_all ? me : 0;
        int64_t count = p->coll == ALLTOALLV ? count_of(p, s, me) : shapes[p->coll].r_all ? count_of(p, s, 0) : p->coll == SCATTERV ? count_of(p, me, 0) : p->count;

        bad = mp_verify(out + (size_t)s * block, (size_t)count * value_size(p->dtype), p->key + (uint64_t)(from * RANKS + to));
        if (bad >= 0)
            mp_fail(__FILE__, __LINE__, "collective %d, root %d: byte %lld of the block from rank %d, of %lld elements, is wrong", (int)p->coll, root,
                    (long long)bad, from, (long long)count);
    }
}

static void copy_any(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    MP_OK(rk_kind_copy(to, to_kind, from, from_kind, bytes));
}

static void *alloc_any(const struct rk_kind *kind, size_t bytes, bool shareable)
{
    void *at;

    if (!kind)
        return mp_alloc(bytes);
    if (shareable)
        return device_memory_alloc(private_only ? DEVICE_PRIVATE : bytes & 1 ? DEVICE_PLAIN : DEVICE_SHAREABLE, bytes);
    MP_OK(kind->alloc(bytes, &at));
    return at;
}

static void free_any(const struct rk_kind *kind, void *at)
{
    if (kind)
        kind->free(at);
    else
        free(at);
}

static void check_round(const struct plan *p, rank_team_t team, bool shareable)
{
    int me = rank_team_rank(team), size = rank_team_size(team), root = p->root % size;
    bool sends = !shapes[p->coll].s_root || me == root, receives = !shapes[p->coll].r_root || me == root;
    bool in_place = p->in_place && p->coll != BCAST && (me == root || !(shapes[p->coll].s_root || shapes[p->coll].r_root));
    bool r_in_s = in_place && (p->coll == SCATTER || p->coll == SCATTERV), s_in_r = in_place && !r_in_s;
    size_t elem = value_size(p->dtype), block = (size_t)p->count * elem, whole = block * (size_t)size;
    char *in = mp_alloc(whole), *out = mp_alloc(whole);
    char *s = alloc_any(p->send, whole, shareable), *r = alloc_any(p->recv, whole, shareable), *result = r;
    size_t own = s_in_r && !shapes[p->coll].s_all && shapes[p->coll].r_all ? (size_t)me * block : 0;
    rank_request_t req = RANK_REQUEST_NULL;

    if (sends)
        fill_input(in, p, me, size);
    if (r_in_s)
        result = s + (size_t)me * block;
    if (p->coll == BCAST)
        copy_any(r, p->recv, in, NULL, block);
    for (int k = 0; k < (p->form == PERSISTENT ? STARTS : 1); k++) {
        if (sends && s_in_r)
            copy_any(r + own, p->recv, in, NULL, whole - own);
        else if (sends)
            copy_any(s, p->send, in, NULL, whole);
        if (k == 0)
            call(p, s_in_r ? RANK_IN_PLACE : sends ? s : NULL, r_in_s ? RANK_IN_PLACE : receives ? r : NULL, root, team, &req);
        if (p->form == PERSISTENT)
            MP_OK(rank_start(&req));
        if (p->form != BLOCKING)
            MP_OK(rank_wait(&req, NULL));
        if (receives) {
            copy_any(out, NULL, result, r_in_s ? p->send : p->recv, r_in_s ? block : whole);
            check_output(out, p, me, size, root);
        }
    }
    if (p->form == PERSISTENT)
        MP_OK(rank_request_free(&req));
    free_any(p->send, s);
    free_any(p->recv, r);
    free(in);
    free(out);
}

/* Copies and kernels of this rank in one call of a collective, with buffers that are mapped already. */
static void count_calls(const struct mp *mp, enum coll coll, bool in_place, long copies, long kernels)
{
    struct plan p = {.coll = coll, .dtype = RANK_F32, .op = RANK_SUM, .count = 100000, .form = BLOCKING};
    size_t whole = (size_t)p.count * 4 * (size_t)mp->size;
    void *s = device_memory_alloc(DEVICE_PLAIN, whole), *r = device_memory_alloc(DEVICE_PLAIN, whole);
    bool receives = !shapes[coll].r_root || mp->rank == 0;
    long copied = 0, launched = 0;

    for (int i = 0; i < 2; i++) {
        copied = device_memory_calls("MemcpyAsync");
        launched = device_memory_calls("LaunchKernel");
        call(&p, in_place ? RANK_IN_PLACE : s, receives ? r : NULL, 0, mp->world, NULL);
    }
    MP_CHECK_EQ(device_memory_calls("MemcpyAsync") - copied, copies);
    MP_CHECK_EQ(device_memory_calls("LaunchKernel") - launched, kernels);
    mp_barrier(mp->world);
    device->free(s);
    device->free(r);
}

/* The lowest rank of each device reduces the inputs where they are; no rank copies what is in place. */
static void check_copies(const struct mp *mp, int devices)
{
    int reducers = devices < mp->size ? devices : mp->size;
    bool reduces = mp->rank < devices, root = mp->rank == 0;

    count_calls(mp, BCAST, false, !root, 0);
    count_calls(mp, ALLGATHER, false, mp->size, 0);
    count_calls(mp, ALLGATHER, true, mp->size - 1, 0);
    count_calls(mp, ALLTOALL, false, mp->size, 0);
    count_calls(mp, GATHER, false, root ? mp->size : 0, 0);
    count_calls(mp, ALLREDUCE, false, reducers - reduces, reduces);
    count_calls(mp, ALLREDUCE, true, reducers - reduces, reduces);
    count_calls(mp, REDUCE, false, root ? reducers : 0, reduces);
    if (devices == 1)
        count_calls(mp, REDUCE_SCATTER, false, 1, root ? mp->size : 0);
}

/* Collectives in turn, until one fails. None that succeeds has a wrong result. */
static rank_status_t until_failure(const struct mp *mp)
{
    static const enum coll colls[] = {BCAST, ALLGATHER, SCATTER, ALLTOALL, GATHER, REDUCE_SCATTER};
    struct plan p = {.dtype = RANK_INT32, .op = RANK_SUM, .count = 50000};
    size_t block = (size_t)p.count * 4, whole = (size_t)mp->size * block;
    char *in = mp_alloc(whole), *s = device_memory_alloc(DEVICE_SHAREABLE, whole), *r = device_memory_alloc(DEVICE_PLAIN, whole);
    bool first = mp->rank == 0;
    double begun = mp_now();
    rank_status_t st = RANK_OK;

    for (unsigned turn = 0; !st && mp_now() - begun < limit_s; turn++) {
        p.coll = colls[turn % (sizeof(colls) / sizeof(colls[0]))];
        p.key = turn;
        fill_input(in, &p, mp->rank, mp->size);
        copy_any(p.coll == BCAST ? r : s, device, in, NULL, p.coll == BCAST ? block : whole);
        switch (p.coll) {
        case BCAST:
            st = rank_bcast(r, p.count, p.dtype, 0, mp->world);
            break;
        case ALLGATHER:
            st = rank_allgather(s, r, p.count, p.dtype, mp->world);
            break;
        case SCATTER:
            st = rank_scatter(first ? s : NULL, r, p.count, p.dtype, 0, mp->world);
            break;
        case ALLTOALL:
            st = rank_alltoall(s, r, p.count, p.dtype, mp->world);
            break;
        case GATHER:
            st = rank_gather(s, first ? r : NULL, p.count, p.dtype, 0, mp->world);
            break;
        default:
            st = rank_reduce_scatter(s, r, p.count, p.dtype, p.op, mp->world);
        }
        copy_any(in, NULL, r, device, whole);
        if (!st && (p.coll != GATHER || first))
            check_output(in, &p, mp->rank, mp->size, 0);
    }
    device->free(s);
    device->free(r);
    free(in);
    return st;
}

int main(int argc, char **argv)
{
    int only = (int)mp_option(argc, argv, "--only", -1), without = (int)mp_option(argc, argv, "--without", -1);
    const char *rank = getenv("PMIX_RANK"), *rule = getenv("BREAK_RANK_0");
    rank_team_t half;
    uint64_t random;
    struct mp mp;

    if (rank && atoi(rank) == without)
        setenv("RANK_CUDA", "off", 1);
    if (rule && rank && atoi(rank) == 0) /* before the driver's first call */
        setenv("STANDIN_FAIL", rule, 1);
    mp_start(&mp, &argc, argv);
    device = device_memory(mp.rank);
    random = mp.seed;
    private_only = mp_flag(argc, argv, "--private");
    if (mp_flag(argc, argv, "--die")) {
        double when = mp_now() + 0.01 + (double)(mp.seed % 100) / 1000;

        mp_case(&mp, "a rank dies");
        if (mp.rank == mp.size - 1)
            mp_die_at(&when);
        MP_CHECK_EQ(until_failure(&mp), RANK_ERR_PEER_DEAD);
        device_memory_end();
        mp_end_survivor(&mp);
        return 0;
    }
    if (mp_flag(argc, argv, "--fails")) {
        rank_status_t st;

        mp_case(&mp, "a call of the driver fails");
        st = until_failure(&mp);
        MP_CHECK(st == RANK_ERR_DEVICE || (mp.rank && st == RANK_ERR_COLLECTIVE)); /* others may fail to map memory of rank 0 */
        device_memory_end();
        mp_end_survivor(&mp);
        return 0;
    }
    if (mp_option(argc, argv, "--copies", 0)) {
        mp_case(&mp, "copies and kernels");
        check_copies(&mp, (int)mp_option(argc, argv, "--copies", 0));
        device_memory_end();
        mp_end(&mp);
        return 0;
    }
    mp_case(&mp, "random collectives");
    MP_OK(rank_team_split(mp.world, mp.rank % 2, mp.rank, &half));
    for (int i = 0; i < (only < 0 ? ROUNDS : 3); i++) {
        struct plan p = draw_plan(&mp, &random, only);

        if (mp.rank == without)
            p.send = p.recv = NULL;
        check_round(&p, p.split ? half : mp.world, only >= 0);
    }
    MP_OK(rank_team_free(&half));
    MP_CHECK(device_memory_is_current());
    device_memory_end();
    mp_end(&mp);
    return 0;
}
