/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sender_bitmap_model.c: find the fifos with frames, in every order of accesses.
 *
 * The code itself (lib/channel/shm/shm_contact.c, shm.c): two ranks make first contact with a third and send to it, and that makes progress until
 * all has come; with a bitmap of senders that have sent, and without. A pass takes a frame from each such sender. A bit or an
 * opened fifo that is lost is a message that is waited for for ever.
 *
 * Passes are short here, one frame a fifo, so that a pass leaves something for the next.
 */
#define MODEL_REDIRECT
#define RK_FRAMES_PER_PASS 1
#include "lib/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

#include "lib/channel/shm/shm.h"
#include "lib/node/node.h"

enum { RANKS = 3, SENDERS = RANKS - 1, CELLS = 2, BOX = sizeof(struct rk_fifo) + CELLS * sizeof(union rk_cell) };

/* Fifos are smaller than any that a job has; what would be backed, and allocated, is here from the start. */
static rank_status_t commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes)
{
    (void)node;
    (void)r;
    (void)offset;
    (void)bytes;
    return RANK_OK;
}
#define rk_node_commit commit
#define rk_node_try_commit(node, r, offset, bytes) (commit(node, r, offset, bytes) == RANK_OK)
static void *reserved(size_t bytes);
#define calloc(n, bytes) reserved((n) * (bytes))
#include "lib/channel/shm/shm_contact.c"
#include "lib/channel/shm/shm.c"
#undef calloc

static struct {
    struct rk_node_head head;
    struct rk_node_slot slot[RANKS];
    /* as much of the region as is used: its front has the page of front_bytes for itself */
    char region[4096 + RANKS * BOX] RK_ALIGNED_LINE;
} memory;

static struct process {
    struct rk_ctx ctx;
    struct rk_node node;
    struct rk_engine engine;
    struct rk_shm shm;
    struct rk_peer peer[RANKS], *peers[RANKS];
    struct rk_shm_ep *ep[RANKS], end; /* one of them is connected */
    struct rk_fifo_in in[RANKS];
    struct rk_peer *from[RANKS];
    int open_in[RANKS];
    uint64_t again[1];
    int got[RANKS];
} process[RANKS];

static bool by_bits, forgetful;
static int messages;

static void *reserved(size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < RANKS; i++) {
        if (!process[i].end.shm && memory.slot[i].pid == -1) { /* it is connecting */
            memory.slot[i].pid = 0;
            return &process[i].end;
        }
    }
    abort();
}

static void arrived(struct rk_peer *peer, uint64_t tag, const void *payload, uint32_t len)
{
    struct process *me = &process[0];
    unsigned char value = 0;

    if (len == 1)
        value = *(const unsigned char *)payload;
    model_expect(len == 1 && tag == (uint64_t)me->got[peer->number] && value == tag + 1, "another message than was sent");
    me->got[peer->number]++;
}

static void whole(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                  const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)rndv;
    arrived(peer, hdr->tag, payload, hdr->len);
}

static void small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload, uint32_t len)
{
    (void)team;
    (void)src;
    arrived(peer, tag, payload, len);
}

static void send_all(struct process *me, int which)
{
    struct rk_peer *to = &me->peer[0];

    memory.slot[which].pid = -1;
    model_expect(rk_shm_connect(&me->shm, to) == RANK_OK, "no first contact");
    for (int i = 0; i < messages; i++) {
        struct rk_hdr h = {.kind = RK_KIND_MSG, .src = (uint32_t)which, .team = 5, .tag = (uint64_t)i, .len = 1};
        unsigned char value = (unsigned char)(i + 1);

        while (rk_shm_send(to, &h, &value) == RK_AGAIN) {
            model_here((uint64_t)i, me->end.out.next, me->end.out.slot);
            model_block();
        }
    }
}

/* Has a pass that begins now to find something of that sender? Reads memory itself, which is no step. */
static bool has_something(const struct process *me, int from)
{
    const struct rk_fifo_in *in = &me->in[from];
    uint64_t bits, head;

    memmove(&bits, memory.region + opened_bytes(RANKS), sizeof(bits));
    if (!in->box || (by_bits && !((bits | me->again[0]) >> from & 1)))
        return false;
    memmove(&head, (const void *)(uintptr_t)&in->cell->slot[in->slot].head, sizeof(head));
    return (head & 0xff) == rk_fifo_lap(in->next, in->mask);
}

