/*
 * alloc.c: symmetric memory: made and freed by all ranks of a team together.
 *
 * On each node the first rank of the team makes one memfd with a part for each
 * of its neighbours, and every rank backs its own part, so that it lies near
 * it and a lack of memory shows here. Where some ranks are not on this node
 * their parts are reached through a channel, whose keys are exchanged.
 */
#include "collectives/coll.h"
#include "lib/base/log.h"
#include "lib/rma/rma.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, KEY_MAX = 1024 - 24 };

struct group_card { /* what each rank tells; the card is a maker's */
    struct rk_memfd_card card;
    int32_t status, pad;
};

struct key_card {
    uint64_t base;
    struct rk_id id;
    uint32_t len;
    int32_t status;
    unsigned char key[KEY_MAX];
};

/* Is rank r's part mapped here: is it me or a neighbour that shm reaches? */
static bool is_neighbour(struct rank_team *team, int r)
{
    struct rk_peer *p;

    if (r == team->rank)
        return true;
    p = rk_team_peer(team, r);
    return p && p->local >= 0 && rk_engine_has(team->ctx, &rk_channel_shm);
}

struct group {
    int maker, size, mine; /* maker: a rank of the team; mine: my place */
};

static struct group find_group(struct rank_team *team)
{
    struct group g = {-1, 0, 0};

    for (int r = 0; r < team->size; r++) {
        if (!is_neighbour(team, r))
            continue;
        if (g.maker < 0)
            g.maker = r;
        if (r == team->rank)
            g.mine = g.size;
        g.size++;
    }
    return g;
}

static rank_status_t worst_of_all(struct rank_team *team, rank_status_t mine)
{
    int32_t all = mine, in = mine;
    rank_status_t st = rank_allreduce(&in, &all, 1, RANK_INT32, RANK_MIN, team);

    return st ? st : (rank_status_t)all;
}

static void map_parts(struct rank_mem *mem, size_t part)
{
    char *at = mem->segment->base + rk_segment_front(part);

    for (int r = 0; r < mem->team->size; r++) {
        if (is_neighbour(mem->team, r)) {
            mem->part[r] = at;
            at += rk_segment_stride(part);
        }
    }
}

/* Make or attach the node's segment and back my part of it. */
static rank_status_t share_node(struct rank_mem *mem, size_t part)
{
    struct rank_team *team = mem->team;
    struct group g = find_group(team);
    struct group_card mine = {.status = RANK_OK}, *cards;
    rank_status_t st;

    cards = malloc((size_t)team->size * sizeof(*cards));
    if (!cards)
        mine.status = RANK_ERR_NO_MEMORY;
    else if (g.maker == team->rank)
        mine.status = rk_segment_create(team->ctx, g.size, part, &mem->segment, &mine.card);
    st = worst_of_all(team, mine.status);
    if (st)
        goto out;
    st = rank_allgather(&mine, cards, sizeof(mine), RANK_BYTE, team);
    if (st)
        goto out;
    if (g.maker != team->rank)
        st = rk_segment_attach(team->ctx, &cards[g.maker].card, &mem->segment);
    if (!st)
        st = rk_memfd_commit(mem->segment->fd,
                             rk_segment_front(part) + (size_t)g.mine * rk_segment_stride(part), part,
                             "rank_alloc");
    st = worst_of_all(team, st);
    if (!st)
        map_parts(mem, part);
out:
    free(cards);
    return st;
}

static rank_status_t attach_keys(struct rank_mem *mem, const struct key_card *cards)
{
    rank_status_t st = RANK_OK;

    for (int r = 0; r < mem->team->size && !st; r++) {
        struct rk_peer *peer;
        if (mem->part[r])
            continue;
        if (cards[r].len > KEY_MAX)
            return RANK_ERR_INTERNAL; /* what came is no card */
        peer = rk_team_peer(mem->team, r);
        st = peer ? rk_peer_connect(peer) : RANK_ERR_NO_MEMORY;
        if (!st)
            st = mem->channel->mem_attach(mem->channel_mem, peer, r, cards[r].key, cards[r].len,
                                          cards[r].base);
        mem->ways[r] = (struct rk_way){.how = RK_WAY_CHANNEL, .id = cards[r].id, .index = r};
    }
    return st;
}

