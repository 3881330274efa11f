/* SPDX-License-Identifier: BSD-3-Clause */
/* room.c: register rooms with the engine. */
#include "lib/core/room.h"
#include "lib/base/arg_error.h"
#include "lib/core/engine.h"

static rank_status_t room_register(struct rk_engine *e, const struct rk_room *room)
{
    if (e->nrooms == RK_ROOMS_MAX) {
        return rk_fail(RANK_ERR_INTERNAL, "room %s: %d rooms are open already", room->name, RK_ROOMS_MAX);
    }
    for (int i = 0; i < RK_ROOM_FRAMES_MAX && room->frames[i].kind; i++) {
        if (e->handler[room->frames[i].kind]) {
            return rk_fail(RANK_ERR_INTERNAL, "room %s: frame kind %u has an owner", room->name, room->frames[i].kind);
        }
        e->handler[room->frames[i].kind] = room->frames[i].handle;
    }
    for (int type = 0; type < RK_REQ_TYPES; type++) {
        if (room->requests >> type & 1) {
            e->describe[type] = room->describe;
            e->explain[type] = room->explain;
        }
    }
    if (room->small)
        e->small = room->small;
    if (room->is_valid)
        e->is_valid = room->is_valid;
    if (room->memory_at)
        e->memory_at = room->memory_at;
    if (room->progress && !room->progress_on_demand)
        e->hooks[e->nhooks++] = room->progress;
    e->rooms[e->nrooms++] = room;
    return RANK_OK;
}

rank_status_t rk_room_open(struct rk_ctx *ctx, const struct rk_room *room)
{
    rank_status_t st = room_register(ctx->engine, room);

    return st || !room->open ? st : room->open(ctx);
}

void rk_rooms_close(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; e && i < e->nrooms; i++) {
        if (e->rooms[i]->close)
            e->rooms[i]->close(ctx);
    }
}

void rk_rooms_spoil(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; e && i < e->nrooms; i++) {
        if (e->rooms[i]->spoil)
            e->rooms[i]->spoil(ctx);
    }
}

void rk_room_start_progress(struct rk_ctx *ctx, const struct rk_room *room)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; i < e->nhooks; i++) {
        if (e->hooks[i] == room->progress)
            return;
    }
    e->hooks[e->nhooks++] = room->progress; /* each room once, so there is room for it */
}

rank_status_t rk_rooms_team_open(struct rk_ctx *ctx, struct rank_team *team)
{
    struct rk_engine *e = ctx->engine;
    rank_status_t st = RANK_OK;

    for (int i = 0; i < e->nrooms && !st; i++) {
        if (e->rooms[i]->team_open)
            st = e->rooms[i]->team_open(team);
    }
    if (st)
        rk_rooms_team_close(ctx, team);
    return st;
}

void rk_rooms_team_close(struct rk_ctx *ctx, struct rank_team *team)
{
    struct rk_engine *e = ctx->engine;

    for (int i = e->nrooms - 1; i >= 0; i--) {
        if (e->rooms[i]->team_close)
            e->rooms[i]->team_close(team);
    }
}

void rk_rooms_count_pending(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; i < e->nrooms; i++) {
        if (e->rooms[i]->count_pending)
            e->rooms[i]->count_pending(ctx);
    }
}
