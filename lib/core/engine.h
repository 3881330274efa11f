/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h: peers, the channels that are open, progress, and the one way to wait.
 */
#ifndef RK_CORE_ENGINE_H
#define RK_CORE_ENGINE_H

#include "lib/base/status_page.h"
#include "lib/base/ctx.h"
#include "lib/core/channel.h"
#include "lib/core/request.h"

#include <pthread.h>

enum { RK_CHANNELS_MAX = 4, RK_HOOKS_MAX = 8 };

struct rk_lives;
struct rk_threads;
struct rk_wait_for;
struct rk_world;

typedef int (*rk_hook_fn)(struct rk_ctx *ctx);
typedef void (*rk_death_fn)(struct rk_ctx *ctx, struct rk_peer *peer);
/* Says what a condition waits for; see describe.h. */
typedef bool (*rk_tell_fn)(struct rk_ctx *ctx, bool (*cond)(void *), void *arg,
                           struct rk_wait_for *out);

/* An epoll that holds the doorbell and the channels' descriptors. */
struct rk_epoll {
    int fd;       /* -1: not yet */
    int channels; /* the first so many open ones are in it */
};

struct rk_engine {
    struct {
        const struct rk_channel *ops;
        void *state;
    } open[RK_CHANNELS_MAX];
    int nopen;
    struct { /* those of them that have to be polled */
        int (*progress)(struct rk_ctx *, void *);
        void *state;
    } polled[RK_CHANNELS_MAX];
    int npolled;
    int nhooks;
    rk_hook_fn hooks[RK_HOOKS_MAX];   /* run on every progress: schedules */
    rk_death_fn on_death[RK_HOOKS_MAX]; /* p2p, collectives; lower rooms first */
    int ndeath;
    rk_handler_fn handler[RK_KIND_COUNT];
    rk_small_fn small;
    /* p2p's, while it holds messages of others whose ends may be what everybody waits for: to be called by who waits for
     * cond, for waited ns, and to whom nothing at all has come for quiet ns. True: call again in a millisecond. NULL: there are
     * none. */
    bool (*stuck)(struct rk_ctx *, bool (*cond)(void *), void *arg, uint64_t now, uint64_t quiet, uint64_t waited);
    struct rk_link leavings; /* memory that begins with its link, and that channels may write to until they are closed */
    /* p2p's: may the peer have sent a message with such a header? What it refuses it has counted. Asked by channels
     * to which anything may come. */
    bool (*claims_hold)(struct rk_ctx *, const struct rk_peer *, const struct rk_hdr *);
    rk_tell_fn tells[RK_HOOKS_MAX];
    int ntells;

    struct rk_peer **peers; /* by number (procs.h): my world, then others; NULL until needed */
    int npeers;
    struct rk_world *worlds; /* other jobs, the last first */
    uint64_t job;            /* the id of ours */
    void *card;              /* what a channel that has one told of me */
    size_t card_len;
    struct rk_link busy;    /* peers with pending sends */
    uint32_t unsent;        /* frames of others than p2p that wait for room, and are offered again by a hook */
    uint32_t held;          /* links of channels that hold frames back, for room or company: nobody rings for it (rk_engine_hold) */
    void (*flush_pending)(struct rk_ctx *, struct rk_peer *); /* p2p's: retry a peer's queue */

    struct rk_threads *threads;   /* threads.h; NULL: calls come one at a time */
    struct rk_requests *requests; /* pool and names: request.c */
    struct rk_link calls; /* done requests whose callbacks are to be called: p2p's callback.c */
    bool calling;         /* one of them runs */

