/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_words.c: handle messages between xrun and agents about a running job.
 * Fences, requests for the data of ranks, events, and agents' reports of their ranks. The input is a list of messages, each with
 * one byte for its kind, one for its sender and two for its length.
 */
#include "launcher/overlay/fence.h"
#include "launcher/frontend/job_report.h"
#include "launcher/monitor/heartbeat.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/dmodex.h"
#include "launcher/overlay/event.h"
#include "launcher/monitor/status_server.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* ------------------------------------------------------------- where messages of heartbeat.c go */

void xr_stream_print(struct xr_stream *stream, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    (void)stream;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
}

static const struct xr_status_ops *status_ops;
static void *status_arg;

struct xr_status *xr_status_open(struct event_base *base, const char *job,
                                 const struct xr_status_ops *ops, void *arg)
{
    (void)base;
    (void)job;
    status_ops = ops;
    status_arg = arg;
    return NULL;
}

void xr_status_close(struct xr_status *status)
{
    (void)status;
}

void xr_status_answer(struct xr_status *status, const char *text, size_t len)
{
    (void)status;
    if (memchr(text, '\0', len))
        abort();
}

bool xr_status_busy(const struct xr_status *status)
{
    (void)status;
    return false;
}

uint64_t xr_status_rejected(const struct xr_status *status)
{
    (void)status;
    return 1;
}

static int send_to_agents(void *arg, uint32_t kind, struct xr_packer *p)
{
    (void)arg;
    (void)kind;
    xr_packer_free(p);
    return 2;
}

static void on_still(void *arg, bool still)
{
    (void)arg;
    (void)still;
}

static const struct xr_fence_table *fences(void *arg);

static const struct xr_heartbeat_ops life_ops = {send_to_agents, on_still, fences};

/* ------------------------------------------------------- a node of a tree without wires */

static bool on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    (void)arg;
    (void)kind;
    (void)u;
    return true;
}

static void on_gone(void *arg, uint32_t node, const char *why)
{
    (void)arg;
    (void)node;
    (void)why;
}

static void on_parent_gone(void *arg, const char *why)
{
    on_gone(arg, 0, why);
}

static const struct xr_tree_ops tree_ops = {on_message, NULL, on_gone, NULL, on_parent_gone, NULL};

static int pending; /* fences and questions of our own that have no answer yet */
static char token;

static void on_fence_done(void *arg, void *t, int status, const void *data, size_t len)
{
    (void)arg;
    (void)status;
    if (t != &token || (len && !data))
        abort();
    pending--;
}

static void on_answer(void *arg, void *t, enum xr_found found, const void *data, size_t len)
{
    (void)arg;
    (void)found;
    if (t != &token || (len && !data))
        abort();
    pending--;
}

static void on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct xr_dmodex_table **m = arg;

    if (rank % 3 == 0)
        xr_dmodex_found(*m, id, rank % 2, "card", 4);
}

static void on_ended(void *arg, uint32_t id)
{
    struct xr_dmodex_table **m = arg;

    xr_dmodex_found(*m, id, false, NULL, 0);
}

static const struct xr_dmodex_ops modex_ops = {on_answer, on_asked, on_ended};

/* ---------------------------------------------------------------------------- the whole */

enum { NODES = 7, RANKS = 14, SELF = 0, FANOUT = 2 };

struct world {
    struct event_base *base;
    struct xr_tree *tree;
    struct xr_liveness *gone;
    struct xr_fence_table *fences;
    struct xr_dmodex_table *dmodexes;
    struct xr_report *report;
    struct xr_heartbeat *life;
    struct xr_heartbeat_options options;
    struct xr_job job;
};

static const struct xr_fence_table *fences(void *arg)
{
    const struct world *w = arg;

    return w->fences;
}

