/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_memory.c: see peer_memory.h. */
#include "collectives/shm/peer_memory.h"
#include "lib/base/conf.h"
#include "lib/mem/segment.h"
#include "lib/node/cma.h"

#include <string.h>

struct rk_place rk_place_of(const struct rk_arena *a, const void *p, size_t bytes)
{
    struct rk_place place = {0, 0, 0};

    if (bytes) {
        place.address = (uint64_t)(uintptr_t)p;
        rk_segment_name(a->team->ctx, p, bytes, &place.segment, &place.at);
    }
    return place;
}

bool rk_peers_readable(const struct rk_arena *a)
{
    if (rk_conf.cma == RK_CONF_CMA_OFF)
        return false;
    for (int r = 0; r < a->n; r++) {
        const struct rk_node_slot *slot = &a->node->slots[a->slot_of[r]];

        if (r != a->me && !rk_cma_works(slot->pid, slot->probe_addr, slot->probe_word))
            return false;
    }
    return true;
}

const char *rk_peer_mapped(const struct rk_arena *a, const struct rk_place *place, size_t from, size_t bytes)
{
    return place->segment ? rk_segment_at(a->team->ctx, place->segment, place->at + from, bytes) : NULL;
}

rank_status_t rk_peer_read(struct rk_arena *a, int r, const struct rk_place *place, size_t from, void *to, size_t bytes)
{
    const char *here = rk_peer_mapped(a, place, from, bytes);
    int slot = a->slot_of[r];
    rank_status_t st;

    if (here) {
        memcpy(to, here, bytes);
        return RANK_OK;
    }
    st = rk_cma_read(a->node->slots[slot].pid, to, place->address + from, bytes);
    return st && rk_node_is_going(a->node, slot) ? RANK_ERR_PEER_DEAD : st;
}
