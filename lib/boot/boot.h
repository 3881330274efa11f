/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h: exchange identity and addresses through PMIx before channels exist.
 *
 * Room: the PMIx client: identity, key-value store, fences, deaths, spawn, disconnect.
 * Callers: lib/core, lib/channel, lib/p2p, lib/world.
 * Never: sends a frame; blocks in PMIx after channels exist.
 * Tests: tests/mp/startup.c, tests/mp/rank_spawn.c, tests/mp/init_finalize.c.
 *
 * No other folder includes pmix.h. Works under any PMIx server, and alone.
 */
#ifndef RK_BOOT_BOOT_H
#define RK_BOOT_BOOT_H

#include "lib/rank.h"

#include <stdbool.h>

#define RK_CARD_MAX 4096
#define RK_NSPACE_MAX 256 /* a job's name with its terminating NUL */
#define RK_JOB_SIZE_MAX (1 << 24)

struct rk_boot_parent;
struct rk_answer;

struct rk_boot {
    int rank, size;
    int nlocal;      /* ranks on this host, as the launcher reports */
    int *local;      /* their world ranks, ascending */
    int local_index; /* own index among them */
    bool alone;      /* no PMIx server */
    uint32_t before; /* earlier programs of this rank that called rank_init */
    char job[RK_NSPACE_MAX]; /* the namespace */
    char host[64];
    char server[RK_NSPACE_MAX]; /* the launcher's name among PMIx servers; "": unknown */
    struct rk_boot_parent *parent; /* parent.h; NULL: this job was not started by rank_spawn */
    uint32_t fetched; /* address blobs requested so far */
    /* of spawned jobs: this host has fewer cores than ranks of all jobs, as the launcher reports */
    bool oversubscribed;
};

/*
 * Runs on the PMIx thread when a process of the job is reported dead (rank -1: unknown which). May only set flags
 * and wake.
 */
typedef void (*rk_boot_death_fn)(int rank, void *arg);

rank_status_t rk_boot_open(struct rk_boot **out);
/* End the connection between the server and this process. */
void rk_boot_leave(struct rk_boot *boot);
/* No-op if NULL; accepts a partly opened boot. */
void rk_boot_close(struct rk_boot *boot);

/* fn NULL: end of reports; fn does not run any more when this returns. */
rank_status_t rk_boot_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg);

/*
 * Publish a blob under key, before the commit. Blobs of an earlier program of this rank stay stored but are
 * hidden.
 */
rank_status_t rk_boot_put(struct rk_boot *boot, const char *key, const void *data, size_t len);
rank_status_t rk_boot_commit(struct rk_boot *boot);
/*
 * Fetch a blob; waits until that rank has committed. *len: capacity in, size out. RANK_ERR_UNREACHABLE: it has
 * none.
 */
rank_status_t rk_boot_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len);

/* Nonblocking form, only between programs that came first in their ranks. NULL: not possible. */
struct rk_answer *rk_boot_request(struct rk_boot *boot, int rank, const char *key);
bool rk_boot_request_is_over(struct rk_answer *answer);
/* Ends the request in any case. Returns true if all len bytes were received. No-op if NULL. */
bool rk_boot_request_end(struct rk_boot *boot, struct rk_answer *answer, void *data, size_t len);

/* Fence over the world, before channels exist. RANK_ERR_PEER_DEAD: a rank failed before it arrived. */
rank_status_t rk_boot_fence(struct rk_boot *boot);

/*
 * Register another job: its ranks get the numbers from first on; their deaths are reported by number to the
 * death handler. Call as soon as the namespace is known; earlier reports about it are then delivered.
 */
rank_status_t rk_boot_name_job(struct rk_boot *boot, const char *space, int first, int size);
/* Remove its numbers, from first on. */
void rk_boot_remove_job(struct rk_boot *boot, int first);
/* Subscribe to deaths and ends of other jobs; does not wait. Call once. */
rank_status_t rk_boot_subscribe_jobs(struct rk_boot *boot);

/* A job for the launcher to start. */
struct rk_boot_app {
    const char *program, *dir;
    const char *const *args, *const *env; /* NULL-terminated; or NULL */
    const char *parent;                   /* value of RK_PARENT_VARIABLE */
    int n;
};

struct rk_boot_spawn;

/*
 * Send the spawn request; does not wait. wake runs on the PMIx thread when the answer arrives. The object exists
 * even after an error; end it with rk_boot_spawn_end.
 */
rank_status_t rk_boot_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app,
                                  void (*wake)(void *), void *arg, struct rk_boot_spawn **out);
/* Condition for a wait. */
bool rk_boot_spawn_over(void *spawn);
/*
 * Then: return its namespace. RANK_ERR_NOT_SUPPORTED: the launcher has no spawn; RANK_ERR_SPAWN: it failed. Logs
 * both.
 */
rank_status_t rk_boot_spawn_end(struct rk_boot_spawn *spawn, char space[RK_NSPACE_MAX]);

/*
 * Disconnect, together with all n processes of these numbers, their jobs; does not wait. wake as above. End *out
 * with rk_boot_disconnect_end; NULL after an error.
 */
rank_status_t rk_boot_disconnect_begin(struct rk_boot *boot, const int *numbers, int n, void (*wake)(void *),
                                       void *arg, struct rk_answer **out);
/* Condition for a wait. */
bool rk_boot_disconnect_over(void *answer);
/* RANK_ERR_UNREACHABLE: unfinished; the answer is abandoned. */
rank_status_t rk_boot_disconnect_end(struct rk_boot *boot, struct rk_answer *answer);

/* Abort the job through the server; returns if there is none or if it did nothing. */
void rk_boot_abort(struct rk_boot *boot, int code, const char *text);

#endif
