/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_faults.c: let the driver fail under a rank: the others must not wait.
 *
 *   --init STATUS   rank_init returns that
 *   --without       there is no device memory, and rank_init succeeds
 *   --memory        rank 0's device has no memory for an allocation
 *   --alloc         a call of the driver fails somewhere within allocations
 *   --copies        copies of rank 0 fail; --mapped: the others can map its device memory
 *   --sticky        the third copy of rank 0 corrupts its context
 *   --fork          a child of rank 0
 *   --die           rank 0 dies while the others have mapped its memory
 */
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const double limit_s = 2;
static const int64_t sizes[] = {8, 12000, 300000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), MOST = 1 << 20, EAGER_MAX = 16 << 10 };

static const struct rk_kind *kind;

struct scene {
    struct mp mp;
    void *device;  /* MOST bytes */
    int64_t *host; /* the same */
    bool mapped;   /* rank 1 can map the device memory of rank 0 */
};

/* Before rank_init, as the stand-in reads its variables at the first call. */
static void break_rank_0(const char *rule)
{
    const char *rank = getenv("PMIX_RANK");

    if (!rank || strcmp(rank, "0") == 0)
        setenv("STANDIN_FAIL", rule, 1);
}

static rank_status_t checked_time(rank_status_t st, double begun)
{
    if (mp_now() - begun > limit_s)
        mp_fail(__FILE__, __LINE__, "the call took %.1f s", mp_now() - begun);
    return st;
}

/* ------------------------------------------------------------------------ messages */

/* Rank 0's status of a send from its device, as word 1 of a host message that follows; word 0 is 4711 in both. */
static void send_from_device(const struct scene *s, int64_t n, bool nonblocking)
{
    rank_team_t world = s->mp.world;
    rank_request_t req;
    double begun = mp_now();
    rank_status_t st;

    if (nonblocking) {
        st = rank_isend(s->device, n, RANK_BYTE, 1, 1, world, &req);
        st = st ? st : rank_wait(&req, NULL);
    } else {
        st = rank_send(s->device, n, RANK_BYTE, 1, 1, world);
    }
    checked_time(st, begun);
    if (!s->mapped)
        MP_STATUS(st, RANK_ERR_DEVICE);
    else
        MP_OK(st);
    s->host[1] = 0;
    MP_OK(rank_send(s->host, 16, RANK_BYTE, 1, 1, world));
}

/*
 * Mapped: rank 1 copies, and nothing fails. Otherwise what rank 0 cannot read is no message, or one that fails at both
 * ends.
 */
static void send_broken(const struct scene *s, int64_t n, bool nonblocking)
{
    rank_team_t world = s->mp.world;
    double begun = mp_now();

    if (s->mp.rank == 0) {
        send_from_device(s, n, nonblocking);
    } else if (s->mp.rank == 1) {
        rank_status_t st;

        s->host[0] = s->host[1] = -1;
        st = rank_recv(s->host, MOST, RANK_BYTE, 0, 1, world, NULL);
        if (st)
            MP_STATUS(checked_time(st, begun), RANK_ERR_DEVICE);
        else
            MP_CHECK_EQ(s->host[0], 4711);
        if (st || s->mapped)
            MP_OK(rank_recv(s->host, 16, RANK_BYTE, 0, 1, world, NULL));
        MP_CHECK_EQ(s->host[1], 0);
    }
    mp_barrier(world);
}

/* Posted, then unexpected. The sender is not concerned. Mapped: it copies, unless the message goes at once. */
static void recv_broken(const struct scene *s, int64_t n)
{
    rank_team_t world = s->mp.world;
    rank_status_t want = s->mapped && n > EAGER_MAX ? RANK_OK : RANK_ERR_DEVICE;
    rank_request_t req;

    for (int posted = 0; posted < 2; posted++) {
        if (s->mp.rank == 0 && posted)
            MP_OK(rank_irecv(s->device, n, RANK_BYTE, 1, 2, world, &req));
        mp_barrier(world);
        if (s->mp.rank == 1) {
            MP_OK(rank_isend(s->host, n, RANK_BYTE, 0, 2, world, &req));
            MP_OK(rank_wait(&req, NULL));
        }
        if (s->mp.rank == 0)
            MP_STATUS(posted ? rank_wait(&req, NULL) : rank_recv(s->device, n, RANK_BYTE, 1, 2, world, NULL), want);
        mp_barrier(world);
    }
    s->host[0] = 4711;
}

