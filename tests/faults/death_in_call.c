/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_in_call.c: kill one rank inside a call; the others get a status in time.
 *
 * Then they go on among themselves, and leave. Options: those of one_death.h, where --in is a name of the tables, and
 *   --bytes N       payload
 *   --mapped        the payload lies in memory of rank_alloc
 */
#include "tests/faults/one_death.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
    struct mp mp;
    struct one_death death;
    size_t bytes;
    bool reported;           /* the wildcard receives on the world have ended by it */
    char *out, *in;
    void *part;          /* of mem, for "free" */
    rank_mem_t mem;
};

#define ENDED(s, call) ONE_DEATH_ENDED(&(s)->death, call)

/* Calls that may still succeed: repeat until one does not. */
#define UNTIL_ENDED(s, call)                                                                       \
    do {                                                                                           \
        rank_status_t st_;                                                                         \
        while ((st_ = (call)) == RANK_OK)                                                          \
            one_death_overdue(__FILE__, __LINE__, &(s)->death, #call);                             \
        one_death_check(__FILE__, __LINE__, &(s)->death, #call, st_);                              \
    } while (0)

/* ------------------------------------------------------------------ the scenes */

static void victim_sleeps(struct scene *s)
{
    (void)s;
    for (;;)
        pause();
}

/* It waits in the library, so that its frames are taken and its progress runs. */
static void victim_waits(struct scene *s)
{
    for (;;)
        MP_OK(rank_recv(s->in, 0, RANK_BYTE, s->death.victim, 999, s->mp.world, NULL));
}

static void wait_for_it(struct scene *s)
{
    ENDED(s, rank_recv(s->in, 8, RANK_BYTE, s->death.victim, 2, s->mp.world, NULL));
}

static void wait_for_any(struct scene *s)
{
    ENDED(s, rank_recv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, 2, s->mp.world, NULL));
    s->reported = true;
}

/* Only the receive from the victim ends; the others stay and are served later. */
static void wait_any_of(struct scene *s)
{
    int n = s->mp.size;
    int64_t index = -1;
    rank_request_t *req = mp_alloc((size_t)n * sizeof(*req));
    int32_t *in = mp_alloc((size_t)n * sizeof(*in)), out = s->mp.rank;

    for (int r = 0; r < n; r++)
        MP_OK(rank_irecv(&in[r], 1, RANK_INT32, r, 4, s->mp.world, &req[r]));
    ENDED(s, rank_waitany(n, req, &index, NULL));
    MP_CHECK_EQ(index, s->death.victim);
    mp_barrier(s->death.living); /* or a quick one's message could be what another's waitany finds */
    for (int r = 0; r < n; r++) {
        if (r != s->death.victim)
            MP_OK(rank_send(&out, 1, RANK_INT32, r, 4, s->mp.world));
    }
    MP_OK(rank_waitall(n, req, NULL));
    for (int r = 0; r < n; r++)
        MP_CHECK(r == s->death.victim || in[r] == r);
    free(req);
    free(in);
}

/* First without a pause, then now and then. */
static void test_it(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = RANK_OK;
    int done = 0, tests = 0;

    MP_OK(rank_irecv(s->in, 8, RANK_BYTE, s->death.victim, 2, s->mp.world, &req));
    while (!done) {
        st = rank_test(&req, &done, NULL);
        MP_CHECK(done || st == RANK_OK);
        MP_CHECK(mp_now() < s->death.when + 2 * s->death.within);
        if (!done && ++tests > 200)
            usleep(100000);
    }
    MP_CHECK(req == RANK_REQUEST_NULL);
    one_death_check(__FILE__, __LINE__, &s->death, "rank_test", st);
}

/* A wildcard receive and a collective on a team that has been freed end, too. */
static void free_team(struct scene *s)
{
    int64_t one = 1, sum;
    rank_request_t req[2];
    rank_team_t t;

    MP_OK(rank_team_dup(s->mp.world, &t));
    MP_OK(rank_irecv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, 2, t, &req[0]));
    MP_OK(rank_iallreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, t, &req[1]));
    MP_OK(rank_team_free(&t));
    ENDED(s, rank_wait(&req[0], NULL));
    ENDED(s, rank_wait(&req[1], NULL));
}

static void victim_frees_team(struct scene *s)
{
    rank_team_t t;

    MP_OK(rank_team_dup(s->mp.world, &t));
    MP_OK(rank_team_free(&t));
    victim_waits(s);
}

