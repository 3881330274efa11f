/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner_death.c: report the death of an owner to users of its mapped memory.
 *
 * Loads and stores work on when the owner is gone, and a rank that makes no other calls makes no progress. So
 * calls that complete something (flush, gets, atomics with a result) count, and one in RK_CALLS_PER_CHECK checks: for
 * known deaths, and, when due, the life locks. A rank that calls rarely checks each time.
 */
#include "lib/base/clock.h"
#include "lib/base/timing.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"

/*
 * A death must be detected within a second at any rate of calls. RK_CHECK_BYTES copied count as a call. Where
 * RK_CALLS_PER_CHECK calls take RK_RARE_NS each or longer, each of them checks, as the cost is negligible then.
 */

static bool news(const struct rk_ctx *ctx)
{
    return atomic_load(&ctx->node->head->deaths) != ctx->engine->deaths_seen ||
           atomic_load(&ctx->engine->boot_deaths) != ctx->engine->boot_deaths_seen;
}

static bool owner_death_is_dead(struct rank_mem *mem, int rank)
{
    const struct rk_peer *p = rank == mem->team->rank ? NULL : rk_team_peer(mem->team, rank);

    return p && p->state == RK_PEER_DEAD;
}

/* Count dead owners of parts. A key has one owner; the other ranks of the team have no part. */
static int count_dead(struct rank_mem *mem)
{
    int n = 0;

    if (mem->sort == RK_MEM_SYMMETRIC)
        return mem->team->ndead;
    for (int r = 0; mem->sort == RK_MEM_OPENED && r < mem->team->size; r++)
        n += rk_path_exists(mem, r) && owner_death_is_dead(mem, r);
    return n;
}

void rk_mem_moved_long(struct rank_mem *mem, uint64_t bytes)
{
    uint16_t left = __atomic_load_n(&mem->until_check, __ATOMIC_RELAXED);
    uint64_t calls = bytes / RK_CHECK_BYTES;

    __atomic_store_n(&mem->until_check, (uint16_t)(left > calls ? left - calls : 0), __ATOMIC_RELAXED);
}

rank_status_t rk_mem_check_death_now(struct rank_mem *mem, int peer)
{
    RK_ENTER(mem->ctx);
    uint64_t now = rk_clock_coarse_ns();
    uint16_t calls = now - mem->looked_ns < RK_RARE_NS ? RK_CALLS_PER_CHECK : 0;
    bool reported;
    int ndead;

    mem->looked_ns = now;
    if (now >= mem->ctx->engine->next_check_ns)
        rk_engine_check_deaths(mem->ctx, now);
    if (news(mem->ctx) || mem->ctx->conns) /* a connection's socket shows its end */
        rk_progress(mem->ctx);
    ndead = count_dead(mem);
    __atomic_store_n(&mem->until_check, ndead ? 0 : calls, __ATOMIC_RELAXED);
    if (peer != RANK_ALL)
        return ndead && owner_death_is_dead(mem, peer) ? rk_team_lost(mem->team) : RANK_OK;
    reported = mem->flush_reported == ndead;
    mem->flush_reported = ndead;
    return reported ? RANK_OK : rk_team_lost(mem->team);
}
