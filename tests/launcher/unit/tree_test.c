/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree_test.c: decide when the silence of a tree node counts as its death.
 * A child that has sent must go on to. One that has reported that it is busy, one that has sent nothing yet, and one with a long
 * message that comes byte by byte need not. A missing node of a start is named.
 */
#include "launcher/overlay/protocol.h"
#include "launcher/frontend/wait_hosts.h"
#include "launcher/overlay/tree.h"
#include "lib/base/clock.h"

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

enum { BEATS, DRIPS, BUSY, BUSY_NO_MORE, NEW, SILENT, CHILDREN };

static const struct xr_seals seals; /* known keys will do */

struct world {
    struct event_base *base;
    struct rk_seal seal[CHILDREN];
    struct xr_tree *tree;
    int fd[CHILDREN];
    bool lost[CHILDREN];
    char why[CHILDREN][64];
};

static bool on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    (void)arg;
    (void)kind;
    (void)u;
    return true;
}

static void on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct world *w = arg;

    w->lost[node] = true;
    snprintf(w->why[node], sizeof(w->why[node]), "%s", why ? why : "");
}

static void on_lost_ended(void *arg, uint32_t node, bool seen)
{
    (void)arg;
    (void)node;
    (void)seen;
}

static void say(struct world *w, int child, uint32_t len, uint32_t kind)
{
    struct xr_packer p = {0};
    uint8_t mac[RK_SEAL_MAC];

    xr_pack_u32(&p, len);
    xr_pack_u32(&p, kind);
    xr_pack_u32(&p, XR_NODE_NEXT);
    rk_seal_next(&w->seal[child], p.data, p.len, NULL, 0, mac);
    xr_pack_raw(&p, mac, len ? 0 : sizeof(mac));
    assert_int_equal(write(w->fd[child], p.data, p.len), p.len);
    xr_packer_free(&p);
}

/* In the same loop as the watch: where a machine gives this process no time, no other has any. */
static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct world *w = arg;

    (void)fd;
    (void)what;
    say(w, BEATS, 0, XR_MSG_BEAT);
    assert_int_equal(write(w->fd[DRIPS], "x", 1), 1);
    if (w->lost[SILENT] && w->lost[BUSY_NO_MORE])
        event_base_loopexit(w->base, NULL);
}

static void open_children(struct world *w)
{
    static const struct xr_tree_ops ops = {.on_message = on_message, .on_child_gone = on_child_gone, .on_lost_ended = on_lost_ended};
    int pair[2];

    w->base = event_base_new();
    assert_non_null(w->base);
    assert_int_equal(xr_tree_open(w->base, XR_NODE_FRONT, &(struct xr_kary){.nodes = CHILDREN, .fanout = CHILDREN}, &ops, w, &w->tree),
                     RANK_OK);
    for (uint32_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        w->fd[i] = pair[0];
        assert_int_equal(xr_tree_add_child(w->tree, i, pair[1], &seals), RANK_OK);
    }
}

static void close_children(struct world *w)
{
    xr_tree_close(w->tree);
    for (uint32_t i = 0; i < CHILDREN; i++)
        close(w->fd[i]);
    event_base_free(w->base);
}

static void silence(void **state)
{
    const struct timeval often = {0, 500000}, most = {60, 0};
    struct world w = {0};
    uint64_t begun = rk_clock_ns();
    struct event *tick;

    (void)state;
    open_children(&w);
    tick = event_new(w.base, -1, EV_PERSIST, on_tick, &w);
    assert_non_null(tick);
    event_add(tick, &often);
    event_base_loopexit(w.base, &most);
    for (int i = 0; i < CHILDREN; i++) {
        if (i != NEW)
            say(&w, i, 0, XR_MSG_BEAT);
    }
    say(&w, DRIPS, 1 << 20, XR_MSG_BEAT);
    say(&w, BUSY, 0, XR_MSG_BUSY);
    say(&w, BUSY_NO_MORE, 0, XR_MSG_BUSY);
    say(&w, BUSY_NO_MORE, 0, XR_MSG_BEAT); /* its word that it has done */
    event_base_dispatch(w.base);
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(w.lost[i], i == SILENT || i == BUSY_NO_MORE);
        assert_string_equal(w.why[i], w.lost[i] ? "it has not answered for 6 s" : "");
    }
    assert_true(rk_clock_ns() - begun > 6000000000ull);
    event_free(tick);
    close_children(&w);
}

