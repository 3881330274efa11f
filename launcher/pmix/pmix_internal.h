/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_internal.h: what the upcalls share with the server, inside this folder.
 *
 * Each is called on PMIx's thread. It may not touch the agent: it copies,
 * posts and returns.
 */
#ifndef XR_LAUNCHER_PMIX_PMIX_INTERNAL_H
#define XR_LAUNCHER_PMIX_PMIX_INTERNAL_H

#include "launcher/pmix/threadshift.h"
#include "launcher/pmix/pmix_server.h"

#include "lib/base/list.h"

#include <pmix_server.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* Jobs that are over, of which clients can still ask what PMIx knows. */
#define XR_SERVER_PAST 32

/* job_queries.c: other jobs that clients ask about. */
struct xr_flights {
    pthread_mutex_t lock;
    struct rk_link jobs;
    pmix_info_t no_data; /* PMIx copies it when it likes */
};
struct xr_flight;
void xr_flights_open(struct xr_flights *flights);
/* A question begins; token: what PMIx wants to have back. NULL: *again says that this one is asked already; else PMIx is
 * just forgetting that job, or there is no memory. On PMIx's thread. */
struct xr_flight *xr_flight_begin(struct xr_flights *flights, const char *job, void *token, bool *again);
/* Its answer has been given. On PMIx's thread. */
void xr_flight_end(struct xr_flight *flight);
/* PMIx shall forget a job as soon as nobody asks about it. */
void xr_flights_forget(struct xr_flights *flights, const char *job);
/* But now it is known again. */
void xr_flights_keep(struct xr_flights *flights, const char *job);
/* The same of a job that PMIx has not been told: before the answer that says so. */
void xr_flights_forget_unknown(struct xr_flights *flights, const char *job);

struct xr_server {
    struct xr_mailbox *mailbox;
    struct event_base *base;
    const struct xr_server_events *events;
    void *arg;
    pmix_nspace_t nspace;
    uint32_t size;
    uint32_t *local, nlocal; /* ranks of this host, sorted */
    atomic_bool ending;
    char **others;           /* other jobs that PMIx knows */
    char *past[XR_SERVER_PAST]; /* a ring of those that are over */
    uint32_t npast;
    struct xr_flights flights;
    _Atomic(struct xr_relic *) relics; /* dead_clients.c */
    int *clients; /* lost_client.c: of each of this host's ranks */
};

/* server_state.c: PMIx gives upcalls no context, and there is one server a process: the one that is open. */
struct xr_server *xr_server_serving(void);
void xr_server_serve(struct xr_server *server);
/* Is it a rank of the job? Then *rank is it. */
bool xr_server_rank_of(const struct xr_server *server, const pmix_proc_t *proc, uint32_t *rank);
/* The number of a rank among those of this host; nlocal: it is none of them. */
uint32_t xr_server_local(const struct xr_server *server, uint32_t rank);
/* Log the failure of a call of PMIx. Returns RANK_ERR_BOOT. */
rank_status_t xr_server_failed(const char *what, pmix_status_t rc);

/* The answer to a call that comes on PMIx's thread. */
struct xr_answer {
    sem_t come;
    pmix_status_t status;
    pmix_status_t failed; /* of one before the last */
};
void xr_answer_init(struct xr_answer *a);
/* A pmix_op_cbfunc_t; arg is the answer. */
void xr_answer_come(pmix_status_t status, void *arg);
/* The same for all calls but the last of a row. */
void xr_answer_none(pmix_status_t status, void *arg);
/* rc: what the call itself has returned. */
pmix_status_t xr_answer_wait(struct xr_answer *a, pmix_status_t rc);

/* listen_guard.c: note the sockets that listen now; those that have come since are the library's, and are guarded
 * against strangers who connect and say nothing. */
enum { XR_LISTENERS = 32 };
struct xr_listeners {
    int fd[XR_LISTENERS];
    size_t n;
};
void xr_listeners_note(struct xr_listeners *listeners);
void xr_listeners_guard(const struct xr_listeners *before);
/* owner.c: from now on these accept processes of this user only. Once. */
void xr_owner_guard(const int *fds, size_t n);

