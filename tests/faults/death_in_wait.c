/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_in_wait.c: end each call that waits for a dead rank, in time.
 * Each ends with a status, and the same call ends so afterwards, too.
 *
 * One job goes through the whole table below: ranks 0 and 1 live, and each row has a victim of its own, which takes
 * no part in what they call on the team of these three. What death_in_call.c, death_of_target.c and others have in the midst of
 * their calls is here only afterwards.
 *
 *   --first N    the row that the first victim is for (0)
 *   --asleep     victims are in no call of the library when they die
 *   --within S   seconds in which both get it (5, and more where the build is slow: that it is one second on a host is
 *                checked elsewhere)
 *   --seed N     decides the moments
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What UCX's own shared memory owes the dead it may owe for ever. Its worker is left then, until the process ends, and much of
 * that hangs on memory which the leak check does not read: decided before it begins. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((visibility("default"))) int __lsan_is_turned_off(void); /* preempts the sanitizer's */
int __lsan_is_turned_off(void)
{
    const char *channels = getenv("RANK_CHANNELS");

    return channels && strstr(channels, "ucx") && !getenv("UCX_TLS");
}
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IN_TIME = 20 };
#else
enum { IN_TIME = 5 };
#endif

/* On a row's team. */
enum { VICTIM = 2, SMALL = 64, LARGE = 300000, DATA = 20, KEY = 30, NEVER = 999 };

struct scene {
    struct mp mp;
    rank_team_t team;
    int other;              /* that lives, on every team */
    double when, within;    /* of CLOCK_MONOTONIC, which is one on a host */
    char *out, *in;         /* LARGE each */
    int64_t counts[3], displs[3];
    rank_mem_t mine, mem;   /* registered by each; what the row is about */
    rank_request_t again;   /* persistent, made by its row */
};

/* A row's flags. */
enum {
    LATER = 1,  /* may succeed as long as the death is unknown */
    REMOTE = 2, /* on the victim's memory, once registered and once of rank_alloc */
};

static rank_status_t after(rank_status_t st, rank_request_t *req)
{
    return st ? st : rank_wait(req, NULL);
}

static void is_dead(int line, const char *what, rank_status_t st)
{
    if (st != RANK_ERR_PEER_DEAD)
        mp_fail(__FILE__, line, "%s gave %d (%s), not RANK_ERR_PEER_DEAD", what, (int)st, rank_status_string(st));
}
#define IS_DEAD(call) is_dead(__LINE__, #call, (call))

/* ------------------------------------------------------------------- messages */

static rank_status_t sendrecv_from(struct scene *s)
{
    return rank_sendrecv(s->out, SMALL, RANK_BYTE, s->other, DATA, s->in, SMALL, RANK_BYTE, VICTIM, DATA, s->team, NULL);
}

static rank_status_t sendrecv_to(struct scene *s)
{
    rank_status_t st;
    rank_request_t req;

    MP_OK(rank_isend(s->out, SMALL, RANK_BYTE, s->other, DATA, s->team, &req));
    st = rank_sendrecv(s->out, LARGE, RANK_BYTE, VICTIM, DATA, s->in, SMALL, RANK_BYTE, s->other, DATA, s->team, NULL);
    MP_OK(rank_wait(&req, NULL));
    return st;
}

static rank_status_t send_large(struct scene *s)
{
    return rank_send(s->out, LARGE, RANK_BYTE, VICTIM, DATA, s->team);
}

static rank_status_t issend_small(struct scene *s)
{
    rank_request_t req;

    return after(rank_issend(s->out, SMALL, RANK_BYTE, VICTIM, DATA, s->team, &req), &req);
}

static rank_status_t sendv(struct scene *s)
{
    rank_iov_t v[2] = {{.base = s->out, .bytes = LARGE / 2}, {.base = s->out, .bytes = 8, .count = 9000, .stride = 16}};

    return rank_sendv(v, 2, VICTIM, DATA, s->team);
}

static rank_status_t isendv(struct scene *s)
{
    rank_iov_t v[2] = {{.base = s->out, .bytes = LARGE / 2}, {.base = s->out, .bytes = 8, .count = 9000, .stride = 16}};
    rank_request_t req;

    return after(rank_isendv(v, 2, VICTIM, DATA, s->team, &req), &req);
}