static void receive_all(struct process *me)
{
    const struct rk_fifo_in *in = me->in;

    while (me->got[1] + me->got[2] < SENDERS * messages) {
        bool has[RANKS];
        int before[RANKS], n;

        model_here((uint64_t)me->got[1] << 32 | (uint64_t)me->got[2] << 16 | me->again[0] << 8 | me->shm.opened_seen,
                   (uint64_t)in[1].next << 32 | in[1].slot << 16 | in[2].next << 8 | in[2].slot,
                   (uint64_t)me->shm.nopen_in << 32 | (uint64_t)(in[1].box != NULL) << 8 | (uint64_t)me->open_in[0] << 1 |
                       (in[2].box != NULL));
        model_look();
        for (int i = 1; i < RANKS; i++) {
            has[i] = has_something(me, i);
            before[i] = me->got[i];
        }
        n = rk_shm_progress(&me->shm);
        for (int i = 1; i < RANKS; i++)
            model_expect(!has[i] || me->got[i] > before[i], "a pass left a sender out");
        if (forgetful)
            me->again[0] = 0;
        if (n == 0)
            model_block();
    }
}

static void one(int which)
{
    struct process *me = &process[which];

    if (which == 0)
        receive_all(me);
    else
        send_all(me, which);
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(process, 0, sizeof(process));
    memory.head.region_at[RK_REGION_FIFOS] = (uint64_t)(memory.region - (char *)&memory);
    for (int i = 0; i < RANKS; i++) {
        struct process *p = &process[i];

        memory.slot[i].world_rank = i;
        p->node = (struct rk_node){.base = (char *)&memory, .head = &memory.head, .slots = memory.slot,
                                   .mine = &memory.slot[i], .nlocal = RANKS, .index = i};
        p->engine.peers = p->peers;
        p->engine.npeers = RANKS;
        p->engine.handler[RK_KIND_MSG] = whole;
        p->engine.small = small;
        p->ctx = (struct rk_ctx){.node = &p->node, .engine = &p->engine};
        p->shm = (struct rk_shm){.ctx = &p->ctx, .node = &p->node, .by_bits = by_bits, .nlocal = RANKS, .me = i, .ep = p->ep, .in = p->in,
                                 .from = p->from, .open_in = p->open_in, .again = p->again,
                                 .shape = {.bytes = BOX, .cells = CELLS, .ring = 64, .ring_at = BOX, .frame = 64}};
        rk_list_init(&p->shm.busy);
        rk_list_init(&p->shm.steps);
        for (int k = 0; k < RANKS; k++) {
            p->peer[k] = (struct rk_peer){.ctx = &p->ctx, .number = k, .local = k, .node = &p->node, .slot = k};
            p->peers[k] = &p->peer[k];
        }
    }
}

int main(void)
{
    struct model m = {.threads = RANKS, .thread = one, .begin = begin, .memory = &memory, .bytes = sizeof(memory)};
    int failed = 0;

    rk_conf.cma = RK_CONF_CMA_OFF;
    messages = 1;
    m.name = "first contact and messages, each fifo polled";
    failed += model_check(&m, false);
    m.name = "the same, and fifos are announced before they are open";
    m.weak = true;
    failed += model_check(&m, true);
    m.weak = false;
    by_bits = true;
#ifndef __SANITIZE_ADDRESS__ /* many states */
    messages = 2;
#endif
    m.name = "first contact and messages, by a bitmap";
    failed += model_check(&m, false);
    m.name = "the same, and a bit comes before the frame";
    m.weak = true;
    failed += model_check(&m, true);
    m.weak = false;
    m.name = "the same, and bits are set by a read and a write";
    m.torn = true;
    failed += model_check(&m, true);
    m.torn = false;
    m.name = "the same, and a pass forgets what it has left";
    forgetful = true;
    messages = 3;
    failed += model_check(&m, true);
    return failed != 0;
}
