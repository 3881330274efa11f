/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_request.c: see trace_request.h. */
#include "launcher/monitor/trace_request.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/protocol.h"

#include <stdlib.h>
#include <string.h>

struct xr_trace_request {
    struct xr_stream *err;
    struct event *late;
    int missing; /* agents that are not through */
    void (*done)(void *arg); /* NULL: no request is in progress */
    void *done_arg;
};

static void end_request(struct xr_trace_request *r)
{
    void (*done)(void *) = r->done;

    if (!done)
        return;
    r->done = NULL;
    event_del(r->late);
    done(r->done_arg);
}

static void on_traces_late(evutil_socket_t fd, short what, void *arg)
{
    struct xr_trace_request *r = arg;

    (void)fd;
    (void)what;
    xr_stream_print(r->err, "xrun: some stack traces did not come in time");
    end_request(r);
}

void xr_trace_request_start(struct xr_trace_request *r, int (*send)(void *arg, uint32_t kind, struct xr_packer *payload),
                            void *send_arg, void (*done)(void *arg), void *done_arg)
{
    const struct timeval limit = {XR_TRACE_MS / 1000, 0};
    struct xr_packer p = {0};

    r->done = done;
    r->done_arg = done_arg;
    event_add(r->late, &limit);
    xr_pack_u32(&p, XR_TRACE_AGENT_MS);
    r->missing = send(send_arg, XR_MSG_TRACE, &p);
    if (r->missing == 0)
        end_request(r);
}

bool xr_trace_request_print(struct xr_trace_request *r, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
    size_t len;
    const char *at = xr_unpack_bytes(u, &len);

    if (!xr_unpack_done(u))
        return false;
    for (const char *end = at + len; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        int n = (int)((nl ? nl : end) - at);
        if (rank == XR_NO_RANK)
            xr_stream_print(r->err, "xrun: %.*s", n, at);
        else if (n > 0)
            xr_stream_print(r->err, "xrun: rank %u (pid %u): %.*s", rank, pid, n, at);
        at += n + (nl != NULL);
    }
    return true;
}

void xr_trace_request_traced(struct xr_trace_request *r)
{
    if (--r->missing <= 0)
        end_request(r);
}

rank_status_t xr_trace_request_open(struct event_base *base, struct xr_stream *err, struct xr_trace_request **out)
{
    struct xr_trace_request *r = calloc(1, sizeof(*r));

    if (!r)
        return RANK_ERR_NO_MEMORY;
    r->err = err;
    r->late = evtimer_new(base, on_traces_late, r);
    if (!r->late) {
        free(r);
        return RANK_ERR_NO_MEMORY;
    }
    *out = r;
    return RANK_OK;
}

void xr_trace_request_close(struct xr_trace_request *r)
{
    if (!r)
        return;
    event_free(r->late);
    free(r);
}
