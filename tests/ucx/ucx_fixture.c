/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_fixture.c: run the processes of ucx_fixture.h. */
#include "config.h"

#include "tests/ucx/ucx_fixture.h"
#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/services.h"
#include "lib/node/node.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct rig_shared *shared;

static rank_status_t card_of(struct rk_peer *peer, const char *key, void *data, size_t *len)
{
    int rank = peer->number;

    (void)key;
    if (shared->card[rank].len == 0 || shared->card[rank].len > *len)
        return RANK_ERR_UNREACHABLE;
    *len = shared->card[rank].len;
    memcpy(data, shared->card[rank].bytes, *len);
    return RANK_OK;
}

static void say(int level, const char *text)
{
    rk_log(level, "%s", text);
}

static rank_status_t fail(rank_status_t st, bool prints, const char *text)
{
    return prints ? rk_fail(st, "%s", text) : rk_fail_silent(st, "%s", text);
}

static const struct rk_channel *load(struct rig *r)
{
    static const struct rk_services services = {
        .magic = RK_MODULE_MAGIC,
        .abi = RK_MODULE_ABI,
        .version = PACKAGE_VERSION,
        .sizes = RK_MODULE_SIZES,
        .conf = &rk_conf,
        .log_threshold = &rk_log_threshold,
        .log_text = say,
        .fail_text = fail,
        .env = rk_env,
        .peer_card = card_of,
        .engine_peer = rk_engine_peer,
        .find_peer = rk_engine_find_peer,
        .peer_connect = rk_peer_connect,
        .peer_try_connect = rk_peer_try_connect,
        .send_control = rk_send_control,
        .report_death = rk_engine_report_death,
        .why_unreached = rk_engine_why_unreached,
        .req_complete = rk_req_complete,
        .req_wait = rk_req_wait,
    };
    struct rk_services other_services = services;
    const char *dir = rk_env("RANK_MODULES");
    rk_module_entry_fn entry;
    char path[PATH_MAX];
    void *module;

    snprintf(path, sizeof(path), "%s/librank-ucx.so", dir ? dir : ".libs");
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module)
        fprintf(stderr, "# %s\n", dlerror());
    RIG_CHECK(module);
    entry = (rk_module_entry_fn)dlsym(module, RK_MODULE_ENTRY);
    RIG_CHECK(entry);
    other_services.sizes[3]++;
    RIG_CHECK(entry(&other_services) == NULL); /* of another build */
    return entry(&services);
}

static void rig_open(struct rig *r, const struct rig_way *way, bool rma)
{
    static const size_t none[RK_REGION_COUNT];
    struct rk_memfd_card node_card;
    size_t len = RK_CARD_MAX;
    struct rk_boot *boot = calloc(1, sizeof(*boot));

    if (way->tls)
        setenv("UCX_TLS", way->tls, 1);
#ifdef __SANITIZE_ADDRESS__
    else if (way->forced) /* UCX 1.22 tries CMA in a way that the sanitizer's wrapper trips over */
        setenv("UCX_TLS", "^cma", 1);
#endif
    else
        unsetenv("UCX_TLS");
    RIG_CHECK(rk_conf_set_defaults(rk_conf_rows, &rk_conf) == RANK_OK);
    if (way->forced)
        rk_conf.channels = RK_CONF_UCX | RK_CONF_SELF;
    if (rma)
        rk_conf.ucx_rma = RK_CONF_UCX_RMA_ON;
    if (rk_env("RIG_LOG"))
        rk_conf.log = rk_log_threshold = atoi(rk_env("RIG_LOG"));
    rk_log_identity("channel_test", r->me, NULL);
    boot->ops = &rk_boot_alone;
    boot->rank = r->me;
    boot->size = r->n;
    boot->alone = true;
    snprintf(boot->job, sizeof(boot->job), "rig-%d", (int)getppid());
    r->ctx = calloc(1, sizeof(*r->ctx));
    r->ctx->boot = boot;
    RIG_CHECK(rk_node_create(1, none, &r->ctx->node, &node_card) == RANK_OK);
    RIG_CHECK(rk_node_join(r->ctx->node, 0, r->me) == RANK_OK);
    rk_node_settle(r->ctx->node);
    r->ctx->node->oversubscribed = true;
    RIG_CHECK(rk_engine_open(r->ctx) == RANK_OK);
    for (int i = 0; r->by_shm && i < r->n; i++)
        rk_engine_peer(r->ctx, i)->local = 0; /* as ranks of this node */
    r->ctx->engine->spin_ns = 3600ull * 1000000000u;
    r->ucx = load(r);
    RIG_CHECK(r->ucx);
    RIG_CHECK(rk_engine_open_channel(r->ctx, r->ucx, r->shared->card[r->me].bytes, &len) ==
              RANK_OK);
    r->state = rk_engine_state(r->ctx, r->ucx);
    r->shared->card[r->me].len = len;
}

