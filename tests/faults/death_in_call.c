/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_in_call.c: kill a rank while it and others call, and check their status.
 *
 * Messages, teams, and one-sided calls on the victim's memory; death_in_coll.c has collectives. Options: those of victims.h.
 */
#include "tests/faults/victims.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- messages */

static rank_status_t recv_from(struct scene *s)
{
    return rank_recv(s->in, SMALL, RANK_BYTE, s->victim, DATA, s->team, NULL);
}

static rank_status_t any_source(struct scene *s)
{
    return rank_recv(s->in, SMALL, RANK_BYTE, RANK_ANY_SOURCE, DATA, s->team, NULL);
}

/* Only the receive from the victim ends; the others stay and are served later. */
static rank_status_t waitany(struct scene *s)
{
    int n = rank_team_size(s->team);
    int64_t index = -1;
    rank_request_t *req = mp_alloc((size_t)n * sizeof(*req));
    int32_t *in = mp_alloc((size_t)n * sizeof(*in)), out = rank_team_rank(s->team);
    rank_status_t st;

    for (int r = 0; r < n; r++)
        MP_OK(rank_irecv(&in[r], 1, RANK_INT32, r, DATA, s->team, &req[r]));
    st = rank_waitany(n, req, &index, NULL);
    MP_CHECK_EQ(index, s->victim);
    mp_barrier(s->living); /* or a quick one's message could be what another's waitany finds */
    for (int r = 0; r < n; r++) {
        if (r != s->victim)
            MP_OK(rank_send(&out, 1, RANK_INT32, r, DATA, s->team));
    }
    MP_OK(rank_waitall(n, req, NULL));
    for (int r = 0; r < n; r++)
        MP_CHECK(r == s->victim || in[r] == r);
    free(req);
    free(in);
    return st;
}

/* First without a pause, then now and then. */
static rank_status_t test(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = rank_irecv(s->in, 8, RANK_BYTE, s->victim, DATA, s->team, &req);
    int done = st != RANK_OK;

    for (int tests = 0; !done; tests++) {
        if (tests > 200)
            usleep(100000);
        st = rank_test(&req, &done, NULL);
        MP_CHECK(done || st == RANK_OK);
        MP_CHECK(mp_now() < s->when + 2 * s->within);
    }
    return st;
}

static rank_status_t probe(struct scene *s)
{
    return rank_probe(s->victim, DATA, s->team, NULL);
}

/* Where that was the last other one, each wildcard receive ends at once, but for what we have sent ourselves. */
static void check_alone(struct scene *s)
{
    rank_message_t none = RANK_MESSAGE_NULL;
    rank_request_t req;
    int found = 0;

    for (int i = 0; i < 2; i++) {
        IS_DEAD(any_source(s));
        IS_DEAD(after(rank_irecv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, DATA, s->team, &req), &req));
        IS_DEAD(rank_probe(RANK_ANY_SOURCE, RANK_ANY_TAG, s->team, NULL));
        IS_DEAD(rank_iprobe(RANK_ANY_SOURCE, DATA, s->team, &found, NULL));
        IS_DEAD(rank_mprobe(RANK_ANY_SOURCE, DATA, s->team, &none, NULL));
        MP_OK(rank_send(s->out, 8, RANK_BYTE, s->first, DATA, s->team));
        MP_OK(rank_probe(RANK_ANY_SOURCE, DATA, s->team, NULL));
        MP_OK(any_source(s));
    }
}

static rank_status_t probe_any(struct scene *s)
{
    rank_status_t st = rank_probe(RANK_ANY_SOURCE, DATA, s->team, NULL);

    if (rank_team_size(s->team) == 2)
        check_alone(s);
    return st;
}

static rank_status_t mprobe_any(struct scene *s)
{
    rank_message_t none = RANK_MESSAGE_NULL;

    return rank_mprobe(RANK_ANY_SOURCE, DATA, s->team, &none, NULL);
}

static rank_status_t iprobe(struct scene *s)
{
    int found = 0;
    rank_status_t st = rank_iprobe(s->victim, DATA, s->team, &found, NULL);

    MP_CHECK(!found);
    return st;
}

/* The victim announces a large message to all; they hold it when its sender dies. */
static void announce(struct scene *s)
{
    rank_request_t req;

    for (int r = 0; r < rank_team_size(s->team); r++) {
        if (r != s->victim)
            MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, r, DATA, s->team, &req));
    }
    MP_OK(rank_recv(NULL, 0, RANK_BYTE, s->victim, NEVER, s->team, NULL));
}

