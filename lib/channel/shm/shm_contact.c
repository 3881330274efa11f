/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_contact.c: lay out the region of fifos, and make first contact.
 *
 * The fifo region of the node's segment is sparse. It begins with a byte for each pair (opened or not) and the
 * bitmaps of pending senders, which its creator backs. A sender backs its fifo on first contact, and the byte ring
 * on the first frame that needs it. With many ranks rings start small and grow where they are often full.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/node/cma.h"
#include "lib/channel/shm/export_table.h"
#include "lib/channel/shm/shm.h"
#include "lib/channel/shm/shm_region.h"
#include "lib/node/node.h"

#include <stdlib.h>

/*
 * Up to about this many ranks, polling each fifo is cheaper than a bitmap, which costs an atomic a frame. To
 * measure: CPPFLAGS=-DRK_POLL_ALL_MAX=0 always uses the bitmap, 1000 never. Equal in all ranks of a job.
 */
#ifndef RK_POLL_ALL_MAX
#define RK_POLL_ALL_MAX 8
#endif

/* ---------------------------------------------------------- layout of the region */

static size_t box_bytes(int nlocal)
{
    size_t want = (size_t)rk_conf.shm_box;

    if (want == 0)
        want = nlocal <= 4 ? 256 << 10 : nlocal <= 16 ? 64 << 10 : nlocal <= 64 ? 32 << 10 : 16 << 10;
    return rk_round_up(want < (16 << 10) ? 16 << 10 : want, 4096);
}

static size_t bits_words(int nlocal)
{
    return rk_round_up((size_t)(nlocal + 63) / 64, RK_CACHE_LINE / 8);
}

static size_t opened_bytes(int nlocal)
{
    return rk_round_up((size_t)nlocal * (size_t)nlocal, RK_CACHE_LINE);
}

static size_t shm_front_bytes(int nlocal)
{
    return rk_round_up(opened_bytes(nlocal) + (size_t)nlocal * bits_words(nlocal) * 8, 4096);
}

/*
 * Maximum depth of a ring (64 KiB made short messages slower). All rings of the node, which each rank maps, stay
 * below 1 GiB.
 */
enum { DEEP = 32 << 10 };
#define REGION_MAX ((size_t)1 << 30)

static struct rk_fifo_shape shape_for(int nlocal)
{
    struct rk_fifo_shape s = rk_fifo_shape(box_bytes(nlocal));
    size_t most = REGION_MAX / ((size_t)nlocal * (size_t)nlocal);

    if (rk_conf.shm_box == 0 && most > s.ring)
        rk_fifo_shape_deepen(&s, most < DEEP ? (uint32_t)most : DEEP);
    return s;
}

size_t rk_shm_region_bytes(int nlocal)
{
    return shm_front_bytes(nlocal) + (size_t)nlocal * (size_t)nlocal * shape_for(nlocal).bytes;
}

static _Atomic unsigned char *opened_flag(struct rk_shm *shm, int to, int from)
{
    unsigned char *row = rk_node_at(shm->node, RK_REGION_FIFOS,
                                    (size_t)to * (size_t)shm->nlocal);
    return (_Atomic unsigned char *)(row + from);
}

_Atomic uint64_t *rk_shm_bits_of(const struct rk_shm *shm, int to)
{
    return rk_node_at(shm->node, RK_REGION_FIFOS,
                      opened_bytes(shm->nlocal) + (size_t)to * bits_words(shm->nlocal) * 8);
}

size_t rk_shm_box_at(const struct rk_shm *shm, int to, int from)
{
    return shm_front_bytes(shm->nlocal) +
           ((size_t)to * (size_t)shm->nlocal + (size_t)from) * shm->shape.bytes;
}

/* ------------------------------------------------------------------ open, close */

void rk_shm_free(struct rk_shm *shm)
{
    if (!shm)
        return;
    if (shm->bad_frames)
        rk_warn("%llu broken frames came through shared memory", (unsigned long long)shm->bad_frames);
    rk_exports_close(shm);
    free(shm->imports); /* closed with the peers */
    free(shm->ep);
    free(shm->in);
    free(shm->from);
    free(shm->open_in);
    free(shm->again);
    free(shm);
}

rank_status_t rk_shm_make(struct rk_ctx *ctx, struct rk_node *node, struct rk_peer *only, const struct rk_proto_table *protos,
                          struct rk_shm **out)
{
    struct rk_shm *shm = calloc(1, sizeof(*shm));
    size_t n = (size_t)node->nlocal;

