/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recv_fast.c: receive in place, without request and tables.
 *
 * Possible while no other receive is posted and no message is stored: then only the next frame of the one sender
 * is checked.
 */
#include "lib/base/clock.h"
#include "lib/node/node.h"
#include "lib/p2p/p2p_internal.h"

rank_status_t rk_p2p_recv_view(struct rank_team *team, const struct rk_view *view, int source, uint64_t tag, uint32_t elem,
                               rank_envelope_t *envelope)
{
    struct rank_request req;
    rank_status_t st;

    rk_req_init(&req, NULL, NULL);
    rk_p2p_irecv_view(team, view, source, tag, &req);
    st = rk_req_wait(&req);
    if (envelope) {
        req.elem = elem;
        rk_req_envelope(&req, envelope);
    }
    return st;
}

/* By the general path. Not inlined: the fast receive keeps its registers. */
static __attribute__((noinline)) rank_status_t recv_by_request(struct rank_team *team, void *buf, size_t bytes, int source,
                                                               uint64_t tag, uint32_t elem, rank_envelope_t *envelope)
{
    return rk_p2p_recv_view(team, &(struct rk_view){buf, bytes, NULL}, source, tag, elem, envelope);
}

/* The message and the receive are both first in line. */
static rank_status_t took(struct rk_peer *peer, const struct rk_took *m, size_t bytes,
                          int source, uint32_t elem, rank_envelope_t *envelope)
{
    uint64_t got = m->bytes < bytes ? m->bytes : bytes;
    rank_status_t st = RANK_OK;

    rk_recv_consumed(peer, m->bytes);
    if (rk_unlikely(m->bytes > bytes))
        st = rk_recv_truncated(source, m->tag, m->bytes, bytes);
    if (envelope)
        *envelope = (rank_envelope_t){.source = source,
                                      .tag = (int64_t)m->tag,
                                      .count = (int64_t)(got / elem),
                                      .bytes = (int64_t)got,
                                      .sent_bytes = (int64_t)m->bytes,
                                      .status = st};
    return st;
}

/*
 * Polls one sender only, as long as an immediate answer takes; other traffic waits a microsecond or two at most.
 */
enum { FAST_POLLS = 400, TAKES_ASK = 16, TAKES_DUE = 64, REMOTE_POLLS = 16 };
/* Time of taking from one stream, when the clock is read, before other peers get their turn. */
enum { STREAM_NS = 30 * 1000 };

/*
 * Over a network a check is a few passes of progress, which deliver frames of other peers; between checks all
 * other channels get their turn. RK_TAKEN_OTHER as soon as anything has changed.
 */
static __attribute__((noinline)) enum rk_taken recv_fast_remote(struct rank_team *team, struct rk_peer *peer, int source,
                                          uint64_t tag, void *buf, size_t bytes, struct rk_took *m)
{
    const struct rk_match *match = &team->ctx->p2p->match;
    enum rk_taken taken = RK_TAKEN_NONE;

    for (int polls = REMOTE_POLLS; polls-- && taken == RK_TAKEN_NONE;) {
        taken = peer->channel->take(peer, team->id, (uint32_t)source, tag, buf, bytes, m);
        if (taken == RK_TAKEN_NONE &&
            (rk_progress(team->ctx) > 0 || peer->state != RK_PEER_UP || match->nposted ||
             match->nwild || match->nwaiting))
            return RK_TAKEN_OTHER;
    }
    return taken;
}

static __attribute__((noinline)) void poll_others(struct rank_team *team)
{
    team->ctx->p2p->takes = 0;
    team->ctx->p2p->took_ns = rk_clock_ns();
    rk_progress(team->ctx);
}

/*
 * Keep a stream from one sender from starving others. Progress would deliver the stream's messages, too, by the
 * general path, so it runs where the stream pauses. The clock is read now and then: a program that computes
 * between two messages starves no one.
 */
static __attribute__((noinline)) void stream_goes_on(struct rank_team *team, const struct rk_peer *peer)
{
    bool far = peer && peer->channel && peer->channel->take_is_progress;

    if (far ? team->ctx->p2p->takes >= TAKES_DUE : rk_clock_ns() - team->ctx->p2p->took_ns >= STREAM_NS)
        poll_others(team);
}

/*
 * A rank that only receives has no endpoint to the sender and would always take the general path. Tried once;
 * optional.
 */
static RK_COLD void make_contact(struct rank_team *team, struct rk_peer *peer)
{
    peer->tried = 1;
    if (peer->local >= 0 && rk_engine_shares_memory(team->ctx))
        rk_peer_connect(peer);
}

rank_status_t rk_p2p_recv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                          uint32_t elem, rank_envelope_t *envelope)
{
    const struct rk_match *match = &team->ctx->p2p->match;
    struct rk_peer *peer = source >= 0 ? team->peers[source] : NULL;
    struct rk_took m;
    rank_status_t st;

    if (rk_unlikely(++team->ctx->p2p->takes % TAKES_ASK == 0))
        stream_goes_on(team, peer);
    if (rk_likely(peer && peer->state == RK_PEER_UP && peer->channel->take &&
                  !(match->nposted | match->nwild | match->nwaiting))) {
        int polls = team->ctx->node->oversubscribed ? 1 : FAST_POLLS;
        enum rk_taken taken = RK_TAKEN_NONE;

        if (peer->channel->take_is_progress) {
            polls = 0;
            if (!team->ctx->node->oversubscribed)
                taken = recv_fast_remote(team, peer, source, tag, buf, bytes, &m);
        }
        while (taken == RK_TAKEN_NONE && polls--) {
            taken = peer->channel->take(peer, team->id, (uint32_t)source, tag, buf, bytes, &m);
            if (taken == RK_TAKEN_NONE && rk_unlikely(team->ctx->p2p->takes >= TAKES_DUE)) {
                poll_others(team);
                break;
            }
        }
        if (rk_likely(taken == RK_TAKEN))
            return took(peer, &m, bytes, source, elem, envelope);
    }
    st = recv_by_request(team, buf, bytes, source, tag, elem, envelope);
    if (rk_unlikely(peer && peer->state == RK_PEER_NEW && !peer->tried && st == RANK_OK))
        make_contact(team, peer);
    return st;
}
