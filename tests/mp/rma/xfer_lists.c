/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer_lists.c: move lists of blocks between pairs of ranks.
 *
 * Their memories are those of rank_alloc on several teams, and opened keys.
 * --steps N. --kill: the last rank of each pair dies while the other one moves lists.
 */
#include "tests/conn/list_model.h"
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static rank_status_t reg(void *arg, void *ptr, int64_t bytes, rank_mem_t *mem)
{
    (void)arg;
    return rank_reg(ptr, bytes, mem);
}

struct shared {
    rank_team_t team; /* in another order than the world */
    rank_mem_t mem[2];
};

/* All ranks allocate; a rank without a partner does no more. */
static void open_lists(struct mp *mp, struct list_model *m, struct shared *s)
{
    int other = mp->rank ^ 1, paired = other < mp->size;
    void *ptr[2];

    MP_OK(rank_team_split(mp->world, 0, mp->size - mp->rank, &s->team));
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 3 << 20, &ptr[0], &s->mem[0]));
    MP_OK(rank_alloc(s->team, RANK_MEM_HOST, 70000, &ptr[1], &s->mem[1]));
    if (paired) {
        list_open(m, RANK_CTX_NULL, mp->world, other, mp->rank & 1, mp->seed + (uint64_t)(mp->rank / 2), reg, NULL);
        list_add(m, ptr[0], 3 << 20, s->mem[0]);
        list_add(m, ptr[1], 70000, s->mem[1]);
    }
    mp_barrier(mp->world);
}

static void close_lists(struct mp *mp, struct list_model *m, struct shared *s)
{
    if ((mp->rank ^ 1) < mp->size)
        list_close(m);
    MP_OK(rank_free(&s->mem[0]));
    MP_OK(rank_free(&s->mem[1]));
    MP_OK(rank_team_free(&s->team));
}

static void run_random(struct mp *mp, int64_t steps)
{
    struct list_model m;
    struct shared s;

    mp_case(mp, "random lists");
    open_lists(mp, &m, &s);
    if ((mp->rank ^ 1) < mp->size) {
        list_wrong(&m);
        for (int64_t i = 0; i < steps; i++)
            list_step(&m);
        list_wrong(&m);
        MP_CHECK(m.notices > 0);
    }
    mp_barrier(mp->world);
    close_lists(mp, &m, &s);
}

/* A list to the own memory; and one by an own key, which ends with the registration. */
static void run_self(struct mp *mp)
{
    char data[64], mine[64] = "", in[8], key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    rank_request_t req;
    rank_mem_t mem, opened;

    mp_case(mp, "to itself");
    mp_fill(data, sizeof(data), 3);
    MP_OK(rank_reg(mine, sizeof(mine), &mem));
    MP_OK(rank_xfer(RANK_XFER_WRITE, (rank_block_t[]){{data, 30, mem, 0}, {data + 30, 34, mem, 30}}, 2, mp->rank, mp->world,
                    &(rank_notice_t){9, "done", 4}, &req));
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_recv(in, 4, RANK_BYTE, mp->rank, 9, mp->world, NULL));
    MP_CHECK(memcmp(data, mine, sizeof(mine)) == 0 && memcmp(in, "done", 4) == 0);
    MP_OK(rank_rkey_pack(mem, key, &len));
    MP_OK(rank_rkey_open(mp->world, mp->rank, key, len, &opened));
    MP_OK(rank_xfer(RANK_XFER_READ, &(rank_block_t){data, 4, opened, 60}, 1, mp->rank, mp->world, NULL, &req));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK(memcmp(data, mine + 60, 4) == 0);
    MP_OK(rank_dereg_timed(&mem, 20000000000ll));
    MP_STATUS(rank_put(data, 4, mp->rank, opened, 0), RANK_ERR_HANDLE);
    MP_STATUS(rank_xfer(RANK_XFER_READ, &(rank_block_t){data, 4, opened, 60}, 1, mp->rank, mp->world, NULL, &req), RANK_ERR_HANDLE);
    MP_OK(rank_rkey_close(&opened));
}

/* Is the request complete, without progress? Its status. */
static rank_status_t ended(rank_request_t *req)
{
    int done = 0;
    rank_status_t st = rank_test(req, &done, NULL);

    MP_CHECK(done);
    return st;
}

