/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_recv.c: receive frames and chunks of data, and deliver them. */
#include "lib/base/clock.h"
#include "lib/channel/tcp/tcp_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    IN_MAX = 2 * (RK_TCP_FRAME_MAX + 64), /* bytes that wait to be parsed: a whole frame fits */
    BEHIND_MAX = 4096,                    /* of them, behind a chunk that goes to the user's memory */
    ROUND_MAX = 1 << 20                   /* bytes that one call receives */
};

/* Returns false if the frame is invalid. */
static bool tcp_deliver(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_ctx *ctx = l->tcp->ctx;
    rk_handler_fn handler;

    l->tcp->handled++;
    if (hdr->kind == RK_TCP_BYE && !(l->lifeline && l->bye)) {
        rk_tcp_bye_came(l, hdr->flags);
        return true;
    }
    if (l->lifeline && hdr->kind == RK_TCP_READY && l->peer->channel && l->peer->channel->links) {
        l->peer->channel->links->admit(l->peer);
        return true;
    }
    if (l->lifeline || hdr->kind == RK_TCP_READY)
        return false;
    if (l->tcp->leaving || l->bye_sent || l->peer->state == RK_PEER_DEAD)
        return true;
    l->counts->messages_received += rk_tcp_is_message(hdr->kind);
    if (hdr->kind >= RK_KIND_CHANNEL_FIRST && hdr->kind < RK_TCP_KIND_END)
        return rk_tcp_rndv_frame(l, hdr, payload);
    if (hdr->kind <= RK_KIND_SMSG && ctx->engine->is_valid && !ctx->engine->is_valid(ctx, l->peer, hdr)) {
        l->counts->refused++;
        return true;
    }
    handler = ctx->engine->handler[hdr->kind];
    if (rk_likely(handler != NULL)) {
        handler(ctx, l->peer, hdr, payload, NULL);
    } else {
        rk_engine_refused(ctx, &l->tcp->bad_frames);
        l->counts->refused++;
    }
    return true;
}

/* So many bytes of the chunk have been received, or dropped. */
static void chunk_moved(struct rk_tcp_link *l, size_t n)
{
    struct rk_tcp_op *op = l->into;

    l->tcp->handled++;
    l->into_left -= n;
    if (op && rk_tcp_stages(&op->view))
        rk_tcp_stage_received(l, op, n, l->into_left == 0);
    if (op && l->into_left == 0)
        l->into = NULL;
    if (n && op)
        rk_tcp_chunk_moved(op, n);
    l->sink.offset += n;
    if (l->sink.on && l->into_left == 0)
        rk_tcp_write_ends(l);
}

/* Move what is there of the chunk that is being received, and skip its filling. */
static void take_chunk(struct rk_tcp_link *l)
{
    size_t there = l->in_end - l->in_at, n = l->into_left < there ? l->into_left : there;
    struct rk_tcp_op *op = l->into;
    char *to = n && op && rk_tcp_stages(&op->view) ? rk_tcp_stage_at(l, op) : n && l->sink.on ? rk_tcp_sink_at(l) : NULL;

    if (to)
        memcpy(to, l->in + l->in_at, n);
    else if (n && op && !op->copied)
        op->copied = rk_copy_in(&op->view, op->done, l->in + l->in_at, n);
    l->in_at += n;
    if (n)
        chunk_moved(l, n);
    if (l->into_left == 0) {
        n = l->in_end - l->in_at < l->into_fill ? l->in_end - l->in_at : l->into_fill;
        l->in_at += n;
        l->into_fill -= n;
    }
}

static void align(struct rk_tcp_link *l)
{
    memmove(l->in, l->in + l->in_at, l->in_end - l->in_at);
    l->in_end -= l->in_at;
    l->in_at = 0;
}

/* May frames of the peer be handled? */
static bool link_receives(const struct rk_tcp_link *l)
{
    return !l->failed && !l->peer->condemned;
}

