/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_onesided.c: put, get and flush between all ranks, many at once. */
#include "tests/ucx/ucx_fixture.h"

enum { BLOCK = 40 * 1000, SLICE = 1000, SLICES = BLOCK / SLICE };

static int nleft;

static void one_done(struct rank_request *req, void *arg)
{
    struct rig *r = arg;

    RIG_CHECK(req->status == RANK_OK);
    nleft--;
}

static bool all_done(void *arg)
{
    (void)arg;
    return nleft == 0;
}

/* A block at another rank, slice by slice without waiting. */
static void by_slices(struct rig *r, struct rk_channel_mem *mem, int p, size_t at, bool put,
                      unsigned char *tmp)
{
    static struct rank_request req[SLICES];

    nleft = SLICES;
    for (int i = 0; i < SLICES; i++) {
        size_t off = at + (size_t)i * SLICE;
        req[i] = (struct rank_request){.type = RK_REQ_RMA, .ctx = r->ctx, .peer = rig_peer(r, p),
                                       .on_done = one_done, .arg = r};
        RIG_CHECK((put ? r->ucx->iput(mem, req[i].peer, p, tmp + i * SLICE, SLICE, off, &req[i])
                       : r->ucx->iget(mem, req[i].peer, p, tmp + i * SLICE, SLICE, off, &req[i])) ==
                  RANK_OK);
    }
    rig_wait(r, all_done, NULL);
}

/* Each rank's memory: a block for every other rank, behind 64 bytes. */
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
        RIG_CHECK(rig_move(r, true, mem, p, tmp, 8, 64 + (size_t)r->me * BLOCK) == RANK_OK);
        RIG_CHECK(rig_move(r, true, mem, p, tmp + 8, BLOCK - 8, 72 + (size_t)r->me * BLOCK) == RANK_OK);
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
        RIG_CHECK(rig_move(r, false, mem, p, tmp, BLOCK, 64 + (size_t)author * BLOCK) == RANK_OK);
        for (int k = 0; k < BLOCK; k++)
            RIG_CHECK(tmp[k] == (unsigned char)(author * 31 + p + k));
    }
    rig_meet(r, r->n);
    for (int p = 0; p < r->n; p++) {
        for (int k = 0; k < BLOCK; k++)
            tmp[k] = (unsigned char)(r->me * 31 + p + k + 5);
        if (p != r->me)
            by_slices(r, mem, p, 64 + (size_t)r->me * BLOCK, true, tmp);
    }
    RIG_CHECK(r->ucx->flush(mem, NULL) == RANK_OK);
    rig_meet(r, r->n);
    for (int p = 0; p < r->n; p++) {
        int author = (p + 1) % r->n;
        if (p == r->me)
            continue;
        memset(tmp, 0xee, BLOCK);
        by_slices(r, mem, p, 64 + (size_t)author * BLOCK, false, tmp);
        for (int k = 0; k < BLOCK; k++)
            RIG_CHECK(tmp[k] == (unsigned char)(author * 31 + p + k + 5));
    }
    rig_meet(r, r->n);
    r->ucx->mem_close(r->state, mem);
    free(mine);
    free(tmp);
}
