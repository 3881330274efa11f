/* SPDX-License-Identifier: BSD-3-Clause */
/* go_private.h: declare contexts and gates, which Go does not see. */
#ifndef GO_PRIVATE_H
#define GO_PRIVATE_H

#include "go_rank.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The users of an object. GO_SHUT refuses new ones. */
typedef struct go_gate {
    _Atomic int64_t users;
} go_gate;

#define GO_SHUT ((int64_t)1 << 62)

struct go_ctx {
    rank_ctx_t ctx;            /* RANK_CTX_NULL: that of rank_init */
    go_gate gate;              /* threads in a call of the library */
    _Atomic int32_t polling;   /* threads that poll for a short time */
    _Atomic int64_t parked;    /* operations that the queue will get */
    _Atomic(go_op *) queue;    /* complete operations, the last one first */
    go_op *ops;                /* all, the newest one first */
    go_op *ordered;            /* those that the dispatcher has taken, in order; its own */
    _Atomic int32_t asleep;    /* the dispatcher reads the descriptor */
    int fd;
};

struct go_team {
    go_ctx *owner;
    rank_team_t team;
    go_gate starts;          /* threads that are about to use the team; short */
    _Atomic int64_t blocked; /* threads that wait in it; a disconnect ends their calls */
};

static inline bool go_gate_enter(go_gate *g)
{
    if (atomic_fetch_add(&g->users, 1) < GO_SHUT)
        return true;
    atomic_fetch_sub(&g->users, 1);
    return false;
}

static inline void go_gate_leave(go_gate *g)
{
    atomic_fetch_sub(&g->users, 1);
}

static inline void go_gate_shut(go_gate *g)
{
    atomic_fetch_or(&g->users, GO_SHUT);
}

static inline void go_gate_reopen(go_gate *g)
{
    atomic_fetch_and(&g->users, ~GO_SHUT);
}

static inline bool go_gate_is_shut(go_gate *g)
{
    return atomic_load(&g->users) >= GO_SHUT;
}

static inline int64_t go_gate_users(go_gate *g)
{
    return atomic_load(&g->users) & (GO_SHUT - 1);
}

/* Begin a call that may wait in the team. Returns false if it is shut. */
static inline bool go_team_enter(go_team *c)
{
    go_ctx *owner = c->owner; /* c may be freed when it blocks nothing */

    if (!go_gate_enter(&owner->gate))
        return false;
    atomic_fetch_add(&c->blocked, 1);
    if (!go_gate_is_shut(&c->starts))
        return true;
    atomic_fetch_sub(&c->blocked, 1);
    go_gate_leave(&owner->gate);
    return false;
}

static inline void go_team_leave(go_team *c)
{
    go_ctx *owner = c->owner;

    atomic_fetch_sub(&c->blocked, 1);
    go_gate_leave(&owner->gate);
}

/* Status of a call that is made while the context, or the team, is not shut; else RANK_ERR_CLOSED. */
#define GO_IF(entered, call, leave)             \
    ({                                          \
        rank_status_t st_ = RANK_ERR_CLOSED;    \
        if (entered) {                          \
            st_ = (call);                       \
            leave;                              \
        }                                       \
        st_;                                    \
    })
#define GO_CONTEXT_CALL(c, call) GO_IF(go_gate_enter(&(c)->gate), call, go_gate_leave(&(c)->gate))
#define GO_TEAM_CALL(t, call) GO_IF(go_team_enter(t), call, go_team_leave(t))

/* Free an operation that its context no longer lists. */
void go_op_free(go_op *op);

#endif