struct fixture_wait {
    struct rk_wait wait;
    bool (*over)(void *);
    void *arg;
};

static bool fixture_wait_is_over(struct rk_wait *w)
{
    struct fixture_wait *f = (struct fixture_wait *)w;

    return f->over(f->arg);
}

void rig_wait(struct rig *r, bool (*over)(void *), void *arg)
{
    struct fixture_wait w = {.over = over, .arg = arg};

    rk_wait(r->ctx, &w.wait, fixture_wait_is_over);
}

static bool drained(void *rig)
{
    struct rig *r = rig;

    return rk_sendq_is_idle(r->ctx->engine) && r->ucx->drained(r->state) == RANK_OK;
}

static void rig_close(struct rig *r, int living)
{
    rig_wait(r, drained, r);
    rig_meet(r, living);
    rk_engine_close(r->ctx);
    rk_node_close(r->ctx->node);
    free(r->ctx->boot);
    free(r->ctx);
}

struct meeting {
    _Atomic int *count;
    int n;
};

static bool all_met(void *arg)
{
    struct meeting *m = arg;

    return atomic_load(m->count) >= m->n;
}

void rig_meet(struct rig *r, int n)
{
    struct meeting m = {&r->shared->met[r->nmet++], n};

    atomic_fetch_add(m.count, 1);
    rig_wait(r, all_met, &m);
}

struct rk_peer *rig_peer(struct rig *r, int rank)
{
    struct rk_peer *p = rk_engine_peer(r->ctx, rank);

    RIG_CHECK(p);
    RIG_CHECK(p->state != RK_PEER_NEW || rk_peer_connect(p) == RANK_OK);
    return p;
}

rank_status_t rig_move(struct rig *r, bool put, struct rk_channel_mem *mem, int p, void *local, size_t bytes, size_t offset)
{
    struct rank_request req = {.type = RK_REQ_RMA, .ctx = r->ctx, .peer = rig_peer(r, p)};
    rank_status_t st = put ? r->ucx->iput(mem, req.peer, p, local, bytes, offset, &req)
                           : r->ucx->iget(mem, req.peer, p, local, bytes, offset, &req);

    return st ? st : rk_req_wait(&req);
}

rank_status_t rig_send(struct rig *r, int to, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_peer *p = rig_peer(r, to);
    rank_status_t st;

    while ((st = p->channel->send(p, hdr, payload)) == RK_AGAIN)
        rk_progress(r->ctx);
    return st;
}

bool rig_by_shm(const struct rig_way *way)
{
    return way->tls ? strncmp(way->tls, "shm", 3) == 0 : way->forced;
}

static void child(const struct rig_way *way, int me, int n, int victim, bool rma, void (*body)(struct rig *))
{
    struct rig r = {.shared = shared, .me = me, .n = n};

    alarm(120); /* a rank that hangs is a rank that fails */
    r.by_shm = rig_by_shm(way);
    rig_open(&r, way, rma);
    rig_meet(&r, n);
    body(&r);
    rig_close(&r, victim >= 0 ? n - 1 : n);
    exit(0);
}

bool rig_run(const struct rig_way *way, int n, int victim, bool rma, void (*body)(struct rig *))
{
    pid_t pid[RIG_RANKS_MAX];
    bool good = true;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            child(way, i, n, victim, rma, body);
    }
    for (int i = 0; i < n; i++) {
        int status = -1;
        if (pid[i] < 0 || waitpid(pid[i], &status, 0) < 0) {
            good = false;
        } else if (i == victim) {
            good &= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        } else if (status != 0) {
            printf("# rank %d ended with %s %d\n", i, WIFSIGNALED(status) ? "signal" : "code",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            good = false;
        }
    }
    munmap(shared, sizeof(*shared));
    return good;
}