/* event_order.c: the loop that the library makes on this thread in between hears one client at a time. */
void xr_order_begin(void);
void xr_order_end(void);

/* lost_client.c: tell of clients that go without a word, from now on. */
void xr_server_watch_lost(void);
/* A client has come, or goes with a word: on PMIx's thread. */
void xr_server_count_client(struct xr_server *server, uint32_t rank, int n);

/*
 * dead_clients.c: a client has died, or stood in for a rank that has ended: fences that name the rank are told to the host from
 * now on, and so can fail, while the library would wait for it. Not before the library has said that the client is lost, or
 * it would count it out twice; and at once then, on PMIx's thread, before others are heard (event_order.c), for in a fence of some
 * ranks that they enter between that and this the library would wait for ever: it counts out the lost in the fences that
 * there are, and not in those that come. No other client can connect in the rank's name after this; the library would not
 * count it in again anyhow. What the rank has committed is kept, for other hosts and other jobs may ask for it.
 */
void xr_server_forget_rank(struct xr_server *server, uint32_t rank);
/* Has the library been told to forget that rank? Then found, data and len are what it has left, as far as the
 * library has said. */
bool xr_server_relic(const struct xr_server *server, uint32_t rank, bool *found, const void **data, size_t *len);

/* register_job.c: the job, then its ranks of this host, then the job that has spawned it. */
rank_status_t xr_server_register_job(struct xr_server *server, const struct xr_server_job *job);
rank_status_t xr_server_register_ranks(struct xr_server *server, const struct xr_server_job *job);
rank_status_t xr_server_register_origin(struct xr_server *server, const struct xr_server_job *job);

/* app_info.c: of a job of several programs. */
rank_status_t xr_server_register_apps(struct xr_server *server, const struct xr_server_job *job);

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
pmix_status_t xr_upcall_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                          pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t xr_upcall_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *done_arg);

/* pmix_rpc.c: what is answered from outside this host. */
struct xr_errand_call {
    struct xr_post post;
    enum xr_errand what;
    uint32_t rank;
    struct xr_packer payload;
    pmix_status_t refused; /* not to be asked at all, for this reason */
    /* In the loop; answer NULL: there is none. Frees what is behind the call, which is freed after it. */
    void (*done)(struct xr_server *server, struct xr_errand_call *call, pmix_status_t status,
                 struct xr_unpacker *answer);
};
void xr_errand_post(struct xr_errand_call *call);

/* other_jobs.c: an outline, told to PMIx if that does not know the job yet. False: it makes no sense, or PMIx does not
 * want it. id: room for PMIX_MAX_NSLEN + 1, or NULL. */
bool xr_server_take_outline(struct xr_server *server, struct xr_unpacker *u, char *id);
/* Does PMIx know a job of that name? */
bool xr_server_knows(const struct xr_server *server, const char *id);
/* The process that has spawned the job, said of each of its ranks here. */
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
/* pmix_connect.c: of processes of several jobs. Takes data over. */
pmix_status_t xr_upcall_fence_jobs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                                   void *done_arg);
/* infos.c: has the library counted out clients that it has lost? It says so to collectives. */
bool xr_infos_say_broken(const pmix_info_t info[], size_t n);
/* A number of whatever type the client took for it: negative ones are 0, and so is what is none. */
uint32_t xr_value_number(const pmix_value_t *v);
/* Their PMIX_TIMEOUT in seconds, or 0. */
uint32_t xr_infos_timeout(const pmix_info_t info[], size_t n);

void xr_upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                   const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done,
                   void *done_arg);

/* query.c: note the versions of the ABI, which the library tells before it is initialized. */
void xr_server_note_abi(void);
pmix_status_t xr_upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                              pmix_info_cbfunc_t done, void *done_arg);

pmix_status_t xr_upcall_job_control(const pmix_proc_t *client, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                    pmix_info_cbfunc_t done, void *done_arg);

#endif