/* What waits goes out though the loop does not run, and last that it does not. */
static void excused(void **state)
{
    static const struct xr_tree_ops ops = {.on_message = on_message};
    struct xr_packer p = {0};
    struct event_base *base = event_base_new();
    struct xr_tree *tree;
    struct xr_unpacker u;
    int up[2], down[2];
    uint8_t got[64];

    (void)state;
    assert_non_null(base);
    assert_int_equal(xr_tree_open(base, 0, &(struct xr_kary){.nodes = 2, .fanout = 1}, &ops, NULL, &tree), RANK_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, up), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, down), 0);
    assert_int_equal(xr_tree_add_parent(tree, up[1], &seals), RANK_OK);
    assert_int_equal(xr_tree_add_child(tree, 1, down[1], &seals), RANK_OK);
    xr_pack_u32(&p, 4711);
    xr_tree_send(tree, 1, XR_MSG_SIGNAL, &p);
    xr_tree_send(tree, XR_NODE_FRONT, XR_MSG_DONE, NULL);
    xr_tree_suspend_keepalive(tree);
    assert_int_equal(xr_tree_backlog(tree), 0);
    assert_int_equal(recv(down[0], got, sizeof(got), MSG_DONTWAIT), 16 + RK_SEAL_MAC);
    assert_int_equal(recv(up[0], got, sizeof(got), MSG_DONTWAIT), 2 * (12 + RK_SEAL_MAC));
    u = (struct xr_unpacker){got, 12, false};
    assert_int_equal(xr_unpack_u32(&u), 0);
    assert_int_equal(xr_unpack_u32(&u), XR_MSG_DONE);
    assert_int_equal(xr_unpack_u32(&u), XR_NODE_FRONT);
    u = (struct xr_unpacker){got + 12 + RK_SEAL_MAC, 12, false};
    assert_int_equal(xr_unpack_u32(&u), 0);
    assert_int_equal(xr_unpack_u32(&u), XR_MSG_BUSY);
    assert_int_equal(xr_unpack_u32(&u), XR_NODE_NEXT);
    /* The loop takes nothing amiss: what comes later goes by it, once. */
    xr_tree_send(tree, XR_NODE_FRONT, XR_MSG_DONE, NULL);
    for (int i = 0; i < 3; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(recv(up[0], got, sizeof(got), MSG_DONTWAIT), 12 + RK_SEAL_MAC);
    assert_int_equal(recv(down[0], got, sizeof(got), MSG_DONTWAIT), -1);
    xr_tree_close(tree);
    close(up[0]);
    close(down[0]);
    event_base_free(base);
}

/* -------------------------------------------------------------------- the wait for hosts */

struct start {
    struct event_base *base;
    char line[256];
    bool complete;
};

static void on_slow(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static void on_failed(void *arg, const char *line)
{
    struct start *s = arg;

    snprintf(s->line, sizeof(s->line), "%s", line);
    event_base_loopexit(s->base, NULL);
}

static void on_complete(void *arg)
{
    struct start *s = arg;

    s->complete = true;
}

/* An agent is there: of a host of four cores that differs from all others. */
static void come(struct xr_wait_hosts *m, uint32_t node)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, node);
    xr_pack_string(&p, "a host");
    xr_pack_u32(&p, 4);
    xr_pack_u64(&p, 100 + node);
    xr_pack_u64(&p, 200 + node);
    xr_pack_u32(&p, 0);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_true(xr_wait_hosts_take(m, XR_MSG_READY, &u));
    xr_packer_free(&p);
}

static bool show(struct xr_wait_hosts *m, uint32_t node, uint32_t kind)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;
    bool sense;

    xr_pack_u32(&p, node);
    xr_pack_string(&p, kind == XR_MSG_TOPOLOGY ? "" : "unreadable");
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    sense = xr_wait_hosts_take(m, kind, &u);
    xr_packer_free(&p);
    return sense;
}

/* The line that a start ends with when these have come and sent their topologies and devices. */
static void awaits(uint32_t come_n, uint32_t show_n, uint32_t devices_n, const char *line)
{
    static const struct xr_wait_hosts_ops ops = {.on_slow = on_slow, .on_failed = on_failed, .on_complete = on_complete};
    static const struct xr_tree_ops tree_ops = {.on_message = on_message};
    struct xr_hostspec host[] = {{.name = (char[]){"a"}}, {.name = (char[]){"b"}}, {.name = (char[]){"c"}}};
    struct xr_plan_host known[3] = {0};
    const struct xr_policy where = {.show_map = true};
    struct xr_plan plan = {.where = &where, .hosts = {.n = 3, .host = host}, .known = known, .local = XR_NO_HOST};
    struct start s = {.base = event_base_new()};
    struct xr_tree *tree;
    struct xr_wait_hosts *m;

    assert_non_null(s.base);
    assert_int_equal(xr_tree_open(s.base, XR_NODE_FRONT, &(struct xr_kary){.nodes = 3, .fanout = 3}, &tree_ops, NULL, &tree), RANK_OK);
    assert_int_equal(xr_wait_hosts_open(s.base, tree, &plan, 0.05, &ops, &s, &m), RANK_OK);
    assert_false(show(m, 0, XR_MSG_TOPOLOGY)); /* no request */
    assert_false(show(m, 0, XR_MSG_MACHINE));
    for (uint32_t i = 0; i < come_n; i++)
        come(m, i);
    for (uint32_t i = 0; i < show_n; i++) {
        assert_true(show(m, i, XR_MSG_TOPOLOGY));
        assert_false(show(m, i, XR_MSG_TOPOLOGY));
    }
    for (uint32_t i = 0; i < devices_n; i++) {
        assert_true(show(m, i, XR_MSG_MACHINE));
        assert_false(show(m, i, XR_MSG_MACHINE));
        assert_string_equal(known[i].no_devices, "unreadable");
    }
    if (line)
        event_base_dispatch(s.base);
    assert_string_equal(s.line, line ? line : "");
    assert_int_equal(s.complete, !line);
    xr_wait_hosts_close(m);
    xr_tree_close(tree);
    event_base_free(s.base);
    for (uint32_t i = 0; i < 3; i++) {
        free(known[i].real_name);
        free(known[i].no_devices);
    }
}

static void missing_nodes_are_named(void **state)
{
    (void)state;
    awaits(1, 0, 0, "2 of 3 hosts did not come within 0.05 s (--start-timeout): b, c");
    awaits(3, 0, 0, "3 of 3 hosts did not say what they look like within 0.05 s (--start-timeout): a, b, c");
    awaits(3, 2, 3, "1 of 3 hosts did not say what they look like within 0.05 s (--start-timeout): c");
    awaits(3, 3, 1, "2 of 3 hosts did not say what they look like within 0.05 s (--start-timeout): b, c");
    awaits(3, 3, 3, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence),
        cmocka_unit_test(excused),
        cmocka_unit_test(missing_nodes_are_named),
    };

    if (!rk_auth_open())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
