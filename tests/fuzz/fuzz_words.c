/*
 * fuzz_words.c: libFuzzer target: what xrun and its agents say to each other about a job that runs: fences, questions
 * for what ranks committed, events, and what agents report of their ranks. The input is a list of messages, each with
 * one byte for its kind, one for whom it comes from and two for its length.
 */
#include "launcher/overlay/fence.h"
#include "launcher/frontend/job_report.h"
#include "launcher/monitor/heartbeat.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/dmodex.h"
#include "launcher/overlay/event.h"
#include "launcher/cli/options.h"
#include "launcher/monitor/status_server.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* --------------------------------------------------------- where life.c's words would go */

void rk_stream_say(struct rk_stream *stream, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    (void)stream;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
}

static const struct rk_status_ops *status_ops;
static void *status_arg;

struct rk_status *rk_status_open(struct event_base *base, const char *job,
                                 const struct rk_status_ops *ops, void *arg)
{
    (void)base;
    (void)job;
    status_ops = ops;
    status_arg = arg;
    return NULL;
}

void rk_status_close(struct rk_status *status)
{
    (void)status;
}

void rk_status_answer(struct rk_status *status, const char *text, size_t len)
{
    (void)status;
    if (memchr(text, '\0', len))
        abort();
}

bool rk_status_busy(const struct rk_status *status)
{
    (void)status;
    return false;
}

uint64_t rk_status_strangers(const struct rk_status *status)
{
    (void)status;
    return 1;
}

static int send_to_agents(void *arg, uint32_t kind, struct rk_packer *p)
{
    (void)arg;
    (void)kind;
    rk_packer_free(p);
    return 2;
}

static void on_still(void *arg, bool still)
{
    (void)arg;
    (void)still;
}

static const struct rk_fences *fences(void *arg);

static const struct rk_life_ops life_ops = {send_to_agents, on_still, fences};

/* ------------------------------------------------------- a node of a tree without wires */

static bool on_message(void *arg, uint32_t kind, struct rk_unpacker *u)
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

static const struct rk_tree_ops tree_ops = {on_message, NULL, on_gone, NULL, on_parent_gone, NULL};

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

static void on_answer(void *arg, void *t, enum rk_found found, const void *data, size_t len)
{
    (void)arg;
    (void)found;
    if (t != &token || (len && !data))
        abort();
    pending--;
}

static void on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct rk_modexes **m = arg;

    if (rank % 3 == 0)
        rk_modexes_found(*m, id, rank % 2, "card", 4);
}

static void on_ended(void *arg, uint32_t id)
{
    struct rk_modexes **m = arg;

    rk_modexes_found(*m, id, false, NULL, 0);
}

static const struct rk_modex_ops modex_ops = {on_answer, on_asked, on_ended};

/* ---------------------------------------------------------------------------- the whole */

enum { NODES = 7, RANKS = 14, SELF = 0, FANOUT = 2 };

struct world {
    struct event_base *base;
    struct rk_tree *tree;
    struct rk_gone *gone;
    struct rk_fences *fences;
    struct rk_modexes *modexes;
    struct rk_report *report;
    struct rk_life *life;
    struct rk_options options;
    struct rk_job job;
};

static const struct rk_fences *fences(void *arg)
{
    const struct world *w = arg;

    return w->fences;
}

static void open_world(struct world *w)
{
    static char *hosts[NODES + 1] = {"a", "b", "c", "d", "e", "f", "g", NULL}, *argv[] = {"program", NULL};
    static uint32_t host_of[RANKS];
    static struct rk_app app = {.n = RANKS, .program = "program", .argv = argv, .wdir = "/"};
    char err[200];

    for (uint32_t r = 0; r < RANKS; r++)
        host_of[r] = r % NODES;
    w->job = (struct rk_job){.id = "job", .size = RANKS, .apps = &app, .napps = 1, .nhosts = NODES,
                             .hosts = hosts, .host_of = host_of, .fanout = FANOUT};
    w->options.heartbeat = 1;
    w->options.heartbeat_kill = true;
    w->base = event_base_new();
    w->report = rk_report_open("/dev/null", &w->job, err, sizeof(err));
    if (!w->base || !w->report ||
        rk_tree_open(w->base, SELF, &(struct rk_shape){.nodes = NODES, .fanout = FANOUT}, &tree_ops, w, &w->tree) ||
        rk_gone_open(&w->job, &w->gone) ||
        rk_fences_open(w->tree, &w->job, w->gone, SELF, on_fence_done, w, &w->fences) ||
        rk_modexes_open(w->base, w->tree, w->gone, SELF, &modex_ops, &w->modexes, &w->modexes) ||
        rk_life_open(w->base, &w->options, &w->job, NULL, &life_ops, w, &w->life))
        abort();
}

static void close_world(struct world *w)
{
    if (!rk_report_write(w->report, 0, false))
        abort();
    rk_life_close(w->life);
    rk_report_close(w->report);
    rk_modexes_close(w->modexes);
    rk_fences_close(w->fences);
    rk_gone_close(w->gone);
    rk_tree_close(w->tree);
    event_base_free(w->base);
}

static void notice(struct world *w, struct rk_unpacker *u)
{
    size_t len = u->left;
    struct rk_packer p = {0};
    struct rk_notice n;

    if (!rk_notice_unpack(u, w->job.size, &n))
        return;
    rk_notice_pack(&n, &p);
    if (!p.failed && p.len != len)
        abort();
    rk_packer_free(&p);
}

static void one(struct world *w, uint8_t kind, uint8_t from, const uint8_t *data, size_t len)
{
    static const uint32_t said[] = {RK_MSG_LOOKED, RK_MSG_STALLED, RK_MSG_MOVING, RK_MSG_TRACE_TEXT, RK_MSG_TRACED};
    struct rk_unpacker u = {data, len, false};
    uint32_t ranks[3] = {0, 1, 2};
    bool mine;

    switch (kind % 11) {
    case 0:
        rk_fences_take(w->fences, from, RK_MSG_FENCE_UP, &u);
        break;
    case 1:
        rk_fences_take(w->fences, RK_NODE_FRONT, RK_MSG_FENCE_DOWN, &u);
        break;
    case 2:
        pending++;
        rk_fences_enter(w->fences, from % 2, from & 64, ranks, from % 4, data, len, &token);
        break;
    case 3:
        rk_gone_note(w->gone, (enum rk_gone_what)(from % 3), from / 3);
        break;
    case 4:
        rk_modexes_take(w->modexes, from % 2 ? RK_MSG_MODEX_ASK : RK_MSG_MODEX_ANSWER, &u);
        break;
    case 5:
        pending++;
        rk_modexes_ask(w->modexes, from % NODES, from % RANKS, from & 1, &token);
        rk_modexes_ended(w->modexes, from % RANKS);
        break;
    case 6:
        notice(w, &u);
        break;
    case 7:
        rk_report_message(w->report, from % 2 ? RK_MSG_PLACED : RK_MSG_USAGE, &u);
        break;
    case 8:
        if (from & 1)
            status_ops->asked(status_arg);
        rk_life_message(w->life, RK_MSG_LOOKED, &u, &mine);
        break;
    case 9:
        rk_fences_take(w->fences, from, RK_MSG_FENCE_ENDED, &u);
        break;
    default:
        rk_life_message(w->life, said[from % 5], &u, &mine);
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
