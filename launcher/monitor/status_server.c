/* SPDX-License-Identifier: BSD-3-Clause */
/* status_server.c: see status_server.h. */
#include "launcher/monitor/status_server.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/rundir.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

/* Clients at a time. More wait in the kernel's queue. */
#define CLIENTS_MAX 8

struct guest {
    struct xr_status *status;
    struct bufferevent *bev; /* NULL: a free place */
    struct event *end;
    bool asked, answered;
    bool mute; /* it went without a word: another xrun, which looks whether this one lives */
};

struct xr_status {
    struct event_base *base;
    const struct xr_status_ops *ops;
    void *arg;
    char *job;
    int fd;
    struct event *on_guest, *again;
    struct guest guests[CLIENTS_MAX];
    uint64_t strangers;
};

static void listen_if_room(struct xr_status *s);

static void status_server_leave(struct guest *g)
{
    struct xr_status *s = g->status;

    if (!g->bev)
        return;
    s->strangers += !g->asked && !g->mute;
    bufferevent_free(g->bev);
    g->bev = NULL;
    if (g->end)
        event_free(g->end);
    g->end = NULL;
    listen_if_room(s);
}

static void status_server_answer(struct guest *g, const char *text, size_t len)
{
    g->answered = true;
    bufferevent_write(g->bev, text, len);
    bufferevent_write(g->bev, XR_STATUS_END, strlen(XR_STATUS_END));
}

/* From here on it waits for us; how long it may stay is on_end's matter. */
static void has_asked(struct guest *g, size_t n)
{
    g->asked = true;
    evbuffer_drain(bufferevent_get_input(g->bev), n);
    bufferevent_set_timeouts(g->bev, NULL, NULL);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct evbuffer *in = bufferevent_get_input(bev);
    struct guest *g = arg;
    struct xr_status *s = g->status;
    size_t n = evbuffer_get_length(in), ask = strlen(XR_STATUS_ASK), head = strlen(XR_STATUS_HEAD);
    char said[16] = "", line[512];

    if (g->asked || n >= sizeof(said)) {
        status_server_leave(g); /* there is nothing more to be said */
        return;
    }
    evbuffer_copyout(in, said, n);
    if (n == ask && memcmp(said, XR_STATUS_ASK, n) == 0) {
        has_asked(g, n);
        s->ops->asked(s->arg);
    } else if (n == head && memcmp(said, XR_STATUS_HEAD, n) == 0) {
        has_asked(g, n);
        s->ops->head(s->arg, line, sizeof(line));
        status_server_answer(g, line, strlen(line));
    } else if (!(n < ask && memcmp(said, XR_STATUS_ASK, n) == 0) &&
               !(n < head && memcmp(said, XR_STATUS_HEAD, n) == 0)) {
        status_server_leave(g);
    }
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct guest *g = arg;

    if (g->answered && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        status_server_leave(g);
}

/* It is gone, or it was silent too long. */
static void status_server_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct guest *g = arg;

    if (what & BEV_EVENT_EOF && g->answered)
        return; /* it has only said all; writing finds out the rest */
    g->mute = what & BEV_EVENT_EOF && evbuffer_get_length(bufferevent_get_input(bev)) == 0;
    status_server_leave(g);
}

static void status_server_on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    status_server_leave(arg);
}

static bool status_server_is_ours(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           (who.uid == geteuid() || who.uid == 0);
}

static struct guest *free_place(struct xr_status *s)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (!s->guests[i].bev)
            return &s->guests[i];
    }
    return NULL;
}

static void status_server_receive(struct xr_status *s, struct guest *g, int fd)
{
    const struct timeval speak = {XR_STATUS_REQUEST_S, 0}, stay = {XR_STATUS_STAY_S, 0};

    *g = (struct guest){.status = s};
    g->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!g->bev) {
        close(fd);
        return;
    }
    g->end = evtimer_new(s->base, status_server_on_end, g);
    if (!g->end || event_add(g->end, &stay)) {
        status_server_leave(g);
        return;
    }
    bufferevent_setcb(g->bev, on_read, on_written, status_server_on_event, g);
    bufferevent_set_timeouts(g->bev, &speak, NULL);
    bufferevent_enable(g->bev, EV_READ | EV_WRITE);
}

/* Until a guest leaves, or for a second if there are no descriptors: the others can wait. */
static void on_guest(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval second = {1, 0};
    struct xr_status *s = arg;
    struct guest *g;

    (void)what;
    while ((g = free_place(s)) != NULL) {
        int guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (guest < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (guest < 0) {
            if (errno != EAGAIN) {
                event_del(s->on_guest);
                event_add(s->again, &second);
            }
            return;
        }
        if (status_server_is_ours(guest)) {
            status_server_receive(s, g, guest);
        } else {
            s->strangers++;
            close(guest);
        }
    }
    event_del(s->on_guest);
}

static void status_server_on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    listen_if_room(arg);
}

static void listen_if_room(struct xr_status *s)
{
    if (s->on_guest && free_place(s) && !event_pending(s->again, EV_TIMEOUT, NULL))
        event_add(s->on_guest, NULL);
}

struct xr_status *xr_status_open(struct event_base *base, const char *job,
                                 const struct xr_status_ops *ops, void *arg)
{
    struct xr_status *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->base = base;
    s->ops = ops;
    s->arg = arg;
    s->fd = xr_rundir_listen(job);
    if (s->fd < 0) {
        int error = errno;
        free(s);
        errno = error;
        return NULL;
    }
    s->job = strdup(job);
    s->again = evtimer_new(base, status_server_on_again, s);
    s->on_guest = event_new(base, s->fd, EV_READ | EV_PERSIST, on_guest, s);
    if (!s->job || !s->again || !s->on_guest || event_add(s->on_guest, NULL)) {
        xr_status_close(s);
        errno = ENOMEM;
        return NULL;
    }
    return s;
}

void xr_status_close(struct xr_status *s)
{
    if (!s)
        return;
    if (s->on_guest)
        event_free(s->on_guest);
    s->on_guest = NULL;
    for (int i = 0; i < CLIENTS_MAX; i++)
        status_server_leave(&s->guests[i]);
    if (s->again)
        event_free(s->again);
    close(s->fd);
    if (s->job)
        xr_rundir_remove(s->job);
    free(s->job);
    free(s);
}

void xr_status_answer(struct xr_status *s, const char *text, size_t len)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        struct guest *g = &s->guests[i];
        if (g->bev && g->asked && !g->answered)
            status_server_answer(g, text, len);
    }
}

bool xr_status_busy(const struct xr_status *s)
{
    bool busy = false;

    for (int i = 0; i < CLIENTS_MAX; i++)
        busy = busy || s->guests[i].bev;
    return busy;
}

uint64_t xr_status_strangers(const struct xr_status *s)
{
    return s->strangers;
}