static rank_status_t mprobe(struct scene *s)
{
    rank_message_t message, none = RANK_MESSAGE_NULL;
    rank_envelope_t env;
    rank_status_t st;

    MP_OK(rank_mprobe(s->victim, DATA, s->team, &message, &env));
    MP_CHECK_EQ(env.bytes, s->bytes);
    st = rank_mprobe(s->victim, DATA + 1, s->team, &none, NULL);
    IS_DEAD(rank_mrecv(s->in, (int64_t)s->bytes, RANK_BYTE, &message, &env));
    MP_CHECK_EQ(env.status, RANK_ERR_PEER_DEAD);
    MP_CHECK_EQ(env.bytes, 0);
    return st;
}

static void store_status(const rank_envelope_t *env, void *arg)
{
    *(rank_status_t *)arg = env->status;
}

/* A program that sleeps in its own poll() and learns of it by a callback. */
static rank_status_t loop(struct scene *s)
{
    struct pollfd p = {.events = POLLIN};
    rank_status_t status = RANK_OK;
    rank_request_t req;

    MP_OK(rank_progress_fd(&p.fd));
    MP_OK(rank_irecv(s->in, 1, RANK_BYTE, s->victim, DATA, s->team, &req));
    MP_OK(rank_on_done(&req, store_status, &status));
    while (status == RANK_OK) {
        if (rank_progress_arm() == RANK_OK)
            MP_CHECK(poll(&p, 1, 20000) == 1);
        MP_OK(rank_progress());
    }
    return status;
}

/* All against the victim, to and fro. */
static void answer(struct scene *s)
{
    for (;;) {
        rank_envelope_t env;
        MP_OK(rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, RANK_ANY_SOURCE, DATA, s->team, &env));
        MP_OK(rank_send(s->in, (int64_t)s->bytes, RANK_BYTE, env.source, DATA, s->team));
    }
}

static rank_status_t echo(struct scene *s)
{
    rank_status_t st = rank_send(s->out, (int64_t)s->bytes, RANK_BYTE, s->victim, DATA, s->team);

    if (!st)
        st = rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, s->victim, DATA, s->team, NULL);
    if (!st)
        MP_CHECK_EQ(mp_verify(s->in, s->bytes, (uint64_t)s->mp.rank), -1);
    return st;
}

/* The victim sends all the time, to all in turn; what came before its death is whole. */
static void send_all_the_time(struct scene *s)
{
    mp_fill(s->out, s->bytes, 7);
    for (;;) {
        for (int r = 0; r < rank_team_size(s->team); r++) {
            rank_request_t req;
            if (r == s->victim)
                continue;
            MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, r, DATA, s->team, &req));
            MP_OK(rank_wait(&req, NULL));
        }
    }
}

static rank_status_t stream(struct scene *s)
{
    rank_envelope_t env;
    rank_status_t st = rank_recv(s->in, (int64_t)s->bytes, RANK_BYTE, s->victim, DATA, s->team, &env);

    if (!st) {
        MP_CHECK_EQ(env.bytes, s->bytes);
        MP_CHECK_EQ(mp_verify(s->in, s->bytes, 7), -1);
    }
    return st;
}

/* More than its windows hold, to a rank that receives nothing. */
static rank_status_t sends(struct scene *s)
{
    enum { N = 500 };
    rank_request_t req[N];
    rank_status_t st;

    for (int i = 0; i < N; i++)
        MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, s->victim, DATA, s->team, &req[i]));
    st = rank_waitall(N, req, NULL);
    for (int i = 0; i < N; i++)
        MP_CHECK(req[i] == RANK_REQUEST_NULL);
    return st;
}

static rank_status_t ssend(struct scene *s)
{
    return rank_ssend(s->out, (int64_t)s->bytes, RANK_BYTE, s->victim, DATA, s->team);
}

/* ----------------------------------------------------------------- teams, memory */

static rank_status_t barrier(struct scene *s)
{
    return rank_barrier(s->team);
}

static rank_status_t allreduce(struct scene *s)
{
    return rank_allreduce(s->out, s->in, (int64_t)s->bytes / 8, RANK_INT64, RANK_SUM, s->team);
}

static rank_status_t dup_team(struct scene *s)
{
    rank_team_t t;
    rank_status_t st = rank_team_dup(s->team, &t);

    return st ? st : rank_team_free(&t);
}

/* Of all, from a list that begins with the last: in each place of the tree one dies. */
static rank_status_t create_team(struct scene *s)
{
    int list[64], n = rank_team_size(s->team);
    rank_team_t t;
    rank_status_t st;

    for (int r = 0; r < n; r++)
        list[r] = n - 1 - r;
    st = rank_team_create(s->team, n, list, 7, &t);
    return st ? st : rank_team_free(&t);
}

