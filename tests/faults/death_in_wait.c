/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_in_wait.c: end each call that waits for a dead rank, in time.
 *
 * Each ends with a status, and the same call ends so afterwards, too. The victims take no part in what the others call; death_in_call.c
 * has deaths in the midst of calls. Options: those of victims.h.
 */
#include "tests/faults/victims.h"

/* ------------------------------------------------------------------- messages */

static rank_status_t sendrecv_from(struct scene *s)
{
    return rank_sendrecv(s->out, SMALL, RANK_BYTE, s->to, DATA, s->in, SMALL, RANK_BYTE, s->victim, DATA, s->team, NULL);
}

static rank_status_t sendrecv_to(struct scene *s)
{
    rank_status_t st;
    rank_request_t req;

    MP_OK(rank_isend(s->out, SMALL, RANK_BYTE, s->to, DATA, s->team, &req));
    st = rank_sendrecv(s->out, LARGE, RANK_BYTE, s->victim, DATA, s->in, SMALL, RANK_BYTE, s->from, DATA, s->team, NULL);
    MP_OK(rank_wait(&req, NULL));
    return st;
}

static rank_status_t send_large(struct scene *s)
{
    return rank_send(s->out, LARGE, RANK_BYTE, s->victim, DATA, s->team);
}

static rank_status_t issend_small(struct scene *s)
{
    rank_request_t req;

    return after(rank_issend(s->out, SMALL, RANK_BYTE, s->victim, DATA, s->team, &req), &req);
}

static rank_status_t sendv(struct scene *s)
{
    rank_iov_t v[2] = {{.base = s->out, .bytes = LARGE / 2}, {.base = s->out, .bytes = 8, .count = 9000, .stride = 16}};

    return rank_sendv(v, 2, s->victim, DATA, s->team);
}

static rank_status_t isendv(struct scene *s)
{
    rank_iov_t v[2] = {{.base = s->out, .bytes = LARGE / 2}, {.base = s->out, .bytes = 8, .count = 9000, .stride = 16}};
    rank_request_t req;

    return after(rank_isendv(v, 2, s->victim, DATA, s->team, &req), &req);
}

static rank_status_t recvv(struct scene *s)
{
    rank_iov_t v = {.base = s->in, .bytes = 8, .count = 100, .stride = 32};

    return rank_recvv(&v, 1, s->victim, DATA, s->team, NULL);
}

static rank_status_t irecvv(struct scene *s)
{
    rank_iov_t v = {.base = s->in, .bytes = 8, .count = 100, .stride = 32};
    rank_request_t req;

    return after(rank_irecvv(&v, 1, s->victim, RANK_ANY_TAG, s->team, &req), &req);
}

static rank_status_t improbe(struct scene *s)
{
    rank_message_t message = RANK_MESSAGE_NULL;
    int found = 0;
    rank_status_t st = rank_improbe(s->victim, DATA, s->team, &found, &message, NULL);

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
        st = rank_irecv(s->in + i * SMALL, SMALL, RANK_BYTE, i == 1 ? s->from : s->victim, NEVER + i, s->team, &req[i]);
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
        MP_OK(rank_recv_init(s->in, SMALL, RANK_BYTE, s->victim, DATA, s->team, &s->again));
    return after(rank_start(&s->again), &s->again);
}

