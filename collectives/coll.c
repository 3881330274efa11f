/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c: keep the room's state, and turn calls into schedules.
 */
#include "collectives/average.h"
#include "collectives/coll_kind.h"
#include "collectives/call_query.h"
#include "collectives/coll_mismatch.h"
#include "collectives/coll_trace.h"
#include "collectives/host_arena.h"
#include "collectives/op/kernel_set.h"
#include "collectives/segments.h"
#include "collectives/shm/device_call.h"
#include "collectives/state.h"
#include "lib/base/conf.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------- context */

static int coll_on_progress(struct rk_ctx *ctx)
{
    struct rk_scheds *all = &ctx->coll->scheds;

    int n = rk_unlikely(ctx->coll->failures.nreports) ? rk_failures_send(ctx) : 0;

    if (rk_unlikely(ctx->coll->tick))
        rk_calls_check(ctx);
    return rk_unlikely(rk_scheds_busy(all)) ? n + rk_scheds_progress(all) : n;
}

static void coll_on_tick(struct rk_ctx *ctx)
{
    ctx->coll->tick = !rk_list_empty(&ctx->coll->scheds.active);
}

static void coll_on_death(struct rk_ctx *ctx, struct rk_peer *peer)
{
    (void)peer;
    rk_scheds_peer_died(&ctx->coll->scheds);
}

static rank_status_t coll_open(struct rk_ctx *ctx)
{
    struct rk_coll *coll = calloc(1, sizeof(*coll));
    rank_status_t st;

    if (!coll)
        return RANK_ERR_NO_MEMORY;
    st = rk_forced_parse(rk_conf.coll, &coll->forced);
    if (st) {
        free(coll);
        return st;
    }
    rk_kernels_choose();
    coll->reproducible = rk_conf.coll_reproducible;
    coll->trace = rk_conf.coll_trace;
    rk_scheds_init(&coll->scheds, ctx);
    coll->scheds.failed = rk_coll_sched_failed;
    rk_list_init(&coll->teams);
    rk_list_init(&coll->persistent);
    ctx->coll = coll;
    return RANK_OK;
}

static void close_team(struct rk_coll_team *t)
{
    rk_list_remove(&t->link);
    rk_arena_close(t->arena);
    rk_host_arena_close(t);
    rk_device_scratch_free(t->device);
    free(t->hosts);
    free(t);
}

/* Are calls of this rank in the list that use the arena's cells, or the hosts? */
static bool uses_memory(const struct rk_link *scheds, const struct rk_coll_team *t)
{
    struct rk_link *l;

    rk_list_for_each(l, scheds)
    {
        const struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);

        for (int i = 0; i < RK_SCHED_LINES; i++) {
            if (s->place[i].line == &t->in_cells[i])
                return true;
        }
        if (s == t->exchange || (t->hosts && s->hosts == t->hosts))
            return true;
    }
    return false;
}

/* Close freed teams that had calls under way. */
static void close_finished(struct rk_ctx *ctx)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &ctx->coll->teams)
    {
        struct rk_coll_team *t = rk_list_entry(l, struct rk_coll_team, link);

        if (t->closing && !uses_memory(&ctx->coll->scheds.active, t) && !uses_memory(&ctx->coll->scheds.failing, t))
            close_team(t);
    }
}

void rk_coll_persistent_free(struct rk_coll_persistent *p)
{
    rk_list_remove(&p->link);
    rk_sched_free(p->sched);
    free(p);
}

/* Of requests that the user has not freed. */
static void free_persistent(struct rk_coll *coll)
{
    while (!rk_list_empty(&coll->persistent)) {
        struct rk_coll_persistent *p = rk_list_entry(coll->persistent.next, struct rk_coll_persistent, link);

        if (p->sched && p->sched->req)
            p->sched = NULL; /* it runs: rk_scheds_destroy frees it */
        rk_coll_persistent_free(p);
    }
}

/* The channels are closed, which end running schedules. */
static void coll_release(struct rk_ctx *ctx)
{
    if (!ctx->coll)
        return;
    while (!rk_list_empty(&ctx->coll->teams)) /* of teams that the user has not freed */
        close_team(rk_list_entry(ctx->coll->teams.next, struct rk_coll_team, link));
    free_persistent(ctx->coll);
    rk_scheds_destroy(&ctx->coll->scheds);
    free(ctx->coll);
    ctx->coll = NULL;
}

size_t rk_coll_region_bytes(int nlocal)
{
    return rk_conf.coll_shm ? rk_arena_region_bytes(nlocal) : 0;
}

size_t rk_coll_cells_bytes(int nlocal)
{
    return rk_conf.coll_shm ? rk_arena_cells_bytes(nlocal) : 0;
}

