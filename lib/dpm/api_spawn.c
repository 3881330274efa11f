/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_spawn.c: start a job and create a team of parents and children.
 *
 * Both jobs must know each other before a frame crosses, and no rank may wait for one that gave up. Steps:
 *
 *   1. The root distributes the parameters; all parents open ucx if needed, number the future ranks, and send
 *      their address blobs to the root.
 *   2. The root sends the spawn request. The children find their job's id and the root's address in a variable
 *      (lib/boot/parent.h): enough for the first of them to connect.
 *   3. They gather their address blobs in rank_init; the first child sends them to the root.
 *   4. The root distributes them to the parents. When all have stored them it sends the parents' blobs to the
 *      first child, or an error; the children store them likewise, and the first child replies.
 *   5. The root distributes the result to the parents.
 *
 * Each message is awaited on a team that its sender is in, so a death ends the wait.
 */
#include "collectives/coll.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/arg_error.h"
#include "lib/base/random.h"
#include "lib/boot/parent.h"
#include "lib/conn/network.h"
#include "lib/core/procs.h"
#include "lib/core/root.h"
#include "lib/node/node.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/dpm/connected.h"
#include "lib/dpm/roster.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ranks in the team of root and first child. */
enum { ROOT, FIRST };
enum { RETRY_NS = 1000 * 1000 * 1000 };
enum { TAG_CHILDREN, TAG_CHILDREN_CARDS, TAG_PARENTS, TAG_PARENTS_CARDS, TAG_TAKEN };

/* First message of the root to the parents. */
struct plan {
    uint64_t job, pair, both;
    int32_t n, status;
};

/* Header of a roster, or an error instead of one. */
struct word {
    int64_t stride;
    int32_t n, status;
};

/* --------------------------------------------------------------------- common */

/* Team of root and first child; needs no collectives. */
static rank_status_t open_pair(struct rk_ctx *ctx, uint64_t id, int me, int other,
                               struct rank_team **out)
{
    int *numbers = malloc(2 * sizeof(int));
    rank_status_t st;

    if (!numbers)
        return RANK_ERR_NO_MEMORY;
    numbers[me] = ctx->boot->rank;
    numbers[1 - me] = other;
    st = rk_team_create(ctx, id, me, 2, numbers, out);
    if (st)
        free(numbers);
    return st;
}

/* Team of the parents in their order, then the children. Takes ownership of numbers. */
static rank_status_t open_both(struct rk_ctx *ctx, uint64_t id, int me, int n, int *numbers,
                               struct rank_team **out)
{
    struct rank_team *team;
    rank_status_t st = rk_team_create(ctx, id, me, n, numbers, &team);

    if (st) {
        rk_coll_open_failed(ctx, id, numbers, n, me, st);
        free(numbers);
        return st;
    }
    rk_team_settle(team);
    st = team->ndead ? RANK_ERR_PEER_DEAD : rk_rooms_team_open(team->ctx, team);
    if (!st && (st = rk_connected_add(team)))
        rk_rooms_team_close(team->ctx, team);
    if (st) {
        if (st != RANK_ERR_PEER_DEAD && st != RANK_ERR_COLLECTIVE)
            rk_coll_open_failed(ctx, id, numbers, n, me, st);
        rk_team_destroy(team);
        return st;
    }
    *out = team;
    return RANK_OK;
}

static void close_both(struct rank_team *team)
{
    rk_connected_drop(team);
    rk_rooms_team_close(team->ctx, team);
    rk_team_destroy(team);
}

/*
 * Send a message that ends the peer's wait, which only a death would end otherwise: retry while memory is short.
 */
static rank_status_t send_surely(struct rank_team *pair, const void *data, int64_t bytes, int to, int tag)
{
    uint64_t until = rk_clock_ns() + RETRY_NS;
    rank_status_t st;

    do
        st = rank_send(data, bytes, RANK_BYTE, to, tag, pair);
    while (st == RANK_ERR_NO_MEMORY && rk_clock_ns() < until);
    return st;
}

static rank_status_t send_word(struct rank_team *pair, int to, int tag, rank_status_t status,
                               const struct rk_roster *roster)
{
    struct word w = {.status = status};

    if (roster) {
        w.n = roster->n;
        w.stride = roster->stride;
    }
    return send_surely(pair, &w, sizeof(w), to, tag);
}

/* Send a roster after a good header. The peer always gets a message; a short one means an error. */
static rank_status_t send_roster(struct rank_team *pair, int to, int tag, const struct rk_roster *r)
{
    rank_status_t st = send_surely(pair, r->entries, r->n * r->stride, to, tag);

    if (st)
        send_surely(pair, NULL, 0, to, tag);
    return st;
}