/* --------------------------------------------------------------------- collectives */

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static rank_status_t reduce_in_form(const struct scene *s, enum form form, int64_t n, rank_team_t team)
{
    const void *in = s->mp.rank == 0 ? s->device : s->host;
    void *out = s->host + MOST / 16;
    rank_request_t req = RANK_REQUEST_NULL;
    rank_status_t st, end;

    if (form == BLOCKING)
        return rank_allreduce(in, out, n, RANK_INT64, RANK_SUM, team);
    if (form == PERSISTENT) {
        MP_OK(rank_allreduce_init(in, out, n, RANK_INT64, RANK_SUM, team, &req));
        st = rank_start(&req);
    } else {
        st = rank_iallreduce(in, out, n, RANK_INT64, RANK_SUM, team, &req);
    }
    if (!st)
        st = rank_wait(&req, NULL);
    if (form == PERSISTENT) {
        end = rank_request_free(&req);
        st = st ? st : end;
    }
    return st;
}

static void collective_broken(const struct scene *s, enum form form, int64_t n)
{
    rank_team_t team;
    rank_status_t st;
    double begun;

    MP_OK(rank_team_dup(s->mp.world, &team));
    mp_barrier(s->mp.world);
    begun = mp_now();
    st = checked_time(reduce_in_form(s, form, n, team), begun);
    if (s->mp.rank == 0)
        MP_STATUS(st, RANK_ERR_DEVICE);
    else
        MP_STATUS(st, RANK_ERR_COLLECTIVE);
    MP_OK(rank_team_free(&team));
}

/* ----------------------------------------------------------------- one-sided calls */

/* Rank 0 cannot copy to the memory of rank 1; and where it copies as the owner, its peers fail. */
static void onesided_broken(const struct scene *s, int64_t n)
{
    rank_team_t world = s->mp.world;
    rank_mem_t mem, plain;
    void *ptr, *mapped, *flags;

    MP_OK(rank_alloc(world, RANK_MEM_CUDA, MOST, &ptr, &mem));
    MP_OK(rank_alloc(world, RANK_MEM_HOST, MOST, &flags, &plain));
    if (s->mp.rank == 0) {
        MP_OK(rank_ptr(mem, 1, &mapped));
        if (mapped) {
            MP_STATUS(rank_put(s->host, n, 1, mem, 0), RANK_ERR_DEVICE);
            MP_STATUS(rank_get(s->host, n, 1, mem, 0), RANK_ERR_DEVICE);
        }
        MP_STATUS(rank_put(s->device, n, 1, plain, 0), RANK_ERR_DEVICE);
        MP_STATUS(rank_put_signal(s->device, n, 1, plain, 64, plain, 0, 1, RANK_SIGNAL_SET), RANK_ERR_DEVICE);
        MP_STATUS(rank_get(s->device, n, 1, plain, 0), RANK_ERR_DEVICE);
    }
    mp_barrier(world);
    if (s->mp.rank == 1) {
        MP_CHECK_EQ(*(int64_t *)flags, 0); /* no signal without its data */
        MP_OK(rank_ptr(mem, 0, &mapped));
        MP_STATUS(rank_get(s->host, n, 0, mem, 0), mapped ? RANK_OK : RANK_ERR_DEVICE);
        MP_OK(rank_put(s->host, n, 0, mem, 0));
        MP_STATUS(rank_flush(mem, 0), mapped ? RANK_OK : RANK_ERR_DEVICE);
        s->host[0] = 4711;
    }
    mp_barrier(world);
    MP_OK(rank_free(&plain));
    MP_OK(rank_free(&mem));
}

