/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_channel.c: provide the channel over sockets that lib/conn has opened. */
#include "lib/base/arg_error.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/boot/boot.h"
#include "lib/channel/tcp/tcp_channel.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPS_CHUNK = 32, ROUNDS_PER_SET = 4, ROUNDS_QUIET = 64 };

static const struct rk_tcp_hooks no_hooks;

static rank_status_t tcp_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    struct rk_tcp *tcp = calloc(1, sizeof(*tcp));

    (void)card;
    *len = 0;
    if (!tcp)
        return RANK_ERR_NO_MEMORY;
    tcp->ctx = ctx;
    tcp->set = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->set < 0) {
        rk_fail(RANK_ERR_SYSTEM, "cannot watch connections: %m");
        free(tcp);
        return RANK_ERR_SYSTEM;
    }
    tcp->hooks = &no_hooks;
    rk_list_init(&tcp->links);
    rk_list_init(&tcp->pending);
    rk_handles_open(&tcp->op_ids);
    rk_bounce_pool_init(&tcp->bounces);
    tcp->ops = (struct rk_slab)RK_SLAB_INIT(sizeof(struct rk_tcp_op), OPS_CHUNK);
    *state = tcp;
    return RANK_OK;
}

static void tcp_close(struct rk_ctx *ctx, void *state)
{
    struct rk_tcp *tcp = state;

    (void)ctx;
    tcp->leaving = true;
    while (!rk_list_empty(&tcp->links))
        rk_tcp_link_close(rk_list_entry(tcp->links.next, struct rk_tcp_link, on_links));
    if (tcp->pieces)
        rk_info("%llu pieces of device memory were copied for messages of tcp, %llu of them while others moved",
                (unsigned long long)tcp->pieces, (unsigned long long)tcp->overlapped);
    close(tcp->set);
    rk_bounce_pool_close(&tcp->bounces);
    rk_handles_close(&tcp->op_ids);
    rk_slab_close(&tcp->ops);
    free(tcp->by_number);
    free(tcp);
}

static rank_status_t tcp_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    struct rk_tcp *tcp = state;
    struct rk_tcp_link *l = rk_tcp_link_of(tcp, peer);

    (void)ctx;
    if (l && !l->lifeline) {
        peer->ep = l;
        return RANK_OK;
    }
    return l || !tcp->hooks->contact ? RANK_ERR_UNREACHABLE : tcp->hooks->contact(tcp->hooks_arg, peer);
}

static void tcp_disconnect(void *state, struct rk_peer *peer)
{
    struct rk_tcp *tcp = state;

    if (peer->state == RK_PEER_UP) /* the engine closes */
        tcp->leaving = true;
    if (peer->ep)
        rk_tcp_link_close(peer->ep);
}

/* The launcher may report a death before the socket shows its end, behind the last frames. All ranks of a host may be lost. */
static void tcp_drain(void *state, struct rk_peer *peer)
{
    struct rk_tcp_link *l = rk_tcp_link_of(state, peer);
    uint64_t until = rk_clock_ns() + RK_DRAIN_NS;

    while (l && !peer->by_conn && !l->failed && !l->bye && rk_clock_ns() < until) {
        struct pollfd p = {.fd = l->source.fd, .events = POLLIN};
        if (poll(&p, 1, RK_DRAIN_NS / 1000000) > 0)
            rk_tcp_receive(l);
    }
}

static void tcp_forget(void *state, struct rk_peer *peer, bool disconnected)
{
    struct rk_tcp_link *l = rk_tcp_link_of(state, peer);

    if (l && disconnected && !peer->by_conn)
        rk_tcp_send_bye(l);
    if (l)
        rk_tcp_link_close(l);
    rk_tcp_ops_trim(state);
}

static size_t tcp_frame_max(const struct rk_peer *peer)
{
    (void)peer;
    return RK_TCP_FRAME_MAX;
}

static rank_status_t tcp_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    return peer->ep ? rk_tcp_put(peer->ep, hdr, payload, hdr->len, NULL, NULL) : RANK_ERR_PEER_DEAD;
}

static rank_status_t tcp_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first, size_t first_len,
                               const void *second)
{
    return peer->ep ? rk_tcp_put(peer->ep, hdr, first, first_len, second, NULL) : RANK_ERR_PEER_DEAD;
}

static rank_status_t tcp_send_view(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view)
{
    return peer->ep ? rk_tcp_put(peer->ep, hdr, NULL, 0, NULL, view) : RANK_ERR_PEER_DEAD;
}

static void flush_pending(struct rk_tcp *tcp)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &tcp->pending)
        rk_tcp_flush(rk_list_entry(l, struct rk_tcp_link, on_pending));
}

