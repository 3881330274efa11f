/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_test.c: serve PMI-1 over real socket pairs.
 * With clients that are right and ones that are not, alone and as two hosts; and the parts of the server.
 */
#include "launcher/compat/mpi_env.h"
#include "launcher/util/pack.h"
#include "launcher/dpm/nameserver.h"
#include "launcher/pmi1/parser.h"
#include "launcher/pmi1/pmi1_server.h"
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/dpm/spawn_request.h"
#include "lib/base/compiler.h"
#include "lib/base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3
#define GARBAGE_RUNS 300

/* ------------------------------------------------------------------------ a host */

struct host {
    struct event_base *base;
    struct xr_pmi1 *server;
    int fd[RANKS];
    uint32_t n;
    unsigned joined, exchanges;
    int aborted, stranded, code; /* ranks, or -1 */
    char text[64];
    struct xr_nameserver *names; /* of the test itself */
    struct xr_spawn_request request; /* the last one */
    enum xr_rpc_status status; /* the answer to it */
    uint32_t held[2], nheld, may_hold; /* requests that the test answers */
    bool lost, hold;    /* hold: the answer to an exchange is given by the test */
    void *blob;
    size_t len;
};

static void on_joined(void *arg, uint32_t rank)
{
    struct host *h = arg;

    (void)rank;
    h->joined++;
}

static void on_aborted(void *arg, uint32_t rank, int code, const char *text)
{
    struct host *h = arg;

    h->aborted = (int)rank;
    h->code = code;
    snprintf(h->text, sizeof(h->text), "%s", text);
}

static void on_exchange(void *arg, bool lost, const void *blob, size_t len)
{
    struct host *h = arg;

    h->exchanges++;
    h->lost = h->lost || lost;
    free(h->blob);
    h->blob = malloc(len + 1);
    assert_non_null(h->blob);
    if (len)
        memcpy(h->blob, blob, len);
    h->len = len;
}

static void on_stranded(void *arg, uint32_t rank)
{
    struct host *h = arg;

    assert_int_equal(h->stranded, -1);
    h->stranded = (int)rank;
}

/* The answer is packed as the first xrun would. */
static void reply(struct host *h, uint32_t id, enum xr_rpc_status status, struct xr_packer *more)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, status);
    if (more)
        xr_pack_raw(&p, more->data, more->len);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    xr_pmi1_rpc_done(h->server, id, &u);
    xr_packer_free(&p);
}

static void on_found(void *arg, const struct xr_rpc_origin *asker, enum xr_rpc_status status, struct xr_packer *found)
{
    reply(arg, asker->id, status, found);
    xr_packer_free(found);
}

static void on_request(void *arg, uint32_t rank, uint32_t id, enum xr_rpc what, struct xr_packer *p)
{
    const struct xr_rpc_origin asker = {.id = id};
    struct host *h = arg;
    struct xr_process client = {.rank = rank, .id = "space", .host = "here"};
    struct xr_unpacker u = {p->data, p->len, p->failed};

    if (h->nheld < h->may_hold) {
        h->held[h->nheld++] = id;
        xr_packer_free(p);
        return;
    }
    if (!h->names)
        assert_int_equal(xr_nameserver_open(h->base, on_found, h, &h->names), RANK_OK);
    if (what == XR_RPC_PUBLISH) {
        reply(h, id, xr_nameserver_publish(h->names, &client, &u), NULL);
    } else if (what == XR_RPC_UNPUBLISH) {
        reply(h, id, xr_nameserver_unpublish(h->names, &client, &u), NULL);
    } else if (what == XR_RPC_LOOKUP) {
        xr_nameserver_lookup(h->names, &client, &u, &asker);
    } else {
        xr_spawn_request_clear(&h->request);
        assert_int_equal(what, XR_RPC_SPAWN);
        assert_true(xr_spawn_request_unpack(&u, &h->request));
        assert_true(xr_unpack_done(&u));
        reply(h, id, h->status, NULL);
    }
    xr_packer_free(p);
}

