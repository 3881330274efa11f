/* SPDX-License-Identifier: BSD-3-Clause */
/* device_mem.c: exchange handles of device memory, and map the parts of the node. */
#include "lib/world/device_mem.h"
#include "collectives/coll.h"
#include "lib/base/log.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

/* What a rank gives to the others. */
struct part_card {
    struct rk_id id;
    uint32_t len; /* of the handle; 0: only the owner accesses the memory */
    unsigned char handle[RK_KIND_HANDLE_MAX];
};

/* Does a mapping of the rank's memory make sense: is it another process of this node? */
static bool may_map(const struct rank_mem *mem, int r)
{
    const struct rk_peer *p = r == mem->team->rank ? NULL : rk_team_peer(mem->team, r);

    return p && p->local >= 0 && rk_engine_shares_memory(mem->ctx);
}

static void describe_part(struct rank_mem *mem, struct part_card *card)
{
    memset(card, 0, sizeof(*card));
    card->id = mem->id;
    if (mem->kind->export && mem->kind->import)
        card->len = (uint32_t)mem->kind->export(mem->mine, mem->bytes, card->handle, sizeof(card->handle));
}

/* A part that cannot be mapped is reached by its owner. */
static void map_device_part(struct rank_mem *mem, int r, const struct part_card *card)
{
    void *at;

    mem->paths[r] = (struct rk_path){.kind = RK_PATH_FRAMES, .id = card->id, .index = r};
    if (may_map(mem, r) && card->len && card->len <= RK_KIND_HANDLE_MAX && mem->kind->import &&
        mem->kind->import(card->handle, card->len, mem->mine, &at) == RANK_OK)
        mem->part[r] = at;
}

/* The own part, with its id for frames. */
static rank_status_t enter_part(struct rank_mem *mem, const struct rk_kind *kind, void *part)
{
    rank_status_t st;

    mem->magic = RK_MEM_DEVICE_MAGIC;
    mem->kind = kind;
    mem->mine = mem->part[mem->team->rank] = part;
    st = rk_mem_enter(mem);
    if (st) { /* mem->mine is NULL, and nothing frees it later */
        mem->part[mem->team->rank] = NULL;
        kind->free(part);
    }
    return st ? st : rk_mem_add_paths(mem);
}

rank_status_t rk_device_mem_share(struct rank_mem *mem, const struct rk_kind *kind, void *part)
{
    struct rank_team *team = mem->team;
    struct part_card mine = {.len = 0}, *cards = calloc((size_t)team->size, sizeof(*cards));
    rank_status_t st = enter_part(mem, kind, part), end;

    st = rk_worst_of_all(team, st || cards ? st : RANK_ERR_NO_MEMORY);
    if (!st) {
        describe_part(mem, &mine);
        st = rank_allgather(&mine, cards, sizeof(mine), RANK_BYTE, team);
        for (int r = 0; r < team->size && !st; r++) {
            if (r != team->rank)
                map_device_part(mem, r, &cards[r]);
        }
        end = rank_barrier(team); /* all have mapped: the handles may end */
        st = st ? st : end;
    }
    if (mine.len && kind->export_end)
        kind->export_end(mine.handle, mine.len);
    free(cards);
    return st;
}
