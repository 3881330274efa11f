/*
 * rpc.h: what an agent cannot answer alone, and asks the front end of the
 * first xrun: names that are published, what processes of several jobs do
 * together, and jobs that are to be started.
 *
 * The agent gives an errand a number and sends it up; the front end answers it
 * itself or passes it on to the first xrun (hub.h). Each is answered once.
 */
#ifndef RK_LAUNCHER_DPM_RPC_H
#define RK_LAUNCHER_DPM_RPC_H

#include "launcher/overlay/tree.h"

/* A process in a request: of which job, and which rank, or all. */
#define RK_ALL_RANKS UINT32_MAX

enum rk_errand {
    /* u32 range, u32 keep, u32 n, then for each: string key, bytes value. Answered by u32 status. */
    RK_ERRAND_PUBLISH = 1,
    /* u32 range, u32 how many are waited for (RK_LOOKUP_NOW, RK_LOOKUP_ALL), u32 ms (0: for ever), strings.
     * Answered by u32 status, u32 n, then for each: string key, string job, u32 rank, bytes value. */
    RK_ERRAND_LOOKUP,
    /* u32 range (RK_RANGE_ANY: whichever), strings: keys; none: all that the asker has published. Answered by u32 status. */
    RK_ERRAND_UNPUBLISH,
    /* What many do together. u32 whether one is lost, u32 how many of them are of this host, u32 ms (0: for ever), u32 n,
     * then for each: string job, u32 rank; bytes data. Answered by u32 status, bytes data of all, u32 n, then for each
     * other job: u32 0 or 1, its outline (job_info.h) if the agent has not been told it. */
    RK_ERRAND_FENCE,
    RK_ERRAND_CONNECT,
    RK_ERRAND_DISCONNECT,
    /* string job, u32 rank, u32 time-out in s or 0. Answered by u32 status, bytes data, u32 0 or 1, the outline of the
     * job if the agent has not been told it. */
    RK_ERRAND_MODEX,
    /* A request (spawn_request.h). Answered by u32 status, bytes, u32 0 or 1, the outline of the new job. */
    RK_ERRAND_SPAWN
};

#define RK_LOOKUP_NOW UINT32_MAX
#define RK_LOOKUP_ALL 0

enum rk_errand_status {
    RK_DONE,
    RK_DONE_PARTLY,  /* some of the names */
    RK_NOT_FOUND,
    RK_TOO_LATE,     /* the time is over */
    RK_THERE_ALREADY, /* the name */
    RK_NO_ROOM,
    RK_SOMEBODY_LOST, /* one that takes part has ended */
    RK_NO_PROGRAM,
    RK_CANNOT_START,
    RK_REFUSED       /* not understood, or not possible */
};

/* Who can find what is published. */
enum rk_range { RK_RANGE_ALL, RK_RANGE_JOB, RK_RANGE_HOST, RK_RANGE_PROCESS, RK_RANGE_ANY };
/* And for how long. */
enum rk_keep { RK_KEEP_ALWAYS, RK_KEEP_APP, RK_KEEP_PROCESS, RK_KEEP_ONE_READ };

/* The first byte of a value: what the rest is. */
enum { RK_VALUE_TEXT = 't', RK_VALUE_PMIX = 'p' };

#define RK_NO_JOB UINT32_MAX
/* Of a job that is over, to those who know it but have nothing to do with it any more: no news for their clients. */
#define RK_ONLY_FORGET 2

/* To the first xrun: an agent's errand. Jobs are numbered as in hub.h. */
struct rk_asker {
    uint32_t job, node, id;
};

struct rk_errands;

/* The answer; NULL: there will be none. */
typedef void (*rk_errand_done_fn)(void *arg, void *token, struct rk_unpacker *answer);

rank_status_t rk_errands_open(struct rk_tree *tree, uint32_t self, struct rk_errands **out);
/* NULL is fine. */
void rk_errands_close(struct rk_errands *errands);
/* rank: who asks, or RK_ALL_RANKS. The packer is emptied. done may be called before this returns. */
void rk_errands_send(struct rk_errands *errands, enum rk_errand what, uint32_t rank,
                     struct rk_packer *payload, rk_errand_done_fn done, void *arg, void *token);
/* RK_MSG_ERRAND_DONE. False: it makes no sense. */
bool rk_errands_take(struct rk_errands *errands, struct rk_unpacker *u);

#endif