static void test_copies(struct scene *s)
{
    void *device;

    kind = device_memory(s->mp.rank);
    MP_OK(kind->alloc(MOST, &device));
    s->device = device;
    s->host = mp_alloc(MOST);
    memset(s->host, 0, MOST);
    s->host[0] = 4711;
    MP_OK(kind->copy(s->device, kind, s->host, NULL, MOST));
    mp_case(&s->mp, "messages");
    for (int i = 0; i < SIZES; i++) {
        send_broken(s, sizes[i], false);
        send_broken(s, sizes[i], true);
        recv_broken(s, sizes[i]);
    }
    mp_case(&s->mp, "one-sided");
    for (int i = 0; i < SIZES; i++)
        onesided_broken(s, sizes[i]);
    mp_case(&s->mp, "collectives");
    for (int i = 0; i < SIZES; i++) {
        for (enum form f = BLOCKING; f < FORMS; f++)
            collective_broken(s, f, sizes[i] / 8);
    }
    kind->free(s->device);
    free(s->host);
    device_memory_end();
}

/* ------------------------------------------------------------------------- others */

static void test_memory(struct scene *s)
{
    rank_mem_t mem;
    void *ptr;

    for (int i = 0; i < 3; i++) {
        MP_STATUS(rank_alloc(s->mp.world, RANK_MEM_CUDA, 64 << 20, &ptr, &mem), RANK_ERR_NO_MEMORY);
        MP_OK(rank_alloc(s->mp.world, RANK_MEM_CUDA, 6 << 20, &ptr, &mem));
        MP_OK(rank_free(&mem));
    }
}

/* An allocation fails on all ranks or on none, and leaves nothing. One that succeeds can be used. */
static void test_alloc(struct scene *s)
{
    const char *rule = getenv("BREAK_RANK_0");
    int to = (s->mp.rank + 1) % s->mp.size;

    for (int i = 0; i < 4; i++) {
        int32_t mine[2], all[2] = {0, 0}, word = 4711 + i, back = 0;
        rank_mem_t mem;
        void *ptr;
        rank_status_t st = rank_alloc(s->mp.world, RANK_MEM_CUDA, 3 << 20, &ptr, &mem);

        mine[0] = st;
        mine[1] = -(int32_t)st;
        MP_OK(rank_allreduce(mine, all, 2, RANK_INT32, RANK_MIN, s->mp.world));
        MP_CHECK_EQ(all[0], -all[1]);
        MP_CHECK(st == RANK_OK || st == RANK_ERR_DEVICE || st == RANK_ERR_NO_MEMORY);
        if (st)
            continue;
        st = rank_put(&word, 4, to, mem, 8);
        st = st ? st : rank_flush(mem, to);
        st = st ? st : rank_get(&back, 4, to, mem, 8);
        MP_CHECK(st == RANK_ERR_DEVICE || st == RANK_ERR_NO_MEMORY || (!st && back == word));
        mp_barrier(s->mp.world); /* a peer that owns the memory may be the one that fails */
        MP_OK(rank_free(&mem));
    }
    if (s->mp.rank == 0 && rule) { /* the call that fails is made */
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(rule, ":"), rule);
        MP_CHECK(device_memory_calls(name) >= 1);
    }
}

static void test_without(struct scene *s)
{
    rank_mem_kind_t found;
    rank_mem_t mem;
    void *ptr;

    MP_STATUS(rank_alloc(s->mp.world, RANK_MEM_CUDA, 8, &ptr, &mem), RANK_ERR_NOT_SUPPORTED);
    MP_OK(rank_mem_kind(&found, &found, NULL));
    MP_CHECK_EQ(found, RANK_MEM_HOST);
}

