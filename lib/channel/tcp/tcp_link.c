/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_link.c: attach sockets to peers, and end them. */
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/channel/tcp/tcp_channel.h"

#include <stdlib.h>
#include <string.h>
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
    l->peer->closed |= l->bye || l->bye_sent;
    l->tcp->ended |= l->lifeline;
    rk_engine_report_death(l->tcp->ctx, l->peer->number);
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

rank_status_t rk_tcp_attach(struct rk_tcp *tcp, int fd, struct rk_peer *peer, struct rk_tcp_counts *counts, bool lifeline)
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
    l->counts = counts;
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

    if (l->lifeline && l->bye)
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
    const struct rk_hdr bye = {.kind = RK_TCP_BYE, .epoch = l->peer->epoch};

    if (l->failed || l->bye_sent || rk_tcp_put(l, &bye, NULL, 0, NULL, NULL) == RK_AGAIN)
        return;
    l->bye_sent = true;
    rk_tcp_flush(l);
}

bool rk_tcp_is_over(const struct rk_tcp_link *l)
{
    return l->failed || (l->bye_sent && !rk_tcp_waits(l) && l->bye);
}