static void probe_it(struct scene *s)
{
    ENDED(s, rank_probe(s->death.victim, 2, s->mp.world, NULL));
}

/* Where that was the last other one, each wildcard receive ends at once, but for what we have sent ourselves. */
static void none_is_left(struct scene *s)
{
    rank_message_t none = RANK_MESSAGE_NULL;
    rank_request_t req;
    int found = 0;

    if (s->mp.size > 2)
        return;
    for (int i = 0; i < 2; i++) {
        MP_STATUS(rank_recv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, 2, s->mp.world, NULL), RANK_ERR_PEER_DEAD);
        MP_OK(rank_irecv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, 2, s->mp.world, &req));
        MP_STATUS(rank_wait(&req, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_probe(RANK_ANY_SOURCE, RANK_ANY_TAG, s->mp.world, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_iprobe(RANK_ANY_SOURCE, 2, s->mp.world, &found, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_mprobe(RANK_ANY_SOURCE, 2, s->mp.world, &none, NULL), RANK_ERR_PEER_DEAD);
        MP_OK(rank_send(s->out, 8, RANK_BYTE, s->mp.rank, 2, s->mp.world));
        MP_OK(rank_probe(RANK_ANY_SOURCE, 2, s->mp.world, NULL));
        MP_OK(rank_recv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, 2, s->mp.world, NULL));
    }
}

static void probe_any(struct scene *s)
{
    ENDED(s, rank_probe(RANK_ANY_SOURCE, 2, s->mp.world, NULL));
    s->reported = true;
    none_is_left(s);
}

static void mprobe_any(struct scene *s)
{
    rank_message_t none = RANK_MESSAGE_NULL;

    ENDED(s, rank_mprobe(RANK_ANY_SOURCE, 2, s->mp.world, &none, NULL));
    s->reported = true;
}

static void iprobe_it(struct scene *s)
{
    int found = 0;

    UNTIL_ENDED(s, rank_iprobe(s->death.victim, 2, s->mp.world, &found, NULL));
    MP_CHECK(!found);
}

/* The victim announces a large message to all; they hold it when its sender dies. */
static void victim_announces(struct scene *s)
{
    rank_request_t req;

    for (int r = 0; r < s->mp.size; r++) {
        if (r != s->death.victim)
            MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, r, 2, s->mp.world, &req));
    }
    victim_waits(s);
}

/* The first to free memory of all ends by the death, too; a rank that has not freed it may still put there. */
static void free_it(struct scene *s)
{
    int r = rank_team_rank(s->death.living), first = s->death.victim == 0;

    if (r == 0) {
        ENDED(s, rank_free(&s->mem));
        MP_CHECK(s->mem == RANK_MEM_NULL);
    }
    mp_barrier(s->death.living);
    if (r > 0) {
        MP_OK(rank_put(s->out, (int64_t)s->bytes, first, s->mem, 0));
        MP_OK(rank_flush(s->mem, first));
    }
    mp_barrier(s->death.living);
    if (r > 0) {
        ENDED(s, rank_free(&s->mem));
        MP_CHECK(s->mem == RANK_MEM_NULL);
    }
}

static void hold_a_message(struct scene *s)
{
    rank_message_t message, none = RANK_MESSAGE_NULL;
    rank_envelope_t env;

    MP_OK(rank_mprobe(s->death.victim, 2, s->mp.world, &message, &env));
    MP_CHECK_EQ(env.bytes, s->bytes);
    ENDED(s, rank_mprobe(s->death.victim, 3, s->mp.world, &none, NULL));
    MP_STATUS(rank_mrecv(s->in, (int64_t)s->bytes, RANK_BYTE, &message, &env), RANK_ERR_PEER_DEAD);
    MP_CHECK_EQ(env.status, RANK_ERR_PEER_DEAD);
    MP_CHECK_EQ(env.bytes, 0);
}

/* A program that sleeps in its own poll() and gets it by a callback. */
static void reported(const rank_envelope_t *env, void *arg)
{
    *(rank_status_t *)arg = env->status;
}

static void in_a_loop(struct scene *s)
{
    struct pollfd p = {.events = POLLIN};
    rank_status_t status = RANK_OK;
    rank_request_t req;

    MP_OK(rank_progress_fd(&p.fd));
    MP_OK(rank_irecv(s->in, 1, RANK_BYTE, s->death.victim, 2, s->mp.world, &req));
    MP_OK(rank_on_done(&req, reported, &status));
    while (status == RANK_OK) {
        if (rank_progress_arm() == RANK_OK)
            MP_CHECK(poll(&p, 1, 20000) == 1);
        MP_OK(rank_progress());
    }
    ENDED(s, status);
}

