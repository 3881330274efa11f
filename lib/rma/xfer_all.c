/* SPDX-License-Identifier: BSD-3-Clause */
/* xfer_all.c: find and end the lists of a peer, a team, a memory or a context. */
#include "lib/rma/xfer.h"

void rk_xfers_open(struct rk_rma *rma)
{
    rk_list_init(&rma->xfers.running);
    rk_list_init(&rma->xfers.waiting);
    rk_list_init(&rma->xfers.idle);
    rk_list_init(&rma->xfers.notices);
}

/* Which transfers to end: those for which fits returns true. */
typedef bool (*fits_fn)(const struct rk_xfer *x, const void *arg);

static struct rk_xfer *find_active(const struct rk_rma *rma, fits_fn fits, const void *arg)
{
    const struct rk_link *heads[2] = {&rma->xfers.running, &rma->xfers.waiting};
    struct rk_link *l;

    for (int i = 0; i < 2; i++) {
        rk_list_for_each(l, heads[i])
        {
            struct rk_xfer *x = rk_list_entry(l, struct rk_xfer, link);
            if (fits(x, arg))
                return x;
        }
    }
    return NULL;
}

static void abort_all(struct rk_rma *rma, fits_fn fits, const void *arg, rank_status_t status)
{
    struct rk_xfer *x;

    while ((x = find_active(rma, fits, arg)) != NULL) /* each ends others, perhaps */
        rk_xfer_abort(x, status);
}

static bool goes_on_with(const struct rk_xfer *x, const void *peer)
{
    return !x->status && x->peer == peer;
}

static bool goes_on_in(const struct rk_xfer *x, const void *team)
{
    return !x->status && x->team == team;
}

static bool goes_on(const struct rk_xfer *x, const void *arg)
{
    (void)arg;
    return !x->status;
}

static bool is_of(const struct rk_xfer *x, const void *mem)
{
    for (uint32_t i = 0; i < x->nmems; i++) {
        if (x->mems[i].mem == mem)
            return true;
    }
    return false;
}

void rk_xfers_peer_lost(struct rk_peer *peer)
{
    abort_all(peer->ctx->rma, goes_on_with, peer, rk_peer_lost(peer));
}

void rk_xfers_team_over(struct rk_ctx *ctx, const struct rank_team *team)
{
    abort_all(ctx->rma, goes_on_in, team, RANK_ERR_CLOSED);
}

/* It must not access the memory any more. */
static void forget_mem(struct rk_xfer *x, struct rank_mem *mem)
{
    for (uint32_t i = 0; i < x->nmems; i++) {
        if (x->mems[i].mem == mem) {
            x->mems[i].mem = NULL;
            rk_mem_add_lists(mem, -1);
            x->stale = true;
        }
    }
}

void rk_xfers_mem_over(struct rank_mem *mem)
{
    struct rk_rma *rma = mem->ctx->rma;
    struct rk_xfer *x;
    struct rk_link *l;

    rk_list_for_each(l, &rma->xfers.idle)
        forget_mem(rk_list_entry(l, struct rk_xfer, link), mem);
    while ((x = find_active(rma, is_of, mem)) != NULL) {
        forget_mem(x, mem);
        rk_xfer_abort(x, RANK_ERR_HANDLE);
    }
}

bool rk_xfers_pending(const struct rank_mem *mem, const struct rk_peer *peer)
{
    const struct rk_xfers *all = &mem->ctx->rma->xfers;
    const struct rk_link *heads[2] = {&all->running, &all->waiting}, *l;

    for (int i = 0; i < 2; i++) {
        rk_list_for_each(l, heads[i])
        {
            const struct rk_xfer *x = rk_container_of(l, const struct rk_xfer, link);
            if ((!peer || x->peer == peer) && is_of(x, mem))
                return true;
        }
    }
    return false;
}

void rk_xfers_close(struct rk_rma *rma)
{
    abort_all(rma, goes_on, NULL, RANK_ERR_STATE);
}

/* Channels may still access what they have requests of, until they are closed. */
static void leave_all(struct rk_ctx *ctx, struct rk_link *list)
{
    while (!rk_list_empty(list)) {
        struct rk_link *l = list->next;

        rk_list_remove(l);
        rk_list_append(&ctx->engine->leavings, l);
    }
}

void rk_xfers_free(struct rk_ctx *ctx)
{
    struct rk_xfers *all = &ctx->rma->xfers;

    while (!rk_list_empty(&all->running))
        rk_xfer_sleep(rk_list_entry(all->running.next, struct rk_xfer, link));
    leave_all(ctx, &all->waiting);
    leave_all(ctx, &all->notices);
    leave_all(ctx, &all->idle);
}
