/* SPDX-License-Identifier: BSD-3-Clause */
/* team.c: create and free teams. */
#include "lib/p2p/team.h"
#include "lib/base/arg_error.h"
#include "lib/base/random.h"
#include "lib/base/retired.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

static struct rk_retired retired = RK_RETIRED_INIT(64);

static struct rank_team *take_memory(void)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rank_team *team = link ? rk_list_entry(link, struct rank_team, link) : NULL;

    return team ? memset(team, 0, sizeof(*team)) : calloc(1, sizeof(*team));
}

static void team_give_memory(struct rank_team *team)
{
    team->magic = 0;
    rk_retired_put(&retired, &team->link);
}

static uint64_t mixed_id(uint64_t random)
{
    return (random & (RK_TEAM_MIXED - 1)) | RK_TEAM_MIXED;
}

uint64_t rk_team_random_id(void)
{
    return mixed_id(rk_random_word());
}

bool rk_team_secret_id(uint64_t *id)
{
    uint64_t random;

    if (!rk_random_secret(&random, sizeof(random)))
        return false;
    *id = mixed_id(random);
    return true;
}

rank_status_t rk_team_create(struct rk_ctx *ctx, uint64_t id, int rank, int size, int *world_ranks,
                             struct rank_team **out)
{
    struct rank_team *team = take_memory();

    if (!team)
        goto err;
    team->id = id;
    team->peers = calloc((size_t)size, sizeof(*team->peers));
    if (!team->peers || rk_team_table_add(&ctx->p2p->by_id, team))
        goto err;
    team->magic = ctx->engine->threads || rk_device_kind ? RK_TEAM_SHARED_MAGIC : RK_TEAM_MAGIC;
    team->ctx = ctx;
    team->rank = rank;
    team->size = size;
    team->world_ranks = world_ranks;
    rk_list_append(&team->ctx->p2p->teams, &team->link);
    for (int r = 0; r < size; r++)
        team->mixed |= rk_team_world_rank(team, r) >= ctx->boot->size;
    if (team->mixed)
        rk_procs_hold(ctx, world_ranks, size, 1);
    for (int i = 0; i < ctx->engine->npeers; i++) { /* deaths before the team was created */
        struct rk_peer *p = ctx->engine->peers[i];
        if (!p || p->state != RK_PEER_DEAD)
            continue;
        for (int r = 0; r < size; r++)
            team->ndead += rk_team_world_rank(team, r) == i;
    }
    rk_stale_remove(team->ctx->p2p, id);
    rk_validate_unexpected(team->ctx->p2p, team);
    *out = team;
    return RANK_OK;

err:
    rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a team of %d ranks", size);
    if (team) {
        free(team->peers);
        team_give_memory(team);
    }
    return RANK_ERR_NO_MEMORY;
}

void rk_death_watch_end(struct rank_team *team)
{
    if (!team->watch)
        return;
    free(team->watch);
    team->watch = NULL;
    team->ctx->p2p->nwatches--;
}

void rk_team_destroy(struct rank_team *team)
{
    if (!team)
        return;
    rk_death_watch_end(team);
    rk_list_remove(&team->link);
    rk_team_table_remove(&team->ctx->p2p->by_id, team);
    if (team->ctx->p2p->last_validated == team)
        team->ctx->p2p->last_validated = NULL;
    if (team->mixed)
        rk_procs_hold(team->ctx, team->world_ranks, team->size, -1);
    free(team->peers);
    free(team->world_ranks);
    team_give_memory(team);
}

static void count_posted(struct rank_request *req, void *p2p)
{
    struct rank_team *team = rk_team_table_find(&((struct rk_p2p *)p2p)->by_id, req->team & ~RK_TEAM_COLL);

    if (team)
        team->pending++;
}

void rk_team_destroy_idle(struct rk_ctx *ctx)
{
    struct rk_p2p *p2p = ctx->p2p;
    struct rk_link *l, *next;

    if (p2p->nfreed == 0)
        return;
    rk_list_for_each(l, &p2p->teams)
        rk_list_entry(l, struct rank_team, link)->pending = 0;
    rk_match_each_posted(&p2p->match, count_posted, p2p);
    rk_rooms_count_pending(ctx);
    rk_list_for_each_safe(l, next, &p2p->teams)
    {
        struct rank_team *team = rk_list_entry(l, struct rank_team, link);
        if (!team->freed || team->pending)
            continue;
        p2p->nfreed--;
        team->freed = false;
        rk_team_discard(team);
        rk_team_destroy(team);
    }
}

void rk_team_close(struct rank_team *team)
{
    struct rk_ctx *ctx = team->ctx;

    rk_rooms_team_close(ctx, team);
    rk_death_watch_end(team);
    team->magic = 0;
    team->freed = true;
    ctx->p2p->nfreed++;
    rk_team_discard(team);
    rk_team_destroy_idle(ctx);
}

RK_COLD rank_status_t rk_team_lost(const struct rank_team *team)
{
    const struct rk_peer *peer = team->size == 2 ? team->peers[1 - team->rank] : NULL;

    return peer && peer->state == RK_PEER_DEAD ? rk_peer_lost(peer) : RANK_ERR_PEER_DEAD;
}

struct rank_team *rk_team_find(const struct rk_ctx *ctx, uint64_t id)
{
    return rk_team_table_find(&ctx->p2p->by_id, id);
}

struct rk_peer *rk_team_peer_slow(struct rank_team *team, int r)
{
    return team->peers[r] = rk_engine_peer(team->ctx, rk_team_world_rank(team, r));
}

void rk_team_settle(struct rank_team *team)
{
    team->local = team->size == 1 || rk_engine_shares_memory(team->ctx);
    for (int r = 0; r < team->size; r++) {
        if (rk_engine_local_slot(team->ctx, rk_team_world_rank(team, r)) < 0)
            team->local = false;
    }
}
