/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_listener.c: accept clients and have their handshakes carried out. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/retired.h"
#include "lib/conn/conns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_A_ROUND = 16, YOUNG_NS = 100000000 };
static _Atomic uint64_t listener_serial;

/* Memory of closed listeners: their handles are rejected. */
static struct rk_retired listeners = RK_RETIRED_INIT(16);

static rank_listener_t listener_memory(void)
{
    struct rk_link *link = rk_retired_take(&listeners);
    rank_listener_t t = link ? rk_list_entry(link, struct rank_listener, link) : NULL;

    return t ? memset(t, 0, sizeof(*t)) : calloc(1, sizeof(*t));
}

static void listener_retire(rank_listener_t t)
{
    t->magic = 0;
    rk_retired_put(&listeners, &t->link);
}

static void listener_pause(rank_listener_t t)
{
    if (!t->paused)
        rk_tcp_rewatch(t->of->tcp, &t->source, 0);
    t->paused = true;
}

/* Free the handshakes that have failed. */
static void listener_sweep(rank_listener_t t)
{
    struct rk_link *at, *next;

    rk_list_for_each_safe(at, next, &t->half_open)
    {
        struct rk_shaking *s = rk_list_entry(at, struct rk_shaking, link);
        if (s->over)
            rk_shake_end(s);
    }
}

/* End the oldest handshake, unless it is young. Clients that are silent must not keep others out. */
static bool listener_evict(rank_listener_t t)
{
    struct rk_link *at;

    rk_list_for_each(at, &t->half_open)
    {
        struct rk_shaking *s = rk_list_entry(at, struct rk_shaking, link);

        if (s->over)
            continue;
        if (rk_clock_ns() - s->begun < YOUNG_NS)
            return false;
        t->nhalf_open--;
        rk_shake_end(s);
        return true;
    }
    return false;
}

static void listener_ready(struct rk_tcp_source *source, uint32_t events)
{
    rank_listener_t t = rk_container_of(source, struct rank_listener, source);

    (void)events;
    listener_sweep(t);
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd;

        if (t->nhalf_open >= RK_CONN_HALF_OPEN && !listener_evict(t)) {
            listener_pause(t);
            return;
        }
        fd = accept4(t->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            if (!t->failed)
                rk_warn("rank_listen: cannot accept a client, which waits: %m");
            t->failed = errno == ENOMEM || errno == ENOBUFS ? RANK_ERR_NO_MEMORY : RANK_ERR_SYSTEM;
            t->of->tcp->handled++;
            listener_pause(t); /* rk_listeners_check tries again */
            return;
        }
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return;
        if (fd >= 0 && rk_shake_begin(t->of, fd, t, &t->opts))
            t->nhalf_open++;
    }
}

static void listener_shaken(struct rk_shaking *s)
{
    rank_listener_t t = s->listener;

    t->nhalf_open--;
    if (s->status) {
        rk_debug("rank_listen: a client is refused: %s", s->why);
        return;
    }
    rk_list_remove(&s->link);
    rk_list_append(&t->ready, &s->link);
    if (t->refusal)
        s->of->tcp->settled = true;
    else
        t->count->n++;
}

void rk_listeners_check(struct rk_conns *c, uint64_t now)
{
    struct rk_link *at, *l, *next;

    rk_list_for_each(at, &c->listeners)
    {
        rank_listener_t t = rk_list_entry(at, struct rank_listener, link);
        rk_list_for_each_safe(l, next, &t->half_open)
        {
            struct rk_shaking *s = rk_list_entry(l, struct rk_shaking, link);
            if (now >= s->deadline)
                rk_shake_settle(s, RANK_ERR_TIMED_OUT, "the handshake takes too long");
        }
        listener_sweep(t);
        if (t->paused) {
            t->paused = false;
            rk_tcp_rewatch(c->tcp, &t->source, EPOLLIN);
        }
    }
}

/* Bind a socket to the address and listen. Returns the descriptor, or -1 with errno. */
static int bind_one(const struct addrinfo *a, int backlog)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0, error;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, backlog) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Returns the descriptor, or -1 with errno. */
static int bind_any(const struct addrinfo *found, int backlog)
{
    int fd = -1;

    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = bind_one(a, backlog);
    return fd;
}

static bool reaches_others(const struct addrinfo *found)
{
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        if (!rk_address_is_loopback(a->ai_addr))
            return true;
    }
    return false;
}

rank_status_t rk_listener_open(const char *call, struct rk_conns *c, const char *address, const struct addrinfo *found,
                               const struct rk_conn_opts *opts, rank_listener_t *out)
{
    rank_status_t st = RANK_ERR_NO_MEMORY;
    rank_listener_t t;

    if (!opts->secret.bytes && !(opts->flags & RANK_CONN_OPEN) && reaches_others(found))
        return rk_arg_error(RANK_ERR_ARG, call, "%s can be reached from other hosts: give a secret, or RANK_CONN_OPEN", address);
    t = listener_memory();
    if (!t)
        return st;
    t->source = (struct rk_tcp_source){.fd = -1, .ready = listener_ready};
    t->count = calloc(1, sizeof(*t->count));
    if (!t->count)
        goto err;
    t->source.fd = bind_any(found, opts->backlog);
    if (t->source.fd < 0) {
        st = rk_call_error(RANK_ERR_SYSTEM, call, "cannot listen on %s: %m%s", address,
                           errno == EADDRINUSE ? "; choose another port, or 0 for any" : "");
        goto err;
    }
    st = rk_tcp_watch(c->tcp, &t->source, EPOLLIN);
    if (st)
        goto err;
    rk_tcp_set_quiet(c->tcp, &t->source);
    t->of = c;
    t->shaken = listener_shaken;
    t->opts = *opts;
    t->count->holders = 1;
    rk_list_init(&t->half_open);
    rk_list_init(&t->ready);
    rk_list_append(&c->listeners, &t->link);
    t->serial = atomic_fetch_add(&listener_serial, 1) + 1;
    t->magic = RK_LISTENER_MAGIC;
    *out = t;
    return RANK_OK;

err:
    if (t->source.fd >= 0)
        close(t->source.fd);
    free(t->count);
    listener_retire(t);
    return st;
}

static void end_all(struct rk_link *list)
{
    while (!rk_list_empty(list))
        rk_shake_end(rk_list_entry(list->next, struct rk_shaking, link));
}

void rk_conn_count_drop(struct rk_conn_count *count)
{
    if (count && --count->holders == 0)
        free(count);
}

void rk_listener_end(rank_listener_t t)
{
    end_all(&t->half_open);
    end_all(&t->ready);
    rk_tcp_unwatch(t->of->tcp, &t->source);
    close(t->source.fd);
    rk_list_remove(&t->link);
    rk_conn_count_drop(t->count);
    rk_secret_clear(&t->opts.secret);
    t->serial = 0;
    listener_retire(t);
}