/* Receive a header and, if that is good, the roster. *waits: the sender waits for a reply. */
static rank_status_t receive_roster(struct rank_team *pair, int from, int tag,
                                    struct rk_roster *out, bool *waits)
{
    struct word w;
    rank_envelope_t env;
    rank_status_t st = rank_recv(&w, sizeof(w), RANK_BYTE, from, tag, pair, NULL), made;

    if (!st)
        st = (rank_status_t)w.status;
    *waits = !st;
    if (st)
        return st;
    /* Without memory it is received truncated: its sender waits for the match. */
    made = rk_roster_make(out, w.n, w.stride);
    st = rank_recv(out->entries, out->n * out->stride, RANK_BYTE, from, tag + 1, pair, &env);
    if (made || st)
        return made ? made : st;
    return env.bytes == out->n * out->stride ? RANK_OK : RANK_ERR_BOOT;
}

/* Distribute what the root has received, or its error. */
static rank_status_t share_roster(struct rank_team *team, int root, rank_status_t mine,
                                  struct rk_roster *r)
{
    struct word w = {.stride = r->stride, .n = r->n, .status = mine};
    rank_status_t st = rank_bcast(&w, sizeof(w), RANK_BYTE, root, team);

    if (!st)
        st = (rank_status_t)w.status;
    if (st)
        return st;
    if (team->rank != root)
        st = rk_roster_make(r, w.n, w.stride);
    st = rk_worst_of_all(team, st);
    return st ? st : rank_bcast(r->entries, r->n * r->stride, RANK_BYTE, root, team);
}

/* ------------------------------------------------------------------------- parents */

static rank_status_t check_params(const rank_spawn_params_t *p, const struct rk_boot *boot)
{
    if (!p || p->size < offsetof(rank_spawn_params_t, n) + sizeof(p->n) || !p->program ||
        !p->program[0] || p->reserved)
        return rk_arg_error(RANK_ERR_ARG, "rank_spawn", "the parameters have no size or no program, or reserved is not 0");
    if (p->n < 1 || p->n > RK_JOB_SIZE_MAX)
        return rk_arg_error(RANK_ERR_COUNT, "rank_spawn", "n %lld is not between 1 and %d", (long long)p->n, (int)RK_JOB_SIZE_MAX);
    if (boot->ops->spawn_begin)
        return RANK_OK;
    return rk_fail(RANK_ERR_NOT_SUPPORTED, "rank_spawn: no launcher started this program, so nothing can start %s; run it "
                   "under xrun", p->program);
}

static struct plan api_spawn_make_plan(const rank_spawn_params_t *p, const struct rk_boot *boot)
{
    struct plan plan = {.status = check_params(p, boot)};

    if (plan.status)
        return plan;
    plan.job = rk_random_word();
    plan.pair = rk_team_random_id();
    plan.both = rk_team_random_id();
    plan.n = p->n;
    return plan;
}

/* Root: wait for the launcher's answer; returns the new job's namespace. */
static rank_status_t api_spawn_start_job(struct rk_ctx *ctx, const rank_spawn_params_t *p,
                               const struct plan *plan, char space[RK_NSPACE_MAX])
{
    const struct rk_engine *e = ctx->engine;
    struct rk_boot_parent *me = calloc(1, sizeof(*me));
    struct rk_boot_app app = {.program = p->program, .args = p->args, .env = p->env, .dir = p->dir,
                              .n = p->n};
    struct rk_pending *answer;
    char *text = NULL;
    rank_status_t st = me && e->card_len <= sizeof(me->card) ? RANK_OK : RANK_ERR_NO_MEMORY;

    if (!st) {
        *me = (struct rk_boot_parent){.job = plan->job, .pair = plan->pair, .both = plan->both,
                                      .root_job = e->job, .root_rank = ctx->boot->rank,
                                      .root_size = ctx->boot->size, .card_len = e->card_len};
        memcpy(me->root_space, ctx->boot->job, sizeof(me->root_space));
        memcpy(me->server, ctx->boot->server, sizeof(me->server));
        memcpy(me->card, e->card, e->card_len);
        text = rk_parent_text(me);
    }
    if (text) {
        app.parent = text;
        st = ctx->boot->ops->spawn_begin(ctx->boot, &app, rk_wait_wake, ctx, &answer);
        if (!st) {
            rk_connected_await(ctx, answer, rk_conf.spawn_timeout);
            st = ctx->boot->ops->spawn_end(answer, p->program, space);
        }
    } else if (!st) {
        st = RANK_ERR_NO_MEMORY;
    }
    free(text);
    free(me);
    return st;
}