/* Close the lifelines of dead peers. */
static RK_COLD void end_lifelines(struct rk_tcp *tcp)
{
    struct rk_link *at, *next;

    tcp->ended = false;
    rk_list_for_each_safe(at, next, &tcp->links)
    {
        struct rk_tcp_link *l = rk_list_entry(at, struct rk_tcp_link, on_links);

        if (l->lifeline && l->peer->state == RK_PEER_DEAD)
            rk_tcp_link_close(l);
        else if (l->lifeline && (l->failed || l->bye))
            tcp->ended = true; /* its death is reported, and not yet handled */
    }
}

/* Receive what is there. */
static void receive_all(struct rk_tcp *tcp)
{
    int n;

    /* Often the next frame comes from where the last one came: that saves a system call. The others have their turns. */
    if (tcp->last && !tcp->last->failed) {
        rk_tcp_receive(tcp->last);
        if (tcp->handled && tcp->rounds % ROUNDS_PER_SET)
            return;
    }
    n = epoll_wait(tcp->set, tcp->events, (int)RK_ARRAY_LEN(tcp->events), 0);
    tcp->nevents = n > 0 ? n : 0;
    for (int i = 0; i < tcp->nevents; i++) {
        struct rk_tcp_source *source = tcp->events[i].data.ptr;
        if (source)
            source->ready(source, tcp->events[i].events);
    }
    tcp->nevents = 0;
}

static int tcp_progress(struct rk_ctx *ctx, void *state)
{
    struct rk_tcp *tcp = state;

    (void)ctx;
    tcp->rounds++;
    tcp->tick++;
    tcp->handled = 0;
    flush_pending(tcp);
    if (rk_unlikely(tcp->ended))
        end_lifelines(tcp);
    if (rk_unlikely(tcp->settled)) {
        tcp->settled = false;
        tcp->hooks->settle(tcp->hooks_arg);
        tcp->handled++; /* requests may be complete */
    }
    if (tcp->watched == tcp->quiet && !tcp->due && tcp->rounds % ROUNDS_QUIET)
        return tcp->handled;
    tcp->due = false;
    receive_all(tcp);
    if (tcp->handled) { /* answers do not wait for the next call, nor does the program's next frame */
        flush_pending(tcp);
        tcp->tick++;
    }
    return tcp->handled;
}

static int tcp_fd(void *state)
{
    return ((struct rk_tcp *)state)->set;
}

/* What has arrived keeps the descriptor readable. */
static rank_status_t tcp_arm(void *state)
{
    flush_pending(state);
    ((struct rk_tcp *)state)->due = true;
    return RANK_OK;
}

static void tcp_idle(void *state, uint64_t now)
{
    struct rk_tcp *tcp = state;

    tcp->due = true;
    end_lifelines(tcp);
    rk_tcp_check_silence(tcp, now);
    if (tcp->hooks->idle)
        tcp->hooks->idle(tcp->hooks_arg, now);
}

/* Has a rank of the own job, which finalizes as well, sent its last frame? Each socket is read to its end before it closes. */
static bool has_left(struct rk_tcp_link *l)
{
    const struct rk_ctx *ctx = l->tcp->ctx;

    rk_tcp_send_bye(l);
    return ctx->engine->alone || l->peer->number >= ctx->boot->size || rk_tcp_is_over(l);
}

static rank_status_t tcp_drained(void *state)
{
    struct rk_tcp *tcp = state;
    rank_status_t st = RANK_OK;
    struct rk_link *at;

    rk_list_for_each(at, &tcp->links)
    {
        struct rk_tcp_link *l = rk_list_entry(at, struct rk_tcp_link, on_links);
        bool leaves = tcp->ctx->engine->draining && !l->peer->by_conn;
        if (!l->failed && (rk_tcp_waits(l) || (leaves && !has_left(l))))
            st = RK_AGAIN;
    }
    return st;
}

const struct rk_channel rk_channel_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .close = tcp_close,
    .connect = tcp_connect,
    .drain = tcp_drain,
    .disconnect = tcp_disconnect,
    .forget = tcp_forget,
    .frame_max = tcp_frame_max,
    .send = tcp_send,
    .send2 = tcp_send2,
    .send_view = tcp_send_view,
    .rndv_send = rk_tcp_rndv_send,
    .rndv_recv = rk_tcp_rndv_recv,
    .rndv_drop = rk_tcp_rndv_drop,
    .stream = rk_tcp_stream,
    .progress = tcp_progress,
    .fd = tcp_fd,
    .arm = tcp_arm,
    .idle = tcp_idle,
    .drained = tcp_drained,
};
