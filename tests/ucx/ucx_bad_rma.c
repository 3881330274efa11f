/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_bad_rma.c: refuse wrong requests and replies of one-sided calls.
 * Most of them are nearly right. No byte outside the registered memory changes, and rank 2 is served meanwhile, or refused what the
 * memory does not allow. Then rank 0 requests, and rank 1 replies wrongly.
 */
#include "lib/data/dtype.h"
#include "lib/rma/rma_internal.h"
#include "tests/ucx/ucx_fixture.h"

#include <sys/mman.h>

enum { BYTES = 256, GUARD = 4096, THROWS = 6000 };

static uint64_t seed;
static struct rig *cheater;

static uint64_t dice(uint64_t n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % n;
}

/* A number that is right, on an edge, or nonsense. */
static uint64_t number(uint64_t right)
{
    static const uint64_t edges[] = {0, 1, 4, 8, BYTES - 8, BYTES - 1, BYTES, BYTES + 1, INT64_MAX,
                                     1ull << 63, UINT64_MAX - 7, UINT64_MAX, UINT32_MAX};

    switch (dice(4)) {
    case 0:
        return edges[dice(sizeof(edges) / sizeof(edges[0]))];
    case 1:
        return dice(2 * BYTES);
    default:
        return right;
    }
}

static uint32_t write_question(unsigned char *p, struct rk_id mem)
{
    struct rk_rma_request_head ask = {.op = (uint8_t)dice(RK_RMA_OP_END + 2), .amo = (uint8_t)dice(12),
                             .dtype = (uint8_t)dice(20),
                             .flags = (uint8_t)(dice(2) | (dice(2) ? RK_RMA_HAS_MEMS : 0)), .n = (uint32_t)dice(5),
                             .origin = {(uint32_t)dice(3), (uint32_t)dice(3)}};
    size_t len = sizeof(ask);

    ask.mem = dice(8) ? mem : (struct rk_id){(uint32_t)dice(100), mem.gen};
    ask.offset = number(dice(BYTES));
    if (dice(50) == 0)
        ask.n = UINT32_MAX >> dice(10);
    memcpy(p, &ask, sizeof(ask));
    for (uint32_t i = 0; i < 4 && len + 24 < 1000; i++) { /* operands, a signal, pieces: as it comes */
        uint64_t words[3];
        memcpy(&words[0], &mem, 8);
        words[0] = dice(2) ? words[0] : number(8);
        words[1] = number(8);
        words[2] = number(8);
        memcpy(p + len, words, sizeof(words));
        len += dice(3) * 8;
    }
    return (uint32_t)(len + (dice(2) ? dice(200) : 0));
}

static uint32_t write_answer(unsigned char *p, uint32_t gen)
{
    struct rk_rma_reply a = {.origin = {(uint32_t)dice(4), gen + (uint32_t)dice(3)},
                              .status = -(int32_t)dice(30), .at = number(0), .in = number(0)};

    memcpy(p, &a, sizeof(a));
    return (uint32_t)(sizeof(a) + dice(100));
}

static void attack(struct rig *r, struct rk_id mem)
{
    unsigned char p[2048];

    for (int i = 0; i < THROWS; i++) {
        struct rk_hdr hdr = {.kind = dice(8) ? RK_KIND_RMA_REQ : RK_KIND_RMA_REP};
        memset(p, (int)dice(256), sizeof(p));
        hdr.len = hdr.kind == RK_KIND_RMA_REQ ? write_question(p, mem) : write_answer(p, mem.gen);
        if (dice(20) == 0)
            hdr.len = (uint32_t)dice(hdr.len);
        RIG_CHECK(rig_send(r, 0, &hdr, p) == RANK_OK);
        if (i % 64 == 0)
            rk_progress(r->ctx);
    }
}

/* An answer with so many bytes, all of them c. */
static void answer(const struct rk_rma_parsed_request *q, uint64_t at, int32_t status, size_t bytes, int c)
{
    struct rk_rma_reply a = {.origin = q->head.origin, .status = status, .at = at, .in = q->head.in};
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REP, .len = (uint32_t)(sizeof(a) + bytes)};
    unsigned char p[sizeof(a) + BYTES + 1];

    memcpy(p, &a, sizeof(a));
    memset(p + sizeof(a), c, bytes);
    rig_send(cheater, 0, &hdr, p);
}

