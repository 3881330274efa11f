/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_internal.h: share declarations between the files of lib/rma.
 *
 * An origin operation makes frames of a call and waits for the replies. The target executes
 * them. Frames to a peer leave in the order of the calls. What finds no room waits in the peer's send queue.
 */
#ifndef RK_RMA_RMA_INTERNAL_H
#define RK_RMA_RMA_INTERNAL_H

#include "lib/base/secret_id.h"
#include "lib/base/slab.h"
#include "lib/mem/bounce.h"
#include "lib/rma/path.h"
#include "lib/rma/rma_wire.h"
#include "lib/rma/rma.h"

/* Pending requests of one get: the owner must queue its replies. */
enum { RK_ORIGIN_WINDOW = 16 };
/* Pending requests of all calls to one peer. */
enum { RK_REQUESTS_MAX = 512 };

/* What the room counts for a peer. */
struct rk_rma_peer {
    uint32_t nreplies;    /* replies that wait for room, */
    size_t reply_bytes;   /* and their bytes */
    uint32_t pending;     /* requests without a reply */
    struct rk_id failed;  /* origin of the last frame with RK_RMA_WANTS_ERROR that failed here */
    uint64_t posted;      /* number of operations without a reply; */
    uint64_t done;        /* number of them executed, as the reply to a flush has confirmed */
    struct rk_rma_counts counts;
    int unknown;          /* its requests that named no memory */
    rank_status_t owed;   /* error of one of the peer's posted frames here, for its next flush */
};

/* An origin operation: frames of one call to one peer. */
struct rk_origin_op {
    struct rk_send_item item; /* while queued */
    struct rk_ctx *ctx;
    struct rk_peer *peer;
    struct rk_rma_peer *state; /* set when started */
    struct rk_rma_request_head head;
    uint32_t extra_len;
    unsigned char extra[RK_RMA_EXTRA_MAX];
    const rank_piece_t *pieces; /* what to move; npieces 0: one frame without any */
    const struct rk_id *ids;    /* a list: the owner's id of the memory of each piece; NULL: all are of head.mem */
    rank_piece_t one;
    int64_t npieces;
    size_t shift;        /* added to their offsets in the owner's memory */
    int64_t next;        /* first piece not completely sent or requested, */
    size_t in;           /* and bytes of it that were */
    uint32_t inflight;   /* pending replies */
    uint64_t moved;      /* bytes in the frames sent */
    uint64_t limit;      /* a put of a list pauses when it has moved so many */
    bool named, pooled, queued, sent;
    rank_status_t status;
    uint64_t before;     /* result of an atomic */
    uint64_t covers;     /* a flush: posted operations that it covers */
    struct rank_request *req; /* completed with it; or NULL */
    uint32_t open;       /* a get: a bit for each pending request: */
    struct {
        uint64_t at, in;
        size_t bytes;    /* bytes of the reply, unless it is an error */
    } requested[RK_ORIGIN_WINDOW]; /* last: rk_origin_init leaves them */
};

/* Copies to own device memory, for puts of peers (target_store.c). */
enum { RK_STORES_MAX = 4, RK_STORE_MIN = 4096 /* bytes of a frame */ };
struct rk_stores {
    struct rk_store {
        struct rk_bounce *buffer;
        int peer; /* its number */
        char *to;
        const struct rk_kind *kind;
    } of[RK_STORES_MAX + 1]; /* the oldest first; behind those that have begun, the one that collects data */
    int begun;
    bool collects;
    struct rk_id mem; /* all are of it */
};