/* All against the victim, to and fro. */
static void echo(struct scene *s)
{
    for (;;) {
        rank_envelope_t env;
        MP_OK(rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, RANK_ANY_SOURCE, 2, s->mp.world, &env));
        MP_OK(rank_send(s->in, (int64_t)s->bytes, RANK_BYTE, env.source, 3, s->mp.world));
    }
}

static rank_status_t ping(struct scene *s)
{
    rank_status_t st = rank_send(s->out, (int64_t)s->bytes, RANK_BYTE, s->death.victim, 2, s->mp.world);

    if (!st)
        st = rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, s->death.victim, 3, s->mp.world, NULL);
    if (!st)
        MP_CHECK_EQ(mp_verify(s->in, s->bytes, (uint64_t)s->mp.rank), -1);
    return st;
}

static void pings(struct scene *s)
{
    UNTIL_ENDED(s, ping(s));
}

/* It sends all the time, to all in turn; what came before its death is whole. */
static void stream(struct scene *s)
{
    for (;;) {
        for (int r = 0; r < s->mp.size; r++) {
            rank_request_t req;
            if (r == s->death.victim)
                continue;
            MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, r, 2, s->mp.world, &req));
            MP_OK(rank_wait(&req, NULL));
        }
    }
}

static rank_status_t take_one(struct scene *s)
{
    rank_envelope_t env;
    rank_status_t st =
        rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, s->death.victim, 2, s->mp.world, &env);

    if (!st) {
        MP_CHECK_EQ(env.bytes, s->bytes);
        MP_CHECK_EQ(mp_verify(s->in, s->bytes, (uint64_t)s->death.victim), -1);
    }
    return st;
}

static void take_stream(struct scene *s)
{
    UNTIL_ENDED(s, take_one(s));
}

/* More than its windows hold, to a rank that receives nothing. */
static void send_many(struct scene *s)
{
    enum { N = 500 };
    rank_request_t req[N];
    rank_status_t st;

    for (int i = 0; i < N; i++)
        MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, s->death.victim, 2, s->mp.world, &req[i]));
    st = rank_waitall(N, req, NULL);
    for (int i = 0; i < N; i++)
        MP_CHECK(req[i] == RANK_REQUEST_NULL);
    one_death_check(__FILE__, __LINE__, &s->death, "rank_waitall of sends", st);
}

static void send_sync(struct scene *s)
{
    ENDED(s, rank_ssend(s->out, (int64_t)s->bytes, RANK_BYTE, s->death.victim, 2, s->mp.world));
}

/* --------------------------------------------------------------- collectives */

static rank_status_t barrier(struct scene *s)
{
    return rank_barrier(s->mp.world);
}

static rank_status_t ibarrier(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = rank_ibarrier(s->mp.world, &req);

    return st ? st : rank_wait(&req, NULL);
}

static rank_status_t bcast(struct scene *s)
{
    return rank_bcast(s->in, (int64_t)s->bytes, RANK_BYTE, s->mp.size / 2, s->mp.world);
}

static rank_status_t reduce(struct scene *s)
{
    return rank_reduce(s->out, s->in, (int64_t)s->bytes / 8, RANK_INT64, RANK_SUM, 0, s->mp.world);
}

static rank_status_t allreduce(struct scene *s)
{
    return rank_allreduce(s->out, s->in, (int64_t)s->bytes / 8, RANK_INT64, RANK_SUM, s->mp.world);
}

static rank_status_t iallreduce(struct scene *s)
{
    rank_request_t req;
    rank_status_t st =
        rank_iallreduce(s->out, s->in, (int64_t)s->bytes / 8, RANK_INT64, RANK_SUM, s->mp.world, &req);

    return st ? st : rank_wait(&req, NULL);
}

static rank_status_t gather(struct scene *s)
{
    return rank_gather(s->out, s->in, (int64_t)s->bytes / s->mp.size, RANK_BYTE, 0, s->mp.world);
}

static rank_status_t allgather(struct scene *s)
{
    return rank_allgather(s->out, s->in, (int64_t)s->bytes / s->mp.size, RANK_BYTE, s->mp.world);
}

