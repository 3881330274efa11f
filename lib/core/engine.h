/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h: keep peers and open channels, run progress.
 *
 * Room: the progress engine: peers, requests, locks and threads, waits, detection of dead peers.
 * Callers: lib/channel, lib/p2p, lib/rma, collectives, lib/world.
 * Never: matches messages; moves payload itself.
 * Tests: tests/unit/{request,procs,sendq,room}_test.c, tests/mp/threads, tests/mp/waits.
 */
#ifndef RK_CORE_ENGINE_H
#define RK_CORE_ENGINE_H

#include "lib/base/compiler.h"
#include "lib/base/status_page.h"
#include "lib/base/ctx.h"
#include "lib/base/slab.h"
#include "lib/core/channel.h"
#include "lib/core/request.h"
#include "lib/core/room.h"
#include "lib/core/wait.h"

#include <pthread.h>

enum { RK_CHANNELS_MAX = 5 };

struct rk_threads;
struct rk_wait_for;
struct rk_world;

/* An epoll set with the doorbell and the channels' descriptors. */
struct rk_epoll {
    int fd;       /* -1: not created */
    int channels; /* number of open channels that it holds */
};

enum { RK_GONE_JOBS = 64 };

struct rk_engine {
    struct {
        const struct rk_channel *ops;
        void *state;
    } open[RK_CHANNELS_MAX];
    int nopen;
    struct { /* channels that need polling */
        int (*progress)(struct rk_ctx *, void *);
        void *state;
    } polled[RK_CHANNELS_MAX];
    int npolled;
    int nrooms, nhooks;
    const struct rk_room *rooms[RK_ROOMS_MAX];          /* open ones, in the order of opening (room.c) */
    int (*hooks[RK_ROOMS_MAX])(struct rk_ctx *ctx);     /* progress functions of them */
    rk_handler_fn handler[RK_KIND_COUNT];
    /* Of the rows that have them (room.h). */
    rk_small_fn small;
    bool (*is_valid)(struct rk_ctx *, const struct rk_peer *, const struct rk_hdr *);
    rank_status_t (*memory_at)(struct rk_ctx *, struct rk_peer *, struct rk_id mem, uint64_t offset, uint64_t bytes, bool write,
                               void **at);
    void (*describe[RK_REQ_TYPES])(const struct rank_request *req, struct rk_wait_for *out); /* by type */
    void (*explain[RK_REQ_TYPES])(const struct rank_request *req);
    /*
     * The stall handler of p2p, set while p2p holds unexpected messages on which other ranks may wait.
     * Called by a waiting thread for a wait that has lasted for waited ns, quiet ns of them without traffic. True:
     * call again in 1 ms. NULL: nothing to do.
     */
    bool (*stuck)(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now, uint64_t quiet, uint64_t waited);
    struct rk_link leavings; /* memory that begins with its link, writable by channels until they are closed */
    struct rk_peer **peers; /* by proc number (procs.h): own world, then others; NULL until needed; then kept */
    int npeers;
    struct rk_world *other_jobs; /* other jobs, in the order of their numbers */
    uint64_t job;                /* id of the own job */
    unsigned char *card;         /* card.h */
    size_t card_len;
    struct rk_link busy;     /* peers with a send queue that is not empty */
    uint32_t ndeferred;      /* these peers, and links of channels: no doorbell (rk_engine_defer) */
    struct rk_slab controls; /* queued control frames: sendq.c */
    int64_t conn_memory;     /* conn_memory.h: bytes kept for peers of connections, */
    uint32_t conn_keepers;   /* and how many of these keep any */
    uint32_t stream_starts;  /* of lib/queue, outstanding: no doorbell rings for them */

    struct rk_threads *threads;   /* threads.h; NULL: calls are serialized by the program */
    struct rk_requests *requests; /* pool and ids: request.c */
    struct rk_link calls; /* completed requests with callbacks due: p2p's callback.c */
    bool calling;         /* a callback runs */
    uint32_t callbacks;   /* of requests, not yet begun */
    uint64_t called;      /* callbacks begun */

