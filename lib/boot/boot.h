/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h: exchange identity and addresses before channels exist.
 *
 * Room: providers of identity, key-value store, fences, deaths, spawn, disconnect: the PMIx client, and none.
 * Callers: lib/core, lib/channel, lib/p2p, lib/world.
 * Never: sends a frame; blocks in a provider after channels exist.
 * Tests: tests/mp/startup.c, tests/mp/rank_spawn.c, tests/mp/init_finalize.c, tests/mp/init_again.c.
 *
 * A provider is a row of boot.c. Only the files of the row pmix include pmix.h.
 */
#ifndef RK_BOOT_BOOT_H
#define RK_BOOT_BOOT_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>

#define RK_CARD_MAX 4096
#define RK_NSPACE_MAX 256 /* a job's name with its terminating NUL */
#define RK_JOB_SIZE_MAX (1 << 24)

struct rk_boot_parent;
struct rk_pending;

struct rk_boot {
    const struct rk_boot_provider *ops;
    int rank, size;
    int nlocal;      /* ranks on this host, as the launcher reports */
    int *local;      /* their world ranks, ascending */
    int local_index; /* own index among them */
    bool alone;      /* no launcher: nothing outside reports deaths */
    uint32_t before; /* earlier contexts of this rank, also of its earlier programs: a part of its keys */
    char job[RK_NSPACE_MAX]; /* unique name of the job */
    char host[64];
    char server[RK_NSPACE_MAX]; /* the launcher's name among its kind; "": unknown */
    struct rk_boot_parent *parent; /* parent.h; NULL: this job was not started by rank_spawn */
    int *node_of;     /* node_map.c; NULL: not known so far */
    uint32_t fetched; /* address blobs requested so far */
    /* of spawned jobs: this host has fewer cores than ranks of all jobs, as the launcher reports */
    bool oversubscribed;
};

/*
 * Runs on the provider's thread when a process of the job is reported dead (rank -1: unknown which). May only set
 * flags and wake.
 */
typedef void (*rk_boot_death_fn)(int rank, void *arg);

/* A job for the launcher to start. */
struct rk_boot_app {
    const char *program, *dir;
    const char *const *args, *const *env; /* NULL-terminated; or NULL */
    const char *parent;                   /* value of RK_PARENT_VARIABLE */
    int n;
};

/* Begins struct rk_pending of each provider: is the answer there? */
struct rk_boot_pending {
    bool (*over)(void *pending);
};

/* A provider that sets alone needs open, close, watch_deaths and get only. */
struct rk_boot_provider {
    const char *name;
    /*
     * RANK_ERR_UNREACHABLE: this process was not started so, and the next row is tried. Sets ops, rank, size, the
     * local ranks and job; *out stays NULL after an error.
     */
    rank_status_t (*open)(struct rk_boot **out);
    /* End the connection between the launcher and this process; idempotent. */
    void (*leave)(struct rk_boot *boot);
    /* Leaves, and frees boot. */
    void (*close)(struct rk_boot *boot);
    /* fn NULL: end of reports; fn does not run any more when this returns. */
    rank_status_t (*watch_deaths)(struct rk_boot *boot, rk_boot_death_fn fn, void *arg);

    /* Publish a blob under key, before the commit. Blobs of earlier contexts stay stored but are hidden. */
    rank_status_t (*put)(struct rk_boot *boot, const char *key, const void *data, size_t len);
    rank_status_t (*commit)(struct rk_boot *boot);
    /*
     * Fetch a blob; waits until that rank has committed. *len: capacity in, size out. RANK_ERR_UNREACHABLE: it has
     * none.
     */
    rank_status_t (*get)(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len);
    /* Fence over the world, before channels exist. RANK_ERR_PEER_DEAD: a rank failed before it arrived. */
    rank_status_t (*fence)(struct rk_boot *boot);
    /* End the job; returns if that did nothing. */
    void (*abort)(struct rk_boot *boot, int code, const char *text);

    /*
     * Send the spawn request; does not wait. wake runs on the provider's thread when the answer arrives. NULL
     * here: no launcher starts jobs, and the rest of the row is unused.
     */
    rank_status_t (*spawn_begin)(struct rk_boot *boot, const struct rk_boot_app *app, void (*wake)(void *), void *arg,
                                 struct rk_pending **out);
    /*
     * Then: return the name of the new job. RANK_ERR_NOT_SUPPORTED: the launcher has no spawn; RANK_ERR_SPAWN: it
     * failed, or has not answered; a job that starts later is ended. Logs both.
     */
    rank_status_t (*spawn_end)(struct rk_pending *answer, const char *program, char space[RK_NSPACE_MAX]);
    /*
     * Register another job: its ranks get the numbers from first on; their deaths are reported by number to the
     * death handler. Call as soon as the name is known; earlier reports about it are then delivered.
     */
    rank_status_t (*name_job)(struct rk_boot *boot, const char *space, int first, int size);
    /* Remove its numbers, from first on. */
    void (*remove_job)(struct rk_boot *boot, int first);
    /* Subscribe to deaths and ends of other jobs; does not wait. Call once. */
    rank_status_t (*subscribe_jobs)(struct rk_boot *boot);
    /*
     * Disconnect, together with all n processes of these numbers, their jobs; does not wait. wake as above. End *out
     * with disconnect_end; NULL after an error.
     */
    rank_status_t (*disconnect_begin)(struct rk_boot *boot, const int *numbers, int n, void (*wake)(void *), void *arg,
                                      struct rk_pending **out);
    /* RANK_ERR_UNREACHABLE: unfinished; the answer is abandoned. */
    rank_status_t (*disconnect_end)(struct rk_boot *boot, struct rk_pending *answer);
};

/* Number of the node of a rank, from 0 by lowest rank. RANK_ERR_NOT_SUPPORTED: the launcher does not report it. */
int rk_boot_node_of(struct rk_boot *boot, int rank);

/* boot_pmix.c: under any PMIx server. boot_alone.c: started by no launcher; the world is this process. */
extern const struct rk_boot_provider rk_boot_pmix, rk_boot_alone;

/* Open the first provider that started this process. */
rank_status_t rk_boot_open(struct rk_boot **out);
/* Be a world of one, also where a launcher started this process. */
rank_status_t rk_boot_open_alone(struct rk_boot **out);
/* boot_alone.c: warn if the environment suggests that the user expected more. */
void rk_boot_alone_warn(void);
/* No-op if NULL. */
void rk_boot_close(struct rk_boot *boot);

/* Is the answer to a request, a spawn or a disconnect there? Condition for a wait. */
RK_INLINE bool rk_boot_over(void *pending)
{
    return ((struct rk_boot_pending *)pending)->over(pending);
}

#endif