static rank_status_t recvv(struct scene *s)
{
    rank_iov_t v = {.base = s->in, .bytes = 8, .count = 100, .stride = 32};

    return rank_recvv(&v, 1, VICTIM, DATA, s->team, NULL);
}

static rank_status_t irecvv(struct scene *s)
{
    rank_iov_t v = {.base = s->in, .bytes = 8, .count = 100, .stride = 32};
    rank_request_t req;

    return after(rank_irecvv(&v, 1, VICTIM, RANK_ANY_TAG, s->team, &req), &req);
}

static rank_status_t improbe(struct scene *s)
{
    rank_message_t message = RANK_MESSAGE_NULL;
    int found = 0;
    rank_status_t st = rank_improbe(VICTIM, DATA, s->team, &found, &message, NULL);

    MP_CHECK(!found && message == RANK_MESSAGE_NULL);
    return st;
}

/* ------------------------------------------------------------------- requests */

/* Three receives from the victim and one from the other. Gives the number of the victim's that are under way: where the
 * death is known they may be refused at once. */
enum { POSTED = 4 };
static int post(struct scene *s, rank_request_t *req)
{
    int n = 0;

    for (int i = 0; i < POSTED; i++) {
        rank_status_t st;
        req[i] = RANK_REQUEST_NULL;
        st = rank_irecv(s->in + i * SMALL, SMALL, RANK_BYTE, i == 1 ? s->other : VICTIM, NEVER + i, s->team, &req[i]);
        if (i == 1)
            MP_OK(st);
        else if (st)
            IS_DEAD(st);
        else
            n++;
    }
    return n;
}

/* The other's was left alone by the death. */
static void take_back(rank_request_t *req)
{
    MP_CHECK(*req != RANK_REQUEST_NULL);
    MP_OK(rank_cancel(req));
    MP_STATUS(rank_wait(req, NULL), RANK_ERR_CANCELED);
}

/* Any number of those of the victim at a time, never that of the other. */
static rank_status_t some(struct scene *s, bool wait)
{
    rank_request_t req[POSTED];
    rank_envelope_t env[POSTED];
    int64_t indices[POSTED], n, left = post(s, req);

    while (left > 0) {
        rank_status_t st = wait ? rank_waitsome(POSTED, req, &n, indices, env) : rank_testsome(POSTED, req, &n, indices, env);
        MP_CHECK(n >= wait && n <= left);
        MP_CHECK_EQ(st, n ? RANK_ERR_PEER_DEAD : RANK_OK);
        for (int64_t i = 0; i < n; i++) {
            MP_CHECK(indices[i] != 1 && req[indices[i]] == RANK_REQUEST_NULL);
            MP_CHECK_EQ(env[i].status, RANK_ERR_PEER_DEAD);
        }
        left -= n;
    }
    take_back(&req[1]);
    return RANK_ERR_PEER_DEAD;
}

static rank_status_t waitsome(struct scene *s)
{
    return some(s, true);
}

static rank_status_t testsome(struct scene *s)
{
    return some(s, false);
}

static rank_status_t testany(struct scene *s)
{
    rank_request_t req[POSTED];

    for (int left = post(s, req); left > 0; left--) {
        rank_status_t st = RANK_OK;
        int64_t index = 0;
        int done = 0;
        while (!done) {
            st = rank_testany(POSTED, req, &index, &done, NULL);
            MP_CHECK(done || !st);
        }
        MP_CHECK(index >= 0 && index < POSTED && index != 1 && req[index] == RANK_REQUEST_NULL);
        IS_DEAD(st);
    }
    take_back(&req[1]);
    return RANK_ERR_PEER_DEAD;
}

static rank_status_t testall(struct scene *s)
{
    rank_request_t req[POSTED];
    rank_envelope_t env[POSTED];
    int done = 0, n = post(s, req);
    rank_status_t st = RANK_OK;

    take_back(&req[1]);
    while (n && !done) {
        st = rank_testall(POSTED, req, &done, env);
        MP_CHECK(done || !st);
    }
    for (int i = 0; i < POSTED && n == POSTED - 1; i++)
        MP_CHECK(req[i] == RANK_REQUEST_NULL && env[i].status == (i == 1 ? RANK_OK : RANK_ERR_PEER_DEAD));
    return n ? st : RANK_ERR_PEER_DEAD;
}

