/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_query.h: collect the state of all ranks from the agents.
 *
 * One query is in progress at a time; it serves all that wait for it. An answer
 * that comes too late for its query is discarded.
 */
#ifndef XR_LAUNCHER_MONITOR_STATUS_QUERY_H
#define XR_LAUNCHER_MONITOR_STATUS_QUERY_H

#include "launcher/monitor/hang_report.h"
#include "launcher/overlay/fence.h"

#include <event2/buffer.h>
#include <event2/event.h>

struct xr_status_query;

struct xr_status_query_ops {
    /* Send to every agent. Returns their number. Empties the packer. */
    int (*send)(void *arg, uint32_t kind, struct xr_packer *payload);
    /* Return the front end's fences, or NULL. */
    const struct xr_fence_table *(*fences)(void *arg);
    /* A rank waits in librank and made no progress for idle_ns. */
    void (*on_wait)(void *arg, uint32_t rank, uint64_t idle_ns, const struct xr_hang_wait *wait);
    /* All agents have answered, or the time is over. */
    void (*on_complete)(void *arg);
};

/* ops and arg must outlive the object. */
rank_status_t xr_status_query_open(struct event_base *base, const struct xr_status_query_ops *ops, void *arg,
                                   struct xr_status_query **out);
/* No-op if NULL. */
void xr_status_query_close(struct xr_status_query *query);

/* Query all agents. No-op if a query is in progress. Calls on_complete at once if there is no agent. */
void xr_status_query_start(struct xr_status_query *query);
/* Handle XR_MSG_PROBED. Returns false if the message is malformed. */
bool xr_status_query_receive(struct xr_status_query *query, struct xr_unpacker *u);
/* Append a line for each rank, in order, and the number of agents that did not answer. For on_complete. */
void xr_status_query_write(const struct xr_status_query *query, struct evbuffer *to);

#endif
