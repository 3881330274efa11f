/* SPDX-License-Identifier: BSD-3-Clause */
/* argument_errors.c: check that a wrong argument gets its status and no effect. */
#include "tests/mp/mp.h"

#include <limits.h>
#include <string.h>

static void p2p(const struct mp *mp)
{
    rank_request_t req = RANK_REQUEST_NULL;
    rank_team_t w = mp->world;
    rank_envelope_t env;
    char c = 7;
    int found;

    const int bad_ranks[] = {-1, -2, INT_MIN, mp->size, mp->size + 1, INT_MAX};
    for (size_t i = 0; i < sizeof(bad_ranks) / sizeof(bad_ranks[0]); i++) {
        int r = bad_ranks[i];
        MP_STATUS(rank_send(&c, 1, RANK_BYTE, r, 0, w), RANK_ERR_RANK);
        MP_STATUS(rank_ssend(&c, 1, RANK_BYTE, r, 0, w), RANK_ERR_RANK);
        MP_STATUS(rank_recv(&c, 1, RANK_BYTE, r, 0, w, &env), RANK_ERR_RANK);
        MP_STATUS(rank_isend(&c, 1, RANK_BYTE, r, 0, w, &req), RANK_ERR_RANK);
        MP_STATUS(rank_issend(&c, 1, RANK_BYTE, r, 0, w, &req), RANK_ERR_RANK);
        MP_STATUS(rank_irecv(&c, 1, RANK_BYTE, r, 0, w, &req), RANK_ERR_RANK);
        MP_STATUS(rank_probe(r, 0, w, &env), RANK_ERR_RANK);
        MP_STATUS(rank_iprobe(r, 0, w, &found, &env), RANK_ERR_RANK);
        MP_STATUS(rank_sendrecv(&c, 1, RANK_BYTE, r, 0, &c, 1, RANK_BYTE, 0, 0, w, &env),
                  RANK_ERR_RANK);
        MP_STATUS(rank_sendrecv(&c, 1, RANK_BYTE, 0, 0, &c, 1, RANK_BYTE, r, 0, w, &env),
                  RANK_ERR_RANK);
        MP_CHECK(rank_channel_name(w, r) == NULL);
    }
    /* Any source is for receivers only. */
    MP_STATUS(rank_send(&c, 1, RANK_BYTE, RANK_ANY_SOURCE, 0, w), RANK_ERR_RANK);
    MP_STATUS(rank_isend(&c, 1, RANK_BYTE, RANK_ANY_SOURCE, 0, w, &req), RANK_ERR_RANK);

    const int64_t bad_tags[] = {-1, -2, INT64_MIN};
    for (size_t i = 0; i < sizeof(bad_tags) / sizeof(bad_tags[0]); i++) {
        int64_t t = bad_tags[i];
        MP_STATUS(rank_send(&c, 1, RANK_BYTE, 0, t, w), RANK_ERR_TAG);
        MP_STATUS(rank_ssend(&c, 1, RANK_BYTE, 0, t, w), RANK_ERR_TAG);
        MP_STATUS(rank_recv(&c, 1, RANK_BYTE, 0, t, w, &env), RANK_ERR_TAG);
        MP_STATUS(rank_isend(&c, 1, RANK_BYTE, 0, t, w, &req), RANK_ERR_TAG);
        MP_STATUS(rank_irecv(&c, 1, RANK_BYTE, 0, t, w, &req), RANK_ERR_TAG);
        MP_STATUS(rank_probe(0, t, w, &env), RANK_ERR_TAG);
        MP_STATUS(rank_iprobe(0, t, w, &found, &env), RANK_ERR_TAG);
        MP_STATUS(rank_sendrecv(&c, 1, RANK_BYTE, 0, t, &c, 1, RANK_BYTE, 0, 0, w, &env),
                  RANK_ERR_TAG);
        MP_STATUS(rank_sendrecv(&c, 1, RANK_BYTE, 0, 0, &c, 1, RANK_BYTE, 0, t, w, &env),
                  RANK_ERR_TAG);
    }
    MP_STATUS(rank_send(&c, 1, RANK_BYTE, 0, RANK_ANY_TAG, w), RANK_ERR_TAG);

    const int64_t bad_counts[] = {-1, INT64_MIN, INT64_MAX, (1ll << 62) + 1};
    for (size_t i = 0; i < 4; i++) {
        MP_STATUS(rank_send(&c, bad_counts[i], RANK_BYTE, 0, 0, w), RANK_ERR_COUNT);
        MP_STATUS(rank_ssend(&c, bad_counts[i], RANK_BYTE, 0, 0, w), RANK_ERR_COUNT);
        MP_STATUS(rank_recv(&c, bad_counts[i], RANK_BYTE, 0, 0, w, &env), RANK_ERR_COUNT);
        MP_STATUS(rank_isend(&c, bad_counts[i], RANK_BYTE, 0, 0, w, &req), RANK_ERR_COUNT);
        MP_STATUS(rank_irecv(&c, bad_counts[i], RANK_BYTE, 0, 0, w, &req), RANK_ERR_COUNT);
    }
    /* The bytes would not fit in 64 bits. */
    MP_STATUS(rank_send(&c, INT64_MAX / 2, RANK_F64, 0, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_recv(&c, INT64_MAX / 2, RANK_F64_COMPLEX, 0, 0, w, &env), RANK_ERR_COUNT);

    const rank_dtype_t bad_types[] = {0, 3, (rank_dtype_t)-1, RANK_PAIR_F64 + 0x100, RANK_BYTE << 8, RANK_SUM};
    for (size_t i = 0; i < 3; i++) {
        rank_dtype_t d = bad_types[i];
        MP_STATUS(rank_send(&c, 1, d, 0, 0, w), RANK_ERR_DTYPE);
        MP_STATUS(rank_recv(&c, 1, d, 0, 0, w, &env), RANK_ERR_DTYPE);
        MP_STATUS(rank_isend(&c, 1, d, 0, 0, w, &req), RANK_ERR_DTYPE);
        MP_STATUS(rank_irecv(&c, 1, d, 0, 0, w, &req), RANK_ERR_DTYPE);
    }
    /* A null buffer for something; for nothing it is fine. */
    MP_STATUS(rank_send(NULL, 1, RANK_BYTE, 0, 0, w), RANK_ERR_ARG);
    MP_STATUS(rank_recv(NULL, 1, RANK_BYTE, 0, 0, w, &env), RANK_ERR_ARG);
    MP_STATUS(rank_isend(NULL, 1, RANK_BYTE, 0, 0, w, &req), RANK_ERR_ARG);
    MP_STATUS(rank_irecv(NULL, 1, RANK_BYTE, 0, 0, w, &req), RANK_ERR_ARG);
    MP_STATUS(rank_isend(&c, 1, RANK_BYTE, 0, 0, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_irecv(&c, 1, RANK_BYTE, 0, 0, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_iprobe(0, 0, w, NULL, &env), RANK_ERR_ARG);
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_CHECK_EQ(c, 7);
}

/* Null handles, handles of another kind, freed ones. */
static void handles(const struct mp *mp)
{
    struct { uint64_t zero[32]; } junk;
    rank_team_t teams[3] = {RANK_TEAM_NULL, (rank_team_t)(void *)&junk, RANK_TEAM_NULL};
    rank_request_t req;
    rank_request_t foreign;
    rank_team_t team;
    rank_envelope_t env;
    char c = 0;
    int64_t index = 5;
    int done = 5;

    memset(&junk, 0x5a, sizeof(junk));
    MP_OK(rank_irecv(&c, 1, RANK_BYTE, mp->rank, 77, mp->world, &req));
    teams[2] = (rank_team_t)(void *)req; /* a live object of another type */
    for (int i = 0; i < 3; i++) {
        MP_STATUS(rank_send(&c, 1, RANK_BYTE, 0, 0, teams[i]), RANK_ERR_HANDLE);
        MP_STATUS(rank_recv(&c, 1, RANK_BYTE, 0, 0, teams[i], &env), RANK_ERR_HANDLE);
        MP_STATUS(rank_iprobe(0, 0, teams[i], &done, &env), RANK_ERR_HANDLE);
        MP_CHECK_EQ(rank_team_rank(teams[i]), RANK_ERR_HANDLE);
        MP_CHECK_EQ(rank_team_size(teams[i]), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_dup(teams[i], &team), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_split(teams[i], 0, 0, &team), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_create(teams[i], 1, &mp->rank, 0, &team), RANK_ERR_HANDLE);
        MP_CHECK_EQ(rank_team_world_rank(teams[i], 0), RANK_ERR_HANDLE);
        MP_CHECK_EQ(rank_node_of(0, teams[i]), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_members(teams[i], &done, 1), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_compare(teams[i], mp->world, &done), RANK_ERR_HANDLE);
        MP_STATUS(rank_team_compare(mp->world, teams[i], &done), RANK_ERR_HANDLE);
        team = teams[i];
        MP_STATUS(rank_team_free(&team), RANK_ERR_HANDLE);
        MP_CHECK(team == teams[i]);
        MP_STATUS(rank_barrier(teams[i]), RANK_ERR_HANDLE);
    }
    MP_STATUS(rank_team_free(NULL), RANK_ERR_ARG);
    MP_STATUS(rank_team_dup(mp->world, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_team_split(mp->world, 0, 0, NULL), RANK_ERR_ARG);
    team = RANK_TEAM_NULL;
    MP_STATUS(rank_team_create(mp->world, 1, &mp->rank, 0, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_team_create(mp->world, 1, NULL, 0, &team), RANK_ERR_ARG);
    MP_STATUS(rank_team_create(mp->world, 0, &mp->rank, 0, &team), RANK_ERR_COUNT);
    MP_STATUS(rank_team_create(mp->world, mp->size + 1, &mp->rank, 0, &team), RANK_ERR_COUNT);
    MP_STATUS(rank_team_create(mp->world, 1, &mp->rank, -1, &team), RANK_ERR_TAG);
    MP_STATUS(rank_team_create(mp->world, 1, &mp->rank, INT64_MAX, &team), RANK_ERR_TAG);
    for (int bad = -1; bad <= mp->size; bad += mp->size + 1)
        MP_STATUS(rank_team_create(mp->world, 1, &bad, 0, &team), RANK_ERR_RANK);
    if (mp->size > 1) {
        int twice[2] = {mp->rank, mp->rank}, other = (mp->rank + 1) % mp->size;
        MP_STATUS(rank_team_create(mp->world, 2, twice, 0, &team), RANK_ERR_RANK);
        MP_STATUS(rank_team_create(mp->world, 1, &other, 0, &team), RANK_ERR_ARG);
    }
    MP_CHECK(team == RANK_TEAM_NULL);
    for (int bad = -1; bad <= mp->size; bad += mp->size + 1) {
        MP_CHECK_EQ(rank_team_world_rank(mp->world, bad), RANK_ERR_RANK);
        MP_CHECK_EQ(rank_node_of(bad, mp->world), RANK_ERR_RANK);
    }
    MP_STATUS(rank_team_members(mp->world, NULL, mp->size), RANK_ERR_ARG);
    MP_STATUS(rank_team_members(mp->world, &done, mp->size - 1), RANK_ERR_COUNT);
    MP_STATUS(rank_team_compare(mp->world, mp->world, NULL), RANK_ERR_ARG);
    /* The world is not the caller's to free. */
    team = mp->world;
    MP_CHECK(rank_team_free(&team) != RANK_OK);
    MP_CHECK(team == mp->world);

    foreign = (rank_request_t)(void *)&junk;
    MP_STATUS(rank_wait(&foreign, &env), RANK_ERR_HANDLE);
    MP_STATUS(rank_test(&foreign, &done, &env), RANK_ERR_HANDLE);
    foreign = (rank_request_t)(void *)mp->world;
    MP_STATUS(rank_wait(&foreign, &env), RANK_ERR_HANDLE);
    MP_STATUS(rank_waitall(1, &foreign, &env), RANK_ERR_HANDLE);
    MP_STATUS(rank_waitany(1, &foreign, &index, &env), RANK_ERR_HANDLE);
    MP_STATUS(rank_wait(NULL, &env), RANK_ERR_ARG);
    MP_STATUS(rank_test(NULL, &done, &env), RANK_ERR_ARG);
    MP_STATUS(rank_test(&req, NULL, &env), RANK_ERR_ARG);
    MP_STATUS(rank_waitall(-1, &req, &env), RANK_ERR_COUNT);
    MP_STATUS(rank_waitany(-1, &req, &index, &env), RANK_ERR_COUNT);
    MP_STATUS(rank_waitall(1, NULL, &env), RANK_ERR_ARG);
    MP_STATUS(rank_waitany(1, &req, NULL, &env), RANK_ERR_ARG);

    /* The receive was not touched by all this. */
    MP_OK(rank_send("x", 1, RANK_BYTE, mp->rank, 77, mp->world));
    foreign = req;
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_CHECK_EQ(c, 'x');
    /* A copy of a handle that has been freed. */
    MP_STATUS(rank_wait(&foreign, &env), RANK_ERR_HANDLE);
}

static void memory(const struct mp *mp)
{
    struct { uint64_t zero[32]; } junk;
    rank_mem_t mem = RANK_MEM_NULL, copy, bad[3];
    void *p = NULL;
    char c = 1;
    int64_t one = 1, was;
    rank_mem_kind_t kind = RANK_MEM_CUDA;
    int device = 5;

    memset(&junk, 0x5a, sizeof(junk));
    MP_STATUS(rank_alloc(RANK_TEAM_NULL, RANK_MEM_HOST, 64, &p, &mem), RANK_ERR_HANDLE);
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, -1, &p, &mem), RANK_ERR_COUNT);
    MP_STATUS(rank_alloc(mp->world, (rank_mem_kind_t)77, 64, &p, &mem), RANK_ERR_ARG);
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, 64, NULL, &mem), RANK_ERR_ARG);
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, 64, &p, NULL), RANK_ERR_ARG);
    MP_CHECK(p == NULL && mem == RANK_MEM_NULL);
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_CUDA, 64, &p, &mem), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_mem_kind(NULL, &kind, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_mem_kind(&c, NULL, &device), RANK_ERR_ARG);
    MP_CHECK(device == 5 && kind == RANK_MEM_CUDA);
    MP_OK(rank_mem_kind(&c, &kind, &device));
    MP_CHECK(device == -1 && kind == RANK_MEM_HOST);

    MP_STATUS(rank_reg(NULL, 8, &mem), RANK_ERR_ARG);
    MP_STATUS(rank_reg(&p, -1, &mem), RANK_ERR_COUNT);
    MP_STATUS(rank_reg(&p, INT64_MAX, &mem), RANK_ERR_COUNT);
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 100, &p, &mem));
    bad[0] = RANK_MEM_NULL;
    bad[1] = (rank_mem_t)(void *)&junk;
    bad[2] = (rank_mem_t)(void *)mp->world;
    for (int i = 0; i < 3; i++) {
        MP_STATUS(rank_put(&c, 1, 0, bad[i], 0), RANK_ERR_HANDLE);
        MP_STATUS(rank_get(&c, 1, 0, bad[i], 0), RANK_ERR_HANDLE);
        MP_STATUS(rank_flush(bad[i], 0), RANK_ERR_HANDLE);
        MP_STATUS(rank_ptr(bad[i], 0, &p), RANK_ERR_HANDLE);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, 0, bad[i], 0, NULL),
                  RANK_ERR_HANDLE);
        copy = bad[i];
        MP_STATUS(rank_free(&copy), RANK_ERR_HANDLE);
    }
    MP_STATUS(rank_free(NULL), RANK_ERR_ARG);
    for (int i = 0; i < 3; i++) {
        int r = i == 0 ? -1 : i == 1 ? mp->size : INT_MAX;
        MP_STATUS(rank_put(&c, 1, r, mem, 0), RANK_ERR_RANK);
        MP_STATUS(rank_get(&c, 1, r, mem, 0), RANK_ERR_RANK);
        MP_STATUS(rank_flush(mem, r), RANK_ERR_RANK);
        MP_STATUS(rank_ptr(mem, r, &p), RANK_ERR_RANK);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, r, mem, 0, NULL), RANK_ERR_RANK);
    }
    for (int r = 0; r < mp->size; r++) {
        MP_STATUS(rank_put(&c, 1, r, mem, 100), RANK_ERR_BOUNDS);
        MP_STATUS(rank_put(&c, 1, r, mem, -1), RANK_ERR_BOUNDS);
        MP_STATUS(rank_put(&junk, 101, r, mem, 0), RANK_ERR_BOUNDS);
        MP_STATUS(rank_put(&c, 1, r, mem, INT64_MAX), RANK_ERR_BOUNDS);
        MP_STATUS(rank_get(&c, 1, r, mem, 100), RANK_ERR_BOUNDS);
        MP_STATUS(rank_get(&c, INT64_MAX, r, mem, INT64_MAX), RANK_ERR_BOUNDS);
        MP_STATUS(rank_get(&c, 2, r, mem, 99), RANK_ERR_BOUNDS);
        MP_STATUS(rank_put(&c, -1, r, mem, 0), RANK_ERR_COUNT);
        MP_STATUS(rank_get(&c, -1, r, mem, 0), RANK_ERR_COUNT);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, r, mem, 96, NULL), RANK_ERR_BOUNDS);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, r, mem, 4, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic(RANK_AMO_XOR, RANK_F64, &one, r, mem, 0, NULL), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT8, &one, r, mem, 0, NULL), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, NULL, r, mem, 0, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, r, mem, 0, NULL),
                  RANK_ERR_ARG);
        MP_STATUS(rank_atomic((rank_amo_t)99, RANK_INT64, &one, r, mem, 0, &was), RANK_ERR_OP);
        MP_OK(rank_put(&c, 0, r, mem, 100)); /* nothing, at the end */
        MP_OK(rank_get(&c, 0, r, mem, 100));
    }
    for (int i = 0; i < 100; i++)
        MP_CHECK_EQ(((char *)p)[i], 0);
    copy = mem;
    MP_OK(rank_free(&mem));
    MP_CHECK(mem == RANK_MEM_NULL);
    MP_STATUS(rank_put(&c, 1, 0, copy, 0), RANK_ERR_HANDLE);
}