static rank_status_t start_ssend(struct scene *s)
{
    if (s->again == RANK_REQUEST_NULL)
        MP_OK(rank_ssend_init(s->out, SMALL, RANK_BYTE, s->victim, DATA, s->team, &s->again));
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

    MP_OK(rank_send_init(s->out, LARGE, RANK_BYTE, s->victim, DATA, s->team, &req[0]));
    MP_OK(rank_recv_init(s->in, SMALL, RANK_BYTE, s->victim, DATA, s->team, &req[1]));
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

    st[i] = rank_ibcast(in, n, RANK_INT64, s->victim, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_iscatter(NULL, in, n, RANK_INT64, s->victim, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_ireduce(s->out, in, n, RANK_INT64, RANK_SUM, 0, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_igather(s->out, in, n, RANK_INT64, 0, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_iallreduce(s->out, in, n, RANK_INT64, RANK_SUM, s->team, &req[i]), i++, in += 8 * n;
    st[i] = rank_iallgather(s->out, in, n, RANK_INT64, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_iallgatherv(s->out, SMALL, in, s->counts, s->displs, RANK_BYTE, s->team, &req[i]), i++, in += 3 * SMALL;
    st[i] = rank_ireduce_scatter(s->out, in, n, RANK_INT64, RANK_SUM, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_ialltoall(s->out, in, n, RANK_INT64, s->team, &req[i]), i++, in += 24 * n;
    st[i] = rank_ibarrier(s->team, &req[i]), i++;
    st[i] = rank_ibcast(in, n, RANK_INT64, s->victim, s->team, &req[i]), i++, in += 8 * n;
    MP_CHECK_EQ(i, ALL);
    MP_CHECK(in <= s->in + LARGE);
    for (i = ALL - 1; i >= 0; i--) {
        bool leaf = (i == 2 || i == 3) && s->mp.rank != s->first;
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
    return spawn(s, s->victim);
}

/* ------------------------------------------------------------------ one-sided */

static rank_status_t put_strided(struct scene *s)
{
    rank_status_t st = rank_put_strided(s->out, 200, 100, 50, s->victim, s->mem, 0, 300);

    return st ? st : rank_flush(s->mem, s->victim);
}

static rank_status_t get_strided(struct scene *s)
{
    return rank_get_strided(s->in, 200, 100, 50, s->victim, s->mem, 0, 300);
}

static rank_status_t iput(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = after(rank_iput(s->out, LARGE / 2, s->victim, s->mem, 0, &req), &req);

    return st ? st : rank_flush(s->mem, s->victim);
}

static rank_status_t iget(struct scene *s)
{
    rank_request_t req;
    rank_status_t st = rank_iget(s->in, LARGE / 2, s->victim, s->mem, 0, &req);
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
        st = rank_atomic((rank_amo_t)a, RANK_INT64, &v, s->victim, s->mem, 8, &was);
    if (!st)
        st = rank_atomic(RANK_AMO_FETCH_ADD, RANK_F64, &one, s->victim, s->mem, 16, &f);
    if (!st)
        st = rank_atomic_cas(RANK_F64, &one, &one, s->victim, s->mem, 16, &f);
    return st ? st : rank_flush(s->mem, s->victim);
}

/* Whether a pending operation has arrived is unknown at its death: the flush behind these reports it. */
static rank_status_t started(struct scene *s)
{
    return rank_put(s->out, LARGE / 2, s->victim, s->mem, 0);
}

static rank_status_t flush_local(struct scene *s)
{
    rank_status_t st = started(s), st2 = rank_flush_local(s->mem, s->victim);

    MP_CHECK(!st2 || st2 == RANK_ERR_PEER_DEAD);
    return st2 ? st2 : st ? st : rank_flush(s->mem, s->victim);
}

static rank_status_t fence(struct scene *s)
{
    rank_status_t st = started(s), st2 = rank_fence(s->mem);

    MP_CHECK(!st2 || st2 == RANK_ERR_PEER_DEAD);
    return st2 ? st2 : st ? st : rank_flush(s->mem, s->victim);
}

/* ------------------------------------------------------------------ the table */

static const struct row rows[] = {
    {"sendrecv-from", sendrecv_from, 0, 0, NULL},
    {"sendrecv-to", sendrecv_to, 0, 0, NULL},
    {"send-of-much", send_large, 0, 0, NULL},
    {"issend", issend_small, 0, 0, NULL},
    {"sendv", sendv, 0, 0, NULL},
    {"isendv", isendv, 0, 0, NULL},
    {"recvv", recvv, 0, 0, NULL},
    {"irecvv", irecvv, 0, 0, NULL},
    {"improbe", improbe, LATER, 0, NULL},
    {"waitsome", waitsome, 0, 0, NULL},
    {"testsome", testsome, 0, 0, NULL},
    {"testany", testany, 0, 0, NULL},
    {"testall", testall, 0, 0, NULL},
    {"start-of-a-receive", start_recv, 0, 0, NULL},
    {"start-of-a-send", start_ssend, 0, 0, NULL},
    {"start-of-a-collective", start_allreduce, 0, 0, NULL},
    {"startall", startall, 0, 0, NULL},
    {"allgatherv", allgatherv, 0, 0, NULL},
    {"nonblocking-collectives", icollectives, 0, 0, NULL},
    {"nonblocking-collectives-of-much", icollectives_large, 0, 0, NULL},
    {"split", split, 0, 0, NULL},
    {"split_shared", split_shared, 0, 0, NULL},
    {"spawn-with-it", spawn_with, 0, 0, NULL},
    {"spawn-by-it", spawn_by, 0, 0, NULL},
    {"put_strided", put_strided, LATER | REMOTE, 0, NULL},
    {"get_strided", get_strided, LATER | REMOTE, 0, NULL},
    {"iput", iput, LATER | REMOTE, 0, NULL},
    {"iget", iget, LATER | REMOTE, 0, NULL},
    {"atomics", amos, LATER | REMOTE, 0, NULL},
    {"flush_local", flush_local, LATER | REMOTE, 0, NULL},
    {"fence", fence, LATER | REMOTE, 0, NULL},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROWS + 2 == 33, "tests/faults/cases starts a victim for each row");

int main(int argc, char **argv)
{
    return victims_main(argc, argv, rows, ROWS);
}
