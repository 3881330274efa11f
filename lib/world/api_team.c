/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_team.c: create, split and free teams.
 *
 * Each rank contributes its color, key and counter; all compute the same result. A team's id is the world rank of
 * its first member and that member's counter, so ids are unique without a server. With ranks of several worlds it
 * is a random number of the first member.
 */
#include "collectives/coll.h"
#include "lib/boot/boot.h"
#include "lib/conn/conns.h"
#include "lib/dpm/connected.h"
#include "lib/node/node.h"
#include "lib/world/world.h"

#include <stdlib.h>

#define NO_COLOR UINT64_MAX

struct ballot {
    uint64_t color;
    int32_t key;
    uint32_t counter; /* of splits that this rank has begun */
    uint64_t host;    /* of the rank: rk_coll_host_id */
    uint64_t id;      /* several worlds: id of the team, if this rank is its first member */
};

struct seat {
    int32_t key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* Set entries to the members of the own color, in order; returns their number. */
static int fill_table(struct seat *entries, const struct ballot *all, int size, uint64_t color)
{
    int n = 0;

    for (int r = 0; r < size; r++) {
        if (all[r].color == color)
            entries[n++] = (struct seat){all[r].key, r};
    }
    qsort(entries, (size_t)n, sizeof(*entries), by_key);
    return n;
}

rank_status_t rk_team_open(struct rk_ctx *ctx, uint64_t id, int n, int *world_ranks, struct rank_team **out)
{
    int me = 0;
    rank_status_t st;

    rk_team_destroy_idle(ctx);
    while (world_ranks[me] != ctx->boot->rank)
        me++;
    st = rk_team_create(ctx, id, me, n, world_ranks, out);
    if (st) {
        rk_coll_open_failed(ctx, id, world_ranks, n, me, st);
        free(world_ranks);
        return st;
    }
    rk_team_settle(*out);
    st = (*out)->ndead ? RANK_ERR_PEER_DEAD : rk_rooms_team_open((*out)->ctx, *out);
    if (st) {
        if (st != RANK_ERR_PEER_DEAD && st != RANK_ERR_COLLECTIVE)
            rk_coll_open_failed(ctx, id, world_ranks, n, me, st);
        rk_team_destroy(*out);
        *out = NULL;
    }
    return st;
}

/* All members have the hosts of all from the ballots. */
static void set_hosts_of(struct rank_team *team, const struct ballot *all, const struct seat *entries)
{
    uint64_t *host;

    if (team->size == 1 || team->local)
        return;
    host = malloc((size_t)team->size * sizeof(*host));
    for (int i = 0; host && i < team->size; i++)
        host[i] = all[entries[i].rank].host;
    rk_coll_set_hosts(team, host);
    free(host);
}

/* Takes ownership of world_ranks, which has space for all ranks of parent. */
static rank_status_t gather_entries(struct rank_team *parent, const struct ballot *all, const struct seat *entries, int n,
                                    int *world_ranks, struct rank_team **out)
{
    const struct ballot *first = &all[entries[0].rank];
    int *exact = realloc(world_ranks, (size_t)n * sizeof(int));
    rank_status_t st;

    world_ranks = exact ? exact : world_ranks;
    for (int i = 0; i < n; i++)
        world_ranks[i] = rk_team_world_rank(parent, entries[i].rank);
    st = rk_team_open(parent->ctx, parent->mixed ? first->id : (uint64_t)(uint32_t)world_ranks[0] << 32 | first->counter,
                      n, world_ranks, out);
    if (!st)
        set_hosts_of(*out, all, entries);
    return st;
}

static rank_status_t check_split(const char *call, const struct rank_team *team, const rank_team_t *out)
{
    rank_status_t st = rk_team_check(call, team);

    return st || out ? st : rk_arg_null(call, "out");
}

static rank_status_t api_team_split(struct rank_team *parent, uint64_t color, int key, rank_team_t *out)
{
    /* Count before the first wait: another thread may split another team meanwhile. */
    struct ballot mine = {color, key, ++parent->ctx->world->counter, rk_coll_host_id(parent->ctx),
                          parent->mixed ? rk_team_random_id() : 0};
    struct ballot *all = malloc((size_t)parent->size * sizeof(*all));
    struct seat *entries = malloc((size_t)parent->size * sizeof(*entries));
    int *world_ranks = malloc((size_t)parent->size * sizeof(*world_ranks));
    struct rank_team *team = NULL;
    /* A rank without memory must not leave the others waiting in the next collective. */
    rank_status_t st = rk_worst_of_all(parent, all && entries && world_ranks ? RANK_OK : RANK_ERR_NO_MEMORY);

    if (!st)
        st = rank_allgather(&mine, all, sizeof(mine), RANK_BYTE, parent);
    if (!st && color != NO_COLOR) {
        int n = fill_table(entries, all, parent->size, color);
        st = gather_entries(parent, all, entries, n, world_ranks, &team);
        world_ranks = NULL;
    }
    free(world_ranks);
    free(entries);
    free(all);
    if (!st)
        *out = team;
    return st;
}

rank_status_t rank_team_split(rank_team_t team, int color, int key, rank_team_t *out)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = check_split(__func__, team, out);