    bool finalizing;              /* who leaves now is missed by nobody */
    bool parting;                 /* all that was sent has left; it is waited for the others to come so far, who then go */
    bool alone;                   /* this one leaves before the others have come so far: somebody is dead */
    uint32_t deaths_seen;         /* of node->head->deaths */
    pthread_mutex_t deaths_lock;  /* the table below grows, and PMIx's thread writes there */
    _Atomic uint64_t *boot_dead;  /* a bit for each number, set by PMIx's thread */
    _Atomic uint32_t boot_deaths; /* counts them */
    uint32_t boot_deaths_seen;
    uint64_t doubted_ns;    /* when somebody had last been waited for who could not be reached, and was not told of as dead; or 0 */
    struct rk_lives *lives; /* peer_liveness.h: NULL: the launcher tells of deaths, or all are on this host */
    struct {                /* wait.c: where ranks share cores */
        uint64_t since_ns;  /* it has been looked on without a yield; 0: there has just been one */
        uint32_t missed;    /* so often in turn it was in vain, */
        uint32_t pass;      /* and so often more it will not be tried */
    } linger;
    struct {                /* there, too: calls that look and do not wait */
        uint64_t since_ns;  /* the first of these */
        uint32_t vain;      /* so many in turn brought nothing, */
        bool again;         /* after it has made way for that */
    } looks;
    uint32_t ticks;         /* progress calls, for the rare checks */
    uint32_t news_left;     /* progress calls that bring something, until the next look at the clock; the last was at */
    uint64_t looked_ns;
    uint64_t next_check_ns; /* when to look at the life locks again */
    uint64_t spin_ns;
    struct rk_epoll naps;   /* our own; there if a channel has a descriptor */
    struct rk_watch {       /* event_fd.c: the user's */
        struct rk_epoll epoll;
        int timer;          /* in it, or -1 */
        enum { RK_WATCH_OFF, RK_WATCH_ASLEEP, RK_WATCH_TOLD } state;
        uintptr_t owner;    /* the thread that has armed it */
        bool missed;        /* while it was awake another thread did something: it is to look once more */
    } watch;
};

/* After boot and node are there. Opens no channel. */
rank_status_t rk_engine_open(struct rk_ctx *ctx);
/* Closes channels, peers and requests. NULL state is fine. */
void rk_engine_close(struct rk_ctx *ctx);

/* Channels are tried for a peer in the order in which they were opened. card and len as for
 * rk_channel.open. */
rank_status_t rk_engine_open_channel(struct rk_ctx *ctx, const struct rk_channel *ops, void *card,
                                     size_t *len);
/* Once all of the node have joined: how to wait, whose deaths to hear of. */
rank_status_t rk_engine_settle(struct rk_ctx *ctx);
/* The cores of this host are fewer than the ranks of all its jobs: who waits is to yield. */
void rk_engine_crowded(struct rk_ctx *ctx);
bool rk_engine_has(const struct rk_ctx *ctx, const struct rk_channel *ops);

/* The peer of a number, which is in range (a world rank is one), made on first use; NULL when out of
 * memory. */
struct rk_peer *rk_engine_peer(struct rk_ctx *ctx, int number);
/* As peers name it; NULL if it is in no job that is known, or out of memory. */
struct rk_peer *rk_engine_find_peer(struct rk_ctx *ctx, struct rk_procid id);
/* The card that a peer has published, or that came with the introduction. As rk_boot_get. */
rank_status_t rk_peer_card(struct rk_peer *peer, const char *key, void *data, size_t *len);
/* A number's slot in the segment of this node, or -1 if it is not in it. */
int rk_engine_local_slot(struct rk_ctx *ctx, int number);
/* First contact: picks the first open channel that reaches the peer. RK_AGAIN: none does, which may be because its process has
 * ended: of another host that is told by the launcher, and the news may still be on its way. To be asked again after
 * progress, a second at most and once for each peer. */
rank_status_t rk_peer_try_connect(struct rk_peer *peer);
/* The same for who cannot put it off: a call of the user's, which waits, and makes progress meanwhile. Not from within progress. */
rank_status_t rk_peer_connect(struct rk_peer *peer);
/* For channels, of a peer that could not be reached: RANK_ERR_PEER_DEAD, RK_AGAIN, or RANK_ERR_UNREACHABLE: it is no death. */
rank_status_t rk_engine_why_unreached(struct rk_peer *peer);
/* Say, from any thread, that a peer is gone; the next progress call acts on it. */
void rk_engine_report_death(struct rk_ctx *ctx, int number);
/* Complete everything that depends on the peer; idempotent. Never from within a channel. */
void rk_peer_died(struct rk_peer *peer);
/* The program has closed what channels with a descriptor need: all peers on them are as dead. Never from within a channel. */
void rk_engine_lost_channels(struct rk_ctx *ctx);