static void parse(struct rk_tcp_link *l)
{
    struct rk_hdr hdr;
    long n;

    while (l->in_at < l->in_end && link_receives(l)) {
        if (l->into_left || l->into_fill) {
            take_chunk(l);
            continue;
        }
        if (l->in_at % 8)
            align(l);
        n = rk_tcp_next(l->in + l->in_at, l->in_end - l->in_at, &hdr);
        if (n < 0 || (n > 0 && hdr.epoch != l->peer->epoch)) {
            rk_engine_refused(l->tcp->ctx, &l->tcp->bad_frames);
            rk_tcp_link_failed(l, "it sent an invalid frame");
            return;
        }
        if (n > 0 && (hdr.kind == RK_TCP_DATA || hdr.kind == RK_TCP_WRITE)) {
            if (hdr.kind == RK_TCP_WRITE && !l->lifeline) {
                rk_tcp_write_begins(l, &hdr);
            } else if (l->lifeline || !rk_tcp_chunk_begins(l, &hdr, &l->into)) {
                rk_engine_refused(l->tcp->ctx, &l->tcp->bad_frames);
                rk_tcp_link_failed(l, "it sent data that was not pulled");
                return;
            }
            l->into_left = hdr.len;
            l->into_fill = (uint64_t)n - sizeof(hdr) - hdr.len;
            l->in_at += sizeof(hdr);
            continue;
        }
        if (n == 0 || (size_t)n > l->in_end - l->in_at)
            break;
        if (!tcp_deliver(l, &hdr, l->in + l->in_at + sizeof(hdr))) {
            rk_engine_refused(l->tcp->ctx, &l->tcp->bad_frames);
            rk_tcp_link_failed(l, "it sent an invalid frame");
            return;
        }
        l->in_at += (size_t)n;
    }
    if (l->in_at == l->in_end)
        l->in_at = l->in_end = 0;
    else if (l->in_at > 0 && IN_MAX - l->in_end < RK_TCP_FRAME_MAX + 64)
        align(l);
}

/* Receive once. Returns the bytes; 0: nothing is there, or the end. */
static size_t receive_some(struct rk_tcp_link *l, bool *drained)
{
    struct rk_tcp_op *op = l->into;
    struct iovec iov[2];
    size_t direct = 0, behind = IN_MAX - l->in_end, want;
    char *to = NULL;
    ssize_t got;
    int n = 0;

    if (l->into_left && l->in_at == l->in_end)
        to = op && !op->view.ops             ? (char *)op->view.base + op->done
             : op && rk_tcp_stages(&op->view) ? rk_tcp_stage_at(l, op)
             : l->sink.on                     ? rk_tcp_sink_at(l)
                                              : NULL;
    if (to) {
        direct = l->into_left;
        iov[n++] = (struct iovec){to, direct};
        behind = behind < BEHIND_MAX ? behind : BEHIND_MAX;
    }
    iov[n++] = (struct iovec){l->in + l->in_end, behind};
    want = direct + iov[n - 1].iov_len;
    do
        got = readv(l->source.fd, iov, n);
    while (got < 0 && errno == EINTR);
    *drained = got < (ssize_t)want;
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            rk_tcp_link_failed(l, got == 0 ? "it has ended the connection" : strerror(errno));
        return 0;
    }
    l->counts->received += (uint64_t)got;
    l->counts->received_ns = rk_clock_coarse_ns();
    l->tcp->last = l;
    if (direct) {
        size_t moved = (size_t)got < direct ? (size_t)got : direct;
        chunk_moved(l, moved);
        l->in_end += (size_t)got - moved;
    } else {
        l->in_end += (size_t)got;
    }
    return (size_t)got;
}

void rk_tcp_receive(struct rk_tcp_link *l)
{
    bool drained = false;

    if (!l->in && !(l->in = aligned_alloc(RK_CACHE_LINE, rk_round_up(IN_MAX, RK_CACHE_LINE))))
        return; /* the set reports it again */
    for (size_t sum = 0; sum < ROUND_MAX && link_receives(l) && !drained;) {
        sum += receive_some(l, &drained);
        parse(l);
    }
}
