/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split_copy_model.c: split copies by a word of claims, in every order.
 *
 * The code itself (lib/channel/shm: split_copy.h, shm_assist.c, shm_stream.c, shm_rndv.c):
 *
 *   copies that both share   each chunk is copied once, by either side; a receive is over only when its sender has
 *                            copied all that it claimed; and a sender that comes late copies nothing any more. The
 *                            kernel copies, or each by itself what it has mapped
 *   offers                   a sender takes one, or the receiver takes it back: never both, never neither
 *   a full fifo              nothing is requested that the sender would read when the generations have come round
 *
 * Each happens several times in a row by the same word, and the sender may be as late as it likes.
 */
#define MODEL_REDIRECT
#include "lib/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/node/cma.h"
#include "lib/channel/shm/cma_iov.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/node/node.h"
#include "lib/mem/segment.h"

enum { TIMES = 2, CHUNKS = 3, BYTES = (CHUNKS - 1) * RK_CHUNK_MAX + 5, MAPPED_BYTES = (CHUNKS - 1) * RK_CHUNK_MAPPED + 5, OFFERED = 256 };
_Static_assert(BYTES / 2 > RK_CHUNK_MAX && MAPPED_BYTES / 2 > RK_CHUNK_MAPPED, "chunks of the largest size");

/* The payload is mapped at the receiver, and what it goes to at the sender: neither, the first, both; and then of a team that the sender is not in. */
static enum { PRIVATE, MAPPED, BOTH_MAPPED, STRANGE } mapped;

static uint64_t bytes(void)
{
    return mapped >= BOTH_MAPPED ? MAPPED_BYTES : BYTES;
}

static struct {
    char box[sizeof(struct rk_fifo)] RK_ALIGNED_LINE; /* none of its cells */
    _Atomic uint64_t asked[TIMES];          /* the frames that request it of the sender */
    _Atomic uint64_t over[TIMES];           /* the receive is */
    _Atomic uint64_t copied[TIMES][CHUNKS]; /* how often */
    _Atomic uint64_t streaming[TIMES];      /* the sender has taken the offer */
} memory;

static struct rk_fifo *the_box(void)
{
    return (struct rk_fifo *)(void *)memory.box;
}

static int cma_refused; /* from the sender, from the receiver; 0: from none */
enum { REFUSED_SENDER = 1, REFUSED_RECEIVER };

/* Where the bytes of one receive are, as far as it matters: addresses, not memory. */
static uint64_t address(int time)
{
    return (uint64_t)(time + 1) << 32;
}

/* What they call: copies, the kernel's and others, frames, the clock, requests. */
static rank_status_t model_copy_chunk(uint64_t at, bool sender)
{
    int time = (int)(at >> 32) - 1, chunk = (int)((at & 0xffffffff) / (bytes() / (CHUNKS - 1) & ~0xfffu));
    uint64_t over;

    if (cma_refused == (sender ? REFUSED_SENDER : REFUSED_RECEIVER))
        return RANK_ERR_CHANNEL;
    over = atomic_load_explicit(&memory.over[time], memory_order_relaxed);
    model_expect(!over, "a copy begins when the receive is over");
    atomic_fetch_add(&memory.copied[time][chunk], 1);
    over = atomic_load_explicit(&memory.over[time], memory_order_relaxed);
    model_expect(!over, "a copy ends when the receive is over");
    return RANK_OK;
}

/* Where the sender has mapped what a receive's memory is; the segment begins with the address 0. */
#define MAPPED_AT (UINT64_C(1) << 48)

static void move(void *to, bool known)
{
    uint64_t at = (uint64_t)(uintptr_t)to;

    model_expect(known, "a copy to where nothing is mapped");
    model_copy_chunk(at & ~MAPPED_AT, at & MAPPED_AT);
}

static char *segment_at(uint64_t at)
{
    return mapped == STRANGE ? NULL : (char *)(uintptr_t)(MAPPED_AT + at);
}

static int receiving; /* the receiver's: which time */
static uint64_t clock_calls;
static struct rank_request requests[2][TIMES];
static void control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len);
static rank_status_t put(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr, const void *first,
                         uint32_t first_len, const void *second);
static struct rank_request *find(struct rk_id id);

#define move_mapped(to, from, bytes) move(to, (from) != NULL)
#define rk_segment_at(ctx, id, at, bytes) ((void)(ctx), (void)(id), (void)(bytes), segment_at(at))
#define rk_cma_read(pid, to, from, bytes) model_copy_chunk((uint64_t)(uintptr_t)(to), false)
#define rk_cma_write(pid, to, from, bytes) model_copy_chunk(to, true)
#define rk_send_control control
#define rk_shm_put put
#define rk_shm_cma_failed(end) ((end)->cma = false)
#define rk_req_name(req) ((req)->id = (struct rk_id){(uint32_t)receiving, 1}, RANK_OK)
#define rk_req_unname(req) ((void)(req))
#define rk_req_find(ctx, id) find(id)
#define rk_req_complete(req, st) ((req)->status = (st), (req)->done = true)
/* Of a receive's clock: a wait for a time reads it twice. */
enum { LOOKS = 2 };
#define rk_clock_ns() (clock_calls++ <= LOOKS ? 0 : UINT64_C(1) << 40)
#include "lib/channel/shm/shm_assist.c"
#include "lib/channel/shm/shm_stream.c"
#include "lib/channel/shm/proto_cma.c"
#include "lib/channel/shm/proto_cma2.c"
#include "lib/channel/shm/shm_rndv.c"
#undef rk_clock_ns