    bool finalizing;              /* ranks that leave now are no failures */
    bool draining;                /* all own data is sent; waiting until the other ranks are as far */
    bool alone;                   /* leaves without the collective barrier: a rank is dead */
    uint32_t deaths_seen;         /* value of node->head->deaths handled so far */
    pthread_mutex_t deaths_lock;  /* guards the table below, which grows and is written by the PMIx thread */
    _Atomic uint64_t *boot_dead;  /* a bit for each number, set by the PMIx thread */
    _Atomic uint32_t boot_deaths; /* number of bits set */
    uint32_t boot_deaths_seen;
    uint64_t suspected_ns;        /* time of the last wait for an unreachable peer that was not reported dead; or 0 */
    bool watches; /* rk_engine_watch_awaited is of use: there are other hosts */
    uint64_t watched_ns; /* its last run */
    struct {                      /* wait.c: adaptive spin where ranks share cores */
        uint64_t since_ns;        /* start of polling without a yield; 0: just yielded */
        uint32_t failed;          /* failed spins in a row */
        uint32_t skip;            /* spins to skip */
    } spin;
    struct {                /* wait.c: nonblocking test calls */
        uint64_t since_ns;  /* time of the first */
        uint32_t fruitless; /* fruitless ones in a row */
        bool yielded;       /* it has yielded for them once */
    } polls;
    uint32_t ticks;       /* progress calls, for the rare checks */
    uint32_t events_left; /* productive progress calls until the clock is read again; the last time read */
    uint64_t looked_ns;
    uint64_t next_check_ns; /* next check of the life locks */
    uint64_t spin_ns;
    struct rk_epoll sleep_epoll; /* the library's own epoll; used if a channel has a descriptor */
    struct rk_event_fd {         /* event_fd.c: the user's epoll */
        struct rk_epoll epoll;
        int timer;          /* timerfd in it, or -1 */
        enum { RK_EVENT_FD_OFF, RK_EVENT_FD_ASLEEP, RK_EVENT_FD_SIGNALLED } state;
        uintptr_t owner;    /* the thread that armed it */
        bool missed;        /* another thread made progress while it was awake: check once more */
    } watch;
    uint64_t gone_jobs[RK_GONE_JOBS]; /* a ring of the last other jobs that are gone: their frames may still arrive */
    uint32_t ngone;
};

/* Call after boot and node are open. Opens no channel. */
rank_status_t rk_engine_open(struct rk_ctx *ctx);
/* Closes channels, peers and requests. No-op if the state is NULL. ctx->closing: the lock stays until rk_engine_free. */
void rk_engine_close(struct rk_ctx *ctx);
/* No-op if the state is NULL. */
void rk_engine_free(struct rk_ctx *ctx);

/* Channels are tried in the order in which they were opened. card and len as for rk_channel.open. */
rank_status_t rk_engine_open_channel(struct rk_ctx *ctx, const struct rk_channel *ops, void *card,
                                     size_t *len);
/* Call once all ranks of the node have joined: selects the way to wait and the sources of death reports. */
rank_status_t rk_engine_settle(struct rk_ctx *ctx);
/* This host has fewer cores than ranks of all its jobs: waits yield. */
void rk_engine_set_oversubscribed(struct rk_ctx *ctx);
/* Is a channel open by which ranks of the node map each other's memory? */
bool rk_engine_shares_memory(const struct rk_ctx *ctx);

/* Peer of a valid number (own job: the world rank), created on first use; NULL if out of memory. */
struct rk_peer *rk_engine_peer(struct rk_ctx *ctx, int number);
/* Peer of a process id; NULL if its job is unknown or memory is exhausted. */
struct rk_peer *rk_engine_find_peer(struct rk_ctx *ctx, struct rk_procid id);
/*
 * Get a channel's part of the card that a peer has published, or that came with its introduction. RANK_ERR_UNREACHABLE: it
 * has none. *len: bytes at data; then of the part.
 */
rank_status_t rk_peer_card(struct rk_peer *peer, const char *channel, void *data, size_t *len);
/* Slot of a number in this node's segment, or -1. */
int rk_engine_local_slot(struct rk_ctx *ctx, int number);
/*
 * First contact: select the first open channel that reaches the peer. RK_AGAIN: none does, perhaps because the
 * process has ended and the launcher's report is still on its way. Retry after progress; this ends within a
 * second, once a peer.
 */
rank_status_t rk_peer_try_connect(struct rk_peer *peer);
/* Blocking form, for user calls that cannot defer; makes progress meanwhile. Not from within progress. */
rank_status_t rk_peer_connect(struct rk_peer *peer);
/*
 * For channels, about an unreachable peer: RANK_ERR_PEER_DEAD; RK_AGAIN; or RANK_ERR_UNREACHABLE: it is not dead.
 */
