/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room.h: describe what a room adds to a context, as a row of a table.
 *
 * lib/world has the one array of rows (world/init.c). Rooms open, close and handle deaths in its order.
 * The engine calls no room by name.
 */
#ifndef RK_CORE_ROOM_H
#define RK_CORE_ROOM_H

#include "lib/core/frame.h"

struct rank_team;
struct rank_request;
struct rk_wait_for;

enum { RK_ROOMS_MAX = 16, RK_ROOM_FRAMES_MAX = 6 };

struct rk_room {
    const char *name;
    /* Set the room's pointer in ctx. Peers, channels and locks exist. NULL: the room has no state. */
    rank_status_t (*open)(struct rk_ctx *ctx);
    /* End what is in flight; channels are open. No-op if open failed or was not called. */
    void (*close)(struct rk_ctx *ctx);
    /* Free memory that channels accessed; they are closed, and the engine is gone. No-op as close. */
    void (*release)(struct rk_ctx *ctx);

    /* Runs in each progress call; returns the number of events. */
    int (*progress)(struct rk_ctx *ctx);
    bool progress_on_demand; /* only after rk_room_start_progress */
    /* Runs every 0.1 s or so while a thread waits or polls, maybe within a channel: sends nothing. */
    void (*tick)(struct rk_ctx *ctx);
    /* Complete all that depends on the peer. */
    void (*peer_died)(struct rk_ctx *ctx, struct rk_peer *peer);
    /* Drop what is the peer's: its number goes to another process. It may have died before. */
    void (*peer_dropped)(struct rk_ctx *ctx, struct rk_peer *peer);

    /* Collective over the team, which can send and receive. */
    rank_status_t (*team_open)(struct rank_team *team);
    void (*team_close)(struct rank_team *team); /* No-op if team_open failed or was not called. */
    void (*count_pending)(struct rk_ctx *ctx); /* Add the operations under way to pending of their teams. */

    void (*spoil)(struct rk_ctx *ctx); /* Invalidate the user's handles. Takes no lock: for a forked child. */

    unsigned requests; /* bits 1 << enum rk_req_type: requests of describe and explain */
    void (*describe)(const struct rank_request *req, struct rk_wait_for *out);
    void (*explain)(const struct rank_request *req); /* Report why the request failed (arg_error.h). May be NULL. */

    /* Of one room: it takes whole messages of at most 64 bytes, and validates headers from untrusted senders. */
    rk_small_fn small;
    bool (*is_valid)(struct rk_ctx *ctx, const struct rk_peer *peer, const struct rk_hdr *hdr);
    /* Of one room: find registered host memory of this process that a peer may read, or write. Errors are counted. */
    rank_status_t (*memory_at)(struct rk_ctx *ctx, struct rk_peer *peer, struct rk_id mem, uint64_t offset, uint64_t bytes,
                               bool write, void **at);
    struct {
        uint8_t kind; /* below RK_KIND_CHANNEL_FIRST; RK_KIND_NONE ends the list */
        rk_handler_fn handle;
    } frames[RK_ROOM_FRAMES_MAX];
};

/* Register the row and open the room. RANK_ERR_INTERNAL: a frame kind has an owner, or there are too many rooms. */
rank_status_t rk_room_open(struct rk_ctx *ctx, const struct rk_room *room);
/* Close what rk_room_open has opened, in that order. */
void rk_rooms_close(struct rk_ctx *ctx);
/* Invalidate all handles of the user. Takes no lock. No-op before the engine is open. */
void rk_rooms_spoil(struct rk_ctx *ctx);
/* Run the room's progress from now on, after that of the others. Idempotent. */
void rk_room_start_progress(struct rk_ctx *ctx, const struct rk_room *room);
/* Collective over the team. On an error the rooms that have opened it close it. */
rank_status_t rk_rooms_team_open(struct rk_ctx *ctx, struct rank_team *team);
void rk_rooms_team_close(struct rk_ctx *ctx, struct rank_team *team);
/* Let each room add to pending of the teams. */
void rk_rooms_count_pending(struct rk_ctx *ctx);

#endif
