/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_request.h: print stack traces of all ranks, which the agents take.
 */
#ifndef XR_LAUNCHER_MONITOR_TRACE_REQUEST_H
#define XR_LAUNCHER_MONITOR_TRACE_REQUEST_H

#include "launcher/iof/out_stream.h"
#include "launcher/util/pack.h"

#include <event2/event.h>

struct xr_trace_request;

/* err receives the traces and must outlive the object. */
rank_status_t xr_trace_request_open(struct event_base *base, struct xr_stream *err, struct xr_trace_request **out);
/* No-op if NULL. */
void xr_trace_request_close(struct xr_trace_request *request);

/*
 * Request traces of all agents. send returns their number and empties the packer. Calls done when all are through,
 * or after XR_TRACE_MS.
 */
void xr_trace_request_start(struct xr_trace_request *request,
                            int (*send)(void *arg, uint32_t kind, struct xr_packer *payload), void *send_arg,
                            void (*done)(void *arg), void *done_arg);
/* Handle XR_MSG_TRACE_TEXT: print it. Returns false if the message is malformed. */
bool xr_trace_request_print(struct xr_trace_request *request, struct xr_unpacker *u);
/* Handle XR_MSG_TRACED: one agent is through. */
void xr_trace_request_traced(struct xr_trace_request *request);

#endif
