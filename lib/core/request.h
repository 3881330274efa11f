/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h: represent an operation in flight.
 *
 * One struct for sends, receives and collectives. The caller provides the storage: blocking calls use the stack,
 * schedules embed requests, nonblocking calls take them from a pool.
 */
#ifndef RK_CORE_REQUEST_H
#define RK_CORE_REQUEST_H

#include "lib/base/list.h"
#include "lib/core/frame.h"
#include "lib/core/sendq.h"
#include "lib/data/iov.h"
#include "lib/rank.h"

#include <stdbool.h>

#define RK_REQ_MAGIC 0x72657175u

enum rk_req_type { RK_REQ_SEND, RK_REQ_RECV, RK_REQ_COLL, RK_REQ_RMA, RK_REQ_CONN, RK_REQ_TYPES };
/* Kinds of RK_REQ_RMA. */
enum { RK_REQ_GET, RK_REQ_PUT, RK_REQ_FLUSH, RK_REQ_AMO, RK_REQ_SIGNAL, RK_REQ_KEY, RK_REQ_LIST };

enum {
    RK_REQ_POOLED = 1, /* from the pool: freed by test and wait */
    RK_REQ_SYNC = 2,   /* a send that completes on the match */
    RK_REQ_POSTED = 4, /* a receive in the match tables */
    RK_REQ_QUEUED = 8, /* a send in the peer's send queue */
    RK_REQ_NAMED = 16, /* has an id */
    RK_REQ_SHARED = 32, /* complete from the start and shared: never changed, never freed */
    RK_REQ_WAITED = 64, /* a send; its caller makes progress until it completes */
    RK_REQ_LISTED = 128 /* in a list from which completion removes it */
};

/* Kinds of user handles: field hold, in pooled requests. */
enum {
    RK_HOLD_PERSISTENT = 1, /* test and wait keep it */
    RK_HOLD_ACTIVE = 2,     /* a started persistent request */
    RK_HOLD_CALLS = 4,      /* completion is reported by a callback only */
    RK_HOLD_SHARED = 8,     /* of a context used by several threads */
    RK_HOLD_QUEUED = 16     /* active by rank_start_on; priv[2] and priv[3] are its list of starts */
};

/* A kind of persistent request. */
struct rk_persistent_ops {
    rank_status_t (*start)(struct rank_request *req);
    /* Instead of a start, which is not possible: let the other ranks fail, too. NULL: there are none. */
    void (*fail)(struct rank_request *req, rank_status_t status);
    void (*release)(struct rank_request *req); /* before the user's handle is freed; NULL: it has nothing more */
};

/* The fields that each message touches come first: two lines of a pooled request. */
struct rank_request {
    union {
        struct {
            uint32_t magic;
            uint8_t type;  /* enum rk_req_type */
            uint8_t flags;
            uint8_t hold;  /* RK_HOLD_* */
            volatile bool done;
        };
        volatile uint64_t head; /* the four above as one word: rk_req_is_plain */
    };
    rank_status_t status;
    uint32_t elem; /* element size, for envelope.count */

    struct rk_ctx *ctx;
    struct rk_peer *peer; /* NULL: any source */
    struct rk_view view;
    /* sends: header to send; receives: what to match */
    uint64_t team, tag;
    union {
        struct rk_send_item item; /* while RK_REQ_QUEUED */
        struct {
            struct rk_link link;  /* match bucket, or a list of the channel */
            uint64_t env_tag;     /* result of a receive, with the fields below */
        };
    };
    uint32_t src;         /* sends: own rank; receives: source rank or RK_SRC_ANY */

    /* result of a receive; unset before completion */
    uint32_t env_src;
    uint64_t got;
    union {
        uint64_t sent;
        uint64_t post_seq; /* while RK_REQ_POSTED: order of posting */
    };
    void (*on_done)(struct rank_request *req, void *arg);
    void *arg;

    uint8_t kind;         /* sends: RK_KIND_* that carries it; RMA: RK_REQ_GET... */
    struct rk_id id;      /* while RK_REQ_NAMED */
    uint64_t priv[4];     /* the channel's, during rendezvous */

