/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h: who we are and what we tell each other before channels exist.
 *
 * A thin boundary round PMIx: nothing outside this folder includes pmix.h.
 * Works under any PMIx server, and alone. Blocking PMIx calls are made only
 * before channels exist.
 */
#ifndef RK_BOOT_BOOT_H
#define RK_BOOT_BOOT_H

#include "lib/rank.h"

#include <stdbool.h>

#define RK_CARD_MAX 4096
#define RK_SPACE_MAX 256 /* the name of a job, with its end */
#define RK_JOB_SIZE_MAX (1 << 24)

struct rk_boot_parent;
struct rk_answer;

struct rk_boot {
    int rank, size;
    int nlocal;      /* ranks that the launcher says are on this host */
    int *local;      /* their world ranks, ascending */
    int local_index; /* mine among them */
    bool alone;      /* no PMIx server */
    uint32_t before; /* programs of this rank that have joined before, one after another */
    char job[RK_SPACE_MAX]; /* the namespace */
    char host[64];
    char server[RK_SPACE_MAX]; /* the launcher's name among PMIx's servers; "": not told */
    struct rk_boot_parent *parent; /* parent.h: rank_spawn started this job; NULL: it did not */
    uint32_t fetched; /* cards that others have been asked for */
    bool crowded;    /* then: the ranks of all jobs on this host are more than its cores, as the launcher says */
};

/* Called on PMIx's own thread when a process of the job is reported dead (rank, or -1 if not
 * known which). May only set flags and wake. */
typedef void (*rk_boot_death_fn)(int rank, void *arg);

rank_status_t rk_boot_open(struct rk_boot **out);
/* The server hears no more of this process, nor this process of it. */
void rk_boot_leave(struct rk_boot *boot);
/* NULL and half-open are fine. */
void rk_boot_close(struct rk_boot *boot);

/* fn NULL: no more from now on; it is not running when this returns. */
rank_status_t rk_boot_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg);

/* Store a card under key, for all (before the commit). What a program has stored that ran before in this rank is
 * still there, but not seen. */
rank_status_t rk_boot_put(struct rk_boot *boot, const char *key, const void *data, size_t len);
rank_status_t rk_boot_commit(struct rk_boot *boot);
/* Fetch a card; waits until that rank has committed. *len: capacity in, size out.
 * RANK_ERR_UNREACHABLE: that rank has none. */
rank_status_t rk_boot_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len);

/* The same without waiting, and only between programs that came first in their ranks. NULL: it cannot be asked for. */
struct rk_answer *rk_boot_ask(struct rk_boot *boot, int rank, const char *key);
bool rk_boot_asked(struct rk_answer *answer);
/* In any case. True: all len bytes are there. NULL is fine. */
bool rk_boot_ask_end(struct rk_boot *boot, struct rk_answer *answer, void *data, size_t len);

/* A fence over the world, for before channels exist. RANK_ERR_PEER_DEAD: somebody died in it. */
rank_status_t rk_boot_fence(struct rk_boot *boot);

/*
 * Other jobs. Their ranks have numbers behind those of ours; deaths among them are told by number, to
 * whom watches deaths. Name a job as soon as its namespace is known; what was heard of it before is
 * told then.
 */
rank_status_t rk_boot_name_job(struct rk_boot *boot, const char *space, int first, int size);
/* Its numbers, from first on, are taken back. */
void rk_boot_forget_job(struct rk_boot *boot, int first);
/* Hear of their deaths and ends from now on; does not wait. Once is enough. */
rank_status_t rk_boot_hear_jobs(struct rk_boot *boot);

/* A job to be started by the launcher. */
struct rk_boot_app {
    const char *program, *dir;
    const char *const *args, *const *env; /* end with NULL; or NULL */
    const char *parent;                   /* the value of RK_PARENT_VARIABLE */
    int n;
};

struct rk_boot_spawn;

/* Ask the launcher; does not wait. wake is called on PMIx's thread when the answer is there. The
 * object is there even on an error, and ends with rk_boot_spawn_end. */
rank_status_t rk_boot_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app,
                                  void (*wake)(void *), void *arg, struct rk_boot_spawn **out);
/* The condition for a wait. */
bool rk_boot_spawn_over(void *spawn);
/* After that: its namespace. RANK_ERR_NOT_SUPPORTED: the launcher does not do that; RANK_ERR_SPAWN:
 * it could not. Both have been logged. */
rank_status_t rk_boot_spawn_end(struct rk_boot_spawn *spawn, char space[RK_SPACE_MAX]);

/* Tell the launcher, together with all n processes that have these numbers, that their jobs are no longer connected;
 * does not wait. wake as above. *out ends with rk_boot_part_end; NULL after an error. */
rank_status_t rk_boot_part_begin(struct rk_boot *boot, const int *numbers, int n, void (*wake)(void *),
                                 void *arg, struct rk_answer **out);
/* The condition for a wait. */
bool rk_boot_part_over(void *answer);
/* RANK_ERR_UNREACHABLE: it was not over, and nobody waits for it any more. */
rank_status_t rk_boot_part_end(struct rk_boot *boot, struct rk_answer *answer);

/* End the job through the server; returns if there is none or it did not act. */
void rk_boot_abort(struct rk_boot *boot, int code, const char *text);

#endif
