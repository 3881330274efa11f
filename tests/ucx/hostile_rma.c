/*
 * hostile_rma.c: rank 1 throws questions and answers of one-sided calls at rank 0, most of them nearly right: no
 * byte outside the memory that has a name changes, and rank 2 is served meanwhile.
 */
#include "lib/rma/far.h"
#include "tests/ucx/rig.h"

enum { BYTES = 256, GUARD = 4096, THROWS = 6000 };

static uint64_t seed;

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
    struct rk_rma_ask ask = {.op = (uint8_t)dice(RK_RMA_OP_END + 2), .amo = (uint8_t)dice(12),
                             .dtype = (uint8_t)dice(RANK_DTYPE_COUNT + 1),
                             .flags = (uint8_t)dice(2), .n = (uint32_t)dice(5),
                             .asker = {(uint32_t)dice(3), (uint32_t)dice(3)}};
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
    struct rk_rma_answer a = {.asker = {(uint32_t)dice(4), gen + (uint32_t)dice(3)},
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

/* As a rank of good faith: its word at the end of the memory counts as it should. */
static void be_served(struct rig *r, struct rk_id mem)
{
    struct rk_rma_operands one = {1, 0};

    for (uint64_t i = 0; i < 500; i++) {
        struct rk_job job;
        rk_job_init(&job, rig_peer(r, 0), RK_RMA_AMO, mem);
        job.ask.amo = RANK_AMO_FETCH_ADD;
        job.ask.dtype = RANK_UINT64;
        job.ask.flags = RK_RMA_WANTS_ANSWER;
        rk_job_add(&job, &one, sizeof(one));
        RIG_CHECK(rk_job_run(&job) == RANK_OK);
        RIG_CHECK(job.before == i);
    }
}

void hostile_rma_body(struct rig *r)
{
    unsigned char *mine = malloc(BYTES + 2 * GUARD);
    struct rank_mem mem = {.magic = RK_MEM_MAGIC, .bytes = BYTES}, other = mem;
    uint64_t word[2], *ours;

    seed = 4711;
    RIG_CHECK(mine && rk_rma_open(r->ctx) == RANK_OK);
    memset(mine, 0x5c, BYTES + 2 * GUARD);
    mem.mine = (char *)mine + GUARD;
    ours = calloc(1, BYTES); /* rank 2's, which rank 1 does not aim at */
    RIG_CHECK(ours && rk_names_take(&r->ctx->rma->mem_names, &mem, &mem.id));
    other.mine = (char *)ours;
    RIG_CHECK(rk_names_take(&r->ctx->rma->mem_names, &other, &other.id));
    if (r->me == 0) {
        memcpy(&word[0], &mem.id, 8);
        memcpy(&word[1], &other.id, 8);
        atomic_store(&r->shared->word[0], word[0]);
        atomic_store(&r->shared->word[1], word[1]);
    }
    rig_meet(r, r->n);
    word[0] = atomic_load(&r->shared->word[0]);
    word[1] = atomic_load(&r->shared->word[1]);
    if (r->me == 1) {
        struct rk_id id;
        memcpy(&id, &word[0], 8);
        attack(r, id);
    } else if (r->me == 2) {
        struct rk_id id;
        memcpy(&id, &word[1], 8);
        be_served(r, id);
    }
    rig_meet(r, r->n);
    for (int i = 0; i < 1000; i++) /* what is still on its way */
        rk_progress(r->ctx);
    rig_meet(r, r->n);
    for (int i = 0; r->me != 1 && i < GUARD; i++)
        RIG_CHECK(mine[i] == 0x5c && mine[GUARD + BYTES + i] == 0x5c);
    RIG_CHECK(r->me != 0 || r->ctx->rma->bad_frames > 0);
    r->ctx->rma->bad_frames = 0; /* that were meant to be */
    rk_names_drop(&r->ctx->rma->mem_names, mem.id);
    rk_names_drop(&r->ctx->rma->mem_names, other.id);
    rk_rma_close(r->ctx);
    free(mine);
    free(ours);
}
