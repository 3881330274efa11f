/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_server.c: serve the connections of PMI-1 clients. See pmi1_server.h.
 *
 * A job without PMI-1 pays for a socket pair a rank and its place in an epoll set,
 * of which the loop has one descriptor. Buffers are made at the first byte.
 */
#include "launcher/pmi1/pmi1_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes that a job's clients may put: a rank needs some hundred for each of its addresses. */
#define SPACE_OWN (1u << 20)
#define SPACE_PER_RANK (64u << 10)
#define AT_ONCE 64 /* clients served before the loop's other events */

/* ---------------------------------------------------------------- one connection */

static void on_line(void *arg, const char *line)
{
    xr_pmi1_block_line(arg, line);
}

/* Read and execute commands. Returns false if the connection has ended. */
static bool pmi1_server_read(struct xr_pmi1_client *c)
{
    struct xr_pmi1_command command;
    enum xr_pmi1_next next;
    size_t room;
    ssize_t n;
    char *to;

    if (!c->input)
        c->input = calloc(1, sizeof(*c->input));
    if (!c->input) {
        xr_pmi1_client_gone(c);
        return false;
    }
    c->input->line = on_line;
    c->input->arg = c;
    to = xr_pmi1_input_room(c->input, &room);
    n = recv(c->fd, to, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        xr_pmi1_client_gone(c);
        return false;
    }
    xr_pmi1_input_filled(c->input, (size_t)n);
    while ((next = xr_pmi1_input_next(c->input, &command)) == XR_PMI1_COMMAND) {
        xr_pmi1_execute(c, &command);
        if (c->fd < 0)
            return false;
    }
    if (next == XR_PMI1_MALFORMED)
        xr_pmi1_refuse(c, "not a command");
    return c->fd >= 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct epoll_event ev[AT_ONCE];
    struct xr_pmi1 *s = arg;
    int n = epoll_wait(fd, ev, AT_ONCE, 0);

    (void)what;
    for (int i = 0; i < n; i++) {
        struct xr_pmi1_client *c = &s->clients[ev[i].data.u32];
        if (c->fd >= 0) /* a command of another client may have closed it */
            pmi1_server_read(c);
    }
}

bool xr_pmi1_exited(struct xr_pmi1 *s, uint32_t rank)
{
    struct xr_pmi1_client *c;

    if (!s)
        return false;
    c = &s->clients[rank];
    /* Another process may still hold the other end: handle only what has arrived. Each round reads something, at most
     * what a socket holds. */
    for (int i = 0; c->fd >= 0 && i < 256; i++) {
        char byte;
        if (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || !pmi1_server_read(c))
            break;
    }
    if (c->waiting)
        s->waiting--;
    xr_pmi1_disconnect(c);
    /* A rank that has finalized was in all barriers that other hosts will see. The last of them may still be under
     * way there, and the report must not overtake it. */
    if (!s->gone || c->inits < s->gone_inits) {
        s->gone_rank = rank;
        s->gone_inits = c->inits;
    }
    s->gone = true;
    s->gone_early = s->gone_early || c->state != XR_PMI1_FINALIZED;
    /* Without a client no rank waits here, but ranks of other hosts may. */
    if (s->inits > 0 || (c->given && s->ops->exchange && s->gone_early))
        xr_pmi1_fail_barriers(s, s->gone_early);
    return c->state == XR_PMI1_JOINED;
}

bool xr_pmi1_used(const struct xr_pmi1 *s)
{
    return s && s->inits > 0;
}

bool xr_pmi1_waits(const struct xr_pmi1 *s, uint32_t rank)
{
    return s && rank < s->local && s->clients[rank].waiting;
}

/* ------------------------------------------------------------------- start, end */

/* Set a key before the start. Every host does that, so it is in no blob. */
static rank_status_t set_key(struct xr_pmi1 *s, const char *text)
{
    const char *value = strchr(text, '=');
    char key[XR_PMI1_KEY_MAX + 1];

    if (!value || (size_t)(value - text) >= sizeof(key))
        return RANK_OK; /* no client could get it */
    memcpy(key, text, (size_t)(value - text));
    key[value - text] = '\0';
    return xr_pmi1_kvs_set(s->space, key, value + 1);
}

rank_status_t xr_pmi1_open(struct event_base *base, const struct xr_pmi1_job *job,
                           const struct xr_pmi1_ops *ops, void *arg, struct xr_pmi1 **out)
{
    size_t limit = SPACE_OWN + (size_t)job->size * SPACE_PER_RANK;
    struct xr_pmi1 *s = calloc(1, sizeof(*s));
    char mapping[XR_PMI1_VALUE_MAX + 1];
    rank_status_t st = RANK_ERR_NO_MEMORY;

    if (!s)
        return st;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->ops = ops;
    s->arg = arg;
    s->size = job->size;
    s->universe = job->universe && job->universe < job->size ? job->size : job->universe;
    s->local = job->local;
    s->name = strdup(job->id);
    s->clients = calloc(job->local, sizeof(*s->clients));
    for (uint32_t i = 0; s->clients && i < job->local; i++)
        s->clients[i] = (struct xr_pmi1_client){.server = s, .rank = i, .fd = -1};
    s->ev = s->epoll < 0 ? NULL : event_new(base, s->epoll, EV_READ | EV_PERSIST, on_readable, s);
    if (s->name && s->clients && s->ev && event_add(s->ev, NULL) == 0 &&
        xr_pmi1_kvs_create(limit, ops->exchange != NULL, &s->space) == RANK_OK)
        st = RANK_OK;
    /* Where it is too long, MPICH finds the hosts by exchanging names. It is equal on every host, so it is in no blob. */
    if (!st && xr_pmi1_mapping(job->node_of, job->size, mapping, sizeof(mapping)) <
                   (int)sizeof(mapping))
        st = xr_pmi1_kvs_set(s->space, "PMI_process_mapping", mapping);
    for (char *const *k = job->keys; k && *k && !st; k++)
        st = set_key(s, *k);
    if (st) {
        xr_pmi1_close(s);
        return st;
    }
    *out = s;
    return RANK_OK;
}

void xr_pmi1_close(struct xr_pmi1 *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->clients && i < s->local; i++)
        xr_pmi1_disconnect(&s->clients[i]);
    if (s->ev)
        event_free(s->ev);
    if (s->epoll >= 0)
        close(s->epoll);
    xr_pmi1_kvs_destroy(s->space);
    free(s->clients);
    free(s->name);
    free(s);
}

rank_status_t xr_pmi1_add(struct xr_pmi1 *s, uint32_t rank, uint32_t app, int *fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = rank};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return RANK_ERR_SYSTEM;
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, ends[0], &ev)) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return RANK_ERR_SYSTEM;
    }
    s->clients[rank].given = true;
    s->clients[rank].fd = ends[0];
    s->clients[rank].app = app;
    *fd = ends[1];
    return RANK_OK;
}