struct rk_rma {
    struct rk_link mems, heaps;
    struct rk_secret_ids mem_ids;
    struct rk_handles op_ids; /* a reply counts only if it comes from the peer of the request */
    struct rk_hash_table opened; /* keys, by nonce */
    struct rk_rma_peer **peers; /* by the peer's number */
    int npeers;
    struct rk_bounce_pool bounces; /* for buffers in memory of devices */
    struct rk_stores stores;
    struct rk_xfers {       /* transfers of lists: xfer.h */
        struct rk_link running, waiting, idle;
        struct rk_link notices; /* that have not left yet */
        int nrunning;
        uint64_t serial;    /* of the lists that have been checked */
        bool moving;        /* a step runs: none begins */
    } xfers;
    struct rk_slab ops;    /* chained through the link of item */
    int deaths;             /* of peers in any job */
    uint64_t bad_frames;
    bool unknown;           /* the request that is executed names no memory (target.c) */
};

/* Own memory of this id; NULL: there is none. */
RK_INLINE struct rank_mem *rk_mem_named(const struct rk_rma *rma, struct rk_id id)
{
    struct rk_hash_node *node = rk_secret_id_find(&rma->mem_ids, id);

    return rk_likely(node != NULL) ? rk_container_of(node, struct rank_mem, by_id) : NULL;
}

/* ---- mem.c */

/* Is this key the owner's? */
bool rk_key_is(const struct rank_mem *mem, uint64_t nonce, uint64_t sum);
void rk_key_record_free(struct rank_mem *mem);
/* Check a user's handle, of memory of that sort. */
rank_status_t rk_mem_check_sort(const char *call, const rank_mem_t *mem, enum rk_mem_sort sort);
/* Free the object itself. Handles of users stay readable for a while. */
void rk_mem_free(struct rank_mem *mem);

/* NULL: out of memory. */
struct rk_rma_peer *rk_rma_peer_of(struct rk_ctx *ctx, struct rk_peer *peer);
void rk_rma_peers_destroy(struct rk_rma *rma);

/* ---- origin.c */

/* Initialize an operation without pieces and operands. */
void rk_origin_init(struct rk_origin_op *op, struct rk_peer *peer, enum rk_rma_op kind, struct rk_id mem);
void rk_origin_add(struct rk_origin_op *op, const void *extra, uint32_t len);
void rk_origin_move(struct rk_origin_op *op, void *local, size_t bytes, size_t offset);
/* Take one from a pool, to which it returns when complete; NULL: out of memory. */
struct rk_origin_op *rk_origin_new(struct rk_peer *peer, enum rk_rma_op kind, struct rk_id mem);
/*
 * Send what there is room for. Without RK_RMA_WANTS_REPLY it is complete when all is sent. On error nothing was
 * started, and a pooled operation is freed.
 */
rank_status_t rk_origin_start(struct rk_origin_op *op);
/* Start and wait, for an operation that the caller owns. kind: RK_REQ_GET and so on. */
rank_status_t rk_origin_run(struct rk_origin_op *op, uint8_t kind);
size_t rk_origin_frame_max(const struct rk_peer *peer);
/* Fail the operations that wait for room. */
void rk_origin_drop(struct rk_ctx *ctx);
void rk_origin_fail(struct rk_origin_op *op, rank_status_t status);
/* Send no more of an operation of a list. It is complete, with status, when what has been requested has been replied to. */
void rk_origin_stop(struct rk_origin_op *op, rank_status_t status);
/* Is it a put that has reached its limit? */
RK_INLINE bool rk_origin_pauses(const struct rk_origin_op *op)
{
    return op->limit && op->moved >= op->limit;
}
/* Raise the limit of a put that pauses, and send what there is room for. It may complete. */
void rk_origin_resume(struct rk_origin_op *op, uint64_t more);
void rk_origin_replied(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload, const struct rk_rndv *rndv);

/* ---- move.c */

/*
 * Put or get, for checked arguments, bytes > 0 and unmapped host memory. out NULL: the call waits. Otherwise *out gets the
 * request of a call that continues, in mem's list, and is unchanged if the call is complete.
 */
rank_status_t rk_move_remote(bool put, void *local, size_t bytes, int rank, struct rank_mem *mem, size_t offset, rank_request_t *out);
/* The same for pieces of any part, which may be empty. The call waits. */
rank_status_t rk_move_pieces(bool put, const rank_piece_t *pieces, int64_t n, int rank, struct rank_mem *mem);
/* rma_kind.c: the same for pieces of any kind. */
rank_status_t rk_stage_pieces(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem);