static rank_status_t scatter(struct scene *s)
{
    return rank_scatter(s->out, s->in, (int64_t)s->bytes / s->mp.size, RANK_BYTE, 0, s->mp.world);
}

static rank_status_t reduce_scatter(struct scene *s)
{
    return rank_reduce_scatter(s->out, s->in, (int64_t)s->bytes / 8 / s->mp.size, RANK_INT64,
                               RANK_SUM, s->mp.world);
}

static rank_status_t alltoall(struct scene *s)
{
    return rank_alltoall(s->out, s->in, (int64_t)s->bytes / s->mp.size, RANK_BYTE, s->mp.world);
}

static rank_status_t dup_team(struct scene *s)
{
    rank_team_t t;
    rank_status_t st = rank_team_dup(s->mp.world, &t);

    return st ? st : rank_team_free(&t);
}

/* Of all, from a list that begins with the last: in each place of the tree one dies, by its number. */
static rank_status_t create_team(struct scene *s)
{
    int list[16], n = s->mp.size;
    rank_team_t t;
    rank_status_t st;

    MP_CHECK(n <= 16);
    for (int r = 0; r < n; r++)
        list[r] = n - 1 - r;
    st = rank_team_create(s->mp.world, n, list, 7, &t);
    return st ? st : rank_team_free(&t);
}

static rank_status_t alloc(struct scene *s)
{
    rank_mem_t mem = RANK_MEM_NULL;
    void *p = NULL;
    rank_status_t st = rank_alloc(s->mp.world, RANK_MEM_HOST, (int64_t)s->bytes, 0, &p, &mem);

    if (st) {
        MP_CHECK(mem == RANK_MEM_NULL && p == NULL);
        return st;
    }
    memset(p, 1, s->bytes);
    return rank_free(&mem);
}

static const struct {
    const char *name;
    rank_status_t (*call)(struct scene *);
} together[] = {
    {"barrier", barrier},     {"ibarrier", ibarrier},   {"bcast", bcast},
    {"reduce", reduce},       {"allreduce", allreduce}, {"iallreduce", iallreduce},
    {"gather", gather},       {"allgather", allgather}, {"scatter", scatter},
    {"alltoall", alltoall},   {"reduce_scatter", reduce_scatter},
    {"dup", dup_team},            {"create", create_team},
    {"alloc", alloc},
};
enum { TOGETHER = sizeof(together) / sizeof(together[0]) };

static void by_name(struct scene *s, const char *name)
{
    for (int i = 0; i < TOGETHER; i++) {
        if (strcmp(together[i].name, name) != 0)
            continue;
        if (s->mp.rank == s->death.victim) {
            for (;;)
                MP_OK(together[i].call(s));
        }
        UNTIL_ENDED(s, together[i].call(s));
        return;
    }
    mp_fail(__FILE__, __LINE__, "--in %s: there is no such scene", name);
}

static const struct {
    const char *name;
    void (*victim)(struct scene *);
    void (*others)(struct scene *);
} scenes[] = {
    {"recv", victim_waits, wait_for_it},   {"recv-asleep", victim_sleeps, wait_for_it},
    {"any-source", victim_waits, wait_for_any}, {"waitany", victim_waits, wait_any_of},
    {"test", victim_waits, test_it},       {"probe", victim_waits, probe_it},
    {"iprobe", victim_waits, iprobe_it},   {"echo", echo, pings},
    {"stream", stream, take_stream},       {"sends", victim_waits, send_many},
    {"sends-asleep", victim_sleeps, send_many}, {"ssend", victim_waits, send_sync},
    {"ssend-asleep", victim_sleeps, send_sync},
    {"probe-any", victim_waits, probe_any}, {"mprobe-any", victim_sleeps, mprobe_any},
    {"mprobe", victim_announces, hold_a_message},
    {"free", victim_waits, free_it},       {"free-team", victim_frees_team, free_team},
    {"loop", victim_waits, in_a_loop},     {"loop-asleep", victim_sleeps, in_a_loop},
};
enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };

static void play(struct scene *s, const char *name)
{
    for (int i = 0; i < SCENES; i++) {
        if (strcmp(scenes[i].name, name) == 0) {
            if (s->mp.rank == s->death.victim)
                scenes[i].victim(s);
            else
                scenes[i].others(s);
            return;
        }
    }
    by_name(s, name);
}

/* ------------------------------------------------------------------- afterwards */

