/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_test.c: run the hub of several jobs with simulated front ends.
 * Requests go in, replies come out; a client that ends leaves none waiting. Packed data of other jobs is unpacked again.
 */
#include "launcher/dpm/hub.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"
#include "launcher/pmix/pmix_server.h"
#include "launcher/dpm/job_info.h"
#include "launcher/dpm/spawn_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_SAID 256

/* What the hub has sent, and to which job. */
struct said {
    uint32_t job;
    enum xr_hub_message word;
    uint32_t node, id, status; /* of an answer */
    uint8_t *data;             /* all of it */
    size_t len;
};

struct world {
    struct event_base *base;
    struct xr_hub *hub;
    struct said said[MAX_SAID];
    unsigned n;
    bool refuse; /* to start jobs */
};

static void on_send(void *arg, uint32_t job, enum xr_hub_message word, struct xr_packer *p)
{
    struct world *w = arg;
    struct said *s = &w->said[w->n++];
    struct xr_unpacker u = {p->data, p->len, p->failed};

    assert_true(w->n <= MAX_SAID);
    assert_false(p->failed);
    *s = (struct said){.job = job, .word = word, .data = p->data, .len = p->len};
    memset(p, 0, sizeof(*p));
    if (word != XR_DOWN_ANSWER)
        return;
    s->node = xr_unpack_u32(&u);
    s->id = xr_unpack_u32(&u);
    s->status = xr_unpack_u32(&u);
    assert_false(u.failed);
}

static bool on_start(void *arg, uint32_t job, const char *parent, uint32_t rank, struct xr_unpacker *request,
                     struct xr_packer *info)
{
    struct xr_unpacker u = {info->data, info->len, info->failed};
    struct xr_job o;

    (void)job;
    (void)rank;
    (void)request;
    assert_true(xr_job_info_unpack(&u, &o));
    assert_string_equal(o.id, parent);
    xr_job_clear(&o);
    return !((struct world *)arg)->refuse;
}

static const struct xr_hub_ops ops = {on_send, on_start};

static void forget(struct world *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->said[i].data);
    w->n = 0;
}

/* A job of 4 ranks on 2 hosts, of two programs. */
static void pack_job_info(const char *id, struct xr_packer *p)
{
    char *hosts[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b", NULL};
    uint32_t host_of[] = {0, 0, 1, 1};
    struct xr_app apps[] = {{.first = 0, .n = 3}, {.first = 3, .n = 1}};
    struct xr_job job = {.id = (char *)(uintptr_t)id, .size = 4, .apps = apps, .napps = 2, .nhosts = 2,
                         .hosts = hosts, .host_of = host_of};

    xr_job_info_pack(&job, p);
}

static bool take(struct world *w, uint32_t job, enum xr_hub_message word, struct xr_packer *p)
{
    struct xr_unpacker u = {p->data, p->len, p->failed};
    bool ok = xr_hub_handle(w->hub, job, word, &u);

    xr_packer_free(p);
    return ok;
}

static void begin(struct xr_packer *p, uint32_t node, uint32_t id, uint32_t rank, enum xr_rpc what)
{
    xr_pack_u32(p, node);
    xr_pack_u32(p, id);
    xr_pack_u32(p, rank);
    xr_pack_u32(p, what);
}

/* A rank spawns; the new job sends its job info and that it runs. */
static void spawn(struct world *w, uint32_t from, uint32_t job, const char *id)
{
    struct xr_packer p = {0};

    begin(&p, 0, 500, 1, XR_RPC_SPAWN);
    assert_true(take(w, from, XR_UP_RPC, &p));
    if (w->refuse)
        return;
    assert_int_equal(w->n, 0);
    pack_job_info(id, &p);
    assert_true(take(w, job, XR_UP_JOB_INFO, &p));
    assert_true(take(w, job, XR_UP_STARTED, &p));
    assert_int_equal(w->n, 1);
    assert_int_equal(w->said[0].job, from);
    assert_int_equal(w->said[0].id, 500);
    assert_int_equal(w->said[0].status, XR_DONE);
    forget(w);
}

static void open_world(struct world *w, bool go_on)
{
    struct xr_packer p = {0};

    memset(w, 0, sizeof(*w));
    w->base = event_base_new();
    assert_non_null(w->base);
    assert_int_equal(xr_hub_open(w->base, go_on, &ops, w, &w->hub), RANK_OK);
    pack_job_info("first", &p);
    assert_true(take(w, 0, XR_UP_JOB_INFO, &p));
    assert_string_equal(xr_hub_name(w->hub, 0), "first");
    assert_true(take(w, 0, XR_UP_STARTED, &p));
    spawn(w, 0, 1, "second");
    spawn(w, 1, 2, "third");
}

static void close_world(struct world *w)
{
    forget(w);
    xr_hub_close(w->hub);
    event_base_free(w->base);
}

static void ended(struct world *w, uint32_t job, uint32_t rank, bool failed)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, failed);
    xr_pack_u32(&p, failed);
    assert_true(take(w, job, XR_UP_ENDED, &p));
}

