/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_link.c: attach sockets to peers, and end them. */
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/channel/tcp/tcp_channel.h"

#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

rank_status_t rk_tcp_watch(struct rk_tcp *tcp, struct rk_tcp_source *source, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = source};

    source->quiet = false;
    if (epoll_ctl(tcp->set, EPOLL_CTL_ADD, source->fd, &ev) == 0) {
        tcp->watched++;
        return RANK_OK;
    }
    return rk_fail(RANK_ERR_SYSTEM, "cannot watch a connection: %m");
}

void rk_tcp_set_quiet(struct rk_tcp *tcp, struct rk_tcp_source *source)
{
    source->quiet = true;
    tcp->quiet++;
}

void rk_tcp_rewatch(struct rk_tcp *tcp, struct rk_tcp_source *source, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = source};

    epoll_ctl(tcp->set, EPOLL_CTL_MOD, source->fd, &ev);
}

void rk_tcp_unwatch(struct rk_tcp *tcp, struct rk_tcp_source *source)
{
    epoll_ctl(tcp->set, EPOLL_CTL_DEL, source->fd, NULL);
    tcp->watched--;
    tcp->quiet -= source->quiet;
    source->quiet = false;
    for (int i = 0; i < tcp->nevents; i++) {
        if (tcp->events[i].data.ptr == source)
            tcp->events[i].data.ptr = NULL;
    }
}

void rk_tcp_link_failed(struct rk_tcp_link *l, const char *why)
{
    if (l->failed)
        return;
    l->failed = true;
    rk_list_remove(&l->on_pending);
    rk_tcp_unwatch(l->tcp, &l->source);
    if (why && !l->bye_sent)
        rk_debug("the connection to peer %d is at its end: %s", l->peer->number, why);
    if (!l->peer->by_conn && l->bye)
        return; /* rk_tcp_bye_came has reported what there is to report */
    l->peer->closed |= l->peer->by_conn && (l->bye || l->bye_sent);
    l->tcp->ended |= l->lifeline;
    rk_engine_report_death(l->tcp->ctx, l->peer->number);
}

void rk_tcp_bye_came(struct rk_tcp_link *l, uint8_t flags)
{
    struct rk_ctx *ctx = l->tcp->ctx;

    l->bye = true;
    if (!l->peer->by_conn) {
        l->peer->left = 1;
        /* A wait for a rank that leaves alone, after a death, never ends; nor does the last barrier. */
        if (!(flags & RK_TCP_DISCONNECTED) && (!ctx->engine->finalizing || flags & RK_TCP_ALONE))
            rk_engine_report_death(ctx, l->peer->number);
    } else if (l->lifeline) { /* confirmed once its frames are delivered and it is disconnected */
        l->peer->closed = 1;
        l->tcp->ended = true;
        rk_engine_report_death(ctx, l->peer->number);
    } else {
        rk_tcp_send_bye(l);
        rk_tcp_link_failed(l, NULL);
    }
}

/*
 * Report a peer whose host has not acknowledged bytes or probes for silence_ns.
 * TCP_USER_TIMEOUT would also end a connection to a process that is stopped: its host answers, but its window is closed.
 */