struct family {
    struct rk_ctx *ctx;
    struct rank_team *team, *pair, *both;
    int root, first; /* first: number of the first child */
    struct plan plan;
    struct rk_roster parents, children;
    char space[RK_NSPACE_MAX];
    bool called; /* the first child waits for a reply */
};

/* Steps 2 and 3, at the root. */
static rank_status_t fetch_children(struct family *f, const rank_spawn_params_t *p)
{
    rank_status_t st = open_pair(f->ctx, f->plan.pair, ROOT, f->first, &f->pair);

    if (!st)
        st = api_spawn_start_job(f->ctx, p, &f->plan, f->space);
    if (!st)
        st = f->ctx->boot->ops->name_job(f->ctx->boot, f->space, f->first, f->plan.n);
    if (st)
        return st;
    st = receive_roster(f->pair, FIRST, TAG_CHILDREN, &f->children, &f->called);
    if (st == RANK_ERR_PEER_DEAD)
        rk_fail(RANK_ERR_PEER_DEAD, "rank_spawn: %s ended before it had joined; it must call rank_init", p->program);
    return !st && f->children.n != f->plan.n ? RANK_ERR_BOOT : st;
}

/* Each parent: store the children, create the team. */
static rank_status_t take_children(struct family *f)
{
    int parents = f->team->size, all = parents + f->plan.n;
    int *numbers = malloc((size_t)all * sizeof(int));
    rank_status_t st;

    if (!numbers)
        return RANK_ERR_NO_MEMORY;
    for (int r = 0; r < parents; r++)
        numbers[r] = rk_team_world_rank(f->team, r);
    st = rk_roster_take(f->ctx, &f->children, rk_team_epoch(f->plan.both), numbers + parents);
    for (int i = 0; i < f->plan.n && !st; i++) {
        if (numbers[parents + i] != f->first + i)
            st = RANK_ERR_BOOT; /* not the ranks that were numbered */
    }
    if (st) {
        free(numbers);
        return st;
    }
    return open_both(f->ctx, f->plan.both, f->team->rank, all, numbers, &f->both);
}

/* Step 4 at the root; st: result of the parents. */
static rank_status_t api_spawn_answer(struct family *f, rank_status_t st)
{
    struct word taken = {.status = RANK_OK};
    rank_status_t sent = send_word(f->pair, FIRST, TAG_PARENTS, st, &f->parents);

    if (st || sent)
        return st ? st : sent;
    sent = send_roster(f->pair, FIRST, TAG_PARENTS_CARDS, &f->parents);
    if (!sent)
        sent = rank_recv(&taken, sizeof(taken), RANK_BYTE, FIRST, TAG_TAKEN, f->pair, NULL);
    return sent ? sent : (rank_status_t)taken.status;
}

/* From step 2 on, when all parents are ready and the root has their blobs. */
static rank_status_t spawn(struct family *f, const rank_spawn_params_t *p)
{
    bool is_root = f->team->rank == f->root;
    rank_status_t st = is_root ? fetch_children(f, p) : RANK_OK, agreed;
    int32_t last;

    st = share_roster(f->team, f->root, st, &f->children);
    if (!st)
        st = rk_worst_of_all(f->team, take_children(f));
    agreed = st;
    if (f->called)
        st = api_spawn_answer(f, st);
    if (!agreed) { /* else all ranks have the error */
        last = st;
        st = rank_bcast(&last, 1, RANK_INT32, f->root, f->team);
        st = st ? st : (rank_status_t)last;
    }
    if (st && f->both) {
        close_both(f->both);
        f->both = NULL;
    }
    return st;
}

/* Step 1 after the parameters. */
static rank_status_t api_spawn_prepare(struct family *f, rank_status_t st)
{
    int64_t stride = 0;

    if (!st) /* any rank may have to carry frames from now on */
        st = rk_network_open(f->ctx);
    if (!st)
        st = rk_procs_add_job(f->ctx, f->plan.job, f->plan.n, rk_team_epoch(f->plan.both), &f->first);
    if (!st)
        st = f->ctx->boot->ops->subscribe_jobs(f->ctx->boot);
    st = rk_roster_agree(f->team, st, &stride);
    if (!st && f->team->rank == f->root)
        st = rk_roster_make(&f->parents, f->team->size, stride);
    st = rk_worst_of_all(f->team, st);
    return st ? st : rk_roster_gather(f->team, f->root, stride, &f->parents);
}

