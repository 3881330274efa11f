/* SPDX-License-Identifier: BSD-3-Clause */
/* init_finalize.c: call rank_init and rank_finalize, and all calls around them. */
#include "tests/mp/mp.h"

#include <string.h>

/* A call that needs the library while it is not there. */
static void refused(const char *file, int line, const char *what, int st)
{
    if (st != RANK_ERR_STATE && st != RANK_ERR_HANDLE)
        mp_fail(file, line, "%s gave %d, neither ERR_STATE nor ERR_HANDLE", what, st);
}
#define REFUSED(call) refused(__FILE__, __LINE__, #call, (int)(call))

/* Every call of rank.h that needs an initialized library, on this team. */
static void try_all(rank_team_t team)
{
    rank_request_t req = RANK_REQUEST_NULL;
    rank_mem_t mem = RANK_MEM_NULL;
    rank_team_t out = team;
    rank_envelope_t env;
    int64_t counts[1] = {1}, displs[1] = {0};
    int64_t a = 1, b = 0;
    void *p = NULL;
    int i = 0;

    REFUSED(rank_team_rank(team));
    REFUSED(rank_team_size(team));
    REFUSED(rank_team_split(team, 0, 0, &out));
    REFUSED(rank_team_split_shared(team, 0, &out));
    REFUSED(rank_team_dup(team, &out));
    out = team;
    REFUSED(rank_team_free(&out));
    REFUSED(rank_send(&a, 1, RANK_INT64, 0, 0, team));
    REFUSED(rank_ssend(&a, 1, RANK_INT64, 0, 0, team));
    REFUSED(rank_recv(&b, 1, RANK_INT64, 0, 0, team, &env));
    REFUSED(rank_isend(&a, 1, RANK_INT64, 0, 0, team, &req));
    REFUSED(rank_issend(&a, 1, RANK_INT64, 0, 0, team, &req));
    REFUSED(rank_irecv(&b, 1, RANK_INT64, 0, 0, team, &req));
    REFUSED(rank_sendrecv(&a, 1, RANK_INT64, 0, 0, &b, 1, RANK_INT64, 0, 0, team, &env));
    REFUSED(rank_probe(0, 0, team, &env));
    REFUSED(rank_iprobe(0, 0, team, &i, &env));
    REFUSED(rank_alloc(team, RANK_MEM_HOST, 64, &p, &mem));
    REFUSED(rank_free(&mem));
    REFUSED(rank_ptr(mem, 0, &p));
    REFUSED(rank_put(&a, 8, 0, mem, 0));
    REFUSED(rank_get(&b, 8, 0, mem, 0));
    REFUSED(rank_flush(mem, 0));
    REFUSED(rank_atomic(RANK_AMO_ADD, RANK_INT64, &a, 0, mem, 0, NULL));
    REFUSED(rank_barrier(team));
    REFUSED(rank_bcast(&a, 1, RANK_INT64, 0, team));
    REFUSED(rank_reduce(&a, &b, 1, RANK_INT64, RANK_SUM, 0, team));
    REFUSED(rank_allreduce(&a, &b, 1, RANK_INT64, RANK_SUM, team));
    REFUSED(rank_gather(&a, &b, 1, RANK_INT64, 0, team));
    REFUSED(rank_allgather(&a, &b, 1, RANK_INT64, team));
    REFUSED(rank_allgatherv(&a, 1, &b, counts, displs, RANK_INT64, team));
    REFUSED(rank_gatherv(&a, 1, &b, counts, displs, RANK_INT64, 0, team));
    REFUSED(rank_scatterv(&a, counts, displs, &b, 1, RANK_INT64, 0, team));
    REFUSED(rank_scatter(&a, &b, 1, RANK_INT64, 0, team));
    REFUSED(rank_reduce_scatter(&a, &b, 1, RANK_INT64, RANK_SUM, team));
    REFUSED(rank_alltoall(&a, &b, 1, RANK_INT64, team));
    REFUSED(rank_ibarrier(team, &req));
    REFUSED(rank_ibcast(&a, 1, RANK_INT64, 0, team, &req));
    REFUSED(rank_ireduce(&a, &b, 1, RANK_INT64, RANK_SUM, 0, team, &req));
    REFUSED(rank_iallreduce(&a, &b, 1, RANK_INT64, RANK_SUM, team, &req));
    REFUSED(rank_igather(&a, &b, 1, RANK_INT64, 0, team, &req));
    REFUSED(rank_iallgather(&a, &b, 1, RANK_INT64, team, &req));
    REFUSED(rank_iallgatherv(&a, 1, &b, counts, displs, RANK_INT64, team, &req));
    REFUSED(rank_reduce_scatterv(&a, &b, counts, RANK_INT64, RANK_SUM, team));
    REFUSED(rank_ireduce_scatterv(&a, &b, counts, RANK_INT64, RANK_SUM, team, &req));
    REFUSED(rank_scan(&a, &b, 1, RANK_INT64, RANK_SUM, team));
    REFUSED(rank_exscan(&a, &b, 1, RANK_INT64, RANK_SUM, team));
    REFUSED(rank_iscan(&a, &b, 1, RANK_INT64, RANK_SUM, team, &req));
    REFUSED(rank_iexscan(&a, &b, 1, RANK_INT64, RANK_SUM, team, &req));
    REFUSED(rank_alltoallv(&a, counts, displs, &b, counts, displs, RANK_INT64, team));
    REFUSED(rank_ialltoallv(&a, counts, displs, &b, counts, displs, RANK_INT64, team, &req));
    REFUSED(rank_igatherv(&a, 1, &b, counts, displs, RANK_INT64, 0, team, &req));
    REFUSED(rank_iscatterv(&a, counts, displs, &b, 1, RANK_INT64, 0, team, &req));
    REFUSED(rank_iscatter(&a, &b, 1, RANK_INT64, 0, team, &req));
    REFUSED(rank_ireduce_scatter(&a, &b, 1, RANK_INT64, RANK_SUM, team, &req));
    REFUSED(rank_ialltoall(&a, &b, 1, RANK_INT64, team, &req));
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_CHECK(mem == RANK_MEM_NULL);
    MP_CHECK(p == NULL);
    MP_CHECK(rank_channel_name(team, 0) == NULL);
    MP_CHECK_EQ(b, 0);
}

