/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_internal.h: what lib/rma shares inside: jobs, which make frames of a call and wait
 * for the answers; the owner's side; the ways to memory that is not mapped.
 *
 * Frames to one peer leave in the order of the calls. What finds no room waits
 * in the peer's line, and a progress hook offers it again.
 */
#ifndef RK_RMA_RMA_INTERNAL_H
#define RK_RMA_RMA_INTERNAL_H

#include "lib/rma/rma_wire.h"
#include "lib/rma/names.h"
#include "lib/rma/rma.h"

/* Questions of one get that are under way: an owner's answers have to wait somewhere. */
enum { RK_JOB_WINDOW = 16 };
/* And of all calls to one peer. */
enum { RK_ASKED_MAX = 512 };

/* What there is for one peer. */
struct rk_line {
    struct rk_link jobs, answers; /* that wait for room */
    struct rk_link on_busy;
    uint32_t nanswers;
    uint32_t asked;       /* questions that the peer has not answered */
    uint64_t posted;      /* jobs that no answer is asked for, as many as there have been; */
    uint64_t done;        /* the first so many of them are done: an answer to a flush has said so */
    rank_status_t owed;   /* what one of its posted frames met here; told by its flush */
};

/* One call's frames to one peer. */
struct rk_job {
    struct rk_link link;  /* in the line, while something waits for room */
    struct rk_ctx *ctx;
    struct rk_peer *peer;
    struct rk_line *line; /* once it is started */
    struct rk_rma_ask ask;
    uint32_t extra_len;
    unsigned char extra[RK_RMA_EXTRA_MAX];
    const rank_piece_t *pieces; /* what is to move; npieces 0: one frame without any */
    rank_piece_t one;
    int64_t npieces;
    size_t shift;        /* of their offsets in the owner's memory */
    int64_t next;        /* the first piece that is not all sent, or asked for, */
    size_t in;           /* and how much of it is */
    uint32_t inflight;   /* answers to come */
    bool named, pooled, queued, sent, done;
    rank_status_t status;
    uint64_t before;     /* an atomic's answer */
    uint64_t covers;     /* a flush: its line's posted jobs that are before it */
    struct rank_request *req; /* to be completed with it, or NULL */
    uint32_t open;       /* a get: a bit for each of its questions that has no answer yet: */
    struct {
        uint64_t at, in;
        size_t bytes;    /* that the answer has to bring, unless it says why not */
    } asked[RK_JOB_WINDOW]; /* the last: rk_job_init leaves them as they are */
};

struct rk_rma {
    struct rk_link mems, heaps;
    struct rk_names mem_names, job_names;
    struct rk_line **lines; /* by the peer's number */
    int nlines;
    struct rk_link busy;    /* lines with something that waits */
    struct rk_job *free_jobs;
    bool hooked;
    int deaths;             /* of peers, in any job */
    uint64_t bad_frames;
};

/* NULL: out of memory. */
struct rk_line *rk_line_of(struct rk_ctx *ctx, struct rk_peer *peer);
void rk_lines_destroy(struct rk_rma *rma);
/* Once something waits. */
void rk_line_busy(struct rk_ctx *ctx, struct rk_line *line);

/* ---- origin.c */

/* A job with no pieces and no extra. */
void rk_job_init(struct rk_job *job, struct rk_peer *peer, enum rk_rma_op op, struct rk_id mem);
void rk_job_add(struct rk_job *job, const void *extra, uint32_t len);
void rk_job_move(struct rk_job *job, void *local, size_t bytes, size_t offset);
/* From a pool, and goes back there when it is done; NULL: out of memory. */
struct rk_job *rk_job_new(struct rk_peer *peer, enum rk_rma_op op, struct rk_id mem);
void rk_job_free(struct rk_job *job);
void rk_jobs_destroy(struct rk_rma *rma);
/* Sends what there is room for. Without RK_RMA_WANTS_ANSWER it is done when all is sent.
 * An error: nothing was started, and a pooled one is freed. */