static void check_link(struct rk_tcp_link *l, uint64_t now)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    uint64_t answered;

    l->next_check = now + l->silence_ns / 8;
    if (l->failed || getsockopt(l->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return;
    if (!info.tcpi_unacked && !info.tcpi_probes) {
        l->unanswered_since = 0;
        return;
    }
    answered = now - (uint64_t)info.tcpi_last_ack_recv * 1000000;
    if (!l->unanswered_since)
        l->unanswered_since = now;
    else if (answered > l->unanswered_since)
        l->unanswered_since = answered;
    if (now - l->unanswered_since >= l->silence_ns)
        rk_tcp_link_failed(l, "its host does not answer");
}

void rk_tcp_check_silence(struct rk_tcp *tcp, uint64_t now)
{
    struct rk_link *at;

    rk_list_for_each(at, &tcp->links)
    {
        struct rk_tcp_link *l = rk_list_entry(at, struct rk_tcp_link, on_links);
        if (now >= l->next_check)
            check_link(l, now);
    }
}

static void set_options(int fd, uint64_t silence_ns)
{
    uint64_t third = silence_ns / 3000000000u; /* idle, then two probes */
    int on = 1, probes = 2, s = third > 10000 ? 10000 : third > 0 ? (int)third : 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &s, sizeof(s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &s, sizeof(s));
}

void rk_tcp_link_ready(struct rk_tcp_source *source, uint32_t events)
{
    struct rk_tcp_link *l = rk_container_of(source, struct rk_tcp_link, source);

    if (events & EPOLLOUT)
        rk_tcp_flush(l);
    if (!l->failed && (events & ~(uint32_t)EPOLLOUT))
        rk_tcp_receive(l);
}

static rank_status_t make_room(struct rk_tcp *tcp, int number)
{
    int cap = tcp->by_number_cap ? tcp->by_number_cap : 16;
    struct rk_tcp_link **grown;

    if (number < tcp->by_number_cap)
        return RANK_OK;
    while (cap <= number)
        cap *= 2;
    grown = realloc(tcp->by_number, (size_t)cap * sizeof(*grown));
    if (!grown)
        return RANK_ERR_NO_MEMORY;
    memset(grown + tcp->by_number_cap, 0, (size_t)(cap - tcp->by_number_cap) * sizeof(*grown));
    tcp->by_number = grown;
    tcp->by_number_cap = cap;
    return RANK_OK;
}

struct rk_tcp_link *rk_tcp_link_of(const struct rk_tcp *tcp, const struct rk_peer *peer)
{
    return peer->number < tcp->by_number_cap ? tcp->by_number[peer->number] : NULL;
}

rank_status_t rk_tcp_attach(struct rk_tcp *tcp, int fd, struct rk_peer *peer, struct rk_tcp_counts *counts, uint64_t silence_ns,
                            bool lifeline)
{
    struct rk_tcp_link *l;
    rank_status_t st = make_room(tcp, peer->number);

    if (st || !(l = calloc(1, sizeof(*l)))) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a connection");
    }
    l->source = (struct rk_tcp_source){.fd = fd, .ready = rk_tcp_link_ready};
    l->lifeline = lifeline;
    l->tcp = tcp;
    l->peer = peer;
    l->counts = counts ? counts : &l->own;
    l->silence_ns = silence_ns;
    set_options(fd, silence_ns);
    l->tick = UINT64_MAX;
    rk_list_init(&l->on_pending);
    rk_list_init(&l->ops);
    rk_list_init(&l->jobs);
    st = rk_tcp_watch(tcp, &l->source, EPOLLIN | EPOLLRDHUP);
    if (st) {
        free(l);
        return st;
    }
    rk_list_append(&tcp->links, &l->on_links);
    tcp->by_number[peer->number] = l;
    if (lifeline) {
        rk_tcp_set_quiet(tcp, &l->source);
        return RANK_OK;
    }
    st = rk_peer_try_connect(peer);
    if (st) {
        l->source.fd = -1; /* it stays with the caller */
        rk_tcp_link_close(l);
    }
    return st;
}

void rk_tcp_link_close(struct rk_tcp_link *l)
{
    struct rk_tcp *tcp = l->tcp;

    if ((l->lifeline && l->bye) || (tcp->leaving && !l->peer->by_conn))
        rk_tcp_send_bye(l); /* nothing here touches the peer's memory any more */
    if (!l->failed)
        rk_tcp_unwatch(tcp, &l->source);
    l->failed = true;
    rk_tcp_fail_ops(l, RANK_ERR_PEER_DEAD);
    tcp->by_number[l->peer->number] = NULL;
    if (tcp->last == l)
        tcp->last = NULL;
    if (l->peer->ep == l)
        l->peer->ep = NULL;
    rk_list_remove(&l->on_pending);
    rk_list_remove(&l->on_links);
    if (l->source.fd >= 0)
        close(l->source.fd);
    free(l->in);
    free(l->out);
    free(l->packed);
    free(l);
}

void rk_tcp_send_ready(struct rk_tcp_link *l)
{
    const struct rk_hdr ready = {.kind = RK_TCP_READY, .epoch = l->peer->epoch};

    if (rk_tcp_put(l, &ready, NULL, 0, NULL, NULL) == RANK_OK) /* the first bytes: there is room */
        rk_tcp_flush(l);
}

void rk_tcp_send_bye(struct rk_tcp_link *l)
{
    struct rk_hdr bye = {.kind = RK_TCP_BYE, .epoch = l->peer->epoch};
    const struct rk_engine *e = l->tcp->ctx->engine;

    if (!l->peer->by_conn)
        bye.flags = e->alone ? RK_TCP_ALONE : e->draining || l->tcp->leaving ? 0 : RK_TCP_DISCONNECTED;
    if (l->failed || l->bye_sent || rk_tcp_put(l, &bye, NULL, 0, NULL, NULL) == RK_AGAIN)
        return;
    l->bye_sent = true;
    rk_tcp_flush(l);
}

bool rk_tcp_is_over(const struct rk_tcp_link *l)
{
    return l->failed || (l->bye_sent && !rk_tcp_waits(l) && l->bye);
}