/* An agent comes, with 2 of its ranks, to what all of two jobs do. */
static void gather_within(struct world *w, uint32_t ms, enum xr_rpc what, uint32_t job, uint32_t node,
                          const char *one, const char *other)
{
    const char *ids[] = {one, other};
    struct xr_packer p = {0};

    begin(&p, node, 10 * job + node, XR_ALL_RANKS, what);
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, 2);
    xr_pack_u32(&p, ms);
    xr_pack_u32(&p, 2);
    for (int i = 0; i < 2; i++) {
        xr_pack_string(&p, ids[i]);
        xr_pack_u32(&p, XR_ALL_RANKS);
    }
    xr_pack_bytes(&p, "data", 4);
    assert_true(take(w, job, XR_UP_RPC, &p));
}

static void gather(struct world *w, enum xr_rpc what, uint32_t job, uint32_t node, const char *one,
                   const char *other)
{
    gather_within(w, 0, what, job, node, one, other);
}

static void expect_answers(struct world *w, unsigned n, uint32_t status)
{
    unsigned found = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (w->said[i].word != XR_DOWN_ANSWER)
            continue;
        assert_int_equal(w->said[i].status, status);
        found++;
    }
    assert_int_equal(found, n);
    forget(w);
}

static void together(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false);
    for (int round = 0; round < 2; round++) {
        enum xr_rpc what = round ? XR_RPC_DISCONNECT : XR_RPC_CONNECT;
        gather(&w, what, 0, 0, "first", "third");
        gather(&w, what, 2, 1, "third", "first"); /* in which order they are named does not matter */
        gather(&w, what, 0, 1, "first", "third");
        assert_int_equal(w.n, 0);
        gather(&w, what, 2, 0, "first", "third");
        expect_answers(&w, 4, XR_DONE);
    }
    gather(&w, XR_RPC_FENCE, 0, 0, "first", "none");
    expect_answers(&w, 1, XR_NOT_FOUND);
    close_world(&w);
}

static void deaths(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, true);
    gather(&w, XR_RPC_FENCE, 0, 0, "first", "second");
    gather(&w, XR_RPC_FENCE, 0, 1, "first", "second");
    gather(&w, XR_RPC_FENCE, 1, 0, "first", "second");
    ended(&w, 2, 3, true); /* has no part */
    for (unsigned i = 0; i < w.n; i++)
        assert_int_equal(w.said[i].word, XR_DOWN_DIED);
    forget(&w);
    ended(&w, 1, 3, true);
    expect_answers(&w, 3, XR_PARTICIPANT_LOST);
    gather(&w, XR_RPC_FENCE, 1, 1, "first", "second"); /* a late caller does not wait either */
    expect_answers(&w, 1, XR_PARTICIPANT_LOST);
    gather(&w, XR_RPC_FENCE, 0, 0, "first", "third");
    expect_answers(&w, 1, XR_PARTICIPANT_LOST);
    close_world(&w);
}

/* Each failure ends the connected jobs, and only those. */
static void failures(void **state)
{
    struct world w;
    unsigned sent = 0, heard = 0;

    (void)state;
    open_world(&w, false);
    assert_true(xr_hub_job_ended(w.hub, 2, 9));
    for (unsigned i = 0; i < w.n; i++) {
        if (w.said[i].word == XR_DOWN_END) {
            sent++;
            assert_int_equal(w.said[i].job, 1); /* the first is not connected with it */
        } else {
            assert_int_equal(w.said[i].word, XR_DOWN_DIED);
            heard += w.said[i].job == 0; /* but a team may hold ranks of all three */
        }
    }
    assert_int_equal(sent, 1);
    assert_int_equal(heard, 1);
    forget(&w);
    assert_true(xr_hub_job_ended(w.hub, 1, 0));
    for (unsigned i = 0; i < w.n; i++)
        assert_int_not_equal(w.said[i].word, XR_DOWN_END);
    close_world(&w);
}

