/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c: connect to listeners, as progress is made.
 *
 * An attempt tries the addresses of a host in turn, with a time limit for all. Its request completes when the connection is
 * made. One that has failed is kept until a test or wait reports the reason.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/conn/conns.h"
#include "lib/core/describe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED_MAX = 1024 }; /* attempts of which the reason is kept */

struct attempt {
    struct rk_link link; /* in attempts or failed */
    struct rk_conns *of;
    struct rank_request *req;
    rank_team_t *out;
    struct rk_conn_opts *opts;
    struct addrinfo *found;
    const struct addrinfo *next;
    struct rk_shaking *shaking;
    uint64_t deadline;
    const char *call;
    rank_status_t status;
    char why[RK_SHAKE_TEXT_MAX + 1];
    char address[];
};

static void attempt_fail(struct attempt *a, rank_status_t st, const char *why)
{
    a->status = st;
    snprintf(a->why, sizeof(a->why), "%s", why);
}

static void attempt_free(struct attempt *a)
{
    rk_list_remove(&a->link);
    free(a);
}

/* Complete the request. */
static void attempt_over(struct attempt *a)
{
    struct rk_conns *c = a->of;
    struct rank_request *req = a->req;
    rank_status_t st = a->status;

    freeaddrinfo(a->found);
    rk_conn_opts_free(a->opts);
    rk_list_remove(&a->link);
    rk_list_append(&c->failed, &a->link);
    if (!st || st == RANK_ERR_CLOSED || st == RANK_ERR_CANCELED)
        attempt_free(a);
    else if (++c->nfailed > FAILED_MAX) {
        attempt_free(rk_list_entry(c->failed.next, struct attempt, link));
        c->nfailed--;
    }
    c->tcp->settled = true; /* the next progress counts it, also where the idle check ends it */
    rk_req_complete(req, st);
}

/* Try the next address. The attempt may be over then. */
static void try_next_address(struct attempt *a)
{
    while (!a->shaking && a->next && a->status == RANK_ERR_UNREACHABLE) {
        int fd = rk_address_connect(a->next->ai_addr);

        a->next = a->next->ai_next;
        if (fd < 0)
            attempt_fail(a, errno == EMFILE || errno == ENFILE || errno == ENOMEM ? RANK_ERR_SYSTEM : RANK_ERR_UNREACHABLE, strerror(errno));
        else if (!(a->shaking = rk_shake_begin(a->of, fd, NULL, a->opts)))
            attempt_fail(a, RANK_ERR_NO_MEMORY, "out of memory");
    }
    if (!a->shaking)
        attempt_over(a);
}

static void attempt_end_shaking(struct attempt *a)
{
    if (a->shaking)
        rk_shake_end(a->shaking);
    a->shaking = NULL;
}

/* The handshake has succeeded. */
static void make_conn(struct attempt *a)
{
    struct rk_shaking *s = a->shaking;
    struct rk_conn *conn;

    a->shaking = NULL;
    a->status = rk_conn_make(s, &conn);
    if (!a->status)
        *a->out = conn->team;
    else
        attempt_fail(a, a->status, rank_status_string(a->status));
    attempt_over(a);
}

static void attempt_advance(struct attempt *a, uint64_t now)
{
    struct rk_shaking *s = a->shaking;

    if (a->req->status == RANK_ERR_CANCELED) {
        attempt_end_shaking(a);
        a->status = RANK_ERR_CANCELED;
        attempt_over(a);
    } else if (s->over && !s->status) {
        make_conn(a);
    } else if (s->over || now >= a->deadline) {
        attempt_fail(a, s->over ? s->status : RANK_ERR_TIMED_OUT, s->over ? s->why : "the handshake takes too long");
        attempt_end_shaking(a);
        if (now < a->deadline)
            try_next_address(a);
        else
            attempt_over(a);
    }
}

void rk_connects_settle(struct rk_conns *c, uint64_t now)
{
    struct rk_link *at, *next;

    rk_list_for_each_safe(at, next, &c->attempts)
        attempt_advance(rk_list_entry(at, struct attempt, link), now);
}

void rk_connects_close(struct rk_conns *c)
{
    while (!rk_list_empty(&c->attempts)) {
        struct attempt *a = rk_list_entry(c->attempts.next, struct attempt, link);
        attempt_end_shaking(a);
        a->status = RANK_ERR_CLOSED;
        attempt_over(a);
    }
    while (!rk_list_empty(&c->failed))
        attempt_free(rk_list_entry(c->failed.next, struct attempt, link));
    c->nfailed = 0;
}

static void connect_describe(const struct rank_request *req, struct rk_wait_for *out)
{
    (void)req;
    rk_describe_call(out, "rank_connect");
}

/* Report the reason, once. */
static void connect_explain(const struct rank_request *req)
{
    struct rk_conns *c = req->ctx->conns;
    struct attempt *a = NULL;
    struct rk_link *at;

    rk_list_for_each(at, &c->failed)
    {
        struct attempt *one = rk_list_entry(at, struct attempt, link);
        if (one->req == req && one->status == req->status) /* the newest: requests are used again */
            a = one;
    }
    if (!a)
        return;
    rk_call_report(req->status, a->call, "cannot connect to %s: %s", a->address, a->why);
    attempt_free(a);
    c->nfailed--;
}

rank_status_t rk_connect_begin(const char *call, struct rk_conns *c, const char *address, struct addrinfo *found,
                               struct rk_conn_opts *opts, struct rank_request *req, rank_team_t *out)
{
    struct attempt *a = calloc(1, sizeof(*a) + strlen(address) + 1);

    if (!a)
        return RANK_ERR_NO_MEMORY;
    req->ctx->engine->describe[RK_REQ_CONN] = connect_describe;
    req->ctx->engine->explain[RK_REQ_CONN] = connect_explain;
    req->type = RK_REQ_CONN;
    req->status = RANK_OK;
    req->peer = NULL;
    req->elem = 1;
    *a = (struct attempt){.of = c, .req = req, .out = out, .opts = opts, .found = found, .next = found, .call = call,
                          .deadline = rk_clock_ns() + opts->timeout_ns, .status = RANK_ERR_UNREACHABLE, .why = "no address"};
    memcpy(a->address, address, strlen(address) + 1);
    rk_list_append(&c->attempts, &a->link);
    try_next_address(a);
    return RANK_OK;
}
