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

struct status_client {
    struct xr_status *status;
    struct bufferevent *bev; /* NULL: unused */
    struct event *end; /* of its time */
    bool requested, answered;
    bool probe; /* closed without a byte: another xrun checks whether this one runs */
};

struct xr_status {
    struct event_base *base;
    const struct xr_status_ops *ops;
    void *arg;
    char *job;
    int fd;
    struct event *on_connection, *again;
    struct status_client clients[CLIENTS_MAX];
    uint64_t rejected; /* connections without a valid request */
};

static void listen_if_room(struct xr_status *s);

static void status_server_leave(struct status_client *c)
{
    struct xr_status *s = c->status;

    if (!c->bev)
        return;
    s->rejected += !c->requested && !c->probe;
    bufferevent_free(c->bev);
    c->bev = NULL;
    if (c->end)
        event_free(c->end);
    c->end = NULL;
    listen_if_room(s);
}

static void status_server_answer(struct status_client *c, const char *text, size_t len)
{
    c->answered = true;
    bufferevent_write(c->bev, text, len);
    bufferevent_write(c->bev, XR_STATUS_END, strlen(XR_STATUS_END));
}

/* The request is complete: only the limit of its whole stay holds from now on. */
static void accept_request(struct status_client *c, size_t n)
{
    c->requested = true;
    evbuffer_drain(bufferevent_get_input(c->bev), n);
    bufferevent_set_timeouts(c->bev, NULL, NULL);
}

static void on_request_read(struct bufferevent *bev, void *arg)
{
    struct evbuffer *in = bufferevent_get_input(bev);
    struct status_client *c = arg;
    struct xr_status *s = c->status;
    size_t n = evbuffer_get_length(in), whole = strlen(XR_STATUS_REQUEST), brief = strlen(XR_STATUS_SUMMARY);
    char word[16] = "", line[512];

    if (c->requested || n >= sizeof(word)) {
        status_server_leave(c); /* more than a request */
        return;
    }
    evbuffer_copyout(in, word, n);
    if (n == whole && memcmp(word, XR_STATUS_REQUEST, n) == 0) {
        accept_request(c, n);
        s->ops->on_request(s->arg);
    } else if (n == brief && memcmp(word, XR_STATUS_SUMMARY, n) == 0) {
        accept_request(c, n);
        s->ops->summary(s->arg, line, sizeof(line));
        status_server_answer(c, line, strlen(line));
    } else if (!(n < whole && memcmp(word, XR_STATUS_REQUEST, n) == 0) &&
               !(n < brief && memcmp(word, XR_STATUS_SUMMARY, n) == 0)) {
        status_server_leave(c);
    }
}

static void on_answer_written(struct bufferevent *bev, void *arg)
{
    struct status_client *c = arg;

    if (c->answered && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        status_server_leave(c);
}

/* Handle the end of a connection, or the time-out of its request. */
static void status_server_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct status_client *c = arg;

    if (what & BEV_EVENT_EOF && c->answered)
        return; /* it closed its writing side; a failed write will show whether it is gone */
    c->probe = what & BEV_EVENT_EOF && evbuffer_get_length(bufferevent_get_input(bev)) == 0;
    status_server_leave(c);
}

static void status_server_on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    status_server_leave(arg);
}

static bool status_server_is_ours(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static struct status_client *unused_client(struct xr_status *s)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (!s->clients[i].bev)
            return &s->clients[i];
    }
    return NULL;
}

static void status_server_receive(struct xr_status *s, struct status_client *c, int fd)
{
    const struct timeval request = {XR_STATUS_REQUEST_S, 0}, stay = {XR_STATUS_STAY_S, 0};

    *c = (struct status_client){.status = s};
    c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!c->bev) {
        close(fd);
        return;
    }
    c->end = evtimer_new(s->base, status_server_on_end, c);
    if (!c->end || event_add(c->end, &stay)) {
        status_server_leave(c);
        return;
    }
    bufferevent_setcb(c->bev, on_request_read, on_answer_written, status_server_on_event, c);
    bufferevent_set_timeouts(c->bev, &request, NULL);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

/* Accept clients until all places are used. Without descriptors, pause for a second. */
static void on_connection(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval second = {1, 0};
    struct xr_status *s = arg;
    struct status_client *c;

    (void)what;
    while ((c = unused_client(s)) != NULL) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (peer < 0) {
            if (errno != EAGAIN) {
                event_del(s->on_connection);
                event_add(s->again, &second);
            }
            return;
        }
        if (status_server_is_ours(peer)) {
            status_server_receive(s, c, peer);
        } else {
            s->rejected++;
            close(peer);
        }
    }
    event_del(s->on_connection);
}

static void status_server_on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    listen_if_room(arg);
}

static void listen_if_room(struct xr_status *s)
{
    if (s->on_connection && unused_client(s) && !event_pending(s->again, EV_TIMEOUT, NULL))
        event_add(s->on_connection, NULL);
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
    s->on_connection = event_new(base, s->fd, EV_READ | EV_PERSIST, on_connection, s);
    if (!s->job || !s->again || !s->on_connection || event_add(s->on_connection, NULL)) {
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
    if (s->on_connection)
        event_free(s->on_connection);
    s->on_connection = NULL;
    for (int i = 0; i < CLIENTS_MAX; i++)
        status_server_leave(&s->clients[i]);
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
        struct status_client *c = &s->clients[i];
        if (c->bev && c->requested && !c->answered)
            status_server_answer(c, text, len);
    }
}

bool xr_status_busy(const struct xr_status *s)
{
    bool busy = false;

    for (int i = 0; i < CLIENTS_MAX; i++)
        busy = busy || s->clients[i].bev;
    return busy;
}

uint64_t xr_status_rejected(const struct xr_status *s)
{
    return s->rejected;
}