static void collectives(const struct mp *mp)
{
    int64_t a = 1, b[64] = {0};
    rank_team_t w = mp->world;
    rank_request_t req = RANK_REQUEST_NULL;

    MP_STATUS(rank_bcast(&a, 1, RANK_INT64, -1, w), RANK_ERR_RANK);
    MP_STATUS(rank_bcast(&a, 1, RANK_INT64, mp->size, w), RANK_ERR_RANK);
    MP_STATUS(rank_bcast(&a, -1, RANK_INT64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_bcast(&a, 1, RANK_SUM, 0, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_reduce(&a, b, 1, RANK_INT64, RANK_SUM, mp->size, w), RANK_ERR_RANK);
    MP_STATUS(rank_allreduce(&a, b, 1, RANK_INT64, RANK_INT8, w), RANK_ERR_OP);
    MP_STATUS(rank_allreduce(&a, b, 1, RANK_INT64, (rank_op_t)-1, w), RANK_ERR_OP);
    MP_STATUS(rank_allreduce(&a, b, 1, RANK_INT64, RANK_AVG, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(&a, b, 1, RANK_F64, RANK_BAND, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(&a, b, -4, RANK_INT64, RANK_SUM, w), RANK_ERR_COUNT);
    MP_STATUS(rank_gather(&a, b, 1, RANK_INT64, -7, w), RANK_ERR_RANK);
    MP_STATUS(rank_allgather(&a, b, -1, RANK_INT64, w), RANK_ERR_COUNT);
    MP_STATUS(rank_alltoall(b, b + 32, -1, RANK_INT64, w), RANK_ERR_COUNT);
    MP_STATUS(rank_iallreduce(&a, b, 1, RANK_INT64, RANK_INT8, w, &req), RANK_ERR_OP);
    MP_STATUS(rank_ibarrier(w, NULL), RANK_ERR_ARG);
    MP_CHECK(req == RANK_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "p2p");
    p2p(&mp);
    mp_case(&mp, "handles");
    handles(&mp);
    mp_case(&mp, "memory");
    memory(&mp);
    mp_case(&mp, "collectives");
    collectives(&mp);
    mp_end(&mp);
    return 0;
}