rank_status_t rank_spawn(const rank_spawn_params_t *params, int root, rank_team_t team,
                         rank_team_t *both)
{
    RK_ENTER_TEAM(team);
    struct family f = {.team = team, .root = root};
    rank_status_t st = rk_team_check(__func__, team);

    if (st)
        return st;
    if ((unsigned)root >= (unsigned)team->size)
        return rk_arg_error(RANK_ERR_RANK, __func__, "root %d is out of range (team size %d)", root, team->size);
    f.ctx = team->ctx;
    rk_connected_sweep(f.ctx);
    if (team->rank == root)
        f.plan = api_spawn_make_plan(params, f.ctx->boot);
    st = rank_bcast(&f.plan, sizeof(f.plan), RANK_BYTE, root, team);
    if (!st)
        st = (rank_status_t)f.plan.status;
    if (st)
        return rk_call_returns(__func__, st);
    st = api_spawn_prepare(&f, both ? RANK_OK : rk_arg_null(__func__, "both"));
    if (!st)
        st = spawn(&f, params);
    rk_team_destroy(f.pair);
    if (st)
        rk_procs_remove_job(f.ctx, f.plan.job);
    rk_roster_clear(&f.parents);
    rk_roster_clear(&f.children);
    if (!st)
        *both = f.both;
    return rk_call_end(__func__, st);
}

/* ------------------------------------------------------------------------ children */

/* The first child connects to the root. */
static rank_status_t call(struct rk_ctx *ctx, struct rank_team **pair)
{
    const struct rk_boot_parent *p = ctx->boot->parent;
    int first;
    rank_status_t st = rk_procs_add_job(ctx, p->root_job, p->root_size, rk_team_epoch(p->both), &first);

    if (!st)
        st = ctx->boot->ops->name_job(ctx->boot, p->root_space, first, p->root_size);
    if (!st)
        st = rk_procs_set_card(ctx, first + p->root_rank, p->card, p->card_len);
    return st ? st : open_pair(ctx, p->pair, FIRST, first + p->root_rank, pair);
}

static rank_status_t take_parents(struct rk_ctx *ctx, const struct rk_roster *parents)
{
    int n = parents->n, size = ctx->boot->size;
    int *numbers = malloc((size_t)(n + size) * sizeof(int));
    rank_status_t st = numbers ? rk_roster_take(ctx, parents, rk_team_epoch(ctx->boot->parent->both), numbers) : RANK_ERR_NO_MEMORY;

    if (st) {
        free(numbers);
        return st;
    }
    for (int r = 0; r < size; r++)
        numbers[n + r] = r;
    ctx->nparents = n;
    return open_both(ctx, ctx->boot->parent->both, n + ctx->boot->rank, n + size, numbers,
                     &ctx->parents);
}

rank_status_t rk_connected_join(struct rk_ctx *ctx)
{
    struct rk_roster children = {0}, parents = {0};
    struct rank_team *world = ctx->world, *pair = NULL;
    bool is_first = world->rank == 0;
    int64_t stride = 0;
    rank_status_t st = ctx->boot->ops->subscribe_jobs(ctx->boot), report;
    bool waits = false;

    if (!st && is_first)
        st = call(ctx, &pair);
    st = rk_roster_agree(world, st, &stride);
    if (!st && is_first)
        st = rk_roster_make(&children, world->size, stride);
    st = rk_worst_of_all(world, st);
    if (!st)
        st = rk_roster_gather(world, 0, stride, &children);
    if (pair) {
        report = send_word(pair, ROOT, TAG_CHILDREN, st, &children);
        if (!st && !report)
            report = send_roster(pair, ROOT, TAG_CHILDREN_CARDS, &children);
        if (!st && !report)
            report = receive_roster(pair, ROOT, TAG_PARENTS, &parents, &waits);
        st = st ? st : report;
    }
    st = share_roster(world, 0, st, &parents);
    if (!st)
        st = rk_worst_of_all(world, take_parents(ctx, &parents));
    if (waits)
        send_word(pair, ROOT, TAG_TAKEN, st, NULL);
    if (st)
        rk_fail(st, "rank_init: this job was started by rank_spawn, but could not connect to its parents: %s",
                rank_status_string(st));
    rk_team_destroy(pair);
    rk_roster_clear(&children);
    rk_roster_clear(&parents);
    return st;
}

rank_status_t rank_parent(rank_team_t *both, int *nparents)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(__func__, RANK_CTX_NULL, &ctx);

    if (st)
        return st;
    if (!both)
        return rk_arg_null(__func__, "both");
    *both = ctx->parents;
    if (nparents)
        *nparents = ctx->parents ? ctx->nparents : 0;
    return RANK_OK;
}

RK_PUBLIC(rank_spawn); RK_PUBLIC(rank_parent);
