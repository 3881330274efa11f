/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_collectives.c: run all collectives, at random, against a model.
 *
 * Each rank and buffer has memory of any kind.
 *
 *   --only NAME  device buffers only, of memory that others can map, and this collective only (the first option)
 *   --copies N the copies and kernels of a call, with N devices
 *   --private    the same, of memory that others cannot map
 *   --without R  rank R has no kind but host memory
 *   --fails    a call of the driver fails on rank 0 (BREAK_RANK_0): the collective ends on all ranks
 *   --die      the last rank dies: the others learn of it
 */
#include "tests/coll/any_coll.h"
#include "tests/coll/reference_values.h"
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 150, RANKS = 64, STARTS = 3, LONGEST = 3 << 20 };

static const double limit_s = 5;
static const struct rk_kind *device;
static bool private_only;

/* ---------------------------------------------------------------------- buffers */

static void *alloc_any(size_t bytes)
{
    void *at;

    MP_OK(device->alloc(bytes, &at));
    return at;
}

static void *alloc_mapped(size_t bytes)
{
    static int turn;

    return device_memory_alloc(private_only ? DEVICE_PRIVATE : turn++ & 1 ? DEVICE_PLAIN : DEVICE_SHAREABLE, bytes);
}

static void *alloc_plain(size_t bytes)
{
    return device_memory_alloc(DEVICE_PLAIN, bytes);
}

static void release(void *at)
{
    device->free(at);
}

static void copy_any(void *to, const void *from, size_t bytes, bool in)
{
    MP_OK(rk_kind_copy(to, in ? device : NULL, from, in ? NULL : device, bytes));
}

static const struct any_memory any = {alloc_any, release, copy_any}, mapped = {alloc_mapped, release, copy_any},
                               plain = {alloc_plain, release, copy_any};

/* ------------------------------------------------------------------------ calls */

/* Start and check a call, as often as its form allows. */
static void run(struct any_coll *c)
{
    for (int k = 0; k < (c->form == ANY_PERSISTENT ? STARTS : 1); k++) {
        MP_OK(any_coll_start(c));
        MP_OK(any_coll_finish(c));
        any_coll_check(c);
    }
    any_coll_close(c);
}

/* The same on all ranks but for the kinds of buffers. only: this collective, or -1. */
static void run_random(const struct mp *mp, uint64_t *random, int only, rank_team_t half, bool host_only)
{
    enum any_kind kind = only >= 0 ? (enum any_kind)only : (enum any_kind)mp_below(random, ANY_KINDS);
    rank_team_t team = mp_below(random, 4) ? mp->world : half;
    uint64_t bytes = mp_below(random, 4) ? mp_below(random, 100000) : mp_below(random, mp_below(random, 4) ? 9000 : LONGEST), draws[RANKS];
    int mix = (int)mp_below(random, 4), host_rank = (int)mp_below(random, (uint64_t)mp->size);
    uint64_t common = mp_random(random); /* what follows depends on the team */
    rank_dtype_t dtype;
    struct any_coll c;
    int64_t count;
    rank_op_t op;

    do {
        dtype = value_dtypes[mp_below(&common, VALUE_DTYPES)];
        op = value_ops[mp_below(&common, VALUE_OPS)];
    } while (any_coll_reduces(kind) && (!value_defined(op, dtype) || (op == RANK_AVG && (kind == ANY_SCAN || kind == ANY_EXSCAN))));
    count = (int64_t)(bytes / value_size(dtype)) + 1;
    if (only >= 0)
        count += (count % 3 ? 100000 : LONGEST) / (int64_t)value_size(dtype);
    for (int r = 0; r < mp->size; r++)
        draws[r] = mp_random(&common);
    any_coll_open(&c, team, kind, count, dtype, op, &common);
    c.in_memory = c.out_memory = only >= 0 ? &mapped : &any;
    if (host_only || (only < 0 && mix == 0 && host_rank == mp->rank)) {
        c.in_memory = c.out_memory = NULL;
    } else if (only < 0 && mix == 1) {
        c.in_memory = draws[mp->rank] & 1 ? &any : NULL;
        c.out_memory = draws[mp->rank] & 2 ? &any : NULL;
    }
    if (only >= 0 && (kind == ANY_ALLTOALL || kind == ANY_ALLTOALLV)) /* results where others read go through the host */
        c.in_place = false;
    run(&c);
}

