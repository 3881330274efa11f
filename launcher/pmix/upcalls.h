/*
 * upcalls.h: what the upcalls share with the server, inside this folder.
 *
 * Each is called on PMIx's thread. It may not touch the agent: it copies,
 * posts and returns.
 */
#ifndef RK_LAUNCHER_PMIX_UPCALLS_H
#define RK_LAUNCHER_PMIX_UPCALLS_H

#include "launcher/pmix/mailbox.h"
#include "launcher/pmix/server.h"

#include <pmix_server.h>
#include <semaphore.h>

struct rk_server {
    struct rk_mailbox *mailbox;
    const struct rk_server_events *events;
    void *arg;
    pmix_nspace_t nspace;
    uint32_t size;
    void *own_topology;
};

/* The answer to a call that comes on PMIx's thread (server.c). */
struct rk_answer {
    sem_t come;
    pmix_status_t status;
    pmix_status_t failed; /* of one before the last */
};
void rk_answer_init(struct rk_answer *a);
/* A pmix_op_cbfunc_t; arg is the answer. */
void rk_answer_come(pmix_status_t status, void *arg);
/* rc: what the call itself has returned. */
pmix_status_t rk_answer_wait(struct rk_answer *a, pmix_status_t rc);

/* listener.c: note the sockets that listen now; those that have come since are the library's, and are guarded
 * against strangers who connect and say nothing. */
enum { RK_LISTENERS = 32 };
struct rk_listeners {
    int fd[RK_LISTENERS];
    size_t n;
};
void rk_listeners_note(struct rk_listeners *listeners);
void rk_listeners_guard(const struct rk_listeners *before);

/* lost.c: tell of clients that go without a word, from now on. */
void rk_server_watch_lost(void);

/* apps.c: of a job of several programs. */
rank_status_t rk_server_register_apps(struct rk_server *server, const struct rk_server_job *job);

/* PMIx gives upcalls no context, and there is one server a process: the one that is open. */
struct rk_server *rk_server_serving(void);
/* Is it a rank of the job? Then *rank is it. */
bool rk_server_rank_of(const struct rk_server *server, const pmix_proc_t *proc, uint32_t *rank);

pmix_status_t rk_upcall_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t rk_upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *done_arg);
pmix_status_t rk_upcall_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done,
                              void *done_arg);
pmix_status_t rk_upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *done_arg);
pmix_status_t rk_upcall_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg);
pmix_status_t rk_upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t rk_upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                          pmix_op_cbfunc_t done, void *done_arg);
pmix_status_t rk_upcall_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *done_arg);
void rk_upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                   const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done,
                   void *done_arg);

pmix_status_t rk_upcall_job_control(const pmix_proc_t *client, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                    pmix_info_cbfunc_t done, void *done_arg);

#endif