rank_status_t rk_job_start(struct rk_job *job);
/* Start and wait; the caller's own job. */
rank_status_t rk_job_run(struct rk_job *job);
rank_status_t rk_job_wait(struct rk_job *job);
bool rk_job_is_done(void *job);
/* Bytes of a frame to a connected peer, all in all. */
size_t rk_job_frame_room(const struct rk_peer *peer);
/* More of it, as there is room. True: the line may go on with the next. */
bool rk_job_push(struct rk_job *job);
void rk_job_fail(struct rk_job *job, rank_status_t status);
void rk_job_answered(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                     const void *payload, const struct rk_rndv *rndv);

/* ---- target.c */
void rk_serve(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
              const void *payload, const struct rk_rndv *rndv);
/* Answers that found no room. False: there is none yet. */
bool rk_serve_retry(struct rk_peer *peer, struct rk_line *line);
void rk_serve_drop(struct rk_ctx *ctx, struct rk_line *line);

/* ---- rma.c */

/* The peer of a part that is not mapped, connected, and the way to the part. denied: what must not be, RK_NO_READS or
 * RK_NO_WRITES. */
rank_status_t rk_far_reach(struct rank_mem *mem, int rank, unsigned denied, struct rk_peer **peer,
                           const struct rk_way **way);
/* By RK_WAY_CMA: the kernel copies, or we do where the part is attached. */
rank_status_t rk_way_put(const struct rk_way *way, uint64_t offset, const void *src, size_t bytes);
rank_status_t rk_way_get(const struct rk_way *way, uint64_t offset, void *dst, size_t bytes);
/* As rank_put and rank_get on checked arguments, more than 0 bytes, memory that is not mapped. */
rank_status_t rk_far_put(const void *src, size_t bytes, int peer, struct rank_mem *mem,
                         size_t offset);
rank_status_t rk_far_get(void *dst, size_t bytes, int peer, struct rank_mem *mem, size_t offset);

/* ---- nonblocking.c */

/* A request for a call that goes on, in mem's list; NULL: out of memory. */
struct rank_request *rk_rma_request(struct rank_mem *mem, struct rk_peer *peer, bool put,
                                    size_t bytes);
/* Puts and atomics of ours to a part that is not mapped are visible there. */
rank_status_t rk_far_flush(struct rank_mem *mem, int peer);

/* ---- owner_death.c */

/* Has the owner of a mapped part died (RANK_ALL: one whose death no flush of all has told)? */
rank_status_t rk_mem_look_now(struct rank_mem *mem, int peer);

/* The same at the end of a call that completes something, where nothing but this would tell. Few of them do more than
 * count; once it is known that somebody died all look. */
RK_INLINE rank_status_t rk_mem_look(struct rank_mem *mem, int peer)
{
    uint16_t left = __atomic_load_n(&mem->looks, __ATOMIC_RELAXED);

    if (rk_unlikely(left == 0))
        return rk_mem_look_now(mem, peer);
    __atomic_store_n(&mem->looks, (uint16_t)(left - 1), __ATOMIC_RELAXED);
    return RANK_OK;
}

/* So many bytes have been copied to or from mapped parts: long copies count for more than a call. */
enum { RK_LOOK_BYTES = 64 * 1024 };
void rk_mem_moved_long(struct rank_mem *mem, uint64_t bytes);
RK_INLINE void rk_mem_moved(struct rank_mem *mem, uint64_t bytes)
{
    if (rk_unlikely(bytes >= RK_LOOK_BYTES))
        rk_mem_moved_long(mem, bytes);
}

/* ---- register.c */

/* Does the owner know this key? */
bool rk_key_is(const struct rank_mem *mem, uint64_t nonce, uint64_t sum);
void rk_key_record_free(struct rank_mem *mem);

/* ---- tell.c */
struct rk_rma_wait; /* signal.c */
bool rk_rma_tell(struct rk_ctx *ctx, bool (*cond)(void *), void *arg, struct rk_wait_for *out);

#endif
