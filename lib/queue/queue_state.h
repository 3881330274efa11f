/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_state.h: keep the starts of a queue.
 *
 * A start runs on a copy of the user's persistent request, so that a request may be started again before the host has
 * waited. The user's request lists its starts in order, and is complete when the list is empty. A start begins when
 * the stream has reached it and it is the first of its request.
 */
#ifndef RK_QUEUE_QUEUE_STATE_H
#define RK_QUEUE_QUEUE_STATE_H

#include "lib/core/engine.h"
#include "lib/queue/queue.h"

#include <pthread.h>

#define RK_QUEUE_MAGIC 0x71756575u

struct rk_start {
    struct rank_queue *queue;
    struct rank_request *req; /* the user's; NULL: the stream did not take the start */
    struct rk_start *next;    /* of the same request, perhaps on another queue */
    bool begun;
    struct rank_request op; /* the copy */
};

struct rank_queue {
    uint32_t magic;
    struct rk_link link; /* in rk_queues.open, or among the memory of freed ones */
    struct rk_ctx *ctx;
    const struct rk_stream_ops *ops;
    struct rk_stream *stream;
    pthread_mutex_t append; /* one thread appends to the stream; taken before the context's lock */
    /* Below: guarded by the context's lock. */
    struct rk_start *starts; /* depth of them; start n at n % depth */
    uint32_t depth;
    uint64_t first, next;    /* outstanding starts are first to next - 1 */
    uint32_t polls;
    uint64_t next_check_ns;  /* of the stream */
    bool appended;           /* since the last poll: begin to poll without sleep */
    rank_status_t broken;    /* the stream has failed */
    rank_status_t status;    /* of the first start that failed */
};

struct rk_queues {
    struct rk_link open;
    struct rk_link closed; /* by rank_finalize: channels may still use the starts */
    bool running;          /* a start begins, which may make progress */
};

RK_INLINE bool rk_queue_is_idle(const struct rank_queue *q)
{
    return q->first == q->next;
}

/*
 * Add a start of the request, which may be started. *was_idle: the host had not started it. RANK_ERR_AGAIN: the queue
 * is full. Call with the context's lock.
 */
rank_status_t rk_queue_add(struct rank_queue *q, struct rank_request *req, uint64_t *number, bool *was_idle);
/* Undo the last add, which the stream did not take. If the start has begun, it ends with the status instead. */
void rk_queue_withdraw(struct rank_queue *q, uint64_t number, bool was_idle, rank_status_t status);

/* List a queue, and unlist it when it is idle. Call with the context's lock. */
void rk_queue_open(struct rank_queue *q);
void rk_queue_unlist(struct rank_queue *q);

/* Memory of a queue; that of a freed one rejects its handle. */
struct rank_queue *rk_queue_alloc(uint32_t depth);
void rk_queue_free_memory(struct rank_queue *q);

#endif
