/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_memory.c: see peer_memory.h. */
#include "collectives/shm/peer_memory.h"
#include "lib/base/conf.h"
#include "lib/mem/segment.h"
#include "lib/node/cma.h"
#include "lib/node/xpmem.h"

#include <stdlib.h>
#include <string.h>

struct rk_place rk_place_of(const struct rk_arena *a, const void *p, size_t bytes)
{
    struct rk_place place = {0, 0, 0};

    if (bytes) {
        place.address = (uint64_t)(uintptr_t)p;
        if (!rk_segment_name(a->team->ctx, p, bytes, &place.segment, &place.at))
            rk_xpmem_offer(a->node);
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

/* The member's attached memory; NULL: it cannot be attached. */
static struct rk_xpmem *attached_member(struct rk_arena *a, int r)
{
    const char *why;

    if (!a->far && rk_conf.large != RK_CONF_LARGE_CMA && rk_xpmem_works(&why))
        a->far = calloc((size_t)a->n, sizeof(*a->far));
    if (a->far && !a->far[r])
        a->far[r] = rk_xpmem_of(a->node, a->slot_of[r]);
    return a->far ? a->far[r] : NULL;
}

rank_status_t rk_peer_read(struct rk_arena *a, int r, const struct rk_place *place, size_t from, void *to, size_t bytes)
{
    const char *here = rk_peer_mapped(a, place, from, bytes);
    struct rk_xpmem *far = here ? NULL : attached_member(a, r);
    int slot = a->slot_of[r];
    rank_status_t st;

    if (here) {
        memcpy(to, here, bytes);
        return RANK_OK;
    }
    if (far && rk_xpmem_read(far, to, place->address + from, bytes))
        return RANK_OK;
    st = rk_cma_read(a->node->slots[slot].pid, to, place->address + from, bytes);
    return st && rk_node_is_going(a->node, slot) ? RANK_ERR_PEER_DEAD : st;
}

void rk_peers_forget(struct rk_arena *a)
{
    for (int r = 0; a->far && r < a->n; r++)
        rk_xpmem_close(a->far[r]);
    free(a->far);
    a->far = NULL;
}