/* The living, on the world and on a team of their own. */
static void go_on(struct scene *s)
{
    int n = rank_team_size(s->death.living), r = rank_team_rank(s->death.living), round;
    int64_t one = 1, sum = 0;
    rank_request_t req;
    rank_status_t st;
    int32_t out, in;

    mp_barrier(s->death.living); /* all have learned of it */
    for (round = 0; round < 200; round++) {
        int to = (r + 1) % n, from = (r - 1 + n) % n;
        /* the same two as ranks of the world */
        to += to >= s->death.victim;
        from += from >= s->death.victim;
        out = round * 100 + s->mp.rank;
        MP_OK(rank_sendrecv(&out, 1, RANK_INT32, to, 50, &in, 1, RANK_INT32, from, 50, s->mp.world,
                            NULL));
        MP_CHECK_EQ(in, round * 100 + from);
    }
    memset(s->in, 0, s->bytes);
    MP_OK(rank_sendrecv(s->out, (int64_t)s->bytes, RANK_BYTE, (r + 1) % n, 51, s->in,
                        (int64_t)s->bytes, RANK_BYTE, (r - 1 + n) % n, 51, s->death.living, NULL));
    MP_OK(rank_allreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, s->death.living));
    MP_CHECK_EQ(sum, n);
    MP_OK(rank_barrier(s->death.living));

    /* The dead one stays dead, at once. */
    MP_STATUS(rank_recv(&in, 1, RANK_INT32, s->death.victim, 60, s->mp.world, NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_send(&out, 1, RANK_INT32, s->death.victim, 60, s->mp.world), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_ssend(&out, 1, RANK_INT32, s->death.victim, 60, s->mp.world), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_probe(s->death.victim, 60, s->mp.world, NULL), RANK_ERR_PEER_DEAD);
    st = rank_isend(&out, 1, RANK_INT32, s->death.victim, 60, s->mp.world, &req);
    MP_STATUS(st ? st : rank_wait(&req, NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_barrier(s->mp.world), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_allreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, s->mp.world), RANK_ERR_PEER_DEAD);
    st = rank_ibarrier(s->mp.world, &req);
    MP_STATUS(st ? st : rank_wait(&req, NULL), RANK_ERR_PEER_DEAD);

    /* One wildcard receive may report the death, if none has; after that they serve the living. */
    out = 7;
    MP_OK(rank_isend(&out, 1, RANK_INT32, s->mp.rank, 61, s->mp.world, &req));
    for (round = 0, st = RANK_ERR_PEER_DEAD; st == RANK_ERR_PEER_DEAD && round < (s->reported ? 1 : 2); round++)
        st = rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 61, s->mp.world, NULL);
    MP_STATUS(st, RANK_OK);
    MP_CHECK_EQ(in, 7);
    MP_OK(rank_wait(&req, NULL));
    mp_barrier(s->death.living);
}

int main(int argc, char **argv)
{
    struct scene s;
    const char *name = one_death_scene(argc, argv, "recv");
    bool mapped;

    memset(&s, 0, sizeof(s));
    mp_start(&s.mp, &argc, argv);
    s.bytes = (size_t)mp_option(argc, argv, "--bytes", 64);
    mapped = mp_flag(argc, argv, "--mapped");
    if (mapped) {
        MP_OK(rank_alloc(s.mp.world, RANK_MEM_HOST, 2 * ((int64_t)s.bytes + 64), 0, &s.part, &s.mem));
        s.out = s.part;
        s.in = s.out + s.bytes + 64;
    } else {
        s.out = mp_alloc(s.bytes + 64);
        s.in = mp_alloc(s.bytes + 64);
    }
    memset(s.out, 0, s.bytes + 64);
    mp_fill(s.out, s.bytes, (uint64_t)s.mp.rank);
    one_death_init(&s.death, &s.mp, argc, argv);
    if (strcmp(name, "free") == 0)
        MP_OK(rank_alloc(s.mp.world, RANK_MEM_HOST, (int64_t)s.bytes, 0, &s.part, &s.mem));
    mp_case(&s.mp, name);
    one_death_arm(&s.death, &s.mp, strcmp(name, "free-team") == 0 ? 0.5 : 0.05, 150000);
    play(&s, name);
    go_on(&s);
    one_death_end(&s.death, &s.mp);
    if (!mapped) {
        free(s.out);
        free(s.in);
    }
    return 0;
}
