/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_barrier.c: answer clients, close their connections, complete barriers.
 *
 * See pmi1_internal.h.
 */
#include "launcher/pmi1/pmi1_internal.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* --------------------------------------------------------------------- connections */

void xr_pmi1_disconnect(struct xr_pmi1_client *c)
{
    if (c->fd >= 0)
        close(c->fd); /* which takes it out of the epoll set */
    c->fd = -1;
    free(c->input);
    c->input = NULL;
    xr_pmi1_forget_block(c);
    c->waiting = false;
}

void xr_pmi1_fail_barriers(struct xr_pmi1 *s, bool report)
{
    bool news = report && !s->reported;

    s->lost = true;
    for (uint32_t i = 0; i < s->local; i++) {
        if (s->clients[i].waiting)
            xr_pmi1_leave_barrier(&s->clients[i], false);
    }
    s->waiting = 0;
    if (news && s->ops->exchange) {
        s->reported = true;
        s->ops->exchange(s->arg, true, NULL, 0);
    }
}

void xr_pmi1_client_gone(struct xr_pmi1_client *c)
{
    bool unfinished = c->state == XR_PMI1_JOINED;

    if (c->waiting)
        c->server->waiting--;
    xr_pmi1_disconnect(c);
    if (unfinished)
        xr_pmi1_fail_barriers(c->server, true);
}

void xr_pmi1_refuse(struct xr_pmi1_client *c, const char *what)
{
    rk_warn("rank %u wrote what is not PMI-1 to descriptor %d (%s); the connection is closed",
            c->rank, XR_PMI1_FD, what);
    xr_pmi1_client_gone(c);
}

void xr_pmi1_answer(struct xr_pmi1_client *c, const char *fmt, ...)
{
    char line[XR_PMI1_LINE_MAX];
    va_list ap;
    int n;

    if (c->fd < 0)
        return;
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(line))
        n = snprintf(line, sizeof(line), "cmd=error rc=-1\n");
    /* A client waits for each answer, so the socket has room. One that does not wait is no PMI-1 client. */
    if (send(c->fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
        xr_pmi1_client_gone(c);
}

/* -------------------------------------------------------------------- barriers */

void xr_pmi1_leave_barrier(struct xr_pmi1_client *c, bool whole)
{
    c->waiting = false;
    if (whole)
        xr_pmi1_answer(c, "cmd=barrier_out rc=0\n");
    else
        xr_pmi1_answer(c, "cmd=barrier_failed rc=-1 msg=a_rank_has_gone\n");
}

static void leave_barrier_all(struct xr_pmi1 *s)
{
    s->waiting = 0;
    for (uint32_t i = 0; i < s->local; i++) {
        if (s->clients[i].waiting)
            xr_pmi1_leave_barrier(&s->clients[i], true);
    }
}

void xr_pmi1_enter_barrier(struct xr_pmi1_client *c)
{
    struct xr_pmi1 *s = c->server;
    size_t len;
    void *blob;

    c->waiting = true;
    if (s->lost) {
        xr_pmi1_leave_barrier(c, false);
        return;
    }
    if (++s->waiting < s->local)
        return;
    if (!s->ops->exchange) {
        leave_barrier_all(s);
        return;
    }
    blob = xr_pmi1_kvs_blob(s->space, &len);
    s->ops->exchange(s->arg, false, blob, len);
    free(blob);
}

void xr_pmi1_exchanged(struct xr_pmi1 *s, bool lost, const void *blob, size_t len)
{
    if (!lost && xr_pmi1_kvs_merge(s->space, blob, len)) {
        rk_error("what another host's ranks have put for PMI-1 cannot be taken in");
        lost = true;
    }
    if (lost)
        xr_pmi1_fail_barriers(s, false);
    else
        leave_barrier_all(s);
}

/* Has a client joined more often than a rank that has ended? */
void xr_pmi1_check_stranded(struct xr_pmi1 *s)
{
    if (!s || !s->gone || s->gone_inits >= s->inits || s->stranded)
        return;
    s->stranded = true;
    s->ops->stranded(s->arg, s->gone_rank);
}

void xr_pmi1_note_joined(struct xr_pmi1_client *c)
{
    struct xr_pmi1 *s = c->server;

    if (++c->inits > s->inits)
        s->inits = c->inits;
    s->ops->joined(s->arg, c->rank);
    if (s->gone) /* before there was a client */
        xr_pmi1_fail_barriers(s, s->gone_early);
    xr_pmi1_check_stranded(s);
}