/* Answers that are too short or too long, or without a request, before the right one, and that once more. */
static void cheat(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                  const struct rk_rndv *rndv)
{
    struct rk_rma_parsed_request q;

    (void)ctx;
    (void)peer;
    (void)rndv;
    if (!rk_rma_decode_request(payload, hdr->len, &q) || q.bytes < 9 || q.bytes > BYTES)
        return;
    answer(&q, q.head.at, RANK_OK, 0, 'w');
    answer(&q, q.head.at, RANK_OK, 8, 'w'); /* the first piece alone */
    answer(&q, q.head.at, RANK_OK, q.bytes - 1, 'w');
    answer(&q, q.head.at, RANK_OK, q.bytes + 1, 'w');
    answer(&q, q.head.at + 1, RANK_OK, q.bytes, 'w');
    answer(&q, q.head.at, RANK_ERR_BOUNDS, q.bytes, 'w');
    answer(&q, q.head.at, RANK_OK, q.bytes, 'r');
    answer(&q, q.head.at, RANK_OK, q.bytes, 'w');
}

/* A get of one piece, and one of several, from a target that replies like that. */
static void be_cheated(struct rig *r)
{
    uint64_t refused = r->ctx->rma->bad_frames;
    unsigned char got[BYTES];

    for (int i = 0; i < 2; i++) {
        const rank_piece_t pieces[] = {{got, 8, 0}, {got + 8, 0, 8}, {got + 8, BYTES - 8, 8}};
        struct rk_origin_op op;

        memset(got, 0, sizeof(got));
        rk_origin_init(&op, rig_peer(r, 1), RK_RMA_GET, (struct rk_id){0, 0});
        op.head.flags = RK_RMA_WANTS_REPLY;
        if (i == 0)
            rk_origin_move(&op, got, sizeof(got), 0);
        op.pieces = i == 0 ? op.pieces : pieces;
        op.npieces = i == 0 ? 1 : 3;
        RIG_CHECK(rk_origin_run(&op, RK_REQ_PUT) == RANK_OK);
        for (size_t k = 0; k < sizeof(got); k++)
            RIG_CHECK(got[k] == 'r');
    }
    RIG_CHECK(r->ctx->rma->bad_frames >= refused + 12);
}

/* What the owner cannot write it is not made to write. */
static void be_refused(struct rig *r, struct rk_id mem)
{
    struct rk_rma_operands one = {1, 0};
    struct rk_rma_signal sig = {.mem = mem, .value = 1};
    static const enum rk_rma_op ops[] = {RK_RMA_PUT, RK_RMA_AMO, RK_RMA_SIGNAL, RK_RMA_GET, RK_RMA_PUT};
    unsigned char bytes[64] = {1};
    const rank_piece_t pieces[] = {{bytes, 8, 0}, {bytes + 8, 8, 100}};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct rk_origin_op op;
        rk_origin_init(&op, rig_peer(r, 0), ops[i], mem);
        op.head.flags = RK_RMA_WANTS_REPLY;
        if (ops[i] == RK_RMA_AMO)
            op.head.dtype = RK_HANDLE_INDEX(RANK_UINT64);
        if (ops[i] == RK_RMA_AMO)
            rk_origin_add(&op, &one, sizeof(one));
        if (ops[i] == RK_RMA_SIGNAL)
            rk_origin_add(&op, &sig, sizeof(sig));
        if (ops[i] == RK_RMA_PUT || ops[i] == RK_RMA_GET)
            rk_origin_move(&op, bytes, sizeof(bytes), 0);
        if (i == 4) {
            op.pieces = pieces;
            op.npieces = 2;
        }
        RIG_CHECK(rk_origin_run(&op, RK_REQ_PUT) == (ops[i] == RK_RMA_GET ? RANK_OK : RANK_ERR_ARG));
    }
}