/* ---- vector.c */

/* Do entries of a list overlap locally? Each of them begins as a rank_piece_t. For builds with RK_CHECK_OVERLAP. */
RK_COLD bool rk_local_overlap(const void *entries, size_t each, int64_t n);

/* ---- target.c */
void rk_target_handle(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv);
/* Row memory_at of the room: see room.h. */
rank_status_t rk_target_memory_at(struct rk_ctx *ctx, struct rk_peer *peer, struct rk_id id, uint64_t offset, uint64_t bytes,
                                  bool write, void **at);
/* Drop the replies that wait for room. */
void rk_target_drop(struct rk_ctx *ctx);

/* ---- target_store.c */

/* Copy data of at least RK_STORE_MIN bytes to own memory of a kind, at once or later. */
rank_status_t rk_store(struct rk_peer *peer, struct rk_id mem, char *to, const struct rk_kind *kind, const void *data, size_t bytes);
RK_INLINE bool rk_stores_pending(const struct rk_rma *rma)
{
    return rma->stores.collects || rma->stores.begun > 0;
}
/* Wait until all such data is in place. */
void rk_stores_end(struct rk_ctx *ctx);

/* ---- flush.c */

/* Wait until own puts and atomics to an unmapped part are visible there. */
rank_status_t rk_flush_remote(struct rank_mem *mem, int peer);

/* ---- owner_death.c */

/* Has the owner of a mapped part died? RANK_ALL: one that no flush of all has reported. */
rank_status_t rk_mem_check_death_now(struct rank_mem *mem, int peer);

/*
 * The same at the end of a call that completes something and would not detect it otherwise. Few calls do more than
 * count; after the first death all check.
 */
RK_INLINE rank_status_t rk_mem_check_death(struct rank_mem *mem, int peer)
{
    uint16_t left = __atomic_load_n(&mem->until_check, __ATOMIC_RELAXED);

    if (rk_unlikely(left == 0))
        return rk_mem_check_death_now(mem, peer);
    __atomic_store_n(&mem->until_check, (uint16_t)(left - 1), __ATOMIC_RELAXED);
    return RANK_OK;
}

/* Copied bytes that count as one call. */
enum { RK_CHECK_BYTES = 64 * 1024 };
void rk_mem_moved_long(struct rank_mem *mem, uint64_t bytes);
RK_INLINE void rk_mem_moved(struct rank_mem *mem, uint64_t bytes)
{
    if (rk_unlikely(bytes >= RK_CHECK_BYTES))
        rk_mem_moved_long(mem, bytes);
}

/* ---- register.c */

/* Find the owner of keys. */
rank_status_t rk_key_owner_find(const char *call, struct rank_team *team, int rank, struct rk_key_owner *out);
bool rk_key_is_of(const struct rk_key_owner *owner, const struct rk_key *key);
/* Find the path, and let the owner, or its records, confirm n keys. RANK_ERR_HANDLE: *wrong is one that is none. */
rank_status_t rk_keys_verify(struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, int64_t *wrong);
/* Make the object of a key that has been confirmed. */
rank_status_t rk_key_attach(const struct rk_key_owner *owner, const struct rk_read_key *key, struct rank_mem **out);

/* ---- revoke.c */

/* The owner of a key ends the registration, at the opener. */
rank_status_t rk_key_revoke(struct rk_ctx *ctx, const struct rk_peer *owner, uint64_t nonce);
/* The owner has ended it by rank_dereg: send that to the peers. */
void rk_revoke_posted(const struct rank_mem *mem);

/* describe_rma.c */
void rk_rma_describe(const struct rank_request *req, struct rk_wait_for *out);
void rk_word_describe(const struct rk_wait *w, struct rk_wait_for *out);

#endif