/* For messages, behind the rank. */
const char *rk_peer_whose(const struct rk_peer *peer);

void *rk_engine_state(struct rk_ctx *ctx, const struct rk_channel *channel);

/* Look at the life locks of the node now, and say when to look again. */
void rk_engine_check_lives(struct rk_ctx *ctx, uint64_t now);

/* A frame is refused: counted by the room that does so, and where the launcher can look it up. */
RK_INLINE void rk_engine_refused(struct rk_ctx *ctx, uint64_t *count)
{
    ++*count;
    if (ctx->board)
        rk_board_refused(ctx->board);
}

/* Queue the peer for rk_progress to retry its pending sends. */
RK_INLINE void rk_engine_mark_busy(struct rk_ctx *ctx, struct rk_peer *peer)
{
    if (!peer->queued) {
        peer->queued = 1;
        rk_list_append(&ctx->engine->busy, &peer->busy);
    }
}

/* A channel holds frames back for this link, which gets to the end of the channel's list; and it has let them go. Progress
 * tries again; who sleeps meanwhile has to do so shortly. */
RK_INLINE void rk_engine_hold(struct rk_ctx *ctx, struct rk_link *list, struct rk_link *link)
{
    ctx->engine->held += (uint32_t)rk_list_empty(link);
    rk_list_remove(link);
    rk_list_append(list, link);
}

RK_INLINE void rk_engine_let_go(struct rk_ctx *ctx, struct rk_link *link)
{
    ctx->engine->held -= (uint32_t)!rk_list_empty(link);
    rk_list_remove(link);
}

/* Poll channels, retry pending sends, run hooks, notice deaths. Returns what was handled. */
int rk_progress(struct rk_ctx *ctx);
/* The same for calls that look and do not wait. They may come seldom, and nobody else may look for deaths here: so each to which
 * nothing has come does, as often as waits do; the others as rk_progress says. */
int rk_progress_once(struct rk_ctx *ctx);

/*
 * Waiting: the only loop round a flag in the library is rk_wait. It polls
 * cond between bouts of progress; spins, yields or sleeps as the configuration
 * and the load of the node say; and looks for deaths now and then. Whoever
 * makes cond true must wake the waiter: frames do; shared-memory flags by
 * rk_node_wake.
 */
struct rk_waiter {
    uint32_t rounds;
    uint32_t told; /* it is on the status board (describe.h) */
    uint32_t busy; /* bouts in which something came */
    uint64_t since; /* nothing has come; 0: it has just now */
    uint64_t begun; /* the wait, as far as the clock was looked at */
    bool yielded;  /* the core has been given up since it began */
    bool unrung;   /* nobody may ring: sleep for a millisecond at most */
    bool background; /* the progress thread: polls for a moment only, and leaves that to others */
};

/* Where ranks share cores: a call that looks and does not wait has found nothing. */
void rk_wait_looked(struct rk_ctx *ctx);

/* One bout: progress, then relax, yield or sleep. */
void rk_wait_step(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg);
/* After one that was told. */
void rk_wait_over(struct rk_ctx *ctx);

RK_INLINE void rk_wait(struct rk_ctx *ctx, bool (*cond)(void *), void *arg)
{
    struct rk_waiter w = {.unrung = false};

    if (cond(arg))
        return;
    do
        rk_wait_step(ctx, &w, cond, arg);
    while (!cond(arg));
    if (rk_unlikely(w.told))
        rk_wait_over(ctx);
}

/* For a condition that may become true without anybody's waking us. */
RK_INLINE void rk_wait_unrung(struct rk_ctx *ctx, bool (*cond)(void *), void *arg)
{
    struct rk_waiter w = {.unrung = true};

    while (!cond(arg))
        rk_wait_step(ctx, &w, cond, arg);
    if (rk_unlikely(w.told))
        rk_wait_over(ctx);
}

#endif