    /* Users' requests only; unused in others. */
    rank_done_fn call; /* RK_HOLD_CALLS */
    void *call_arg;
    const struct rk_persistent_ops *persistent; /* RK_HOLD_PERSISTENT */
    struct rank_team *on;
    struct rk_pieces pieces; /* target of view.base for a noncontiguous payload */
};

/* Positions of its fields in rank_request.head. */
enum { RK_HEAD_FLAGS = 40, RK_HEAD_HOLD = 48, RK_HEAD_DONE = 56 };
_Static_assert(offsetof(struct rank_request, flags) == RK_HEAD_FLAGS / 8 && offsetof(struct rank_request, hold) == RK_HEAD_HOLD / 8 &&
                   offsetof(struct rank_request, done) == RK_HEAD_DONE / 8,
               "the head of a request is one word");

/*
 * True for a plain user request of one thread (over: that is complete). Reads head as one word, since waits check
 * it for every message; take the lock where there is one.
 */
RK_INLINE bool rk_req_is_plain(const struct rank_request *req, bool over)
{
    uint64_t want = RK_REQ_MAGIC | (uint64_t)RK_REQ_POOLED << RK_HEAD_FLAGS | (uint64_t)over << RK_HEAD_DONE;

    return (req->head & (want | UINT32_MAX | 0xffull << RK_HEAD_HOLD)) == want;
}

#define RK_SRC_ANY ((uint32_t)RANK_ANY_SOURCE)
#define RK_TAG_ANY ((uint64_t)RANK_ANY_TAG)

/* Completes exactly once; runs on_done. Called by channels, p2p and collectives. */
void rk_req_complete(struct rank_request *req, rank_status_t status);
/* Last step of completion; all of it for a request without id and list, if its status matches its result. */
RK_INLINE void rk_req_end(struct rank_request *req, rank_status_t status)
{
    req->status = status;
    req->done = true;
    if (rk_unlikely(req->on_done != NULL))
        req->on_done(req, req->arg);
}

/* Owned by the engine: pool and id table. */
struct rk_requests;
rank_status_t rk_requests_open(struct rk_ctx *ctx);
void rk_requests_close(struct rk_ctx *ctx);
/* Make every request of the user an invalid handle. Takes no lock. */
void rk_requests_spoil(struct rk_ctx *ctx);
/* From now on they belong to a context used by several threads. */
void rk_requests_share(struct rk_ctx *ctx);

/* Pooled requests; request_pool.h has inline forms. */
struct rank_request *rk_req_alloc(struct rk_ctx *ctx);
void rk_req_free(struct rank_request *req);

/* A pooled request that is not complete and has a callback; NULL: there is none. */
const struct rank_request *rk_req_with_callback(const struct rk_ctx *ctx);

/* Ids for the wire; only rendezvous and synchronous sends need one. */
rank_status_t rk_req_name(struct rank_request *req);
void rk_req_unname(struct rank_request *req);
struct rank_request *rk_req_find(struct rk_ctx *ctx, struct rk_id id); /* NULL: stale or invalid */

/* Call fn for each request with an id; fn may complete it. */
void rk_req_each_named(struct rk_ctx *ctx, void (*fn)(struct rank_request *, void *), void *arg);
/* Argument for that: completes req with RANK_ERR_PEER_DEAD if it depends on the peer. */
void rk_req_fail_if_of(struct rank_request *req, void *peer);

/* Wait for a request that the caller owns; returns its status. */
rank_status_t rk_req_await(struct rank_request *req);
/* The same for a blocking call that returns the status: rk_req_result. */
rank_status_t rk_req_wait(struct rank_request *req);
/* A wait, test or callback gives the status of a complete request to the program: report an error. Returns the status. */
RK_COLD rank_status_t rk_req_failed(const struct rank_request *req);
RK_INLINE rank_status_t rk_req_result(const struct rank_request *req)
{
    return rk_likely(req->status == RANK_OK) ? RANK_OK : rk_req_failed(req);
}

void rk_req_envelope(const struct rank_request *req, rank_envelope_t *envelope);

#endif