static void not_started(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    w.refuse = true;
    spawn(&w, 0, 3, "fourth");
    expect_answers(&w, 1, XR_CANNOT_START);
    w.refuse = false;
    begin(&p, 1, 7, 2, XR_RPC_SPAWN);
    assert_true(take(&w, 0, XR_UP_RPC, &p));
    assert_false(xr_hub_job_ended(w.hub, 4, 127)); /* it ends before any message */
    expect_answers(&w, 1, XR_NO_PROGRAM);
    close_world(&w);
}

static void questions(void **state)
{
    struct xr_packer p = {0};
    struct world w;
    struct xr_unpacker u;

    (void)state;
    open_world(&w, false);
    for (uint32_t rank = 0; rank < 2; rank++) {
        begin(&p, 1, rank, XR_ALL_RANKS, XR_RPC_MODEX);
        xr_pack_string(&p, "third");
        xr_pack_u32(&p, rank);
        xr_pack_u32(&p, 7); /* time-out */
        assert_true(take(&w, 0, XR_UP_RPC, &p));
    }
    assert_int_equal(w.n, 2);
    assert_int_equal(w.said[1].job, 2);
    assert_int_equal(w.said[1].word, XR_DOWN_DMODEX);
    u = (struct xr_unpacker){w.said[1].data, w.said[1].len, false};
    xr_pack_u32(&p, xr_unpack_u32(&u));
    assert_int_equal(xr_unpack_u32(&u), 1);
    assert_int_equal(xr_unpack_u32(&u), 7);
    forget(&w);
    xr_pack_u32(&p, XR_FOUND);
    xr_pack_bytes(&p, "card", 4);
    assert_true(take(&w, 2, XR_UP_DMODEX, &p));
    assert_int_equal(w.n, 1);
    assert_int_equal(w.said[0].id, 1);
    expect_answers(&w, 1, XR_DONE);
    xr_hub_job_ended(w.hub, 2, 0); /* the other will never be answered by it */
    expect_answers(&w, 1, XR_NOT_FOUND);
    close_world(&w);
}

/* Check which clients get the events of which ends; XR_ALL_RANKS stands for all. Events are kept. */
static unsigned got_end_of(const struct world *w, uint32_t to, const char *job, uint32_t rank)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->n; i++) {
        struct xr_unpacker u = {w->said[i].data, w->said[i].len, false};
        const char *id;
        if (w->said[i].word != XR_DOWN_DIED || w->said[i].job != to)
            continue;
        id = xr_unpack_string(&u);
        n += strcmp(id, job) == 0 && xr_unpack_u32(&u) == rank;
    }
    return n;
}

/* The first job ends like any other, and others go on. */
static void first_ends(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false);
    gather(&w, XR_RPC_FENCE, 1, 0, "first", "second");
    assert_true(xr_hub_job_ended(w.hub, 0, 0));
    assert_int_equal(got_end_of(&w, 1, "first", XR_ALL_RANKS), 1);
    assert_int_equal(got_end_of(&w, 2, "first", XR_ALL_RANKS), 1);
    expect_answers(&w, 1, XR_PARTICIPANT_LOST);
    gather(&w, XR_RPC_FENCE, 1, 0, "first", "second"); /* as if it were there still */
    expect_answers(&w, 1, XR_PARTICIPANT_LOST);
    assert_null(xr_hub_name(w.hub, 0));
    assert_true(xr_hub_job_ended(w.hub, 0, 0)); /* once more is no harm */
    ended(&w, 2, 0, true);
    assert_int_equal(got_end_of(&w, 1, "third", 0), 1);
    xr_hub_end_others(w.hub, 0, true, 1, 0, 15);
    for (unsigned i = w.n; i-- > 0 && w.said[i].word == XR_DOWN_END;)
        assert_int_not_equal(w.said[i].job, 0);
    assert_int_equal(w.said[w.n - 1].word, XR_DOWN_END);
    assert_int_equal(w.said[w.n - 2].word, XR_DOWN_END);
    close_world(&w);
}