/* Copies and kernels of this rank in one call of a collective, with buffers that are mapped already. */
static void count_calls(const struct mp *mp, enum any_kind kind, bool in_place, long copies, long kernels)
{
    uint64_t seed = mp->seed;
    long copied = 0, launched = 0;
    struct any_coll c;

    any_coll_open(&c, mp->world, kind, 100000, RANK_F32, RANK_SUM, &seed);
    c.in_memory = c.out_memory = &plain;
    c.form = ANY_BLOCKING;
    c.in_place = in_place;
    c.bare = true;
    c.root = 0;
    for (int i = 0; i < 2; i++) {
        copied = device_memory_calls("MemcpyAsync");
        launched = device_memory_calls("LaunchKernel");
        MP_OK(any_coll_start(&c));
    }
    MP_CHECK_EQ(device_memory_calls("MemcpyAsync") - copied, copies);
    MP_CHECK_EQ(device_memory_calls("LaunchKernel") - launched, kernels);
    any_coll_check(&c);
    mp_barrier(mp->world);
    any_coll_close(&c);
}

/* The lowest rank of each device reduces the inputs where they are; no rank copies what is in place. */
static void check_copies(const struct mp *mp, int devices)
{
    int reducers = devices < mp->size ? devices : mp->size;
    bool reduces = mp->rank < devices, root = mp->rank == 0;

    count_calls(mp, ANY_BCAST, false, !root, 0);
    count_calls(mp, ANY_ALLGATHER, false, mp->size, 0);
    count_calls(mp, ANY_ALLGATHER, true, mp->size - 1, 0);
    count_calls(mp, ANY_ALLTOALL, false, mp->size, 0);
    count_calls(mp, ANY_GATHER, false, root ? mp->size : 0, 0);
    count_calls(mp, ANY_ALLREDUCE, false, reducers - reduces, reduces);
    count_calls(mp, ANY_ALLREDUCE, true, reducers - reduces, reduces);
    count_calls(mp, ANY_REDUCE, false, root ? reducers : 0, reduces);
    if (devices == 1)
        count_calls(mp, ANY_REDUCE_SCATTER, false, 1, root ? mp->size : 0);
}

/* Collectives in turn, until one fails. None that succeeds has a wrong result. */
static rank_status_t until_failure(const struct mp *mp)
{
    static const enum any_kind kinds[] = {ANY_BCAST, ANY_ALLGATHER, ANY_SCATTER, ANY_ALLTOALL, ANY_GATHER, ANY_REDUCE_SCATTER};
    uint64_t seed = mp->seed;
    double begun = mp_now();
    rank_status_t st = RANK_OK;
    struct any_coll c;

    for (unsigned turn = 0; !st && mp_now() - begun < limit_s; turn++) {
        any_coll_open(&c, mp->world, kinds[turn % (sizeof(kinds) / sizeof(kinds[0]))], 50000, RANK_INT32, RANK_SUM, &seed);
        c.in_memory = c.out_memory = &mapped;
        c.form = ANY_BLOCKING;
        c.in_place = false;
        st = any_coll_start(&c);
        if (!st)
            any_coll_check(&c);
        any_coll_close(&c);
    }
    return st;
}

int main(int argc, char **argv)
{
    int only = -1, without = (int)mp_option(argc, argv, "--without", -1);
    const char *rank = getenv("PMIX_RANK"), *rule = getenv("BREAK_RANK_0");
    rank_team_t half;
    uint64_t random;
    struct mp mp;

    if (rank && atoi(rank) == without)
        setenv("RANK_CUDA", "off", 1);
    if (rule && rank && atoi(rank) == 0) /* before the driver's first call */
        setenv("STANDIN_FAIL", rule, 1);
    for (int i = 1; i + 1 < argc && strcmp(argv[i], "--only") == 0; i++) {
        for (only = ANY_KINDS - 1; only > 0 && strcmp(any_coll_name((enum any_kind)only), argv[i + 1]) != 0;)
            only--;
        MP_CHECK(only > 0);
    }
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
    for (int i = 0; i < (only < 0 ? ROUNDS : 3); i++)
        run_random(&mp, &random, only, half, mp.rank == without);
    MP_OK(rank_team_free(&half));
    MP_CHECK(device_memory_is_current());
    device_memory_end();
    mp_end(&mp);
    return 0;
}