static void open_world(struct world *w)
{
    static char *hosts[NODES + 1] = {"a", "b", "c", "d", "e", "f", "g", NULL}, *argv[] = {"program", NULL};
    static uint32_t host_of[RANKS];
    static struct xr_app app = {.n = RANKS, .program = "program", .argv = argv, .wdir = "/"};
    char err[200];

    for (uint32_t r = 0; r < RANKS; r++)
        host_of[r] = r % NODES;
    w->job = (struct xr_job){.id = "job", .size = RANKS, .apps = &app, .napps = 1, .nhosts = NODES,
                             .hosts = hosts, .host_of = host_of, .fanout = FANOUT};
    w->options.heartbeat = 1;
    w->options.heartbeat_kill = true;
    w->base = event_base_new();
    w->report = xr_report_open("/dev/null", &w->job, err, sizeof(err));
    if (!w->base || !w->report ||
        xr_tree_open(w->base, SELF, &(struct xr_kary){.nodes = NODES, .fanout = FANOUT}, &tree_ops, w, &w->tree) ||
        xr_liveness_open(&w->job, &w->gone) ||
        xr_fence_open(w->tree, &w->job, w->gone, SELF, on_fence_done, w, &w->fences) ||
        xr_dmodex_open(w->base, w->tree, w->gone, SELF, &modex_ops, &w->dmodexes, &w->dmodexes) ||
        xr_heartbeat_open(w->base, &w->options, &w->job, NULL, &life_ops, w, &w->life))
        abort();
}

static void close_world(struct world *w)
{
    if (!xr_report_write(w->report, 0, false))
        abort();
    xr_heartbeat_close(w->life);
    xr_report_close(w->report);
    xr_dmodex_close(w->dmodexes);
    xr_fence_close(w->fences);
    xr_liveness_close(w->gone);
    xr_tree_close(w->tree);
    event_base_free(w->base);
}

static void notice(struct world *w, struct xr_unpacker *u)
{
    size_t len = u->left;
    struct xr_packer p = {0};
    struct xr_event n;

    if (!xr_event_unpack(u, w->job.size, &n))
        return;
    xr_event_pack(&n, &p);
    if (!p.failed && p.len != len)
        abort();
    xr_packer_free(&p);
}

static void one(struct world *w, uint8_t kind, uint8_t from, const uint8_t *data, size_t len)
{
    static const uint32_t said[] = {XR_MSG_PROBED, XR_MSG_STALLED, XR_MSG_MOVING, XR_MSG_TRACE_TEXT, XR_MSG_TRACED};
    struct xr_unpacker u = {data, len, false};
    uint32_t ranks[3] = {0, 1, 2};
    bool mine;

    switch (kind % 11) {
    case 0:
        xr_fence_take(w->fences, from, XR_MSG_FENCE_UP, &u);
        break;
    case 1:
        xr_fence_take(w->fences, XR_NODE_FRONT, XR_MSG_FENCE_DOWN, &u);
        break;
    case 2:
        pending++;
        xr_fence_enter(w->fences, from % 2, from & 64, ranks, from % 4, data, len, &token);
        break;
    case 3:
        xr_liveness_note(w->gone, (enum xr_liveness_what)(from % 3), from / 3);
        break;
    case 4:
        xr_dmodex_receive(w->dmodexes, from % 2 ? XR_MSG_DMODEX_REQUEST : XR_MSG_DMODEX_REPLY, &u);
        break;
    case 5:
        pending++;
        xr_dmodex_request(w->dmodexes, from % NODES, from % RANKS, from & 1, &token);
        xr_dmodex_ended(w->dmodexes, from % RANKS);
        break;
    case 6:
        notice(w, &u);
        break;
    case 7:
        xr_report_message(w->report, from % 2 ? XR_MSG_PLACED : XR_MSG_USAGE, &u);
        break;
    case 8:
        if (from & 1)
            status_ops->on_request(status_arg);
        xr_heartbeat_message(w->life, XR_MSG_PROBED, &u, &mine);
        break;
    case 9:
        xr_fence_take(w->fences, from, XR_MSG_FENCE_ENDED, &u);
        break;
    default:
        xr_heartbeat_message(w->life, said[from % 5], &u, &mine);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world w = {.base = NULL};
    size_t n;

    rk_log_threshold = -1;
    pending = 0;
    open_world(&w);
    for (; len >= 4; data += 4 + n, len -= 4 + n) {
        n = data[2] | (size_t)data[3] << 8;
        n = n < len - 4 ? n : len - 4;
        one(&w, data[0], data[1], data + 4, n);
        if (pending < 0)
            abort();
    }
    close_world(&w);
    return 0;
}