static struct rk_ctx ctx;
static struct rk_node node;
static struct rk_node_slot slots[2];
static struct rk_engine engine;
static struct process {
    struct rk_shm shm;
    struct rk_peer peer;
    struct rk_shm_ep end, *ep[2];
    struct rk_fifo_in in[2];
} process[2]; /* receiver, sender */
static union {
    struct rk_shm_assist assist;
    struct rk_shm_offer offer;
} asked[TIMES];
static uint64_t segment[TIMES]; /* and the tags of those frames */
static bool streamed[TIMES]; /* requested by the receiver, after all */
static bool one_generation;

static struct rank_request *find(struct rk_id id)
{
    return &requests[1][id.index];
}

/* From the receiver. */
static void control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len)
{
    (void)peer;
    if (kind == RK_SHM_ASSIST || kind == RK_SHM_OFFER) {
        memmove(&asked[receiving], payload, len);
        segment[receiving] = tag;
        atomic_store_explicit(&memory.asked[receiving], 1, memory_order_release);
    } else if (kind == RK_SHM_FETCH) {
        streamed[receiving] = true;
    }
}

/* From the sender: a piece of the stream, which begins with the receive that it is for. */
static rank_status_t put(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr, const void *first,
                         uint32_t first_len, const void *second)
{
    const struct rk_id *receiver = first;

    (void)shm;
    (void)ep;
    (void)second;
    model_expect(hdr->kind == RK_SHM_DATA && first_len == sizeof(*receiver), "another frame than was expected");
    atomic_fetch_add(&memory.streaming[receiver->index], 1);
    return RANK_OK;
}

static void end_receive(int time)
{
    atomic_store(&memory.over[time], 1);
    if (one_generation)
        process[0].end.assist_gen--;
}

static void receive_together(struct process *me)
{
    for (int i = 0; i < TIMES; i++) {
        struct rank_request *req = &requests[0][i];
        struct rk_shm_recv r = {.shm = &me->shm, .ep = &me->end, .req = req, .sender = (uint64_t)i << 32, .want = bytes(),
                                .to_segment = mapped >= BOTH_MAPPED ? 2 : 0, .to = address(i)};

        receiving = i;
        clock_calls = 0;
        req->view = (struct rk_view){(void *)(uintptr_t)address(i), bytes(), NULL};
        rk_shm_copy_together(&r, mapped ? memory.box : NULL);
        while (me->end.assisted) {
            model_here((uint64_t)i + 1, 0, 0);
            model_look();
            if (rk_shm_rndv_poll(&me->shm) == 0)
                model_block();
        }
        model_expect(req->done != streamed[i], "neither over nor streamed");
        for (int k = 0; k < CHUNKS && !streamed[i]; k++)
            model_expect(atomic_load(&memory.copied[i][k]) == 1, "a chunk is copied twice, or not at all");
        end_receive(i);
    }
}

static void receive_offering(struct process *me)
{
    for (int i = 0; i < TIMES; i++) {
        struct rank_request *req = &requests[0][i];
        struct rk_shm_recv r = {.shm = &me->shm, .ep = &me->end, .req = req, .sender = (uint64_t)i << 32, .want = OFFERED};
        bool taken;

        receiving = i;
        clock_calls = 0;
        taken = rk_shm_stream_offer(&r);
        if (!taken)
            model_expect(!atomic_load(&memory.streaming[i]), "streamed, and taken back");
        for (;;) {
            model_here((uint64_t)i + 1, taken, 0);
            if (!taken || atomic_load(&memory.streaming[i]))
                break;
            model_block();
        }
        if (taken)
            rk_list_remove(&req->link);
        else
            atomic_store(&memory.over[i], 1);
    }
}

/* Once with room in the fifo, and once without: then the receiver requests nothing, and copies all. */
static void receive_in_full_fifo(struct process *me)
{
    rk_conf.large = 1 + RK_PROTO_CMA2;
    for (int i = 0; i < TIMES; i++) {
        struct rank_request *req = &requests[0][i];
        struct rk_rndv rndv = {.peer = &me->peer, .total = bytes(), .priv = {(uint64_t)i << 32}};
        struct rk_view view = {(void *)(uintptr_t)address(i), bytes(), NULL};
        struct rk_link waits;
        uint64_t asks;

        rk_list_init(&waits);
        if (i > 0)
            rk_list_append(&me->peer.sendq.items[RK_SEND_CONTROL], &waits);
        receiving = i;
        clock_calls = 0;
        rk_shm_rndv_recv(&rndv, &view, req);
        rk_list_remove(&waits);
        asks = atomic_load(&memory.asked[i]);
        model_expect(asks == (i == 0), "a request to the sender waits for room");
        model_expect(req->done && req->status == RANK_OK, "not over, though the receiver copies all");
    }
}

