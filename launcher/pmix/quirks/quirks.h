/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quirks.h: work around defects of libpmix, one file a defect.
 *
 * Room: workarounds; the head of each file names version, symptom, upstream report and the condition that retires it.
 * Callers: the files of launcher/pmix.
 * Never: does what a libpmix without the defect would need too, but for the report of lost clients.
 * Tests: tests/launcher/{dpm,pmix_requests,long_name}.sh, tests/launcher/{dpm_hosts,pmix_hosts}.sh.
 */
#ifndef XR_LAUNCHER_PMIX_QUIRKS_QUIRKS_H
#define XR_LAUNCHER_PMIX_QUIRKS_QUIRKS_H

#include "launcher/pmix/pmix_server.h"

#include "lib/base/list.h"

#include <pmix_server.h>
#include <pthread.h>

/* listen_guard.c */
enum { XR_LISTENERS = 32 };
struct xr_listen_guard {
    int fd[XR_LISTENERS];
    size_t n;
};
/* List the listening sockets of this process: before libpmix opens its own. */
void xr_listen_guard_note(struct xr_listen_guard *listeners);
/* Guard those that were opened since. Once. */
void xr_listen_guard_since(const struct xr_listen_guard *before);

/* event_priority.c: around the call that makes libpmix's event loop, on its thread. */
void xr_event_priority_begin(void);
void xr_event_priority_end(void);

/* lost_client.c */
/* From now on clients that end without PMIx_Finalize are reported to the agent. */
void xr_server_watch_lost(void);
/* Add n to the connected clients of a rank. Runs on PMIx's thread. */
void xr_server_count_client(struct xr_server *server, uint32_t rank, int n);

/*
 * dead_clients.c
 *
 * Deregister a client that has died, or that stood in for a rank that has ended. From then on fences that name the rank
 * reach the host, and can fail.
 *
 * - Not before libpmix has reported the client as lost: it would count the client out twice.
 * - At once after the report, on PMIx's thread and before other clients' messages (event_priority.c): libpmix counts a
 *   lost client out of the fences that exist, not of those that begin later.
 * - No other client can connect in the rank's name afterwards. What the rank has committed is kept.
 */
struct xr_dead_client;
void xr_dead_client_add(struct xr_server *server, uint32_t rank);
/* Returns false if the rank has not been deregistered. Else found, data and len are what it has committed, as far as
 * libpmix has answered. */
bool xr_dead_client_data(const struct xr_server *server, uint32_t rank, bool *found, const void **data, size_t *len);

/* job_queries.c: queries of clients about other jobs. */
struct xr_job_queries {
    pthread_mutex_t lock;
    struct rk_link jobs;
    pmix_info_t no_data; /* libpmix copies it at any time */
};
struct xr_job_query;
void xr_job_queries_open(struct xr_job_queries *queries);
/* A query begins; token: the argument of libpmix's callback. Runs on PMIx's thread. NULL: *again is set if this one is in
 * flight already; else the job is being deregistered, or there is no memory. */
struct xr_job_query *xr_job_query_begin(struct xr_job_queries *queries, const char *job, void *token, bool *again);
/* The query is answered. Runs on PMIx's thread. */
void xr_job_query_end(struct xr_job_query *query);
/* Deregister a job as soon as no query about it is in flight. */
void xr_job_queries_forget(struct xr_job_queries *queries, const char *job);
/* The job is registered again: cancel that. */
void xr_job_queries_keep(struct xr_job_queries *queries, const char *job);
/* Before the answer "not found" about a job that is not registered. */
void xr_job_queries_forget_unknown(struct xr_job_queries *queries, const char *job);

/* host_map.c, rank_map.c: PMIX_NODE_MAP and PMIX_PROC_MAP. The caller frees *out. */
pmix_status_t xr_pack_host_map(const struct xr_server_job *job, const char *hosts, char **out);
pmix_status_t xr_pack_rank_map(const struct xr_server_job *job, const char *ranks, char **out);

/* connect_timeout.c */
/* Must a connect of so many local clients be refused? */
bool xr_connect_timeout_refused(uint32_t timeout_s, uint32_t nlocal);
/* Shorten the time-out, if any. Returns the time from which on no answer may be given, or 0. */
uint64_t xr_connect_timeout_shorten(uint32_t *timeout_ms);
bool xr_connect_timeout_over(uint64_t late_ns);

/* partial_lookup.c */
pmix_status_t xr_partial_lookup_status(pmix_status_t status, uint32_t nfound);

/* spawn_reply.c: send the reply for a spawned job, which is registered without hosts, then register them. Takes ownership of
 * hosts, of which n of room are used. Returns false, without a reply, without memory or if PMIx refuses. */
bool xr_spawn_reply(const char *id, pmix_info_t *hosts, size_t n, size_t room, pmix_spawn_cbfunc_t done, void *done_arg);

/* pending_dmodex.c: call done when libpmix has worked off what was requested before. */
pmix_status_t xr_pending_dmodex_flush(struct xr_server *server, pmix_op_cbfunc_t done, void *arg);

#endif