/* What ends lists, and what waits for them. */
static void run_ends(struct mp *mp)
{
    enum { LONG = 64 << 20 };
    rank_xfer_op_t op;
    rank_team_t team;
    rank_request_t req, saved;
    struct list_model m;
    struct shared s;
    char *local = mp_alloc(1 << 20);
    rank_block_t block;

    mp_case(mp, "ends");
    open_lists(mp, &m, &s);
    MP_OK(rank_team_dup(mp->world, &team));
    for (op = RANK_XFER_WRITE; op <= RANK_XFER_READ && (mp->rank ^ 1) < mp->size; op++) {
        MP_OK(list_start_long(&m, op, LONG, &req));
        MP_OK(rank_flush(m.mem[0].remote, m.other));
        MP_OK(ended(&req));
        MP_OK(list_start_long(&m, op, LONG, &req));
        MP_OK(rank_flush(m.mem[0].remote, RANK_ALL));
        MP_OK(ended(&req));
        /* Freed requests: the lists go on. */
        block = (rank_block_t){local, 1 << 20, m.mem[0].remote, 0};
        MP_OK(list_start_long(&m, op, LONG, &req));
        MP_OK(rank_request_free(&req));
        MP_OK(rank_xfer_init(op, &block, 1, m.other, mp->world, NULL, &saved));
        MP_OK(rank_start(&saved));
        MP_OK(rank_request_free(&saved));
        MP_OK(rank_xfer_init(op, &block, 1, m.other, mp->world, NULL, &saved));
        MP_OK(rank_request_free(&saved));
        MP_OK(rank_xfer_init(op, &block, 1, m.other, mp->world, NULL, &saved)); /* of finalize */
        MP_OK(rank_flush(m.mem[0].remote, m.other));
    }
    mp_barrier(mp->world);
    if ((mp->rank ^ 1) < mp->size) {
        rank_mem_t of_world = m.mem[0].remote;

        m.team = team;
        MP_OK(list_start_long(&m, RANK_XFER_WRITE, 1ll << 40, &req));
        MP_OK(list_start_long(&m, RANK_XFER_READ, 1ll << 40, &saved));
        MP_OK(rank_team_free(&team));
        MP_STATUS(rank_wait(&req, NULL), RANK_ERR_CLOSED);
        MP_STATUS(rank_wait(&saved, NULL), RANK_ERR_CLOSED);
        m.team = mp->world;
        /* A key waits for its lists. */
        MP_OK(list_start_long(&m, RANK_XFER_WRITE, LONG, &req));
        MP_OK(list_start_long(&m, RANK_XFER_READ, LONG, &saved));
        MP_OK(rank_rkey_close(&of_world));
        MP_OK(ended(&req));
        MP_OK(ended(&saved));
        m.mem[0].remote = RANK_MEM_NULL;
        list_close(&m);
        m.mem[0].remote = s.mem[0];
        MP_OK(list_start_long(&m, RANK_XFER_WRITE, LONG, &req));
    } else {
        MP_OK(rank_team_free(&team));
        req = RANK_REQUEST_NULL;
    }
    mp_barrier(mp->world);
    MP_OK(rank_free(&s.mem[0]));
    MP_OK(ended(&req));
    mp_barrier(mp->world);
    MP_OK(rank_free(&s.mem[1]));
    MP_OK(rank_team_free(&s.team));
    free(local);
}

/* Lists move until the peer dies; they end within a second. */
static void run_kill(struct mp *mp)
{
    rank_request_t reqs[2];
    struct list_model m;
    double begun;

    mp_case(mp, "death");
    list_open(&m, RANK_CTX_NULL, mp->world, mp->rank ^ 1, mp->rank & 1, mp->seed, reg, NULL);
    if (mp->rank & 1) {
        begun = mp_now() + 0.2;
        mp_die_at(&begun);
        for (;;)
            MP_OK(rank_progress());
    }
    MP_OK(list_start_long(&m, RANK_XFER_WRITE, 1ll << 40, &reqs[0]));
    MP_OK(list_start_long(&m, RANK_XFER_READ, 1ll << 40, &reqs[1]));
    begun = mp_now();
    MP_STATUS(rank_wait_timed(&reqs[0], 20000000000ll, NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_wait_timed(&reqs[1], 20000000000ll, NULL), RANK_ERR_PEER_DEAD);
    MP_CHECK(mp_now() - begun < 1.2 + 0.2);
    mp_end_survivor(mp);
    exit(0);
}

int main(int argc, char **argv)
{
    int64_t steps = mp_rounds(mp_option(argc, argv, "--steps", 8));
    bool kills = mp_flag(argc, argv, "--kill");
    struct mp mp;

    mp_start_level(&mp, &argc, argv, mp_flag(argc, argv, "--threads") ? RANK_THREAD_MULTIPLE : RANK_THREAD_SINGLE);
    if (kills)
        run_kill(&mp);
    run_self(&mp);
    run_random(&mp, steps);
    run_ends(&mp);
    mp_end(&mp);
    return 0;
}