static void stands_still(struct world *w, uint32_t job, uint32_t still)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, still);
    assert_true(take(w, job, XR_UP_STALLED, &p));
}

/* Such messages have been sent, all to those jobs. */
static void expect_words(struct world *w, enum xr_hub_message word, unsigned n, const uint32_t *jobs)
{
    unsigned found = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (w->said[i].word != word)
            continue;
        assert_true(found < n);
        assert_int_equal(w->said[i].job, jobs[found]);
        found++;
    }
    assert_int_equal(found, n);
    forget(w);
}

/* Jobs are without hope when none of them makes progress. */
static void all_stalled(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    stands_still(&w, 0, 1);
    stands_still(&w, 2, 1);
    assert_int_equal(w.n, 0); /* the second works */
    stands_still(&w, 0, 0);
    stands_still(&w, 1, 1);
    assert_int_equal(w.n, 0); /* the first again */
    /* A job ends: the others are checked anew, which takes all of them. */
    assert_true(xr_hub_job_ended(w.hub, 1, 0));
    expect_words(&w, XR_DOWN_AGAIN, 1, (const uint32_t[]){2});
    stands_still(&w, 0, 1);
    assert_int_equal(w.n, 0);
    /* One with a request is about to work. */
    begin(&p, 0, 500, 1, XR_RPC_SPAWN);
    assert_true(take(&w, 0, XR_UP_RPC, &p));
    stands_still(&w, 2, 1);
    assert_int_equal(w.n, 0);
    assert_false(xr_hub_job_ended(w.hub, 3, 1)); /* it cannot be started */
    expect_words(&w, XR_DOWN_AGAIN, 2, (const uint32_t[]){0, 2});
    stands_still(&w, 2, 1);
    assert_int_equal(w.n, 0);
    stands_still(&w, 0, 1);
    expect_words(&w, XR_DOWN_ALL_STALLED, 2, (const uint32_t[]){0, 2});
    xr_pack_u32(&p, 2);
    assert_false(take(&w, 0, XR_UP_STALLED, &p));
    close_world(&w);
}

/* An event for all goes to the jobs that are there, but not back; one of no rank of its job goes nowhere. */
static void notices(void **state)
{
    struct xr_event notice = {.rank = 3, .range = 4, .wide = true, .code = -42, .info = "what it says", .len = 12}, got;
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct world w;

    (void)state;
    open_world(&w, false);
    xr_event_pack(&notice, &p);
    assert_true(take(&w, 1, XR_UP_EVENT, &p));
    assert_int_equal(w.n, 2);
    u = (struct xr_unpacker){w.said[1].data, w.said[1].len, false};
    assert_string_equal(xr_unpack_string(&u), "second");
    assert_true(xr_event_unpack(&u, UINT32_MAX, &got));
    assert_int_equal(got.rank, 3);
    assert_int_equal(got.code, -42);
    assert_int_equal(got.range, 4);
    assert_memory_equal(got.info, notice.info, notice.len);
    expect_words(&w, XR_DOWN_EVENT, 2, (const uint32_t[]){0, 2});
    assert_true(xr_hub_job_ended(w.hub, 2, 0));
    forget(&w);
    xr_event_pack(&notice, &p);
    assert_true(take(&w, 1, XR_UP_EVENT, &p));
    expect_words(&w, XR_DOWN_EVENT, 1, (const uint32_t[]){0});
    notice.rank = 4;
    xr_event_pack(&notice, &p);
    assert_false(take(&w, 1, XR_UP_EVENT, &p));
    assert_int_equal(w.n, 0);
    close_world(&w);
}

/* A job that was connected through a job that is over still gets the other's events. */
static void bridges(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, true);
    assert_true(xr_hub_job_ended(w.hub, 1, 0));
    forget(&w);
    ended(&w, 0, 2, true);
    assert_int_equal(got_end_of(&w, 2, "first", 2), 1);
    ended(&w, 2, 1, true);
    assert_int_equal(got_end_of(&w, 0, "third", 1), 1);
    close_world(&w);
}

