/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h: wait for an event: the one loop around a flag.
 *
 * A wait is an object on the stack of the waiting call, mostly the first member of a struct that holds what the
 * condition reads. It polls the condition between rounds of progress; spins, yields or sleeps by configuration and
 * load; and checks for deaths. Code that makes a condition true must wake the waiter: frames do it themselves,
 * shared-memory flags by rk_node_wake.
 *
 * Three loops of channels are exceptions. They run within progress, where no wait may begin:
 *
 *   - the cooperative copy of shm waits up to 20 us for the sender's last chunk, which needs no message then;
 *   - the offer of shm waits up to 1.5 us for the sender to accept, before it copies alone;
 *   - ucx waits up to 200 ms until UCP has returned the requests of a dead peer, so that their buffers are free.
 */
#ifndef RK_CORE_WAIT_H
#define RK_CORE_WAIT_H

#include "lib/base/compiler.h"
#include "lib/base/list.h"
#include "lib/core/request.h"

#include <stdbool.h>
#include <stdint.h>

struct rk_ctx;
struct rk_peer;
struct rk_wait_for;

enum rk_wait_kind {
    RK_FOR_OTHER,
    RK_FOR_SEND = RK_REQ_SEND + 1, /* and so on: a request's type + 1 */
    RK_FOR_RECV,
    RK_FOR_COLL,
    RK_FOR_RMA,
    RK_FOR_CONN
};

struct rk_wait {
    /* Set by the caller. */
    const struct rk_peer *peer; /* the one process that it is for; NULL: several, any or none */
    void (*describe)(const struct rk_wait *w, struct rk_wait_for *out); /* NULL: a put, get or atomic (describe.h) */
    uint8_t kind;     /* enum rk_wait_kind */
    bool no_doorbell; /* no doorbell may ring: sleep 1 ms at most */
    bool background;  /* the progress thread: polls briefly, then leaves polling to others */
    uint64_t deadline; /* rk_clock_ns at which late becomes true; 0: never */

    /* Set by rk_wait. */
    bool reported; /* on the status board, or its earlier slices were */
    bool yielded;  /* has yielded since it began */
    bool late;     /* the deadline has passed: over must return true then */
    /* Evaluated with the lock only, by any thread. Stays true once true. */
    bool (*over)(struct rk_wait *w);
    uint32_t rounds;
    uint32_t busy;  /* rounds in which something came */
    uint64_t since; /* idle since; 0: something has just come */
    uint64_t begun; /* start of the wait, when first checked; 0: not checked yet */

    /* Set by rk_threads_wait (threads.c). */
    bool deep;  /* in a long sleep: a leaving poller has to wake it */
    bool woken; /* counted in rk_threads.nwoken */
    _Atomic uint32_t state;
    uint32_t sleeps, passes;
    uintptr_t thread;
    struct rk_link link; /* in rk_threads.waiting */
};

/* One round: progress, then relax, yield or sleep. */
void rk_wait_step(struct rk_ctx *ctx, struct rk_wait *w);
/* Call after a wait that was reported or late. */
void rk_wait_over(struct rk_ctx *ctx, struct rk_wait *w);
/* Call before a wait with a deadline: it may be a slice of a wait. */
void rk_wait_resume(struct rk_wait *w);

/* Wake the thread of a struct rk_ctx that waits. Any thread. */
void rk_wait_wake(void *ctx);

/* Of a request: rk_req_wait. */
struct rk_req_wait {
    struct rk_wait wait;
    struct rank_request *req;
};

/* For a wait that is not over. Inline, so that each round calls a known condition directly. */
RK_INLINE void rk_wait_on(struct rk_ctx *ctx, struct rk_wait *w, bool (*over)(struct rk_wait *))
{
    w->over = over;
    w->reported = w->yielded = w->late = false;
    w->rounds = w->busy = 0;
    w->since = w->begun = 0;
    if (rk_unlikely(w->deadline != 0))
        rk_wait_resume(w);
    do
        rk_wait_step(ctx, w);
    while (!over(w));
    if (rk_unlikely(w->reported | w->late))
        rk_wait_over(ctx, w);
}

/* The deadline for a timeout of the user. 0, for ever, if that is negative or beyond the clock. */
uint64_t rk_wait_deadline_in(uint64_t timeout_ns);
RK_INLINE uint64_t rk_wait_deadline(int64_t timeout_ns)
{
    return timeout_ns < 0 ? 0 : rk_wait_deadline_in((uint64_t)timeout_ns);
}
/* Has the deadline passed by now? Sets late. */
RK_INLINE bool rk_wait_is_late(struct rk_wait *w, uint64_t now)
{
    if (w->deadline && now >= w->deadline)
        w->late = true;
    return w->late;
}

RK_INLINE void rk_wait(struct rk_ctx *ctx, struct rk_wait *w, bool (*over)(struct rk_wait *))
{
    if (!over(w))
        rk_wait_on(ctx, w, over);
}

#endif