/* One error ends the use of the device, and rank 0 goes on with host memory. */
static void test_sticky(struct scene *s)
{
    rank_status_t st = RANK_OK;
    rank_mem_t mem;
    void *ptr, *host;
    int n = 0;

    MP_OK(rank_alloc(s->mp.world, RANK_MEM_CUDA, MOST, &ptr, &mem));
    host = mp_alloc(MOST);
    memset(host, 0, MOST);
    for (; s->mp.rank == 0 && n < 8 && !st; n++)
        st = rank_put(host, MOST, 0, mem, 0);
    if (s->mp.rank == 0) {
        MP_STATUS(st, RANK_ERR_DEVICE);
        MP_CHECK(n == 3 || n == 4);
        MP_STATUS(rank_put(host, 8, 0, mem, 0), RANK_ERR_DEVICE);
        MP_STATUS(rank_send(ptr, 8, RANK_BYTE, 1, 0, s->mp.world), RANK_ERR_DEVICE);
    }
    mp_barrier(s->mp.world);
    MP_OK(rank_free(&mem));
    free(host);
}

/* The child may use neither the library nor the driver; the parent is not affected. */
static void test_fork(struct scene *s)
{
    int32_t in = 1, out = 0;
    int status = -1;
    rank_mem_t mem;
    void *ptr;
    pid_t pid;

    kind = device_memory(s->mp.rank);
    MP_OK(rank_alloc(s->mp.world, RANK_MEM_CUDA, 4096, &ptr, &mem));
    pid = fork();
    MP_CHECK(pid >= 0);
    if (pid == 0) {
        rank_mem_kind_t found;

        if (rank_mem_kind(ptr, &found, NULL) != RANK_ERR_STATE || rank_put(&in, 4, 0, mem, 0) == RANK_OK)
            _exit(1);
        _exit(0);
    }
    MP_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    MP_OK(rank_put(&in, 4, s->mp.rank, mem, 0));
    MP_OK(rank_get(&out, 4, s->mp.rank, mem, 0));
    MP_CHECK_EQ(out, 1);
    MP_OK(rank_free(&mem));
    device_memory_end();
}

/* Its memory stays mapped, and the next calls report the death. */
static void test_death(struct scene *s)
{
    int32_t word = 1;
    rank_mem_t mem;
    rank_status_t st = RANK_OK;
    double begun;
    void *ptr;

    MP_OK(rank_alloc(s->mp.world, RANK_MEM_CUDA, 4096, &ptr, &mem));
    MP_OK(rank_put(&word, 4, 0, mem, 4 * s->mp.rank));
    mp_barrier(s->mp.world);
    if (s->mp.rank == 0)
        raise(SIGKILL);
    begun = mp_now();
    while (!st) {
        st = rank_put(&word, 4, 0, mem, 0);
        if (!st)
            st = rank_flush(mem, 0);
        checked_time(RANK_OK, begun);
    }
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    MP_STATUS(checked_time(rank_free(&mem), begun), RANK_ERR_PEER_DEAD);
    mp_end_survivor(&s->mp);
    exit(0);
}

int main(int argc, char **argv)
{
    int64_t init = mp_option(argc, argv, "--init", 0);
    struct scene s = {.device = NULL};
    rank_status_t st;

    if (init) {
        st = rank_init(NULL);
        if (st != (rank_status_t)init) {
            fprintf(stderr, "rank_init returns %s, not %s\n", rank_status_string(st), rank_status_string((rank_status_t)init));
            return 1;
        }
        puts("mp: done");
        return 0;
    }
    if (getenv("BREAK_RANK_0"))
        break_rank_0(getenv("BREAK_RANK_0"));
    mp_start(&s.mp, &argc, argv);
    s.mapped = mp_flag(argc, argv, "--mapped");
    if (mp_flag(argc, argv, "--without"))
        test_without(&s);
    else if (mp_flag(argc, argv, "--memory"))
        test_memory(&s);
    else if (mp_flag(argc, argv, "--fork"))
        test_fork(&s);
    else if (mp_flag(argc, argv, "--alloc"))
        test_alloc(&s);
    else if (mp_flag(argc, argv, "--die"))
        test_death(&s);
    else if (mp_flag(argc, argv, "--sticky"))
        test_sticky(&s);
    else
        test_copies(&s);
    mp_end(&s.mp);
    return 0;
}