/* Many jobs, one after the other: what is over is forgotten, but what its ranks have left for ever is not. */
static void many(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    for (uint32_t i = 0; i < 1000; i++) {
        char id[32];
        snprintf(id, sizeof(id), "short %u", i);
        spawn(&w, 0, 3 + i, id);
        begin(&p, 0, 1, 0, XR_RPC_PUBLISH);
        xr_pack_u32(&p, XR_RANGE_ALL);
        xr_pack_u32(&p, i == 500 ? XR_KEEP_ALWAYS : XR_KEEP_APP);
        xr_pack_u32(&p, 1);
        xr_pack_string(&p, "port");
        xr_pack_bytes(&p, id, strlen(id));
        assert_true(take(&w, 3 + i, XR_UP_RPC, &p));
        expect_answers(&w, 1, i <= 500 ? XR_DONE : XR_EXISTS_ALREADY);
        gather(&w, XR_RPC_CONNECT, 0, 0, "first", id);
        gather(&w, XR_RPC_CONNECT, 1, 0, "second", id);
        for (uint32_t rank = 0; rank < 4; rank++)
            ended(&w, 3 + i, rank, false);
        expect_answers(&w, 2, XR_PARTICIPANT_LOST);
        assert_true(xr_hub_job_ended(w.hub, 3 + i, 0));
        assert_int_equal(got_end_of(&w, 0, id, XR_ALL_RANKS), 1);
        forget(&w);
        assert_int_equal(xr_hub_jobs(w.hub), 3);
    }
    begin(&p, 0, 1, 0, XR_RPC_LOOKUP);
    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_NOW);
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, 1);
    xr_pack_string(&p, "port");
    assert_true(take(&w, 1, XR_UP_RPC, &p));
    assert_int_equal(w.n, 1);
    assert_non_null(memmem(w.said[0].data, w.said[0].len, "short 500", 10));
    close_world(&w);
}

/* A spawned job gets the deaths that precede it. */
static void died_before(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, true);
    begin(&p, 0, 500, 1, XR_RPC_SPAWN);
    assert_true(take(&w, 2, XR_UP_RPC, &p));
    ended(&w, 2, 3, true);
    pack_job_info("fourth", &p);
    assert_true(take(&w, 3, XR_UP_JOB_INFO, &p));
    ended(&w, 0, 0, true);
    assert_int_equal(got_end_of(&w, 3, "third", 3) + got_end_of(&w, 3, "first", 0), 0);
    assert_true(xr_hub_job_ended(w.hub, 2, 0));
    forget(&w);
    assert_int_equal(xr_hub_jobs(w.hub), 4); /* the end of the one that is over is still to be reported */
    assert_true(take(&w, 3, XR_UP_STARTED, &p));
    assert_int_equal(got_end_of(&w, 3, "third", 3), 1);
    assert_int_equal(got_end_of(&w, 3, "first", 0), 1);
    assert_int_equal(got_end_of(&w, 3, "third", XR_ALL_RANKS), 1);
    assert_int_equal(xr_hub_jobs(w.hub), 3);
    close_world(&w);
}

static void run_for(struct world *w, uint32_t ms)
{
    const struct timeval t = {0, (suseconds_t)ms * 1000};

    event_base_loopexit(w->base, &t);
    event_base_dispatch(w->base);
}

/* The shortest time-out of the callers is that of all; then they may try again. */
static void too_late(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    for (int round = 0; round < 3; round++) {
        gather_within(&w, 100000, XR_RPC_CONNECT, 0, 0, "first", "second");
        gather_within(&w, 20, XR_RPC_CONNECT, 0, 1, "first", "second");
        gather_within(&w, 0, XR_RPC_CONNECT, 1, 1, "first", "second");
        assert_int_equal(w.n, 0);
        run_for(&w, 100);
        expect_answers(&w, 3, XR_TOO_LATE);
    }
    gather_within(&w, 50, XR_RPC_CONNECT, 1, 0, "first", "second");
    gather_within(&w, 50, XR_RPC_CONNECT, 1, 1, "first", "second");
    gather(&w, XR_RPC_CONNECT, 0, 0, "first", "second");
    gather(&w, XR_RPC_CONNECT, 0, 1, "first", "second");
    expect_answers(&w, 4, XR_DONE);
    run_for(&w, 100);
    assert_int_equal(w.n, 0);
    begin(&p, 1, 1, XR_ALL_RANKS, XR_RPC_MODEX); /* the other job may stand still */
    xr_pack_string(&p, "third");
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, 1);
    assert_true(take(&w, 0, XR_UP_RPC, &p));
    assert_int_equal(w.n, 1);
    forget(&w);
    run_for(&w, 900);
    assert_int_equal(w.n, 0);
    run_for(&w, 500);
    expect_answers(&w, 1, XR_TOO_LATE);
    close_world(&w);
}