    if (!shm)
        return RANK_ERR_NO_MEMORY;
    shm->ctx = ctx;
    shm->node = node;
    shm->only = only;
    shm->checks = only != NULL;
    shm->nlocal = node->nlocal;
    shm->me = node->index;
    shm->shape = shape_for(node->nlocal);
    shm->by_bits = node->nlocal > RK_POLL_ALL_MAX;
    rk_list_init(&shm->busy);
    rk_list_init(&shm->receiving);
    rk_list_init(&shm->sending);
    rk_list_init(&shm->steps);
    shm->ep = calloc(n, sizeof(*shm->ep));
    shm->in = calloc(n, sizeof(*shm->in));
    shm->from = calloc(n, sizeof(*shm->from));
    shm->open_in = calloc(n, sizeof(*shm->open_in));
    shm->again = calloc((n + 63) / 64, sizeof(*shm->again));
    if (!shm->ep || !shm->in || !shm->from || !shm->open_in || !shm->again) {
        rk_shm_free(shm);
        return RANK_ERR_NO_MEMORY;
    }
    if (node->index == 0) {
        rank_status_t st = rk_node_commit(node, RK_REGION_FIFOS, 0, shm_front_bytes(node->nlocal));
        if (st) {
            rk_shm_free(shm);
            return st;
        }
    }
    if (protos)
        shm->protos = *protos;
    else if (node->nlocal > 1)
        free(rk_proto_table_load(&shm->protos, node->index == 0));
    shm->nt_from = rk_shm_proto_set() == &rk_shm_proto_ring_nt ? RK_NT_LEAST
                   : rk_shm_proto_set() == &rk_shm_proto_ring  ? UINT32_MAX
                                                               : rk_proto_table_nt_from(&shm->protos);
    rk_cma_allow();
    *out = shm;
    return RANK_OK;
}

/* ----------------------------------------------------------------- first contact */

static bool try_cma(int pid, const struct rk_node_slot *slot)
{
    bool works;

    if (rk_conf.cma == RK_CONF_CMA_OFF)
        return false;
    works = rk_cma_works(pid, slot->probe_addr, slot->probe_word);
    if (!works && rk_conf.cma == RK_CONF_CMA_ON)
        rk_warn("RANK_CMA is on, but the kernel does not let this process read the memory of rank "
                "%d (pid %d); large messages are copied twice",
                slot->world_rank, pid);
    return works;
}

void rk_shm_cma_failed(struct rk_shm_ep *ep)
{
    const struct rk_node_slot *slot = &ep->shm->node->slots[ep->peer->slot];

    if (!ep->cma || rk_cma_works(ep->pid, slot->probe_addr, slot->probe_word))
        return;
    ep->cma = false;
    rk_warn("the kernel stopped letting this process reach the memory of rank %u; large messages are copied twice from now on",
            ep->peer->id.rank);
}

rank_status_t rk_shm_connect(struct rk_shm *shm, struct rk_peer *peer)
{
    struct rk_node *node = shm->node;
    struct rk_shm_ep *ep;
    rank_status_t st;
    size_t at;

    if (peer->node != node || peer->slot == shm->me)
        return RANK_ERR_UNREACHABLE;
    at = rk_shm_box_at(shm, peer->slot, shm->me);
    st = rk_node_commit(node, RK_REGION_FIFOS, at, shm->shape.ring_at);
    if (st)
        return st;
    ep = calloc(1, sizeof(*ep));
    if (!ep)
        return RANK_ERR_NO_MEMORY;
    ep->shm = shm;
    ep->peer = peer;
    ep->pid = node->slots[peer->slot].pid;
    ep->cma = try_cma(ep->pid, &node->slots[peer->slot]);
    rk_list_init(&ep->busy);
    rk_list_init(&ep->streams);
    rk_fifo_out_init(&ep->out, rk_node_at(node, RK_REGION_FIFOS, at), &shm->shape);
    ep->out.nt_from = shm->nt_from;
    ep->out.opposite = &shm->in[peer->slot];
    shm->ep[peer->slot] = ep;
    peer->ep = ep;
    atomic_store(opened_flag(shm, peer->slot, shm->me), 1);
    atomic_fetch_add(&node->slots[peer->slot].opened, 1);
    return RANK_OK;
}

struct rk_shm_ep *rk_shm_ep_of(struct rk_peer *peer)
{
    rank_status_t st = RANK_OK;

    if (rk_unlikely(peer->state == RK_PEER_NEW))
        st = rk_peer_try_connect(peer); /* a rank of this host: the answer is immediate */
    if (rk_likely(!st))
        return peer->ep;
    rk_send_give_up(peer, st);
    return NULL;
}

void rk_shm_disconnect(struct rk_shm *shm, struct rk_peer *peer)
{
    struct rk_shm_ep *ep = peer->ep;

    rk_shm_rndv_peer_gone(shm, peer);
    rk_imports_drop(shm, peer->slot);
    rk_engine_release(shm->ctx, &ep->busy);
    shm->ep[peer->slot] = NULL;
    peer->ep = NULL;
    free(ep);
}

static void accept_box(struct rk_shm *shm, int from)
{
    struct rk_node *node = shm->node;
    struct rk_peer *peer = shm->only ? shm->only : rk_engine_peer(shm->ctx, node->slots[from].world_rank);

    if (!peer)
        return; /* out of memory, reported; the next pass retries */
    shm->from[from] = peer;
    rk_fifo_in_init(&shm->in[from],
                    rk_node_at(node, RK_REGION_FIFOS, rk_shm_box_at(shm, shm->me, from)), &shm->shape);
    shm->open_in[shm->nopen_in++] = from;
}

RK_COLD void rk_shm_accept_boxes(struct rk_shm *shm)
{
    shm->opened_seen = atomic_load(&shm->node->mine->opened);
    for (int i = 0; i < shm->nlocal; i++) {
        if (!shm->in[i].box && atomic_load(opened_flag(shm, shm->me, i)))
            accept_box(shm, i);
    }
}