static const struct xr_pmi1_ops alone = {on_joined, on_aborted, NULL, on_stranded, on_request};
static const struct xr_pmi1_ops among_others = {on_joined, on_aborted, on_exchange, on_stranded, NULL};

static void open_host(struct host *h, const struct xr_pmi1_ops *ops, uint32_t n, uint32_t size)
{
    const struct xr_pmi1_job job = {.id = "space", .size = size, .universe = 7, .local = n};

    memset(h, 0, sizeof(*h));
    h->aborted = h->stranded = -1;
    h->n = n;
    h->base = event_base_new();
    assert_non_null(h->base);
    assert_int_equal(xr_pmi1_open(h->base, &job, ops, h, &h->server), RANK_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(xr_pmi1_add(h->server, i, 0, &h->fd[i]), RANK_OK);
}

static void close_host(struct host *h)
{
    xr_pmi1_close(h->server);
    xr_nameserver_close(h->names);
    xr_spawn_request_clear(&h->request);
    event_base_free(h->base);
    for (uint32_t i = 0; i < h->n; i++) {
        if (h->fd[i] >= 0)
            close(h->fd[i]);
    }
    free(h->blob);
}

static void turn(struct host *h)
{
    for (int i = 0; i < 4; i++)
        event_base_loop(h->base, EVLOOP_NONBLOCK);
}

static void say(struct host *h, uint32_t rank, const char *text)
{
    assert_int_equal(send(h->fd[rank], text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    turn(h);
}

/* What has been answered since; "closed" at the end of the connection. */
static const char *answer(struct host *h, uint32_t rank)
{
    static char text[4096];
    ssize_t n = recv(h->fd[rank], text, sizeof(text) - 1, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return "closed";
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void expect(struct host *h, uint32_t rank, const char *question, const char *reply)
{
    say(h, rank, question);
    assert_string_equal(answer(h, rank), reply);
}

#define INIT "cmd=init pmi_version=1 pmi_subversion=1\n"
#define INIT_OK "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
#define WHOLE "cmd=barrier_out rc=0\n"
#define BROKEN "cmd=barrier_failed rc=-1 msg=a_rank_has_gone\n"

static void join_all(struct host *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        expect(h, i, INIT, INIT_OK);
}

/* ------------------------------------------------------------------- right clients */

static void every_command(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 1, 1);
    expect(&h, 0, INIT, INIT_OK);
    assert_int_equal(h.joined, 1);
    expect(&h, 0, "cmd=get_maxes\n", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
    expect(&h, 0, "cmd=get_appnum\n", "cmd=appnum rc=0 appnum=0\n");
    expect(&h, 0, "cmd=get_universe_size\n", "cmd=universe_size rc=0 size=7\n");
    expect(&h, 0, "cmd=get_my_kvsname\n", "cmd=my_kvsname rc=0 kvsname=space\n");
    expect(&h, 0, "cmd=get kvsname=space key=PMI_process_mapping\n",
           "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n");
    expect(&h, 0, "cmd=put kvsname=space key=a value=b=c\n", "cmd=put_result rc=0 msg=success\n");
    expect(&h, 0, "cmd=get kvsname=space key=a\n", "cmd=get_result rc=0 msg=success value=b=c\n");
    expect(&h, 0, "cmd=get kvsname=space key=b\n",
           "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    expect(&h, 0, "cmd=get kvsname=other key=a\n",
           "cmd=get_result rc=-1 msg=no_such_space value=unknown\n");
    expect(&h, 0, "cmd=put kvsname=other key=a value=b\n",
           "cmd=put_result rc=-1 msg=no_such_space\n");
    expect(&h, 0, "cmd=put kvsname=space key=a\n", "cmd=put_result rc=-1 msg=key_or_value_missing\n");
    expect(&h, 0, "cmd=barrier_in\n", WHOLE);
    expect(&h, 0, "cmd=lookup_name service=s\n", "cmd=lookup_result rc=-1 info=error msg=not_published\n");
    expect(&h, 0, "cmd=publish_name service=s port=p\n",
           "cmd=publish_result rc=0 info=ok msg=success\n");
    expect(&h, 0, "cmd=publish_name service=s port=q\n",
           "cmd=publish_result rc=-1 info=error msg=cannot_publish\n");
    expect(&h, 0, "cmd=lookup_name service=s\n",
           "cmd=lookup_result rc=0 info=ok msg=success port=p\n");
    expect(&h, 0, "cmd=unpublish_name service=s\n",
           "cmd=unpublish_result rc=0 info=ok msg=success\n");
    /* Two programs to spawn are two blocks and one answer. */
    expect(&h, 0, "mcmd=spawn\nnprocs=3\nexecname=one\ntotspawns=2\nspawnssofar=1\narg1=a b\narg2=c=d\nargcnt=2\n"
                  "preput_num=1\npreput_key_0=PORT\npreput_val_0=tag#0$x=y$\ninfo_num=2\ninfo_key_0=wdir\n"
                  "info_val_0=/tmp\ninfo_key_1=fly\ninfo_val_1=high\nendcmd\n", "");
    expect(&h, 0, "mcmd=spawn\nnprocs=1\nexecname=two\ntotspawns=2\nspawnssofar=2\ninfo_num=1\ninfo_key_0=host\n"
                  "info_val_0=a,b\nendcmd\n", "cmd=spawn_result rc=0 msg=success\n");
    assert_int_equal(h.request.napps, 2);
    assert_int_equal(h.request.apps[0].n, 3);
    assert_string_equal(h.request.apps[0].argv[0], "one");
    assert_string_equal(h.request.apps[0].argv[1], "a b");
    assert_string_equal(h.request.apps[0].argv[2], "c=d");
    assert_null(h.request.apps[0].argv[3]);
    assert_string_equal(h.request.apps[0].wdir, "/tmp");
    assert_string_equal(h.request.apps[1].argv[0], "two");
    assert_null(h.request.apps[1].wdir);
    assert_string_equal(h.request.keys[0], "PORT=tag#0$x=y$");
    assert_string_equal(h.request.words[0], "--host");
    assert_string_equal(h.request.words[1], "a,b");
    h.status = XR_NO_PROGRAM;
    expect(&h, 0, "mcmd=spawn\nnprocs=1\nexecname=two\nendcmd\n", "cmd=spawn_result rc=-1 msg=no_such_program\n");
    expect(&h, 0, "mcmd=spawn\nnprocs=0\nexecname=two\nendcmd\n", "cmd=spawn_result rc=-1 msg=not_understood\n");
    expect(&h, 0, "mcmd=spawn\nnprocs=1\nendcmd\n", "cmd=spawn_result rc=-1 msg=not_understood\n");
    expect(&h, 0, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
    assert_false(xr_pmi1_exited(h.server, 0));
    close_host(&h);
}

/* A program sends a request and ends, and so does the next one of its rank: each gets the reply to its own request. */
static void answers_of_the_past(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 1, 1);
    join_all(&h);
    h.may_hold = 2;
    expect(&h, 0, "mcmd=spawn\nnprocs=1\nexecname=two\nendcmd\n", "");
    say(&h, 0, INIT);
    answer(&h, 0);
    expect(&h, 0, "cmd=publish_name service=s port=p\n", "");
    assert_int_equal(h.nheld, 2);
    reply(&h, h.held[0], XR_REFUSED, NULL);
    assert_string_equal(answer(&h, 0), "");
    reply(&h, h.held[1], XR_DONE, NULL);
    assert_string_equal(answer(&h, 0), "cmd=publish_result rc=0 info=ok msg=success\n");
    reply(&h, h.held[1], XR_DONE, NULL); /* a second reply has no request */
    assert_string_equal(answer(&h, 0), "");
    close_host(&h);
}

static void barrier(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    join_all(&h);
    for (int round = 0; round < 3; round++) {
        expect(&h, 2, "cmd=put kvsname=space key=k value=v\ncmd=barrier_in\n",
               "cmd=put_result rc=0 msg=success\n");
        expect(&h, 0, "cmd=barrier_in\n", "");
        assert_string_equal(answer(&h, 2), "");
        assert_true(xr_pmi1_waits(h.server, 0) && !xr_pmi1_waits(h.server, 1) && xr_pmi1_waits(h.server, 2));
        expect(&h, 1, "cmd=barrier_in\n", WHOLE);
        assert_string_equal(answer(&h, 0), WHOLE);
        assert_string_equal(answer(&h, 2), WHOLE);
        assert_false(xr_pmi1_waits(h.server, 0) || xr_pmi1_waits(h.server, 2) || xr_pmi1_waits(h.server, 3));
    }
    close_host(&h);
}

/* Bytes come as they come. */
static void in_pieces(void **state)
{
    static const char text[] = INIT "cmd=get_appnum\n";
    struct host h;

    (void)state;
    open_host(&h, &alone, 1, 1);
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        char byte[2] = {text[i], '\0'};
        say(&h, 0, byte);
    }
    assert_string_equal(answer(&h, 0), INIT_OK "cmd=appnum rc=0 appnum=0\n");
    close_host(&h);
}

/* A rank may run one program after another. */
static void twice(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 1, 1);
    for (int i = 0; i < 2; i++) {
        expect(&h, 0, INIT, INIT_OK);
        expect(&h, 0, "cmd=put kvsname=space key=k value=v\n", "cmd=put_result rc=0 msg=success\n");
        expect(&h, 0, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
    }
    assert_int_equal(h.joined, 2);
    close_host(&h);
}

/* -------------------------------------------------------------------------- deaths */

static void dies_outside(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    join_all(&h);
    expect(&h, 0, "cmd=barrier_in\n", "");
    assert_true(xr_pmi1_exited(h.server, 1)); /* it did not finalize */
    assert_string_equal(answer(&h, 0), BROKEN);
    expect(&h, 2, "cmd=barrier_in\n", BROKEN);
    assert_int_equal(h.stranded, -1); /* it had joined */
    close_host(&h);
}

static void dies_inside(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    join_all(&h);
    expect(&h, 1, "cmd=barrier_in\n", "");
    expect(&h, 0, "cmd=barrier_in\n", "");
    assert_true(xr_pmi1_exited(h.server, 1));
    assert_string_equal(answer(&h, 0), BROKEN);
    close_host(&h);
}

/* Its last message counts, also if the loop has not come to it. */
static void last_words(void **state)
{
    static const char last[] = "cmd=finalize\n", abort[] = "cmd=abort exitcode=9\n";
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    join_all(&h);
    assert_int_equal(send(h.fd[0], last, sizeof(last) - 1, 0), sizeof(last) - 1);
    assert_false(xr_pmi1_exited(h.server, 0));
    assert_int_equal(send(h.fd[1], abort, sizeof(abort) - 1, 0), sizeof(abort) - 1);
    assert_true(xr_pmi1_exited(h.server, 1));
    assert_int_equal(h.aborted, 1);
    assert_int_equal(h.code, 9);
    close_host(&h);
}

static void hangs_up(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    join_all(&h);
    expect(&h, 0, "cmd=barrier_in\n", "");
    close(h.fd[1]);
    h.fd[1] = -1;
    turn(&h);
    assert_string_equal(answer(&h, 0), BROKEN);
    assert_true(xr_pmi1_exited(h.server, 1));
    close_host(&h);
}

static void never_joins(void **state)
{
    struct host h;

    (void)state;
    open_host(&h, &alone, 3, 3);
    assert_false(xr_pmi1_exited(h.server, 2));
    xr_pmi1_check_stranded(h.server);
    assert_int_equal(h.stranded, -1); /* no rank uses PMI-1 */
    expect(&h, 0, INIT "cmd=barrier_in\n", INIT_OK BROKEN);
    assert_int_equal(h.stranded, 2);
    close_host(&h);
    open_host(&h, &alone, 3, 3);
    expect(&h, 0, INIT, INIT_OK);
    assert_false(xr_pmi1_exited(h.server, 2));
    xr_pmi1_check_stranded(h.server);
    assert_int_equal(h.stranded, 2);
    xr_pmi1_check_stranded(h.server); /* once */
    close_host(&h);
}

/* ------------------------------------------------------------------- other hosts */

static void two_hosts(void **state)
{
    struct host a, b;

    (void)state;
    open_host(&a, &among_others, 2, 3);
    open_host(&b, &among_others, 1, 3);
    join_all(&a);
    join_all(&b);
    for (int round = 0; round < 3; round++) {
        expect(&a, 0, "cmd=put kvsname=space key=x value=1\n", "cmd=put_result rc=0 msg=success\n");
        expect(&a, 1, "cmd=put kvsname=space key=y value=2\ncmd=barrier_in\n",
               "cmd=put_result rc=0 msg=success\n");
        assert_int_equal(a.exchanges, round);
        expect(&a, 0, "cmd=barrier_in\n", "");
        assert_int_equal(a.exchanges, round + 1);
        expect(&b, 0, "cmd=barrier_in\n", "");
        assert_int_equal(b.exchanges, round + 1);
        assert_int_equal(b.len, 0);
        xr_pmi1_exchanged(b.server, false, a.blob, a.len);
        xr_pmi1_exchanged(a.server, false, b.blob, b.len);
        assert_string_equal(answer(&a, 0), WHOLE);
        assert_string_equal(answer(&a, 1), WHOLE);
        assert_string_equal(answer(&b, 0), WHOLE);
        expect(&b, 0, "cmd=get kvsname=space key=y\n",
               "cmd=get_result rc=0 msg=success value=2\n");
    }
    /* The end of a rank that has finalized is not reported to the others: they may still be in its last
     * barrier. One that has not, is. */
    expect(&a, 1, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
    assert_false(xr_pmi1_exited(a.server, 1));
    assert_int_equal(a.exchanges, 3);
    expect(&b, 0, "cmd=barrier_in\n", "");
    assert_true(xr_pmi1_exited(a.server, 0));
    assert_int_equal(a.exchanges, 4);
    assert_true(a.lost);
    xr_pmi1_exchanged(b.server, true, NULL, 0);
    assert_string_equal(answer(&b, 0), BROKEN);
    expect(&b, 0, "cmd=barrier_in\n", BROKEN);
    assert_false(b.lost); /* what one gets is not sent back */
    close_host(&a);
    close_host(&b);
}

/* A host that all ranks left before any was a client has nothing to wait for, but others wait for it. */
static void never_there(void **state)
{
    struct host a, b;

    (void)state;
    open_host(&a, &among_others, 1, 3);
    open_host(&b, &among_others, 2, 3);
    join_all(&a);
    expect(&a, 0, "cmd=barrier_in\n", "");
    assert_false(xr_pmi1_exited(b.server, 0));
    assert_int_equal(b.exchanges, 1);
    assert_true(b.lost);
    assert_false(xr_pmi1_exited(b.server, 1));
    assert_int_equal(b.exchanges, 1); /* it is sent once */
    xr_pmi1_exchanged(a.server, true, NULL, 0);
    assert_string_equal(answer(&a, 0), BROKEN);
    close_host(&a);
    close_host(&b);
}

static void bad_blobs(void **state)
{
    static const unsigned char nonsense[] = {9, 0, 0, 0, 'a', 0};
    struct host h;

    (void)state;
    rk_log_threshold = -1;
    open_host(&h, &among_others, 1, 2);
    join_all(&h);
    expect(&h, 0, "cmd=barrier_in\n", "");
    xr_pmi1_exchanged(h.server, false, nonsense, sizeof(nonsense));
    assert_string_equal(answer(&h, 0), BROKEN);
    close_host(&h);
    rk_log_threshold = RK_LOG_WARN;
}

/* ------------------------------------------------------------------ wrong clients */

static void nonsense(void **state)
{
    static const char *const texts[] = {
        "hello\n",
        "cmd=get_maxes\n", /* before init */
        INIT "cmd=\n",
        INIT "cmd=fly\n",
        INIT "=x\n",
        INIT "cmd=put key\n",
        INIT "\n",
        INIT "key=a cmd=get\n",
        INIT "cmd=spawn\n",
        INIT "mcmd=spawn\ntotspawns=0\n",
        INIT "mcmd=spawn\nspawnssofar=99999999999999999999\n",
    };
    struct host h;

    (void)state;
    rk_log_threshold = -1;
    for (size_t i = 0; i < RK_ARRAY_LEN(texts); i++) {
        open_host(&h, &alone, 2, 2);
        expect(&h, 1, INIT "cmd=barrier_in\n", INIT_OK);
        say(&h, 0, texts[i]);
        if (strncmp(texts[i], INIT, sizeof(INIT) - 1) == 0)
            assert_memory_equal(answer(&h, 0), INIT_OK, sizeof(INIT_OK) - 1);
        assert_string_equal(answer(&h, 0), "closed");
        xr_pmi1_exited(h.server, 0);
        assert_string_equal(answer(&h, 1), BROKEN);
        close_host(&h);
    }
    /* A barrier inside a barrier. */
    open_host(&h, &alone, 2, 2);
    join_all(&h);
    expect(&h, 0, "cmd=barrier_in\ncmd=barrier_in\n", "closed");
    expect(&h, 1, "cmd=barrier_in\n", BROKEN);
    close_host(&h);
    rk_log_threshold = RK_LOG_WARN;
}

static void too_long(void **state)
{
    static char line[3 * XR_PMI1_LINE_MAX];
    struct host h;

    (void)state;
    rk_log_threshold = -1;
    open_host(&h, &alone, 1, 1);
    expect(&h, 0, INIT, INIT_OK);
    snprintf(line, sizeof(line), "cmd=put kvsname=space key=%0100d value=v\n", 1);
    expect(&h, 0, line, "cmd=put_result rc=-1 msg=too_long\n");
    snprintf(line, sizeof(line), "cmd=put kvsname=space key=k value=%01100d\n", 1);
    expect(&h, 0, line, "cmd=put_result rc=-1 msg=too_long\n");
    memset(line, 'x', sizeof(line) - 1);
    say(&h, 0, line);
    assert_string_equal(answer(&h, 0), "closed");
    close_host(&h);
    rk_log_threshold = RK_LOG_WARN;
}

/* A client that sends requests and does not read must not make the agent wait, or grow. */
static void never_reads(void **state)
{
    static const char ask[] = "cmd=get kvsname=space key=PMI_process_mapping\n";
    struct host h;
    int asked = 0;

    (void)state;
    open_host(&h, &alone, 1, 1);
    say(&h, 0, INIT);
    while (asked++ < 1000000 && send(h.fd[0], ask, sizeof(ask) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        turn(&h);
    assert_in_range(asked, 100, 999999);
    close_host(&h);
}

/* A client can fill no more than its job's share. */
static void fills(void **state)
{
    char line[1200], value[1001];
    struct host h;
    int puts = 0;

    (void)state;
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    open_host(&h, &alone, 1, 1);
    expect(&h, 0, INIT, INIT_OK);
    do {
        snprintf(line, sizeof(line), "cmd=put kvsname=space key=k%d value=%s\n", puts, value);
        say(&h, 0, line);
    } while (strstr(answer(&h, 0), "rc=0") && puts++ < 100000);
    assert_in_range(puts, 500, 5000);
    snprintf(line, sizeof(line), "cmd=get kvsname=space key=k%d\n", puts - 1);
    say(&h, 0, line);
    assert_non_null(strstr(answer(&h, 0), "rc=0"));
    close_host(&h);
}

/* Anything at all, from words that mean something. */
static void garbage(void **state)
{
    static const char *const words[] = {"cmd=", "init", "put", "get", "barrier_in", "finalize", " ",
                                        "\n", "key=a", "value=b", "kvsname=space", "mcmd=spawn\n",
                                        "endcmd\n", "pmi_version=1", "abort", "\x01", "=", INIT};
    unsigned seed = 20261121;
    struct host h;

    (void)state;
    rk_log_threshold = -1;
    for (int run = 0; run < GARBAGE_RUNS; run++) {
        open_host(&h, run & 1 ? &alone : &among_others, 2, 2);
        for (int i = 0; i < 60; i++) {
            uint32_t rank = (uint32_t)rand_r(&seed) % 2;
            const char *word = words[(unsigned)rand_r(&seed) % RK_ARRAY_LEN(words)];
            if (send(h.fd[rank], word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                break;
            turn(&h);
        }
        xr_pmi1_exited(h.server, 0);
        xr_pmi1_exited(h.server, 1);
        close_host(&h);
    }
    rk_log_threshold = RK_LOG_WARN;
}

/* --------------------------------------------------------------------- the parts */

static void mapping(void **state)
{
    static const uint32_t even[] = {0, 0, 1, 1, 2, 2}, cyclic[] = {0, 1, 2, 0, 1, 2},
                          odd[] = {0, 0, 0, 1, 2, 2, 5}, one[] = {4};
    char text[128], cut[8];

    (void)state;
    xr_pmi1_mapping(NULL, 5, text, sizeof(text));
    assert_string_equal(text, "(vector,(0,1,5))");
    xr_pmi1_mapping(even, 6, text, sizeof(text));
    assert_string_equal(text, "(vector,(0,3,2))");
    xr_pmi1_mapping(cyclic, 6, text, sizeof(text));
    assert_string_equal(text, "(vector,(0,3,1),(0,3,1))");
    xr_pmi1_mapping(odd, 7, text, sizeof(text));
    assert_string_equal(text, "(vector,(0,1,3),(1,1,1),(2,1,2),(5,1,1))");
    assert_int_equal(xr_pmi1_mapping(one, 1, cut, sizeof(cut)), strlen("(vector,(4,1,1))"));
}

static const char *find(char *const *env, const char *name)
{
    for (; *env; env++) {
        if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=')
            return *env + strlen(name) + 1;
    }
    return "none";
}

static void environment(void **state)
{
    char *user[] = {(char *)(uintptr_t) "OMPI_MCA_mpi_yield_when_idle=0",
                    (char *)(uintptr_t) "MPIR_CVAR_PMI_VERSION=x", (char *)(uintptr_t) "PMI_RANK=77",
                    NULL};
    struct xr_mpi_env where = {.rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .pmi1 = true};
    char **env = xr_mpi_env_make(&where, NULL);

    (void)state;
    assert_non_null(env);
    assert_string_equal(find(env, "PMI_FD"), "3");
    assert_string_equal(find(env, "PMI_RANK"), "5");
    assert_string_equal(find(env, "PMI_SIZE"), "8");
    assert_string_equal(find(env, "MPI_LOCALRANKID"), "1");
    assert_string_equal(find(env, "MPI_LOCALNRANKS"), "4");
    assert_string_equal(find(env, "MPIR_CVAR_PMI_VERSION"), "1");
    assert_string_equal(find(env, "OMPI_MCA_mpi_yield_when_idle"), "none");
    assert_string_not_equal(find(env, "OMPI_MCA_orte_local_daemon_uri"), "none");
    xr_strv_free(env);
    where.oversubscribed = true;
    env = xr_mpi_env_make(&where, NULL);
    assert_string_equal(find(env, "OMPI_MCA_mpi_yield_when_idle"), "1");
    xr_strv_free(env);
    /* Settings are the user's; the identity of the rank is not. */
    env = xr_mpi_env_make(&where, user);
    assert_string_equal(find(env, "OMPI_MCA_mpi_yield_when_idle"), "none");
    assert_string_equal(find(env, "MPIR_CVAR_PMI_VERSION"), "none");
    assert_string_equal(find(env, "PMI_RANK"), "5");
    xr_strv_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command), cmocka_unit_test(barrier),
        cmocka_unit_test(in_pieces),     cmocka_unit_test(twice),
        cmocka_unit_test(answers_of_the_past), cmocka_unit_test(dies_outside),  cmocka_unit_test(dies_inside),
        cmocka_unit_test(last_words),    cmocka_unit_test(hangs_up),
        cmocka_unit_test(never_joins),   cmocka_unit_test(two_hosts),
        cmocka_unit_test(never_there), cmocka_unit_test(bad_blobs),     cmocka_unit_test(nonsense),
        cmocka_unit_test(too_long),      cmocka_unit_test(never_reads),
        cmocka_unit_test(fills),         cmocka_unit_test(garbage),
        cmocka_unit_test(mapping),       cmocka_unit_test(environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