static void send_when_asked(struct process *me, bool together)
{
    for (int i = 0; i < TIMES; i++) {
        for (;;) {
            model_here((uint64_t)i, 0, 0);
            if (atomic_load_explicit(&memory.asked[i], memory_order_acquire))
                break;
            model_block();
        }
        if (together) {
            rk_shm_assist_serve(&me->shm, &me->end, segment[i], &asked[i].assist);
            continue;
        }
        rk_shm_stream_consider(&me->shm, &me->end, &asked[i].offer);
        if (atomic_load(&memory.over[i]))
            model_expect(!atomic_load(&memory.streaming[i]), "streamed, and taken back");
    }
}

static bool offering, full_fifo;

static void one(int which)
{
    if (full_fifo)
        receive_in_full_fifo(&process[0]);
    else if (which == 1)
        send_when_asked(&process[1], !offering);
    else if (offering)
        receive_offering(&process[0]);
    else
        receive_together(&process[0]);
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(process, 0, sizeof(process));
    memset(requests, 0, sizeof(requests));
    memset(streamed, 0, sizeof(streamed));
    memset(slots, 0, sizeof(slots));
    node = (struct rk_node){.slots = slots, .nlocal = 2};
    ctx = (struct rk_ctx){.node = &node, .engine = &engine};
    for (int i = 0; i < 2; i++) {
        struct process *p = &process[i];
        int other = 1 - i;

        p->shm = (struct rk_shm){.ctx = &ctx, .node = &node, .nlocal = 2, .me = i, .ep = p->ep, .in = p->in,
                                 .shape = {.frame = OFFERED + 64, .cells = 8, .ring = 4096, .shallow = 4096}};
        rk_list_init(&p->shm.receiving);
        rk_list_init(&p->shm.sending);
        rk_list_init(&p->shm.busy);
        p->peer = (struct rk_peer){.ctx = &ctx, .number = other, .local = other, .node = &node, .slot = other, .ep = &p->end};
        p->end = (struct rk_shm_ep){.shm = &p->shm, .peer = &p->peer, .cma = true};
        rk_list_init(&p->peer.sendq.items[RK_SEND_CONTROL]);
        rk_list_init(&p->end.busy);
        rk_list_init(&p->end.streams);
        p->end.out = (struct rk_fifo_out){.box = the_box(), .mask = 7, .ring_bytes = 4096, .used = 4096, .ring_limit = 4096};
        p->ep[other] = &p->end;
        p->in[other].box = the_box();
        for (int k = 0; k < TIMES; k++) {
            rk_list_init(&requests[i][k].link);
            requests[i][k].peer = &p->peer;
            requests[i][k].view = (struct rk_view){memory.box, BYTES, NULL};
        }
    }
}

int main(void)
{
    struct model m = {.threads = 2, .thread = one, .begin = begin, .memory = &memory, .bytes = sizeof(memory)};
    int failed = 0;

    m.name = "copies that both share";
    failed += model_check(&m, false);
    m.name = "the same, and the kernel refuses the sender's";
    cma_refused = REFUSED_SENDER;
    failed += model_check(&m, false);
    m.name = "the same, and the kernel refuses the receiver's";
    cma_refused = REFUSED_RECEIVER;
    failed += model_check(&m, false);
    mapped = MAPPED;
    cma_refused = REFUSED_SENDER;
    m.name = "copies of what the receiver has mapped, and the kernel refuses the sender's";
    failed += model_check(&m, false);
    cma_refused = 0;
    m.name = "copies of what the receiver has mapped";
    failed += model_check(&m, false);
    mapped = BOTH_MAPPED;
    m.name = "copies between what both have mapped";
    failed += model_check(&m, false);
    mapped = STRANGE;
    m.name = "copies to what the sender should have mapped";
    failed += model_check(&m, false);
    mapped = PRIVATE;
    m.name = "copies by claims that are a read and a write";
    m.torn = true;
    failed += model_check(&m, true);
    m.torn = false;
    m.name = "copies that all have one generation";
    one_generation = true;
    failed += model_check(&m, true);
    one_generation = false;
    full_fifo = true;
    m.threads = 1;
    m.name = "copies where the fifo is full";
    failed += model_check(&m, false);
    full_fifo = false;
    m.threads = 2;
    offering = true;
    m.name = "offers";
    failed += model_check(&m, false);
    m.name = "offers by a read and a write";
    m.torn = true;
    failed += model_check(&m, true);
    return failed != 0;
}