void rk_coll_node_made(struct rk_node *node, int world_size)
{
    if (rk_conf.coll_shm && (rk_conf.channels & RK_CONF_SHM) && node->nlocal == world_size)
        rk_arena_prepare_world(node);
}

/* --------------------------------------------------------------------------- teams */

/* RANK_MEM_CUDA: some of its ranks may have device buffers. The same on all of them. */
static rank_mem_kind_t memory_of_node(const struct rk_ctx *ctx)
{
    return atomic_load_explicit(&ctx->node->head->has_kinds, memory_order_relaxed) ? RANK_MEM_CUDA : RANK_MEM_HOST;
}

/* Takes ownership of a. */
static void use_arena(struct rank_team *team, struct rk_arena *a, int index)
{
    const struct rk_coll *coll = team->ctx->coll;
    struct rk_coll_team *t = team->coll;

    rk_arena_attach(a, index);
    t->arena = a;
    t->direct = rk_device_kind ? NULL : t->arena;
    for (int k = 0; k < RK_COLL_COUNT && !coll->trace; k++) { /* a traced call takes the slow path */
        enum rk_coll_kind kind = (enum rk_coll_kind)k;

        t->shm_max[k] = rk_select_shm_max(&coll->forced, kind, memory_of_node(team->ctx), team->size, coll->reproducible && rk_coll_balances(kind));
    }
}

/*
 * The first rank takes an arena and distributes its index, once all members have the memory for the team: a member that
 * failed would not give the arena back.
 */
static rank_status_t agree_on_arena(struct rank_team *team, int *index)
{
    int32_t ready = 1, all = 0, found = -1;
    rank_status_t st = rank_reduce(&ready, &all, 1, RANK_INT32, RANK_MIN, 0, team);

    if (st)
        return st;
    if (team->rank == 0 && rk_conf.coll_shm)
        found = rk_arena_take(team->ctx->node, team->size);
    st = rank_bcast(&found, 1, RANK_INT32, 0, team);
    *index = (int)found;
    return st;
}

static void coll_team_close(struct rank_team *team)
{
    if (!team || !team->coll)
        return;
    rk_failures_send(team->ctx);
    rk_device_end_of_team(team);
    team->coll->closing = true;
    team->coll = NULL;
    close_finished(team->ctx);
}

static rank_status_t coll_team_open(struct rank_team *team)
{
    struct rk_coll_team *t = calloc(1, sizeof(*t));
    rank_status_t st = RANK_OK;
    int index = -1, here = 0;
    struct rk_arena *a;

    close_finished(team->ctx);
    if (!t)
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a team of %d ranks", team->size);
    team->coll = t;
    rk_list_append(&team->ctx->coll->teams, &t->link);
    rk_failure_recall(team);
    for (int k = 0; k < RK_COLL_COUNT; k++)
        t->shm_max[k] = -1;
    for (int i = 0; i < RK_SCHED_LINES; i++)
        rk_sched_line_init(&t->in_cells[i]);
    for (int r = 0; r < team->size; r++) {
        if (rk_engine_local_slot(team->ctx, rk_team_world_rank(team, r)) < 0)
            break;
        here++;
    }
    t->one_node = here == team->size;
    if (!team->local || team->size == 1)
        return RANK_OK;
    a = rk_arena_new(team);
    if (!a)
        st = RANK_ERR_NO_MEMORY;
    else if (team == team->ctx->world)
        index = rk_arena_of_world_is_there(team->ctx->node) ? RK_ARENA_OF_WORLD : -1;
    else
        st = agree_on_arena(team, &index);
    if (!st && index >= 0)
        use_arena(team, a, index);
    else
        free(a);
    if (st)
        coll_team_close(team);
    return st;
}

static void coll_count_pending(struct rk_ctx *ctx)
{
    struct rk_link *l;

    rk_list_for_each(l, &ctx->coll->scheds.active)
        rk_list_entry(l, struct rk_sched, link)->team->pending++;
    for (int i = 0; i < ctx->coll->failures.nreports; i++)
        ctx->coll->failures.report[i].team->pending++;
}

/* ------------------------------------------------------------------- calls to schedules */

/* Set the reducer. An operation of the program that was freed meanwhile fails the schedule. */
static void set_reducer(struct rk_sched *s, const struct rk_coll_call *c)
{
    s->reducer = (struct rk_reducer){.fn = c->fn, .dtype = c->dtype};
    if (rk_likely(!c->user))
        return;
    s->reducer.user = rk_user_op_take(c->op);
    if (!s->reducer.user)
        s->status = RANK_ERR_OP;
    s->reducer.temp = rk_sched_scratch(s, rk_user_op_temp(c->elem) * c->elem);
}

/* Of a call that begins before the hosts of its team are known. */
static const struct rk_algo undecided = {.name = "undecided", .build = rk_build_barrier_dissemination};