/* Each agent gets the job info of another job once. */
static void job_infos(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    for (uint32_t i = 0; i < 4; i++) {
        begin(&p, i % 2, 1, XR_ALL_RANKS, XR_RPC_MODEX);
        xr_pack_string(&p, "third");
        xr_pack_u32(&p, XR_ALL_RANKS);
        xr_pack_u32(&p, 0);
        assert_true(take(&w, 0, XR_UP_RPC, &p));
        assert_int_equal(w.n, 1);
        assert_int_equal(memmem(w.said[0].data, w.said[0].len, "third", 6) != NULL, i < 2);
        forget(&w);
    }
    for (uint32_t i = 0; i < 4; i++)
        gather(&w, XR_RPC_FENCE, i < 2 ? 0 : 2, i % 2, "first", "third");
    for (unsigned i = 0; i < w.n; i++)
        assert_int_equal(memmem(w.said[i].data, w.said[i].len, w.said[i].job ? "first" : "third", 6) != NULL, w.said[i].job == 2);
    expect_answers(&w, 4, XR_DONE);
    close_world(&w);
}

/* A job that got another's job info, and is not connected any more, drops it at that job's end, and gets nothing else. */
static void disconnected(void **state)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct world w;

    (void)state;
    open_world(&w, false);
    begin(&p, 0, 1, XR_ALL_RANKS, XR_RPC_MODEX);
    xr_pack_string(&p, "third");
    xr_pack_u32(&p, XR_ALL_RANKS);
    xr_pack_u32(&p, 0);
    assert_true(take(&w, 0, XR_UP_RPC, &p));
    for (uint32_t i = 0; i < 4; i++)
        gather(&w, XR_RPC_DISCONNECT, i < 2 ? 1 : 2, i % 2, "second", "third");
    forget(&w);
    ended(&w, 2, 0, true);
    assert_int_equal(got_end_of(&w, 0, "third", 0), 0);
    assert_true(xr_hub_job_ended(w.hub, 2, 0));
    assert_int_equal(got_end_of(&w, 0, "third", XR_ALL_RANKS), 1);
    for (unsigned i = 0; i < w.n; i++) {
        if (w.said[i].job != 0)
            continue;
        u = (struct xr_unpacker){w.said[i].data, w.said[i].len, false};
        xr_unpack_string(&u);
        xr_unpack_u32(&u);
        assert_int_equal(xr_unpack_u32(&u), XR_ONLY_FORGET);
    }
    close_world(&w);
}

/* The end of a client ends what waits for it; little of it is kept for later callers. */
static void broken(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    for (uint32_t lost = 1; lost < 2; lost--) {
        xr_pack_u32(&p, 3);
        xr_pack_u32(&p, lost);
        if (!lost) /* another one has come */
            assert_true(take(&w, 1, XR_UP_BROKEN, &p));
        for (int i = 0; i < 5 && lost; i++) {
            gather(&w, XR_RPC_FENCE, 0, 0, "first", "second");
            if (i == 0)
                assert_true(take(&w, 1, XR_UP_BROKEN, &p));
            expect_answers(&w, 1, XR_PARTICIPANT_LOST);
        }
    }
    gather(&w, XR_RPC_FENCE, 0, 1, "first", "second"); /* the late one of the first time */
    gather(&w, XR_RPC_FENCE, 1, 0, "first", "second");
    gather(&w, XR_RPC_FENCE, 1, 1, "first", "second");
    expect_answers(&w, 3, XR_PARTICIPANT_LOST);
    for (uint32_t i = 0; i < 4; i++)
        gather(&w, XR_RPC_FENCE, i < 2 ? 0 : 1, i % 2, "first", "second");
    expect_answers(&w, 4, XR_DONE);
    close_world(&w);
}

