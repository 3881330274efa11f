/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.h: choose how the memory of a peer is reached, and move pieces there.
 *
 * A part that is mapped for reads and writes needs no path: calls access struct rank_mem.part themselves. path.c is the one
 * place that acts on the kind of a path. Copies are complete on return. The channel's operations complete a request. What
 * neither moves is a frame that the owner executes (origin.c).
 */
#ifndef RK_RMA_PATH_H
#define RK_RMA_PATH_H

#include "lib/rma/rkey_list.h"
#include "lib/rma/rma.h"

/* What moves the bytes of a piece. */
enum rk_route { RK_ROUTE_MAPPED, RK_ROUTE_CMA, RK_ROUTE_CHANNEL, RK_ROUTE_FRAMES, RK_ROUTES };

/* Pieces of a batch on the stack. LONG: longer pieces take the channel's put and get, shorter ones share frames. */
enum { RK_PIECE_BATCH = 256, RK_PIECE_LONG = 4096, RK_STREAM_MIN = 32768 };

/* Is there a part that calls can reach, at this rank? */
RK_INLINE bool rk_path_exists(const struct rank_mem *mem, int rank)
{
    return mem->part[rank] || (mem->paths && mem->paths[rank].kind != RK_PATH_NONE);
}

/* Has it a path? Then a flush completes what calls have started. */
RK_INLINE bool rk_path_needs_flush(const struct rank_mem *mem, int rank)
{
    return mem->paths && mem->paths[rank].kind != RK_PATH_NONE;
}

/* Is a call complete on return? */
RK_INLINE bool rk_path_copies(const struct rk_path *path)
{
    return path->kind == RK_PATH_MAPPED || path->kind == RK_PATH_CMA;
}

/* Does the channel move so many bytes between the user's memory and the peer's, in no order with frames? */
RK_INLINE bool rk_path_streams(const struct rk_peer *peer, int64_t bytes)
{
    return bytes >= RK_STREAM_MIN && peer->channel && peer->channel->stream;
}

/* The route of a piece of a list. peer: where the part lies. */
enum rk_route rk_path_route(const struct rank_mem *mem, int rank, const struct rk_peer *peer, int64_t bytes);
/* What to add to the offset of a piece on that route: an address, or the place of the memory in its heap. */
int64_t rk_path_base(const struct rank_mem *mem, int rank, enum rk_route route);

/*
 * Find the peer of an unmapped part, connected, and its path. denied: RK_NO_READS or RK_NO_WRITES, if that is
 * forbidden.
 */
rank_status_t rk_path_reach(struct rank_mem *mem, int rank, unsigned denied, struct rk_peer **peer, const struct rk_path **path);

/* Copy pieces to or from memory of this process. Offsets count from base. Returns the bytes. */
uint64_t rk_copy_mapped(bool put, const rank_piece_t *pieces, int64_t n, uint64_t base);
/* The same for memory of another process, at address base there. */
rank_status_t rk_copy_by_cma(bool put, const rank_piece_t *pieces, int64_t n, int pid, uint64_t base);
/* Copy pieces of the part of a rank, on a path that copies. */
rank_status_t rk_path_copy(bool put, const rank_piece_t *pieces, int64_t n, struct rank_mem *mem, int rank);
/*
 * Start a put or a get by the channel, which completes req. offset counts in what the path gives access to. On error
 * nothing was started. RK_AGAIN: there is no room; try again after progress, or use frames.
 */
rank_status_t rk_path_start(bool put, void *local, size_t bytes, struct rk_peer *peer, const struct rank_mem *mem,
                            const struct rk_path *path, size_t offset, struct rank_request *req);
/* Wait until the channel's puts to a part, or to all (RANK_ALL), are visible there. */
rank_status_t rk_path_flush(const struct rank_mem *mem, int rank);
/* Do frames alone lead to the peer of the part? They keep their order, which other paths do not. */
bool rk_path_keeps_order(const struct rank_mem *mem, int rank);

/* ---- the choice, by a key */

/* The owner of keys that are opened, and how it is reached. */
struct rk_key_owner {
    struct rank_team *team;
    struct rk_peer *peer;
    int rank; /* in the team */
    bool self, cma;
    int pid;  /* cma */
};

/* Set self and cma. Connects the peer. */
rank_status_t rk_path_probe(struct rk_key_owner *owner);
/* Choose the path to memory whose key the owner has confirmed. own: that memory, if the owner is this process. */
rank_status_t rk_path_choose(struct rank_mem *mem, const struct rk_key_owner *owner, const struct rk_read_key *key,
                             const struct rank_mem *own);

#endif
