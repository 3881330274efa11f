/* onesided.c: put, get, fetch-add and flush between all ranks, on memory of each. */
#include "tests/ucx/rig.h"

enum { BLOCK = 40 * 1000, ROUNDS = 200 };

/* Each rank's memory: a counter, then a block for every other rank. */
static void check_blocks(struct rig *r, const unsigned char *mine)
{
    for (int from = 0; from < r->n; from++) {
        const unsigned char *b = mine + 64 + from * BLOCK;
        for (int k = 0; from != r->me && k < BLOCK; k++)
            RIG_CHECK(b[k] == (unsigned char)(from * 31 + r->me + k));
    }
}

void onesided_body(struct rig *r)
{
    size_t bytes = 64 + (size_t)r->n * BLOCK, keylen = RIG_KEY_MAX;
    unsigned char *mine = aligned_alloc(4096, rk_round_up(bytes, 4096)), *tmp = malloc(BLOCK);
    struct rk_channel_mem *mem;
    uint64_t before, sum = 0, want;
    uint32_t low;

    RIG_CHECK(mine && tmp);
    memset(mine, 0, bytes);
    RIG_CHECK(r->ucx->mem_expose(r->ctx, r->state, mine, bytes, &mem, r->shared->key[r->me].bytes,
                                 &keylen) == RANK_OK);
    r->shared->key[r->me].len = keylen;
    r->shared->key[r->me].base = (uint64_t)(uintptr_t)mine;
    rig_meet(r, r->n);
    for (int p = r->n - 1; p >= 0; p--) {
        if (p != r->me)
            RIG_CHECK(r->ucx->mem_attach(mem, rig_peer(r, p), p, r->shared->key[p].bytes,
                                         r->shared->key[p].len, r->shared->key[p].base) == RANK_OK);
    }
    for (int p = 0; p < r->n; p++) {
        if (p == r->me)
            continue;
        for (int k = 0; k < BLOCK; k++)
            tmp[k] = (unsigned char)(r->me * 31 + p + k);
        RIG_CHECK(r->ucx->put(mem, rig_peer(r, p), p, tmp, 8, 64 + (size_t)r->me * BLOCK) ==
                  RANK_OK);
        RIG_CHECK(r->ucx->put(mem, rig_peer(r, p), p, tmp + 8, BLOCK - 8,
                              72 + (size_t)r->me * BLOCK) == RANK_OK);
        memset(tmp, 0, BLOCK); /* the source is ours again */
    }
    RIG_CHECK(r->ucx->flush(mem, NULL) == RANK_OK);
    rig_meet(r, r->n);
    check_blocks(r, mine);
    for (int p = 0; p < r->n; p++) {
        int author = (p + 1) % r->n; /* any but p wrote something there */
        if (p == r->me)
            continue;
        memset(tmp, 0xee, BLOCK);
        RIG_CHECK(r->ucx->get(mem, rig_peer(r, p), p, tmp, BLOCK, 64 + (size_t)author * BLOCK) ==
                  RANK_OK);
        for (int k = 0; k < BLOCK; k++)
            RIG_CHECK(tmp[k] == (unsigned char)(author * 31 + p + k));
    }
    /* Counters: by everyone but the owner; each earlier value is seen once, so their sum is known. */
    for (int i = 0; i < ROUNDS; i++) {
        int p = r->me == 0 ? 1 : 0;
        RIG_CHECK(r->ucx->fetch_add(mem, rig_peer(r, p), p, 1, 8, 0, &before) == RANK_OK);
        sum += before;
        RIG_CHECK(r->ucx->fetch_add(mem, rig_peer(r, p), p, UINT32_MAX, 4, 8, NULL) == RANK_OK);
    }
    RIG_CHECK(r->ucx->flush(mem, NULL) == RANK_OK);
    atomic_fetch_add(&r->shared->word[r->me == 0], sum);
    rig_meet(r, r->n);
    if (r->me < 2) {
        want = (uint64_t)ROUNDS * (uint64_t)(r->me == 0 ? r->n - 1 : 1);
        memcpy(&before, mine, 8);
        memcpy(&low, mine + 8, 4);
        RIG_CHECK(before == want);
        RIG_CHECK(low == (uint32_t)-want);
        RIG_CHECK(atomic_load(&r->shared->word[r->me]) == want * (want - 1) / 2);
        memcpy(&low, mine + 12, 4);
        RIG_CHECK(low == 0); /* a carry into the neighbour */
    }
    rig_meet(r, r->n);
    r->ucx->mem_close(r->state, mem);
    free(mine);
    free(tmp);
}