/* As a rank of good faith: its word at the end of the memory counts as it should. */
static void be_served(struct rig *r, struct rk_id mem)
{
    struct rk_rma_operands one = {1, 0};

    for (uint64_t i = 0; i < 500; i++) {
        struct rk_origin_op op;
        rk_origin_init(&op, rig_peer(r, 0), RK_RMA_AMO, mem);
        op.head.amo = RANK_AMO_FETCH_ADD;
        op.head.dtype = RK_HANDLE_INDEX(RANK_UINT64);
        op.head.flags = RK_RMA_WANTS_REPLY;
        rk_origin_add(&op, &one, sizeof(one));
        RIG_CHECK(rk_origin_run(&op, RK_REQ_PUT) == RANK_OK);
        RIG_CHECK(op.before == i);
    }
}

void hostile_rma_body(struct rig *r)
{
    unsigned char *mine = malloc(BYTES + 2 * GUARD);
    struct rank_mem mem = {.magic = RK_MEM_MAGIC, .bytes = BYTES}, other = mem, sealed = mem;
    uint64_t word[3], *ours;
    int maps = -1;

    seed = 4711;
    RIG_CHECK(mine && rk_room_open(r->ctx, &rk_room_rma) == RANK_OK);
    memset(mine, 0x5c, BYTES + 2 * GUARD);
    mem.mine = (char *)mine + GUARD;
    ours = calloc(1, BYTES); /* rank 2's, which rank 1 does not aim at */
    RIG_CHECK(ours && rk_secret_id_put(&r->ctx->rma->mem_ids, &mem.by_id, &mem.id));
    other.mine = (char *)ours;
    RIG_CHECK(rk_secret_id_put(&r->ctx->rma->mem_ids, &other.by_id, &other.id));
    sealed.mine = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RIG_CHECK(sealed.mine != MAP_FAILED);
    RIG_CHECK(rk_user_shm_find(&maps, sealed.mine, 4096, NULL) == RK_NO_WRITES && rk_user_shm_find(&maps, mine, BYTES, NULL) == 0);
    rk_user_shm_find_end(&maps);
    sealed.denied = RK_NO_WRITES;
    RIG_CHECK(rk_secret_id_put(&r->ctx->rma->mem_ids, &sealed.by_id, &sealed.id));
    if (r->me == 0) {
        memcpy(&word[0], &mem.id, 8);
        memcpy(&word[1], &other.id, 8);
        memcpy(&word[2], &sealed.id, 8);
        atomic_store(&r->shared->word[2], word[2]);
        atomic_store(&r->shared->word[0], word[0]);
        atomic_store(&r->shared->word[1], word[1]);
    }
    rig_meet(r, r->n);
    word[0] = atomic_load(&r->shared->word[0]);
    word[1] = atomic_load(&r->shared->word[1]);
    word[2] = atomic_load(&r->shared->word[2]);
    if (r->me == 1) {
        struct rk_id id;
        memcpy(&id, &word[0], 8);
        attack(r, id);
    } else if (r->me == 2) {
        struct rk_id id;
        memcpy(&id, &word[1], 8);
        be_served(r, id);
        memcpy(&id, &word[2], 8);
        be_refused(r, id);
    }
    rig_meet(r, r->n);
    for (int i = 0; i < 1000; i++) /* what is still on its path */
        rk_progress(r->ctx);
    rig_meet(r, r->n);
    cheater = r;
    if (r->me == 1)
        r->ctx->engine->handler[RK_KIND_RMA_REQ] = cheat;
    rig_meet(r, r->n);
    if (r->me == 0)
        be_cheated(r);
    rig_meet(r, r->n);
    for (int i = 0; r->me != 1 && i < GUARD; i++)
        RIG_CHECK(mine[i] == 0x5c && mine[GUARD + BYTES + i] == 0x5c);
    RIG_CHECK(r->me != 0 || r->ctx->rma->bad_frames > 0);
    r->ctx->rma->bad_frames = 0; /* that were meant to be */
    rk_secret_id_drop(&r->ctx->rma->mem_ids, &mem.by_id);
    rk_secret_id_drop(&r->ctx->rma->mem_ids, &other.by_id);
    rk_secret_id_drop(&r->ctx->rma->mem_ids, &sealed.by_id);
    munmap(sealed.mine, 4096);
    rk_room_rma.close(r->ctx);
    free(mine);
    free(ours);
}