/* Select the algorithm. Cells are backed when the team first needs them. */
static const struct rk_algo *choose(struct rk_coll_team *t, const struct rk_coll_call *c, enum rk_coll_form form)
{
    const struct rank_team *team = c->team;
    struct rk_coll_choice *last = &t->last[c->kind][form];

    if (rk_unlikely(!last->algo || last->count != c->count || last->bytes != c->bytes || last->ordered != c->ordered)) {
        const struct rk_forced *forced = &team->ctx->coll->forced;
        bool one_node = t->one_node, own = rk_coll_has_own_counts(c->kind);
        const struct rk_hosts *hosts = t->hosts;
        struct rk_case what = {.kind = c->kind,
                               .mem = one_node ? memory_of_node(team->ctx) : RANK_MEM_HOST,
                               .one_node = one_node,
                               .arena = form == RK_COLL_STRAIGHT,
                               .cells = t->arena != NULL,
                               .persistent = form == RK_COLL_PERSISTENT,
                               .ordered = c->ordered,
                               .balanced = team->ctx->coll->reproducible && rk_coll_balances(c->kind),
                               .size = team->size,
                               .nodes = one_node ? 1 : hosts ? hosts->n : 0,
                               .per_node = one_node ? team->size : hosts ? hosts->per_host : 0,
                               .count = own ? 0 : c->count,
                               .bytes = own ? 0 : c->bytes};
        const struct rk_algo *algo = rk_select(forced, &what, NULL);

        if ((algo->needs & RK_NEEDS_CELLS) && !rk_arena_open_cells(t->arena)) {
            what.cells = false;
            algo = rk_select(forced, &what, NULL);
        }
        *last = (struct rk_coll_choice){c->count, c->bytes, c->ordered, algo};
    }
    return last->algo;
}

/* Build a call of a team on several hosts, at once or when all that decides is known. */
static void build_on_hosts(struct rk_sched *s, struct rk_coll_team *t, const struct rk_coll_call *c)
{
    const struct rk_algo *algo;

    if (!t->hosts) {
        rk_build_later(s, t, c, rk_team_hosts_known, build_on_hosts);
        return;
    }
    algo = choose(t, c, RK_COLL_SCHEDULED);
    s->hosts = t->hosts;
    if (s->trace)
        s->trace->algo = algo->name;
    if ((algo->needs & RK_NEEDS_HOSTS) && !rk_host_arena_begin(c->team, t, c->kind))
        s->status = RANK_ERR_NO_MEMORY;
    else if ((algo->needs & RK_NEEDS_HOSTS) && !t->hosts->agreed)
        rk_build_later(s, t, c, rk_host_arena_agreed, build_on_hosts);
    else
        rk_build_segments(s, algo, c);
}

/* NULL if out of memory. */
static struct rk_sched *build(const struct rk_coll_call *c, const struct rk_algo *algo, uint64_t seq)
{
    struct rank_team *team = c->team;
    struct rk_sched *s = rk_sched_new(&team->ctx->coll->scheds, team, seq);

    if (!s)
        return NULL;
    s->kind = (uint8_t)c->kind;
    set_reducer(s, c);
    s->hosts = team->coll->hosts;
    s->number = rk_coll_number(team);
    if (algo == &undecided || (algo->needs & RK_NEEDS_HOSTS))
        build_on_hosts(s, team->coll, c);
    else
        rk_build_segments(s, algo, c);
    return s;
}

/* Wait for what decides the steps of a call, so that they can be built at once. */
static rank_status_t wait_for_hosts(const struct rk_coll_call *c)
{
    struct rk_coll_team *t = c->team->coll;
    rank_status_t st;

    if (!rk_team_hosts_begin(c->team, c->kind))
        return RANK_ERR_NO_MEMORY;
    st = rk_team_wait(c->team, rk_team_hosts_known);
    if (st || !(choose(t, c, RK_COLL_PERSISTENT)->needs & RK_NEEDS_HOSTS))
        return st;
    return rk_host_arena_begin(c->team, t, c->kind) ? rk_team_wait(c->team, rk_host_arena_agreed) : RANK_ERR_NO_MEMORY;
}

rank_status_t rk_coll_build(const struct rk_coll_call *c, const struct rk_algo **algo, struct rk_sched **out)
{
    struct rk_coll_team *t = c->team->coll;
    rank_status_t st = t->one_node ? RANK_OK : wait_for_hosts(c);

    if (st)
        return st;
    *algo = choose(t, c, RK_COLL_PERSISTENT);
    *out = build(c, *algo, 0);
    if (!*out)
        return RANK_ERR_NO_MEMORY;
    (*out)->kept = true;
    return (*out)->status;
}