rank_status_t rk_engine_why_unreached(struct rk_peer *peer);
/* Report a dead peer, from any thread; the next progress call handles it. */
void rk_engine_report_death(struct rk_ctx *ctx, int number);
/*
 * Disconnect a peer that breaks the rules, or that this process has no memory to serve: report its death, and handle no
 * frame of it from now on, except frames that a rank of a job has already put into shared memory. Logs the reason, once.
 * For handlers of frames.
 */
void rk_peer_condemn(struct rk_peer *peer, const char *why, ...) RK_PRINTF(2, 3);
/* Complete everything that depends on the peer; idempotent. Never from within a channel. */
void rk_peer_died(struct rk_peer *peer);
/*
 * The job of the peer gives its numbers back: end its connection and drop what is its. disconnected: the peer does
 * not take that for a death. Never from within progress.
 */
void rk_peer_drop(struct rk_peer *peer, bool disconnected);
/* The number of the peer has another process: begin anew, with its id and epoch. */
void rk_peer_reset(struct rk_peer *peer);
/* The program has closed descriptors of channels: all peers on them count as dead. Never from within a channel. */
void rk_engine_lost_channels(struct rk_ctx *ctx);

/* For messages: suffix for a rank of another job. */
const char *rk_peer_job_suffix(const struct rk_peer *peer);

/* Own memory of a kind, which peers may have mapped, is about to be freed. */
void rk_engine_memory_freed(struct rk_ctx *ctx, const void *ptr, size_t bytes);

void *rk_engine_state(struct rk_ctx *ctx, const struct rk_channel *channel);

/* How ranks of this node read each other's device memory, and the state of that channel. NULL: no open channel can. */
const struct rk_peer_device_ops *rk_engine_device(const struct rk_ctx *ctx, void **state);

/* Subscribe to the launcher's reports of deaths. */
rank_status_t rk_engine_watch_deaths(struct rk_ctx *ctx);
/* Connect to the ranks of other hosts that a long wait waits for. As rk_threads_wait_fn. */
void rk_engine_watch_awaited(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now);
/* End what depends on peers whose death has been reported. */
void rk_engine_handle_deaths(struct rk_ctx *ctx);

/* Check the life locks of the node now; sets the time of the next check. */
void rk_engine_check_deaths(struct rk_ctx *ctx, uint64_t now);

/* Was it another job of this context, which has been disconnected or is dead? The last RK_GONE_JOBS are kept. */
RK_INLINE bool rk_engine_job_is_gone(const struct rk_ctx *ctx, uint64_t job)
{
    const struct rk_engine *e = ctx->engine;

    for (uint32_t i = 0; i < e->ngone && i < RK_GONE_JOBS; i++) {
        if (e->gone_jobs[i] == job)
            return true;
    }
    return false;
}

/* Count a rejected frame, for its room and for the launcher. */
RK_INLINE void rk_engine_refused(struct rk_ctx *ctx, uint64_t *count)
{
    ++*count;
    if (ctx->board)
        rk_board_refused(ctx->board);
}

/*
 * Frames of this link are deferred: it moves to the end of the list; rk_engine_release ends that. Progress retries;
 * sleeps are short meanwhile.
 */
RK_INLINE void rk_engine_defer(struct rk_ctx *ctx, struct rk_link *list, struct rk_link *link)
{
    ctx->engine->ndeferred += (uint32_t)rk_list_empty(link);
    rk_list_remove(link);
    rk_list_append(list, link);
}

RK_INLINE void rk_engine_release(struct rk_ctx *ctx, struct rk_link *link)
{
    ctx->engine->ndeferred -= (uint32_t)!rk_list_empty(link);
    rk_list_remove(link);
}

/* Nothing waits for room: neither in a send queue nor in a channel. */
RK_INLINE bool rk_sendq_is_idle(const struct rk_engine *e)
{
    return e->ndeferred == 0;
}

/* Poll channels, retry send queues, run hooks, detect deaths. Returns the number of events. */
int rk_progress(struct rk_ctx *ctx);
/*
 * rk_progress for nonblocking calls. These may be rare and the only check for deaths here, so each call without an
 * event checks as often as waits do.
 */
int rk_progress_once(struct rk_ctx *ctx);

/* For oversubscribed hosts: a nonblocking test call has found nothing. */
void rk_wait_polled(struct rk_ctx *ctx);

#endif