/* Keys for the parts that are not mapped. */
static rank_status_t share_keys(struct rank_mem *mem, size_t part)
{
    struct rank_team *team = mem->team;
    struct key_card *mine = calloc(1, sizeof(*mine));
    struct key_card *cards = calloc((size_t)team->size, sizeof(*cards));
    size_t len = KEY_MAX;
    rank_status_t st = mine && cards ? RANK_OK : RANK_ERR_NO_MEMORY;

    mem->channel = rk_rma_channel(team->ctx);
    if (!st && !mem->channel)
        st = RANK_ERR_UNREACHABLE;
    if (!st)
        st = rk_mem_add_ways(mem);
    if (!st) {
        mem->mine = mem->part[team->rank];
        st = rk_mem_enter(mem);
    }
    if (!st)
        st = mem->channel->mem_expose(team->ctx, rk_engine_state(team->ctx, mem->channel),
                                      mem->part[team->rank], part, &mem->channel_mem, mine->key,
                                      &len);
    if (!st) {
        mine->id = mem->id;
        mine->base = (uint64_t)(uintptr_t)mem->part[team->rank];
        mine->len = (uint32_t)len;
    }
    st = worst_of_all(team, st);
    if (!st)
        st = rank_allgather(mine, cards, sizeof(*mine), RANK_BYTE, team);
    if (!st)
        st = worst_of_all(team, attach_keys(mem, cards));
    free(mine);
    free(cards);
    return st;
}

static bool all_mapped(const struct rank_mem *mem)
{
    for (int r = 0; r < mem->team->size; r++) {
        if (!mem->part[r])
            return false;
    }
    return true;
}

/* Every rank takes the same way through here, or collectives would not meet. */
static rank_status_t make(struct rank_mem *mem, struct rank_team *team, size_t part)
{
    int64_t mapped, everywhere = 0;
    rank_status_t st = share_node(mem, part);

    if (st)
        return st;
    mapped = all_mapped(mem);
    st = rank_allreduce(&mapped, &everywhere, 1, RANK_INT64, RANK_MIN, team);
    if (!st && !everywhere)
        st = share_keys(mem, part);
    return st;
}

rank_status_t rank_alloc(rank_team_t team, rank_mem_kind_t kind, int64_t bytes, uint64_t flags,
                         void **ptr, rank_mem_t *out)
{
    struct rank_mem *mem;
    rank_status_t st = rk_team_check(team);
    size_t part;

    if (st)
        return st;
    if (kind == RANK_MEM_CUDA)
        return RANK_ERR_NOT_SUPPORTED;
    if (kind != RANK_MEM_HOST || flags || !ptr || !out)
        return RANK_ERR_ARG;
    if (bytes < 0)
        return RANK_ERR_COUNT;
    part = rk_round_up((size_t)bytes ? (size_t)bytes : 1, PAGE);
    mem = rk_mem_new(team, (size_t)bytes);
    st = worst_of_all(team, mem ? RANK_OK : RANK_ERR_NO_MEMORY);
    if (!st)
        st = make(mem, team, part);
    if (st) {
        rk_mem_destroy(mem);
        return st;
    }
    *ptr = mem->part[team->rank];
    *out = mem;
    return RANK_OK;
}

rank_status_t rank_free(rank_mem_t *mem)
{
    rank_status_t st;

    if (!mem)
        return RANK_ERR_ARG;
    st = rk_mem_check(*mem);
    if (!st && (*mem)->sort != RK_MEM_SYMMETRIC)
        st = RANK_ERR_HANDLE;
    if (st)
        return st;
    rank_flush(*mem, RANK_ALL);
    st = rank_barrier((*mem)->team); /* nobody reaches for it any more */
    if (st && (*mem)->channel_mem) /* but those may who have not heard of a death: it stays mapped to the end */
        rk_mem_retire(*mem);
    else
        rk_mem_destroy(*mem);
    *mem = RANK_MEM_NULL;
    return st;
}
