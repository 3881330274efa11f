/*
 * rma.h: memory that peers may put to and get from.
 *
 * A part for each rank of the team. Parts of ranks on this node are mapped:
 * one-sided operations on them are loads and stores. All others go through the
 * channel that can reach them. The object is made by lib/world/alloc.c, which
 * needs collectives.
 */
#ifndef RK_RMA_RMA_H
#define RK_RMA_RMA_H

#include "lib/mem/segment.h"
#include "lib/p2p/team.h"

#define RK_MEM_MAGIC 0x6d656d31u

struct rank_mem {
    uint32_t magic;
    struct rank_team *team;
    size_t bytes;             /* of a part, as asked for */
    struct rk_segment *segment;
    char **part;              /* [team size] mapped address, or NULL */
    const struct rk_channel *channel; /* for parts that are not mapped; NULL if none */
    struct rk_channel_mem *channel_mem;
    struct rk_link link;      /* in the context's list */
};

RK_INLINE rank_status_t rk_mem_check(const struct rank_mem *mem)
{
    return rk_likely(mem && mem->magic == RK_MEM_MAGIC) ? RANK_OK : RANK_ERR_HANDLE;
}

rank_status_t rk_rma_open(struct rk_ctx *ctx);
/* Destroys what users still hold, before the channels close. */
void rk_rma_close(struct rk_ctx *ctx);

/* An object for a team, with no parts yet; NULL when out of memory. */
struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes);
/* Frees what this process holds of it; NULL and half-made are fine. */
void rk_mem_destroy(struct rank_mem *mem);

#endif