/* A wildcard receive and a collective on a team that has been freed end, too. */
static rank_status_t free_team(struct scene *s)
{
    int64_t one = 1, sum;
    rank_request_t req[2];

    MP_OK(rank_irecv(s->in, 8, RANK_BYTE, RANK_ANY_SOURCE, DATA, s->dup, &req[0]));
    MP_OK(rank_iallreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, s->dup, &req[1]));
    MP_OK(rank_team_free(&s->dup));
    IS_DEAD(rank_wait(&req[0], NULL));
    return rank_wait(&req[1], NULL);
}

static rank_status_t alloc(struct scene *s)
{
    rank_mem_t mem = RANK_MEM_NULL;
    void *p = NULL;
    rank_status_t st = rank_alloc(s->team, RANK_MEM_HOST, (int64_t)s->bytes, &p, &mem);

    if (st) {
        MP_CHECK(mem == RANK_MEM_NULL && p == NULL);
        return st;
    }
    memset(p, 1, s->bytes);
    return rank_free(&mem);
}

/* The first to free memory of all ends by the death, too; a rank that has not freed it may still put there. */
static rank_status_t free_mem(struct scene *s)
{
    bool first = rank_team_rank(s->team) == s->first;
    rank_status_t st = RANK_OK;

    if (first)
        st = rank_free(&s->mem);
    mp_barrier(s->living);
    if (!first) {
        MP_OK(rank_put(s->out, LARGE, s->first, s->mem, 0));
        MP_OK(rank_flush(s->mem, s->first));
    }
    mp_barrier(s->living);
    if (!first)
        st = rank_free(&s->mem);
    MP_CHECK(s->mem == RANK_MEM_NULL);
    return st;
}

/* ------------------------------------------------------------------ one-sided */

static rank_status_t flushed(struct scene *s, rank_status_t st)
{
    return st ? st : rank_flush(s->mem, s->victim);
}

static rank_status_t put(struct scene *s)
{
    return flushed(s, rank_put(s->out, 5000, s->victim, s->mem, 64));
}

/* Of all owners at once. The flush reports a death once. */
static rank_status_t put_all(struct scene *s)
{
    rank_status_t st = rank_put(s->out, 5000, s->victim, s->mem, 64);

    return st ? st : rank_flush(s->mem, RANK_ALL);
}

static rank_status_t get(struct scene *s)
{
    return rank_get(s->in, LARGE, s->victim, s->mem, 0);
}

static rank_status_t add(struct scene *s)
{
    int64_t one = 1;

    return flushed(s, rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, s->victim, s->mem, 0, NULL));
}

static rank_status_t fetch_add(struct scene *s)
{
    int64_t one = 1, was;

    return rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, s->victim, s->mem, 0, &was);
}

/* The rank computes between two such calls. */
static rank_status_t rare_fetch_add(struct scene *s)
{
    nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
    return fetch_add(s);
}

/* A lock that its dead owner would never give back. */
static rank_status_t compare_swap(struct scene *s)
{
    int32_t is = 5, becomes = 6, was;

    return rank_atomic_cas(RANK_INT32, &is, &becomes, s->victim, s->mem, 4, &was);
}

enum { PIECES = 50 };

static rank_status_t many(struct scene *s)
{
    rank_request_t req[PIECES];
    rank_status_t st = RANK_OK, st2;
    int n = 0;

    for (; n < PIECES && !st; n++) {
        req[n] = RANK_REQUEST_NULL;
        st = n & 1 ? rank_iput(s->out, 20000, s->victim, s->mem, 64, &req[n])
                   : rank_iget(s->in + 20000 + 1000 * n, 1000, s->victim, s->mem, 64 * n, &req[n]);
    }
    st2 = rank_waitall(n, req, NULL);
    return st ? st : st2;
}

static rank_status_t vector(struct scene *s)
{
    rank_piece_t p[PIECES];
    rank_status_t st;

    for (int i = 0; i < PIECES; i++)
        p[i] = (rank_piece_t){s->in + 1000 * i, 600, 1000 * i};
    st = rank_putv(p, PIECES, s->victim, s->mem);
    return flushed(s, st ? st : rank_getv(p, PIECES, s->victim, s->mem));
}

static rank_status_t put_signal(struct scene *s)
{
    return flushed(s, rank_put_signal(s->out, 8000, s->victim, s->mem, 64, s->mem, 0, 1, RANK_SIGNAL_ADD));
}

static rank_status_t open_key(struct scene *s)
{
    rank_mem_t again;
    rank_status_t st = rank_rkey_open(s->team, s->victim, s->key, s->key_len, &again);

    return st ? st : rank_rkey_close(&again);
}