static void answers_at_any_time(void)
{
    char version[32];

    snprintf(version, sizeof(version), "%d.%d.%d", RANK_VERSION_MAJOR, RANK_VERSION_MINOR,
             RANK_VERSION_PATCH);
    MP_CHECK(strcmp(rank_version(), version) == 0);
    MP_CHECK(strcmp(rank_status_string(RANK_OK), "success") == 0);
    MP_CHECK(rank_status_string((rank_status_t)-9999) != NULL);
    MP_CHECK(strcmp(rank_status_string((rank_status_t)-9999), "unknown status") == 0);
    MP_CHECK_EQ(rank_dtype_size(RANK_F64), 8);
    MP_CHECK_EQ(rank_dtype_size(RANK_PAIR_INT64), 16);
    MP_CHECK(rank_dtype_size(RANK_SUM) < 0);
    MP_CHECK(rank_dtype_size((rank_dtype_t)-1) < 0);
    MP_CHECK_EQ(rank_op_defined(RANK_SUM, RANK_F32), 1);
    MP_CHECK_EQ(rank_op_defined(RANK_BAND, RANK_F32), 0);
    MP_CHECK_EQ(rank_op_defined(RANK_MINLOC, RANK_INT32), 0);
    MP_CHECK_EQ(rank_op_defined(RANK_MINLOC, RANK_PAIR_INT32), 1);
    MP_CHECK_EQ(rank_op_defined(RANK_INT8, RANK_INT32), 0);
    MP_CHECK_EQ(rank_op_defined(RANK_SUM, (rank_dtype_t)99), 0);
}

int main(int argc, char **argv)
{
    rank_init_opts_t opts = {.size = sizeof(opts), .thread_level = 17};
    rank_team_t world;
    int fds = mp_count_fds();

    answers_at_any_time();
    MP_CHECK(!rank_initialized());
    MP_CHECK(rank_world() == RANK_TEAM_NULL);
    MP_STATUS(rank_finalize(), RANK_ERR_STATE);
    MP_STATUS(rank_progress(), RANK_ERR_STATE);
    MP_CHECK_EQ(rank_thread_level(), RANK_ERR_STATE);
    try_all(RANK_TEAM_NULL);
    try_all((rank_team_t)(void *)&opts);

    /* What is refused must leave nothing half done: the next rank_init works. */
    MP_STATUS(rank_init(&opts), RANK_ERR_ARG);
    MP_CHECK(!rank_initialized());
    opts.thread_level = -1;
    MP_STATUS(rank_init(&opts), RANK_ERR_ARG);
    opts.thread_level = (int32_t)mp_option(argc, argv, "--level", RANK_THREAD_FUNNELED);
    opts.size = 3; /* not even the size field fits */
    MP_STATUS(rank_init(&opts), RANK_ERR_ARG);
    opts.size = sizeof(opts);
    opts.progress_thread = 2;
    MP_STATUS(rank_init(&opts), RANK_ERR_ARG);
    opts.progress_thread = 0;

    MP_OK(rank_init(&opts));
    MP_CHECK_EQ(rank_initialized(), 1);
    MP_CHECK_EQ(rank_thread_level(), opts.thread_level);
    world = rank_world();
    MP_CHECK(world != RANK_TEAM_NULL);
    MP_CHECK(rank_team_size(world) >= 1);
    MP_STATUS(rank_init(NULL), RANK_ERR_STATE);
    MP_STATUS(rank_init(&opts), RANK_ERR_STATE);
    MP_CHECK(rank_world() == world);
    mp_barrier(world);
    MP_OK(rank_progress());
    try_all(RANK_TEAM_NULL);
    answers_at_any_time();
    mp_barrier(world);

    MP_OK(rank_finalize());
    MP_CHECK(!rank_initialized());
    MP_CHECK(rank_world() == RANK_TEAM_NULL);
    MP_STATUS(rank_finalize(), RANK_ERR_STATE);
    MP_STATUS(rank_progress(), RANK_ERR_STATE);
    MP_CHECK_EQ(rank_thread_level(), RANK_ERR_STATE);
    try_all(RANK_TEAM_NULL);
    try_all(world); /* a handle of the library that has gone */
    answers_at_any_time();

    if (mp_count_fds() > fds)
        mp_fail(__FILE__, __LINE__, "%d descriptors open, %d before", mp_count_fds(), fds);
    printf("mp: done\n");
    return 0;
}