/* Made while the victim lives, started then and once more. */
static rank_status_t start_recv(struct scene *s)
{
    if (s->again == RANK_REQUEST_NULL)
        MP_OK(rank_recv_init(s->in, SMALL, RANK_BYTE, VICTIM, DATA, s->team, &s->again));
    return after(rank_start(&s->again), &s->again);
}

static rank_status_t start_ssend(struct scene *s)
{
    if (s->again == RANK_REQUEST_NULL)
        MP_OK(rank_ssend_init(s->out, SMALL, RANK_BYTE, VICTIM, DATA, s->team, &s->again));
    return after(rank_start(&s->again), &s->again);
}

static rank_status_t start_allreduce(struct scene *s)
{
    if (s->again == RANK_REQUEST_NULL)
        MP_OK(rank_allreduce_init(s->out, s->in, LARGE / 8, RANK_INT64, RANK_SUM, s->team, &s->again));
    return after(rank_start(&s->again), &s->again);
}

/* A large send and a receive at once. */
static rank_status_t startall(struct scene *s)
{
    rank_request_t req[2];
    rank_envelope_t env[2];
    rank_status_t st;

    MP_OK(rank_send_init(s->out, LARGE, RANK_BYTE, VICTIM, DATA, s->team, &req[0]));
    MP_OK(rank_recv_init(s->in, SMALL, RANK_BYTE, VICTIM, DATA, s->team, &req[1]));
    st = rank_startall(2, req);
    if (!st) {
        st = rank_waitall(2, req, env);
        MP_CHECK(env[0].status == RANK_ERR_PEER_DEAD && env[1].status == RANK_ERR_PEER_DEAD);
    }
    MP_OK(rank_request_free(&req[0]));
    MP_OK(rank_request_free(&req[1]));
    return st;
}

/* ---------------------------------------------------------------- collectives */

static rank_status_t allgatherv(struct scene *s)
{
    return rank_allgatherv(s->out, SMALL, s->in, s->counts, s->displs, RANK_BYTE, s->team);
}

