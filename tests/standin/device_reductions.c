/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_reductions.c: reduce device buffers of many ranks, at random.
 *
 *   --fails   a kernel of rank 0 fails (BREAK_RANK_0): the call ends on all ranks
 *   --die     the last rank dies: the others learn of it
 */
#include "tests/coll/reference_values.h"
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 60, LONGEST = 9 << 20, STARTS = 3 };
static const double limit_s = 5;

static const struct rk_kind *device;

struct plan {
    rank_dtype_t dtype;
    rank_op_t op;
    int64_t count;
    bool in_place, split;
    enum { BLOCKING, NONBLOCKING, PERSISTENT } form;
    int host_rank; /* of the world: its buffers are host memory; -1: none is */
};

/* The same on all ranks. */
static struct plan draw(const struct mp *mp, uint64_t *random)
{
    struct plan p = {.in_place = mp_random(random) % 3 == 0, .split = mp_random(random) % 3 == 0, .host_rank = -1};
    uint64_t bytes = 40000 + mp_random(random) % 300000;

    do {
        p.dtype = value_dtypes[mp_random(random) % VALUE_DTYPES];
        p.op = value_ops[mp_random(random) % VALUE_OPS];
    } while (!value_defined(p.op, p.dtype));
    if (mp_random(random) % 20 == 0 && value_size(p.dtype) >= 4) /* longer than the scratch memory */
        bytes = LONGEST - mp_random(random) % 100000;
    if (mp_random(random) % 4 == 0)
        p.host_rank = (int)(mp_random(random) % (uint64_t)mp->size);
    p.form = mp_random(random) % 3;
    p.count = (int64_t)(bytes / value_size(p.dtype));
    return p;
}

static void run(const struct plan *p, const void *send, void *recv, rank_team_t team, rank_request_t *req)
{
    if (p->form == BLOCKING) {
        MP_OK(rank_allreduce(send, recv, p->count, p->dtype, p->op, team));
        return;
    }
    if (p->form == NONBLOCKING)
        MP_OK(rank_iallreduce(send, recv, p->count, p->dtype, p->op, team, req));
    else
        MP_OK(rank_start(req));
    MP_OK(rank_wait(req, NULL));
}

static void check_round(const struct mp *mp, const struct plan *p, rank_team_t team)
{
    size_t bytes = (size_t)p->count * value_size(p->dtype);
    const struct rk_kind *kind = p->host_rank == mp->rank ? NULL : device;
    char *host = malloc(bytes), *in = malloc(bytes);
    int rank = rank_team_rank(team), size = rank_team_size(team);
    void *send = in, *recv = host;
    rank_request_t req = RANK_REQUEST_NULL;

    MP_CHECK(host && in);
    value_fill(in, p->dtype, p->op, rank, size, 0, p->count);
    if (kind) {
        MP_OK(kind->alloc(bytes, &send));
        MP_OK(kind->alloc(bytes, &recv));
        MP_OK(kind->copy(send, kind, in, NULL, bytes));
    }
    if (p->form == PERSISTENT)
        MP_OK(rank_allreduce_init(p->in_place ? RANK_IN_PLACE : send, recv, p->count, p->dtype, p->op, team, &req));
    for (int k = 0; k < (p->form == PERSISTENT ? STARTS : 1); k++) {
        if (p->in_place)
            MP_OK(rk_kind_copy(recv, kind, in, NULL, bytes));
        run(p, p->in_place ? RANK_IN_PLACE : send, recv, team, &req);
        if (kind)
            MP_OK(kind->copy(host, NULL, recv, kind, bytes));
        if (value_check(host, p->dtype, p->op, size, 0, p->count) >= 0)
            mp_fail(__FILE__, __LINE__, "dtype %llx, op %llx, element %lld of %lld, host rank %d", (unsigned long long)p->dtype,
                    (unsigned long long)p->op, (long long)value_check(host, p->dtype, p->op, size, 0, p->count), (long long)p->count,
                    p->host_rank);
    }
    if (p->form == PERSISTENT)
        MP_OK(rank_request_free(&req));
    if (kind) {
        kind->free(send);
        kind->free(recv);
    }
    free(host);
    free(in);
}

/* Until a call fails. None that succeeds has a wrong result. */
static rank_status_t until_failure(const struct mp *mp)
{
    enum { COUNT = 50000 };
    static float host[COUNT];
    void *at;
    rank_status_t st;
    double begun = mp_now();

    MP_OK(device->alloc(sizeof(host), &at));
    do {
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)(i % 100);
        MP_OK(device->copy(at, device, host, NULL, sizeof(host)));
        st = rank_allreduce(RANK_IN_PLACE, at, COUNT, RANK_F32, RANK_SUM, mp->world);
        if (st)
            break;
        MP_OK(device->copy(host, NULL, at, device, sizeof(host)));
        for (int i = 0; i < COUNT; i++)
            MP_CHECK(host[i] == (float)(i % 100 * mp->size));
    } while (mp_now() - begun < limit_s);
    device->free(at);
    return st;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK"), *rule = getenv("BREAK_RANK_0");
    uint64_t random;
    rank_team_t half;
    struct mp mp;

    if (rule && rank && strcmp(rank, "0") == 0) /* before the driver's first call */
        setenv("STANDIN_FAIL", rule, 1);
    mp_start(&mp, &argc, argv);
    device = device_memory(mp.rank);
    random = mp.seed;
    if (mp_flag(argc, argv, "--fails")) {
        mp_case(&mp, "a kernel fails");
        MP_CHECK_EQ(until_failure(&mp), mp.rank ? RANK_ERR_COLLECTIVE : RANK_ERR_DEVICE);
    } else if (mp_flag(argc, argv, "--die")) {
        double when = mp_now() + 0.01 + (double)(mp.seed % 100) / 1000;

        mp_case(&mp, "a rank dies");
        if (mp.rank == mp.size - 1)
            mp_die_at(&when);
        MP_CHECK_EQ(until_failure(&mp), RANK_ERR_PEER_DEAD);
    } else {
        mp_case(&mp, "random reductions");
        MP_OK(rank_team_split(mp.world, mp.rank % 2, mp.rank, &half));
        for (int i = 0; i < ROUNDS; i++) {
            struct plan p = draw(&mp, &random);

            check_round(&mp, &p, p.split ? half : mp.world);
        }
        MP_OK(rank_team_free(&half));
        MP_CHECK(device_memory_is_current());
    }
    device_memory_end();
    if (mp_flag(argc, argv, "--fails") || mp_flag(argc, argv, "--die"))
        mp_end_survivor(&mp);
    else
        mp_end(&mp);
    return 0;
}
