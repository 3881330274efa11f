/* SPDX-License-Identifier: BSD-3-Clause */
/* roster.c: exchange the addresses of two jobs' ranks. */
#include "lib/dpm/roster.h"
#include "collectives/coll.h"
#include "lib/base/arg_error.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"
#include "lib/node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t job;
    int32_t rank, size; /* of the job */
    uint32_t len, oversubscribed; /* crowded: fewer cores than ranks on its host */
    char host[64];                /* its host name */
    char space[RK_NSPACE_MAX];
    unsigned char card[];
};

static struct entry *at(const struct rk_roster *r, int i)
{
    return (struct entry *)(void *)(r->entries + i * r->stride);
}

static int64_t stride_for(size_t card_len)
{
    return (int64_t)rk_round_up(sizeof(struct entry) + card_len, 8);
}

void rk_roster_clear(struct rk_roster *r)
{
    free(r->entries);
    *r = (struct rk_roster){0};
}

rank_status_t rk_roster_make(struct rk_roster *r, int n, int64_t stride)
{
    *r = (struct rk_roster){0};
    if (n < 1 || n > RK_JOB_SIZE_MAX || stride < stride_for(1) || stride > stride_for(RK_CARD_MAX) ||
        stride % 8)
        return RANK_ERR_BOOT;
    r->entries = calloc((size_t)n, (size_t)stride);
    if (!r->entries) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for the addresses of %d ranks", n);
    }
    r->n = n;
    r->stride = stride;
    return RANK_OK;
}

rank_status_t rk_roster_agree(struct rank_team *team, rank_status_t mine, int64_t *stride)
{
    int64_t in[2] = {mine, -stride_for(team->ctx->engine->card_len)}, all[2] = {0, 0};
    rank_status_t st = rank_allreduce(in, all, 2, RANK_INT64, RANK_MIN, team);

    *stride = -all[1];
    return st ? st : (rank_status_t)all[0];
}

rank_status_t rk_roster_gather(struct rank_team *team, int root, int64_t stride,
                               struct rk_roster *r)
{
    const struct rk_boot *boot = team->ctx->boot;
    const struct rk_engine *e = team->ctx->engine;
    struct entry *mine = calloc(1, (size_t)stride);
    rank_status_t st = rk_worst_of_all(team, mine ? RANK_OK : RANK_ERR_NO_MEMORY);

    if (!st) {
        mine->job = e->job;
        mine->rank = boot->rank;
        mine->size = boot->size;
        mine->len = (uint32_t)e->card_len;
        mine->oversubscribed = team->ctx->node->oversubscribed;
        snprintf(mine->host, sizeof(mine->host), "%s", boot->host);
        snprintf(mine->space, sizeof(mine->space), "%s", boot->job);
        memcpy(mine->card, e->card, e->card_len);
        st = rank_gather(mine, r->entries, stride, RANK_BYTE, root, team);
    }
    free(mine);
    return st;
}

static rank_status_t roster_take(struct rk_ctx *ctx, const struct entry *e, int64_t stride, uint16_t epoch, int *number)
{
    int first;
    rank_status_t st;

    if (e->len == 0 || stride_for(e->len) > stride || e->rank < 0 || e->rank >= e->size ||
        !memchr(e->space, '\0', sizeof(e->space)) || !e->space[0] || !memchr(e->host, '\0', sizeof(e->host))) {
        return rk_fail(RANK_ERR_BOOT, "the address of another job's rank is malformed; do both use the same librank?");
    }
    st = rk_procs_add_job(ctx, e->job, e->size, epoch, &first);
    *number = first + e->rank;
    if (!st && e->job != ctx->engine->job)
        st = ctx->boot->ops->name_job(ctx->boot, e->space, first, e->size);
    /*
     * It runs on this host, too, and its launcher or its own count reports too few cores. Nothing reports when
     * that ends: keep it until the end.
     */
    if (!st && e->oversubscribed && e->job != ctx->engine->job && strcmp(e->host, ctx->boot->host) == 0)
        rk_engine_set_oversubscribed(ctx);
    return st ? st : rk_procs_set_card(ctx, *number, e->card, e->len);
}

rank_status_t rk_roster_take(struct rk_ctx *ctx, const struct rk_roster *r, uint16_t epoch, int *numbers)
{
    rank_status_t st = RANK_OK;

    for (int i = 0; i < r->n && !st; i++)
        st = roster_take(ctx, at(r, i), r->stride, epoch, &numbers[i]);
    return st;
}