/* All nonblocking ones under way at once; each ends by itself. At a leaf of a tree one has no need of the dead. */
static rank_status_t all_at_once(struct scene *s, int64_t n)
{
    enum { ALL = 11 };
    rank_request_t req[ALL];
    rank_status_t st[ALL], first = RANK_OK;
    char *in = s->in;
    int i = 0;

    st[i] = rank_ibcast(in, n, RANK_INT64, VICTIM, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_iscatter(NULL, in, n, RANK_INT64, VICTIM, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_ireduce(s->out, in, n, RANK_INT64, RANK_SUM, 0, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_igather(s->out, in, n, RANK_INT64, 0, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_iallreduce(s->out, in, n, RANK_INT64, RANK_SUM, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_iallgather(s->out, in, n, RANK_INT64, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_iallgatherv(s->out, SMALL, in, s->counts, s->displs, RANK_BYTE, s->team, &req[i]), i++, in += 3 * SMALL;
    st[i] = rank_ireduce_scatter(s->out, in, n, RANK_INT64, RANK_SUM, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_ialltoall(s->out, in, n, RANK_INT64, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_ibarrier(s->team, &req[i]), i++;
    st[i] = rank_ibcast(in, n, RANK_INT64, VICTIM, s->team, &req[i]), i++, in += 8 * n;
    MP_CHECK_EQ(i, ALL);
    MP_CHECK(in <= s->in + LARGE);
    for (i = ALL - 1; i >= 0; i--) {
        bool leaf = (i == 2 || i == 3) && s->mp.rank != 0;
        st[i] = after(st[i], &req[i]);
        if (st[i] != RANK_ERR_PEER_DEAD && !(leaf && !st[i]))
            mp_fail(__FILE__, __LINE__, "nonblocking collective %d of %lld gave %d", i, (long long)n, (int)st[i]);
        first = st[i] ? st[i] : first;
    }
    return first;
}

static rank_status_t icollectives(struct scene *s)
{
    return all_at_once(s, SMALL / 8);
}

static rank_status_t icollectives_large(struct scene *s)
{
    return all_at_once(s, LARGE / 8 / 20);
}

static rank_status_t split(struct scene *s)
{
    rank_team_t t = RANK_TEAM_NULL;
    rank_status_t st = rank_team_split(s->team, 0, 0, &t);

    MP_CHECK(t == RANK_TEAM_NULL);
    return st;
}

static rank_status_t split_shared(struct scene *s)
{
    rank_team_t t = RANK_TEAM_NULL;
    rank_status_t st = rank_team_split_shared(s->team, 0, &t);

    MP_CHECK(t == RANK_TEAM_NULL);
    return st;
}

static rank_status_t spawn(struct scene *s, int root)
{
    rank_spawn_params_t p = {.size = sizeof(p), .program = "/bin/true", .n = 1};
    rank_team_t both = s->team;
    rank_status_t st = rank_spawn(&p, root, s->team, &both);

    MP_CHECK(both == s->team);
    return st;
}

static rank_status_t spawn_with(struct scene *s)
{
    return spawn(s, 0);
}

static rank_status_t spawn_by(struct scene *s)
{
    return spawn(s, VICTIM);
}

/* ------------------------------------------------------------------ one-sided */

static rank_status_t put_strided(struct scene *s)
{
    rank_status_t st = rank_put_strided(s->out, 200, 100, 50, VICTIM, s->mem, 0, 300);

    return st ? st : rank_flush(s->mem, VICTIM);
}

static rank_status_t get_strided(struct scene *s)
{
    return rank_get_strided(s->in, 200, 100, 50, VICTIM, s->mem, 0, 300);
}

static rank_status_t iput(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = after(rank_iput(s->out, LARGE / 2, VICTIM, s->mem, 0, &req), &req);

    return st ? st : rank_flush(s->mem, VICTIM);
}

static rank_status_t iget(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = rank_iget(s->in, LARGE / 2, VICTIM, s->mem, 0, &req);
    int done = st != RANK_OK;

    while (!done)
        st = rank_test(&req, &done, NULL);
    return st;
}

static rank_status_t amos(struct scene *s)
{
    rank_status_t st = RANK_OK;
    int64_t v = 1, was;
    double one = 1, f;

    for (int a = RANK_AMO_FETCH_ADD; a <= RANK_AMO_FETCH_XOR && !st; a++)
        st = rank_atomic((rank_amo_t)a, RANK_INT64, &v, VICTIM, s->mem, 8, &was);
    if (!st)
        st = rank_atomic(RANK_AMO_FETCH_ADD, RANK_F64, &one, VICTIM, s->mem, 16, &f);
    if (!st)
        st = rank_atomic_cas(RANK_F64, &one, &one, VICTIM, s->mem, 16, &f);
    return st ? st : rank_flush(s->mem, VICTIM);
}

/* Whether a pending operation has arrived is unknown at its death: the flush behind these reports it. */
static rank_status_t started(struct scene *s)
{
    return rank_put(s->out, LARGE / 2, VICTIM, s->mem, 0);
}

static rank_status_t flush_local(struct scene *s)
{
    rank_status_t st = started(s), st2 = rank_flush_local(s->mem, VICTIM);

    MP_CHECK(!st2 || st2 == RANK_ERR_PEER_DEAD);
    return st2 ? st2 : st ? st : rank_flush(s->mem, VICTIM);
}

static rank_status_t fence(struct scene *s)
{
    rank_status_t st = started(s), st2 = rank_fence(s->mem);

    MP_CHECK(!st2 || st2 == RANK_ERR_PEER_DEAD);
    return st2 ? st2 : st ? st : rank_flush(s->mem, VICTIM);
}

/* ------------------------------------------------------------------ the table */

static const struct row {
    const char *name;
    rank_status_t (*call)(struct scene *s);
    int flags;
} rows[] = {
    {"sendrecv from", sendrecv_from, 0},
    {"sendrecv to", sendrecv_to, 0},
    {"send of much", send_large, 0},
    {"issend", issend_small, 0},
    {"sendv", sendv, 0},
    {"isendv", isendv, 0},
    {"recvv", recvv, 0},
    {"irecvv", irecvv, 0},
    {"improbe", improbe, LATER},
    {"waitsome", waitsome, 0},
    {"testsome", testsome, 0},
    {"testany", testany, 0},
    {"testall", testall, 0},
    {"start of a receive", start_recv, 0},
    {"start of a send", start_ssend, 0},
    {"start of a collective", start_allreduce, 0},
    {"startall", startall, 0},
    {"allgatherv", allgatherv, 0},
    {"nonblocking collectives", icollectives, 0},
    {"nonblocking collectives of much", icollectives_large, 0},
    {"split", split, 0},
    {"split_shared", split_shared, 0},
    {"spawn with it", spawn_with, 0},
    {"spawn by it", spawn_by, 0},
    {"put_strided", put_strided, LATER | REMOTE},
    {"get_strided", get_strided, LATER | REMOTE},
    {"iput", iput, LATER | REMOTE},
    {"iget", iget, LATER | REMOTE},
    {"atomics", amos, LATER | REMOTE},
    {"flush_local", flush_local, LATER | REMOTE},
    {"fence", fence, LATER | REMOTE},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROWS + VICTIM == 33, "tests/faults/cases starts a victim for each row");

/* --------------------------------------------------------------------- a row */

/* The victim's memory, registered and opened by the two. */
static void open_registered(struct scene *s)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    rank_envelope_t env;

    MP_OK(rank_reg(s->in, LARGE, &s->mine));
    if (s->other < 0) {
        MP_OK(rank_rkey_pack(s->mine, key, &len));
        for (int r = 0; r < VICTIM; r++)
            MP_OK(rank_ssend(key, (int64_t)len, RANK_BYTE, r, KEY, s->team));
        return;
    }
    MP_OK(rank_recv(key, sizeof(key), RANK_BYTE, VICTIM, KEY, s->team, &env));
    MP_OK(rank_rkey_open(s->team, VICTIM, key, (size_t)env.bytes, &s->mem));
}

/* Rank 0 of the row chooses the moment. */
static void agree(struct scene *s, uint64_t *seed)
{
    if (s->other == 1) {
        s->when = mp_now() + 0.01 + (double)mp_below(seed, 30000) * 1e-6;
        for (int r = 1; r <= VICTIM; r++)
            MP_OK(rank_send(&s->when, 1, RANK_F64, r, KEY, s->team));
    } else {
        MP_OK(rank_recv(&s->when, 1, RANK_F64, 0, KEY, s->team, NULL));
    }
}

static void die(struct scene *s, bool asleep)
{
    static double when;

    when = s->when;
    mp_die_at(&when);
    while (asleep)
        pause();
    for (;;)
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, VICTIM, NEVER, s->team, NULL));
}

static void live(struct scene *s, const struct row *row)
{
    rank_status_t st;
    double late;

    while ((st = row->call(s)) == RANK_OK) {
        if (!(row->flags & LATER))
            mp_fail(__FILE__, __LINE__, "%s succeeded", row->name);
        if (mp_now() > s->when + 2 * s->within)
            mp_fail(__FILE__, __LINE__, "%s still succeeds %g s after the death", row->name, 2 * s->within);
    }
    is_dead(__LINE__, row->name, st);
    late = mp_now() - s->when;
    if (late < 0 || late > s->within)
        mp_fail(__FILE__, __LINE__, "%s: reported after %.3f s", row->name, late);
    is_dead(__LINE__, "the same once more", row->call(s));
}

/* What the two sent each other lies about; then they are as before. */
static void sweep(struct scene *s)
{
    char c[SMALL] = {0};
    int found = 1;

    MP_OK(rank_sendrecv(c, 1, RANK_BYTE, s->other, NEVER, c + 1, 1, RANK_BYTE, s->other, NEVER, s->team, NULL));
    for (;;) {
        MP_OK(rank_iprobe(s->other, DATA, s->team, &found, NULL));
        if (!found)
            break;
        MP_OK(rank_recv(c, SMALL, RANK_BYTE, s->other, DATA, s->team, NULL));
    }
    if (s->again != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(&s->again));
    if (s->mine != RANK_MEM_NULL) {
        rank_status_t st = rank_rkey_close(&s->mem); /* it may return what the flush has returned */
        MP_CHECK(!st || st == RANK_ERR_PEER_DEAD);
        MP_OK(rank_dereg(&s->mine));
    }
    /* Neither leaves while the other still checks. */
    MP_OK(rank_sendrecv(c, 1, RANK_BYTE, s->other, NEVER, c + 1, 1, RANK_BYTE, s->other, NEVER, s->team, NULL));
}

static void play(struct scene *s, const struct row *row, bool asleep, uint64_t *seed)
{
    rank_mem_t all = RANK_MEM_NULL;
    void *p;

    if (row->flags & REMOTE) {
        open_registered(s);
        MP_OK(rank_alloc(s->team, RANK_MEM_HOST, LARGE, 0, &p, &all));
    }
    agree(s, seed);
    if (s->other < 0)
        die(s, asleep);
    live(s, row);
    if (all != RANK_MEM_NULL) {
        rank_mem_t registered = s->mem;
        s->mem = all;
        live(s, row);
        s->mem = registered;
        IS_DEAD(rank_free(&all));
    }
    sweep(s);
}

/* ------------------------------------------------------------------ afterwards */

/* Collectives; death_in_call.c covers a death inside them. */
static void refused(struct scene *s)
{
    rank_team_t dup = RANK_TEAM_NULL;
    rank_mem_t mem = RANK_MEM_NULL;
    rank_request_t req;
    void *p = NULL;

    IS_DEAD(rank_barrier(s->team));
    IS_DEAD(rank_bcast(s->in, SMALL, RANK_BYTE, 0, s->team));
    IS_DEAD(rank_bcast(s->in, SMALL, RANK_BYTE, VICTIM, s->team));
    IS_DEAD(rank_reduce(s->out, s->in, 1, RANK_INT64, RANK_SUM, VICTIM, s->team));
    IS_DEAD(rank_allreduce(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_allreduce(s->out, s->in, LARGE / 8, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_gather(s->out, s->in, SMALL, RANK_BYTE, VICTIM, s->team));
    IS_DEAD(rank_allgather(s->out, s->in, SMALL, RANK_BYTE, s->team));
    IS_DEAD(rank_scatter(s->out, s->in, SMALL, RANK_BYTE, 0, s->team));
    IS_DEAD(rank_reduce_scatter(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_alltoall(s->out, s->in, SMALL, RANK_BYTE, s->team));
    IS_DEAD(rank_team_dup(s->team, &dup));
    IS_DEAD(rank_alloc(s->team, RANK_MEM_HOST, LARGE, 0, &p, &mem));
    MP_CHECK(dup == RANK_TEAM_NULL && mem == RANK_MEM_NULL && !p);
    IS_DEAD(rank_recv(s->in, 1, RANK_BYTE, VICTIM, DATA, s->team, NULL));
    IS_DEAD(rank_send(s->out, 1, RANK_BYTE, VICTIM, DATA, s->team));
    IS_DEAD(after(rank_isend(s->out, LARGE, RANK_BYTE, VICTIM, DATA, s->team, &req), &req));
    IS_DEAD(rank_probe(VICTIM, RANK_ANY_TAG, s->team, NULL));
}

int main(int argc, char **argv)
{
    struct scene s = {.other = -1};
    int first, n, seat;
    rank_team_t *teams;
    uint64_t seed;
    bool asleep;

    mp_start(&s.mp, &argc, argv);
    seed = s.mp.seed;
    s.within = (double)mp_option(argc, argv, "--within", IN_TIME);
    first = (int)mp_option(argc, argv, "--first", 0);
    asleep = mp_flag(argc, argv, "--asleep");
    n = s.mp.size - VICTIM;
    seat = s.mp.rank - VICTIM;
    MP_CHECK(n > 0 && first >= 0);
    n = n < ROWS - first ? n : ROWS - first;
    s.out = mp_alloc(LARGE);
    s.in = mp_alloc(LARGE);
    memset(s.out, 0, LARGE);
    for (int i = 0; i <= VICTIM; i++)
        s.counts[i] = SMALL, s.displs[i] = (int64_t)i * SMALL;
    teams = mp_alloc((size_t)n * sizeof(teams[0]));
    if (s.mp.rank < VICTIM)
        s.other = 1 - s.mp.rank;
    for (int i = 0; i < n; i++)
        MP_OK(rank_team_split(s.mp.world, seat < 0 || seat == i ? 0 : RANK_UNDEFINED, 0, &teams[i]));
    mp_case(&s.mp, "waits");
    for (int i = 0; i < n; i++) {
        if (seat >= 0 && seat != i)
            continue;
        s.team = teams[i];
        if (s.mp.rank == 0) {
            printf("%.3f %s\n", mp_now(), rows[first + i].name);
            fflush(stdout);
        }
        play(&s, &rows[first + i], asleep, &seed);
    }
    if (seat < 0) {
        refused(&s);
        for (int i = 0; i < n; i++)
            MP_OK(rank_team_free(&teams[i]));
    }
    mp_end_survivor(&s.mp);
    free(teams);
    free(s.out);
    free(s.in);
    return 0;
}