static rank_status_t wait_signal(struct scene *s)
{
    return rank_signal_wait(s->own, 8, RANK_CMP_EQ, 77, s->source, NULL);
}

static rank_status_t wait_any_signal(struct scene *s)
{
    return rank_signal_wait(s->own, 8, RANK_CMP_EQ, 77, RANK_ANY_SOURCE, NULL);
}

static rank_status_t test_signal(struct scene *s)
{
    rank_status_t st = RANK_OK;
    int flag = 0;

    while (!st && !flag)
        st = rank_test_signal(s->own, 8, RANK_CMP_EQ, 77, s->source, &flag, NULL);
    return st;
}

static rank_status_t wait_value(struct scene *s)
{
    return rank_wait_until(s->own, 8, RANK_CMP_EQ, 77);
}

/* ------------------------------------------------------------------ the table */

static const struct row rows[] = {
    {"any-signal", wait_any_signal, REGISTERED | ONCE, 0, NULL}, /* these two: before other ranks of the world are dead */
    {"value", wait_value, REGISTERED | ONCE, 0, NULL},
    {"recv", recv_from, 0, 0, NULL},
    {"recv-asleep", recv_from, SLEEPS, 0, NULL},
    {"any-source", any_source, ONCE, 0, NULL},
    {"waitany", waitany, ONCE, 0, NULL},
    {"test", test, 0, 0, NULL},
    {"probe", probe, 0, 0, NULL},
    {"probe-any", probe_any, ONCE, 0, NULL},
    {"mprobe-any", mprobe_any, ONCE | SLEEPS, 0, NULL},
    {"iprobe", iprobe, LATER, 0, NULL},
    {"mprobe", mprobe, ONCE, LARGE, announce},
    {"loop", loop, ONCE, 0, NULL},
    {"loop-asleep", loop, ONCE | SLEEPS, 0, NULL},
    {"echo", echo, LATER, 64, answer},
    {"echo-5K", echo, LATER, 5000, answer},
    {"echo-5M", echo, LATER, HUGE, answer},
    {"stream", stream, LATER, 64, send_all_the_time},
    {"stream-300K", stream, LATER, LARGE, send_all_the_time},
    {"sends", sends, ONCE, 2000, NULL},
    {"sends-asleep", sends, ONCE | SLEEPS, 20000, NULL},
    {"ssend", ssend, 0, 64, NULL},
    {"ssend-asleep", ssend, SLEEPS, 100000, NULL},
    {"barrier", barrier, TOGETHER, 0, NULL},
    {"allreduce", allreduce, TOGETHER, 1000, NULL},
    {"dup", dup_team, TOGETHER, 0, NULL},
    {"create", create_team, TOGETHER, 0, NULL},
    {"create-0", create_team, TOGETHER | VICTIM_0, 0, NULL},
    {"create-1", create_team, TOGETHER | VICTIM_1, 0, NULL},
    {"free-team", free_team, DUP | ONCE, 0, NULL},
    {"alloc", alloc, TOGETHER, HUGE, NULL},
    {"free", free_mem, ALLOCATED | ONCE, 0, NULL},
    {"free-0", free_mem, ALLOCATED | ONCE | VICTIM_0, 0, NULL},
    {"put", put, LATER | REMOTE, 0, NULL},
    {"put-all", put_all, LATER | REMOTE | ONCE, 0, NULL},
    {"get", get, LATER | REMOTE, 0, NULL},
    {"add", add, LATER | REMOTE, 0, NULL},
    {"fetch-add", fetch_add, LATER | REMOTE, 0, NULL},
    {"rare-fetch-add", rare_fetch_add, LATER | REMOTE, 0, NULL},
    {"compare-swap", compare_swap, LATER | REMOTE, 0, NULL},
    {"many", many, LATER | REMOTE, 0, NULL},
    {"vector", vector, LATER | REMOTE, 0, NULL},
    {"put-signal", put_signal, LATER | REMOTE, 0, NULL},
    {"open", open_key, LATER | REGISTERED, 0, NULL},
    {"signal", wait_signal, REMOTE, 0, NULL},
    {"any-signal-alloc", wait_any_signal, ALLOCATED | ONCE, 0, NULL},
    {"test-signal", test_signal, REMOTE, 0, NULL},
    {"value-alloc", wait_value, ALLOCATED | ONCE, 0, NULL},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROWS + 2 == 50, "tests/faults/cases starts a victim for each row");

int main(int argc, char **argv)
{
    return victims_main(argc, argv, rows, ROWS);
}
