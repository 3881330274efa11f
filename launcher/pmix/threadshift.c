/* SPDX-License-Identifier: BSD-3-Clause */
/* threadshift.c: pass posts of any thread to the agent's loop. See threadshift.h. */
#include "launcher/pmix/threadshift.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct xr_threadshift {
    pthread_mutex_t lock;
    struct rk_link posts;
    int fd;
    struct event *ev;
    void *arg;
};

void xr_threadshift_run(struct xr_threadshift *m)
{
    struct rk_link now;

    rk_list_init(&now);
    pthread_mutex_lock(&m->lock);
    while (!rk_list_empty(&m->posts)) {
        struct rk_link *first = m->posts.next;
        rk_list_remove(first);
        rk_list_append(&now, first);
    }
    pthread_mutex_unlock(&m->lock);
    while (!rk_list_empty(&now)) {
        struct xr_post *post = rk_list_entry(now.next, struct xr_post, link);
        rk_list_remove(&post->link);
        post->run(post, m->arg);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
        xr_threadshift_run(arg);
}

rank_status_t xr_threadshift_open(struct event_base *base, void *arg, struct xr_threadshift **out)
{
    struct xr_threadshift *m = calloc(1, sizeof(*m));

    if (!m)
        return RANK_ERR_NO_MEMORY;
    pthread_mutex_init(&m->lock, NULL);
    rk_list_init(&m->posts);
    m->arg = arg;
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->ev = m->fd < 0 ? NULL : event_new(base, m->fd, EV_READ | EV_PERSIST, on_readable, m);
    if (!m->ev || event_add(m->ev, NULL)) {
        xr_threadshift_close(m);
        return RANK_ERR_SYSTEM;
    }
    *out = m;
    return RANK_OK;
}

void xr_threadshift_close(struct xr_threadshift *m)
{
    if (!m)
        return;
    if (m->ev)
        event_free(m->ev);
    if (m->fd >= 0)
        close(m->fd);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void xr_threadshift_post(struct xr_threadshift *m, struct xr_post *post)
{
    const uint64_t one = 1;
    ssize_t n;

    pthread_mutex_lock(&m->lock);
    rk_list_append(&m->posts, &post->link);
    pthread_mutex_unlock(&m->lock);
    n = write(m->fd, &one, sizeof(one)); /* EAGAIN: the loop is due anyway */
    (void)n;
}
