/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_internal.h: declare what the files of the PMIx server share.
 *
 * Upcalls (xr_upcall_) run on PMIx's thread and may not touch the agent: an upcall
 * copies its arguments, posts and returns.
 */
#ifndef XR_LAUNCHER_PMIX_PMIX_INTERNAL_H
#define XR_LAUNCHER_PMIX_PMIX_INTERNAL_H

#include "launcher/pmix/pmix_server.h"
#include "launcher/pmix/quirks/quirks.h"
#include "launcher/pmix/threadshift.h"

#include "lib/base/list.h"

#include <pmix_server.h>
#include <pthread.h>
#include <stdatomic.h>

/* Ended jobs that stay registered, so that clients can still query them. */
#define XR_SERVER_PAST 32

struct xr_server {
    struct xr_threadshift *shift;
    struct event_base *base;
    const struct xr_server_events *events;
    void *arg;
    pmix_nspace_t nspace;
    uint32_t size;
    uint32_t *local, nlocal; /* ranks of this host, sorted */
    atomic_bool ending;
    char **others;           /* other jobs that are registered */
    char *past[XR_SERVER_PAST]; /* a ring of ended ones */
    uint32_t npast;
    struct xr_job_queries queries;
    _Atomic(struct xr_dead_client *) dead; /* dead_clients.c */
    int *clients; /* [nlocal] connected clients of each rank */
};

/* server_state.c: PMIx passes upcalls no context, and there is one server a process: the open one. */
struct xr_server *xr_server_serving(void);
void xr_server_serve(struct xr_server *server);
/* Returns true and sets *rank if it is a rank of the job. */
bool xr_server_rank_of(const struct xr_server *server, const pmix_proc_t *proc, uint32_t *rank);
/* The local number of a rank, or nlocal if it is not on this host. */
uint32_t xr_server_local(const struct xr_server *server, uint32_t rank);
/* Log the failure of a call of PMIx. Returns RANK_ERR_BOOT. */
rank_status_t xr_server_failed(const char *what, pmix_status_t rc);

/* Wait for a callback on PMIx's thread: init, pass xr_answer_come as callback, wait. */
struct xr_answer {
    pthread_mutex_t lock;
    pthread_cond_t come;
    bool here;
    pmix_status_t status;
    pmix_status_t failed; /* the status of a call before the last */
};
void xr_answer_init(struct xr_answer *a);
/* A pmix_op_cbfunc_t; arg: the answer. */
void xr_answer_come(pmix_status_t status, void *arg);
/* The callback of all calls but the last, if one wait covers several. */
void xr_answer_none(pmix_status_t status, void *arg);
/* Returns false if the answer takes longer. */
bool xr_answer_await(struct xr_answer *a, uint32_t ms);
/* rc: the return value of the call. Ends the process if PMIx hangs. */
pmix_status_t xr_answer_wait(struct xr_answer *a, pmix_status_t rc);

/* register_job.c: the job, then its ranks on this host, then its parent job. */
rank_status_t xr_server_register_job(struct xr_server *server, const struct xr_server_job *job);
rank_status_t xr_server_register_ranks(struct xr_server *server, const struct xr_server_job *job);
rank_status_t xr_server_register_origin(struct xr_server *server, const struct xr_server_job *job);

/* app_info.c: for jobs of several programs. */
rank_status_t xr_server_register_apps(struct xr_server *server, const struct xr_server_job *job);

/* client_state.c: report an event of a client in the loop. Returns false if out of memory. Thread-safe. */
bool xr_server_post_client(struct xr_server *server, uint32_t rank, void (*report)(void *arg, uint32_t rank));
pmix_status_t xr_upcall_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *done_arg);
pmix_status_t xr_upcall_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done,
                              void *done_arg);
pmix_status_t xr_upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *done_arg);
pmix_status_t xr_upcall_dmodex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                          pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *done_arg);

/* pmix_rpc.c: calls that the first xrun answers. */
struct xr_rpc_call {
    struct xr_post post;
    enum xr_rpc what;
    uint32_t rank;
    struct xr_packer payload;
    pmix_status_t refused; /* not 0: do not send, answer this */
    /* Runs in the loop; answer: NULL if there is none. Frees what the call holds, not the call. */
    void (*done)(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                 struct xr_unpacker *answer);
};
void xr_rpc_post(struct xr_rpc_call *call);

/* other_jobs.c */
/* Unpack job info and register the job if it is not registered. Returns false if it is malformed or PMIx refuses it. */
bool xr_server_add_job(struct xr_server *server, struct xr_unpacker *u);
/* The same for a job that a client has spawned. done sends the reply, on PMIx's thread; it is not called if this returns
 * false. */
bool xr_server_add_spawned(struct xr_server *server, struct xr_unpacker *u, pmix_spawn_cbfunc_t done, void *done_arg);
/* Is a job of that name registered? */
bool xr_server_has_job(const struct xr_server *server, const char *id);
/* The parent process, for each local rank. */
rank_status_t xr_server_register_parent(struct xr_server *server, const struct xr_server_job *job);
pmix_status_t xr_upcall_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[], size_t ninfo,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                              void *done_arg);
/* pmix_connect.c: a fence of processes of several jobs. Takes ownership of data. */
pmix_status_t xr_upcall_fence_jobs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                                   void *done_arg);
/* infos.c */
/* Has libpmix counted lost clients out of this collective? */
bool xr_infos_lost_client(const pmix_info_t info[], size_t n);
/* A number of any integer type. Negative numbers and other types give 0. */
uint32_t xr_value_number(const pmix_value_t *v);
/* PMIX_TIMEOUT in seconds, or 0. */
uint32_t xr_infos_timeout(const pmix_info_t info[], size_t n);

void xr_upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                   const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done,
                   void *done_arg);

/* query.c: read the versions of the ABI; before PMIx_server_init. */
void xr_server_note_abi(void);
pmix_status_t xr_upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                              pmix_info_cbfunc_t done, void *done_arg);

pmix_status_t xr_upcall_job_control(const pmix_proc_t *client, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                    pmix_info_cbfunc_t done, void *done_arg);

#endif