    if (st)
        return st;
    if (color < 0 && color != RANK_UNDEFINED)
        return rk_arg_error(RANK_ERR_ARG, __func__, "color %d is negative", color);
    return rk_call_end(__func__, api_team_split(team, color == RANK_UNDEFINED ? NO_COLOR : (uint64_t)color, key, out));
}

rank_status_t rank_team_split_shared(rank_team_t team, int key, rank_team_t *out)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = check_split(__func__, team, out);
    uint64_t color;

    if (st)
        return st;
    /* The nonce of the segment identifies the node; without shm each rank is its own node. */
    color = rk_engine_shares_memory(team->ctx)
                ? team->ctx->node->head->nonce
                : (uint64_t)team->ctx->boot->rank ^ (team->mixed ? team->ctx->engine->job : 0);
    return rk_call_end(__func__, api_team_split(team, color == NO_COLOR ? 0 : color, key, out));
}

rank_status_t rank_team_dup(rank_team_t team, rank_team_t *out)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = check_split(__func__, team, out);

    return st ? st : rk_call_end(__func__, api_team_split(team, 0, team->rank, out));
}

rank_status_t rank_team_free(rank_team_t *team)
{
    struct rk_ctx *ctx;
    rank_status_t st;
    bool mixed;

    if (!team)
        return rk_arg_null(__func__, "team");
    RK_ENTER_TEAM(*team);
    st = rk_team_check(__func__, *team);
    if (st)
        return st;
    ctx = (*team)->ctx;
    if (*team == ctx->world)
        return rk_arg_error(RANK_ERR_ARG, __func__, "the world is freed by rank_finalize");
    mixed = (*team)->mixed;
    rk_death_watch_end(*team); /* before the waits below */
    if (mixed && rk_conn_free_team(*team)) {
        *team = RANK_TEAM_NULL;
        return RANK_OK;
    }
    if (mixed)
        rk_connected_disconnect(*team);
    if (*team == ctx->parents)
        ctx->parents = NULL;
    rk_team_close(*team);
    if (mixed)
        rk_connected_sweep(ctx);
    *team = RANK_TEAM_NULL;
    return RANK_OK;
}

int rank_team_rank(rank_team_t team)
{
    rank_status_t st = rk_team_check(__func__, team);

    return st ? (int)st : team->rank;
}

int rank_team_size(rank_team_t team)
{
    rank_status_t st = rk_team_check(__func__, team);

    return st ? (int)st : team->size;
}

RK_PUBLIC(rank_team_split); RK_PUBLIC(rank_team_split_shared); RK_PUBLIC(rank_team_dup); RK_PUBLIC(rank_team_free);
RK_PUBLIC(rank_team_rank); RK_PUBLIC(rank_team_size);