/* What makes no sense is refused or answered so, and does no harm. */
static void nonsense(void **state)
{
    struct xr_packer p = {0};
    struct world w;

    (void)state;
    open_world(&w, false);
    pack_job_info("again", &p);
    assert_false(take(&w, 1, XR_UP_JOB_INFO, &p));
    begin(&p, 2, 1, 0, XR_RPC_PUBLISH); /* there is no host 2 */
    assert_false(take(&w, 0, XR_UP_RPC, &p));
    begin(&p, 0, 1, 4, XR_RPC_LOOKUP); /* nor a rank 4 */
    assert_false(take(&w, 0, XR_UP_RPC, &p));
    begin(&p, 0, 1, 0, 99);
    assert_false(take(&w, 0, XR_UP_RPC, &p));
    xr_pack_u32(&p, 4);
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, 0);
    assert_false(take(&w, 0, XR_UP_ENDED, &p));
    for (uint32_t what = XR_RPC_PUBLISH; what <= XR_RPC_MODEX; what++) {
        begin(&p, 0, 1, 0, what);
        xr_pack_u32(&p, UINT32_MAX);
        assert_true(take(&w, 0, XR_UP_RPC, &p));
        expect_answers(&w, 1, XR_REFUSED);
    }
    close_world(&w);
}

static void packing(void **state)
{
    struct xr_spawn_hello hello = {.number = 3, .rank = 2, .parent = strdup("first"), .job_info = strdup("o"),
                             .job_info_len = 1},
                    back;
    struct xr_spawn_request_app *app = xr_spawn_request_add(&hello.request);
    struct xr_packer p = {0};
    struct xr_unpacker u;

    (void)state;
    app->n = 5;
    app->wdir = strdup("/tmp");
    assert_true(xr_strv_add(&app->argv, "program"));
    assert_true(xr_strv_add(&hello.request.keys, "key=value"));
    assert_true(xr_strv_add(&hello.options, "--quiet"));
    assert_true(xr_strv_add(&hello.env, "A=1"));
    hello.hosts = strdup("a:4,b");
    xr_spawn_hello_pack(&hello, &p);
    for (size_t len = 0; len <= p.len; len++) { /* nothing shorter is taken for whole */
        u = (struct xr_unpacker){p.data, len, false};
        assert_int_equal(xr_spawn_hello_unpack(&u, &back), len == p.len);
        if (len == p.len) {
            assert_string_equal(back.request.apps[0].argv[0], "program");
            assert_string_equal(back.request.apps[0].wdir, "/tmp");
            assert_null(back.request.apps[0].path);
            assert_string_equal(back.request.keys[0], "key=value");
            assert_string_equal(back.options[0], "--quiet");
            assert_string_equal(back.env[0], "A=1");
            assert_string_equal(back.hosts, "a:4,b");
            assert_string_equal(back.parent, "first");
        }
        xr_spawn_hello_clear(&back);
    }
    xr_packer_free(&p);
    /* Programs each of which is small enough, and all of which are too many ranks. */
    for (int i = 0; i < 2; i++) {
        hello.request.apps[0].n = XR_MAX_RANKS - 5 + (uint32_t)i;
        if (i == 0) {
            app = xr_spawn_request_add(&hello.request);
            app->n = 5;
            assert_true(xr_strv_add(&app->argv, "other"));
        }
        xr_spawn_hello_pack(&hello, &p);
        u = (struct xr_unpacker){p.data, p.len, false};
        assert_int_equal(xr_spawn_hello_unpack(&u, &back), i == 0);
        xr_spawn_hello_clear(&back);
        xr_packer_free(&p);
    }
    xr_spawn_hello_clear(&hello);
    pack_job_info("x", &p);
    for (size_t len = 0; len <= p.len; len++) {
        struct xr_job job;
        u = (struct xr_unpacker){p.data, len, false};
        assert_int_equal(xr_job_info_unpack(&u, &job) && xr_unpack_done(&u), len == p.len);
        xr_job_clear(&job);
    }
    xr_packer_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together),  cmocka_unit_test(deaths),   cmocka_unit_test(failures),
        cmocka_unit_test(not_started), cmocka_unit_test(questions), cmocka_unit_test(nonsense),
        cmocka_unit_test(packing),     cmocka_unit_test(first_ends), cmocka_unit_test(bridges),
        cmocka_unit_test(many),        cmocka_unit_test(died_before), cmocka_unit_test(too_late),
        cmocka_unit_test(job_infos),    cmocka_unit_test(disconnected), cmocka_unit_test(broken),
        cmocka_unit_test(all_stalled),    cmocka_unit_test(notices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