rank_status_t rk_coll_copy_alone(const struct rk_coll_call *c)
{
    char *to = rk_block_at(c->rbuf, c->rdispls ? c->rdispls[0] : 0, c->elem);
    const char *from = rk_block_at(c->sbuf, c->sdispls ? c->sdispls[0] : 0, c->elem);
    size_t bytes = c->kind == RK_COLL_ALLTOALLV ? (size_t)c->rcounts[0] * c->elem : c->bytes;
    bool copies = bytes && c->kind != RK_COLL_BCAST && c->kind != RK_COLL_EXSCAN;
    rank_status_t st = RANK_OK;

    if (copies && to != from)
        st = rk_kind_copy(to, rk_kind_of(to, bytes), from, rk_kind_of(from, bytes), bytes);
    return !st && copies && rk_op_is_logical(c->op) ? rk_op_make_logical(c->dtype, to, bytes / c->elem) : st;
}

rank_status_t rk_coll_schedule(const struct rk_coll_call *c, rank_request_t *out)
{
    bool alone = c->team->size == 1, trivial = alone || rk_coll_is_empty(c);
    struct rk_coll_team *t = c->team->coll;
    bool straight = !out && t->arena && !c->user;
    struct rank_request own, *req = &own;
    struct rk_coll_call ordered;
    const struct rk_algo *algo;
    struct rk_sched *s = NULL;
    struct rk_trace trace;
    rank_status_t st = alone ? RANK_OK : rk_coll_may_begin(c->team);

    if (st)
        return rk_coll_explain(c->team->ctx, c->team->id, st);
    if (rk_unlikely(c->team->ctx->coll->reproducible) && !c->ordered) {
        ordered = *c;
        ordered.ordered = true;
        c = &ordered;
    }
    if (!t->one_node && !alone && !rk_team_hosts_begin(c->team, c->kind))
        return rk_coll_failed_alone(c, RANK_ERR_NO_MEMORY);
    algo = trivial ? NULL : t->one_node || t->hosts ? choose(t, c, straight ? RK_COLL_STRAIGHT : RK_COLL_SCHEDULED) : &undecided;
    if (!alone && (!algo || algo->build))
        rk_call_begin(c, out ? RK_FORM_NONBLOCKING : RK_FORM_BLOCKING, rk_coll_number(c->team) + 1);
    if (!alone && trivial)
        c->team->coll_seq++; /* it has a number, too */
    if (rk_unlikely(c->team->ctx->coll->trace))
        rk_trace_begin(&trace, c, algo);
    if (algo && !algo->build) {
        st = rk_stage_in_arena(t->arena, c);
        if (c->team->ctx->coll->trace)
            rk_trace_end(&trace, st);
        return st;
    }
    if (alone)
        st = rk_coll_copy_alone(c);
    if (trivial && c->team->ctx->coll->trace)
        rk_trace_end(&trace, st);
    if (trivial && (!out || st))
        return st;
    own.flags = 0;
    own.on_done = NULL;
    if (out && !(req = rk_req_alloc(c->team->ctx)))
        return rk_coll_failed_alone(c, RANK_ERR_NO_MEMORY);
    if (!trivial && !(s = build(c, algo, c->team->coll_seq++))) {
        if (out)
            rk_req_free(req);
        c->team->coll_seq--; /* it has not begun */
        return rk_coll_failed_alone(c, RANK_ERR_NO_MEMORY);
    }
    if (s && rk_unlikely(c->team->ctx->coll->trace)) {
        s->trace = rk_sched_scratch(s, sizeof(trace));
        *s->trace = trace;
        rk_sched_keep(s);
    }
    rk_sched_request(req, c->team->ctx);
    req->team = c->team->id; /* for rk_coll_explain_request */
    if (s) {
        rk_call_mark(s);
        rk_sched_start(s, req);
    } else {
        rk_req_complete(req, RANK_OK);
    }
    if (rk_unlikely(c->team->ctx->coll->failures.nreports))
        rk_failures_send(c->team->ctx);
    if (!out) {
        st = rk_req_await(req);
        return rk_unlikely(st) && t->arena ? rk_call_failed(t->arena, c, st) : st;
    }
    *out = req;
    return RANK_OK;
}

const struct rk_room rk_room_coll = {
    .name = "collectives",
    .open = coll_open,
    .release = coll_release,
    .progress = coll_on_progress,
    .tick = coll_on_tick,
    .peer_died = coll_on_death,
    .team_open = coll_team_open,
    .team_close = coll_team_close,
    .count_pending = coll_count_pending,
    .requests = 1 << RK_REQ_COLL,
    .describe = rk_coll_describe,
    .explain = rk_coll_explain_request,
    .frames = {{RK_KIND_COLL_FAILED, rk_failure_arrived}, {RK_KIND_COLL_CALL, rk_call_arrived}},
};
