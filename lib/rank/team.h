/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h: declare start and end, teams, spawn. Part of rank.h. */
#ifndef RANK_TEAM_H
#define RANK_TEAM_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------- rank_init: start and end */

typedef enum rank_thread_level {
    RANK_THREAD_SINGLE = 0, /* the process has one thread */
    RANK_THREAD_FUNNELED,   /* only the thread that called rank_init calls */
    RANK_THREAD_SERIALIZED, /* any thread calls, one at a time */
    RANK_THREAD_MULTIPLE    /* any thread at any time */
} rank_thread_level_t;

typedef struct rank_init_opts {
    size_t size;          /* set by RANK_INIT_OPTS_INIT; fields beyond it have their defaults */
    int32_t thread_level; /* a rank_thread_level_t; default SERIALIZED */
    int32_t progress_thread; /* 1: a thread of the library makes progress; 0: RANK_PROGRESS_THREAD decides */
    int32_t quiet;        /* 1: RANK_ERRORS=auto is quiet in this process, for a caller that reports rank_status_reason */
} rank_init_opts_t;
#define RANK_INIT_OPTS_INIT {sizeof(rank_init_opts_t), RANK_THREAD_SERIALIZED, 0, 0}

/*
 * Join the world, the team of all ranks. Collective over the job. opts may be NULL. A program that starts alone is a
 * world of one. After rank_finalize the library can be initialized again; under a launcher such a process ends by
 * exit, not by _exit or exec.
 * RANK_ERR_STATE: the library is initialized, or this process is a forked child of a rank.
 * RANK_ERR_ARG: opts has a wrong size or level, or progress_thread or quiet is neither 0 nor 1.
 * RANK_ERR_CONFIG: a RANK_* variable has an invalid value.
 * RANK_ERR_BOOT: the PMIx server failed, or its data is invalid.
 * RANK_ERR_SYSTEM: the progress thread could not be started.
 * RANK_ERR_PEER_DEAD: another rank failed before it joined.
 */
RANK_API rank_status_t rank_init(const rank_init_opts_t *opts);

/* Leave the world. Collective. Completes what was sent and frees all objects. After a rank has failed, the others do
 * not wait for it. */
RANK_API rank_status_t rank_finalize(void);

/* Returns the rank_thread_level_t that rank_init was given, or RANK_ERR_STATE outside rank_init and rank_finalize.
 * Every level is granted as requested. */
RANK_API int rank_thread_level(void);

/* Returns 1 between a successful rank_init and rank_finalize, else 0. */
RANK_API int rank_initialized(void);

/* End the whole job. The exit code is code & 255, or 1 if that is 0. text may be NULL. Before rank_init it ends only
 * this process. Does not return. */
RANK_API void rank_abort(int code, const char *text) __attribute__((noreturn));

/* Returns the team of all ranks, or RANK_TEAM_NULL before rank_init. The caller must not free it. */
RANK_API rank_team_t rank_world(void);

/* ------------------------------------------------------------------------------------- rank_team: groups of ranks */

/* Returns the rank of this process in the team, 0 to size - 1, or a negative status. */
RANK_API int rank_team_rank(rank_team_t team);

/* Returns the number of ranks in the team, or a negative status. */
RANK_API int rank_team_size(rank_team_t team);

/*
 * Returns the rank in the world of a rank of team, or a negative status. RANK_UNDEFINED stands for a rank of another
 *   world.
 */
RANK_API int rank_team_world_rank(rank_team_t team, int rank);

/* Write the ranks in the world of all ranks of team to ranks, in the order of team. cap is the number of elements in
 * ranks. RANK_UNDEFINED stands for a rank of another world. RANK_ERR_COUNT: cap is less than the team size. */
RANK_API rank_status_t rank_team_members(rank_team_t team, int *ranks, int64_t cap);

typedef enum rank_team_relation {
    RANK_TEAM_IDENT = 0, /* the same team */
    RANK_TEAM_CONGRUENT, /* the same ranks in the same order */
    RANK_TEAM_SIMILAR,   /* the same ranks in another order */
    RANK_TEAM_UNEQUAL
} rank_team_relation_t;

/* Compare two teams. *result is a rank_team_relation_t. The call is local. */
RANK_API rank_status_t rank_team_compare(rank_team_t a, rank_team_t b, int *result);

/*
 * Get the node of peer, a rank of team, as the launcher placed it. The nodes of the world are numbered from 0, in the
 * order of their lowest ranks.
 * Returns the number of the node, or a negative status. RANK_UNDEFINED stands for a rank of another world.
 * RANK_ERR_NOT_SUPPORTED: the launcher does not report the nodes.
 */
RANK_API int rank_node_of(int peer, rank_team_t team);

/*
 * Split a team by color. Collective over team. The ranks of a new team are ordered by key, then by their rank in team.
 * color is >= 0, or RANK_UNDEFINED for a rank that joins no new team. Its *out is RANK_TEAM_NULL. The caller frees *out.
 */
RANK_API rank_status_t rank_team_split(rank_team_t team, int color, int key, rank_team_t *out);

/* Split a team by shared memory. Collective over team. The ranks of a new team can load and store each other's
 * rank_alloc memory. The caller frees *out. */
RANK_API rank_status_t rank_team_split_shared(rank_team_t team, int key, rank_team_t *out);

/* Create a team of the same ranks with its own tags. Collective over team. The caller frees *out. */
RANK_API rank_status_t rank_team_dup(rank_team_t team, rank_team_t *out);

/*
 * Create a team of the n listed ranks of parent, in the order of the list. Collective over these ranks only, which all
 * give the same list and tag. Calls of several threads at once on one parent need different tags. Ranks that
 * two lists share create both in the same order. The call works where other ranks of parent have failed. tag is 0 to INT64_MAX - 1. The caller frees *out. An invalid argument
 * fails at once, on that rank alone.
 * RANK_ERR_COUNT: n is less than 1, or more than the ranks of parent.
 * RANK_ERR_RANK: a rank of the list is out of range, or listed twice.
 * RANK_ERR_ARG: the list lacks this rank.
 * RANK_ERR_PEER_DEAD: a listed rank failed.
 */
RANK_API rank_status_t rank_team_create(rank_team_t parent, int64_t n, const int *ranks, int64_t tag, rank_team_t *out);

/*
 * Free a team and set *team to RANK_TEAM_NULL. Collective over team. Pending requests on it complete as if it were
 * not freed. Messages without a posted receive are dropped. Free memory of rank_alloc on the team first. On a team
 * of several worlds it waits until every rank frees the team, finalizes or fails. Freeing the last team that two
 * worlds share, with all their ranks, disconnects them: each then ignores failures of the other.
 */
RANK_API rank_status_t rank_team_free(rank_team_t *team);

/*
 * Call fn once for each other rank of the team that ends, also for those that have ended before this call. cause is
 * RANK_ERR_PEER_DEAD, or RANK_ERR_CLOSED where a side of a connection has disconnected it. A team has one fn:
 * a further call replaces it, and NULL takes it back. rank_team_free, rank_disconnect and rank_finalize do so, too.
 * Operations that depend on the rank have their status before the call.
 * fn runs as one of rank_on_done does: in a call that makes progress, on its thread, one at a time. It may start
 * operations, free the team, and must not wait or finalize. With several threads, rank_on_death waits for a call of
 * another thread that has begun; where the team is freed instead, such a call may still run, and needs arg.
 */
typedef void (*rank_death_fn)(rank_team_t team, int rank, rank_status_t cause, void *arg);
RANK_API rank_status_t rank_on_death(rank_team_t team, rank_death_fn fn, void *arg);

/* Get the channel that carries messages to peer. The first call may establish the connection.
 * Returns "self", "shm", "tcp" or "ucx" in static storage, or NULL on an error. */
RANK_API const char *rank_channel_name(rank_team_t team, int peer);

/* ---------------------------------------------------------------------------- rank_spawn: start further processes */

typedef struct rank_spawn_params {
    size_t size;             /* set by RANK_SPAWN_PARAMS_INIT */
    const char *program;     /* a path, or a name that the launcher finds in PATH */
    const char *const *args; /* arguments after the program's name, NULL at the end; NULL: none */
    const char *const *env;  /* additional NAME=value, NULL at the end; NULL: none */
    const char *dir;         /* working directory; NULL: that of root */
    int32_t n;               /* number of processes; default 1 */
    int32_t reserved;        /* 0 */
} rank_spawn_params_t;
#define RANK_SPAWN_PARAMS_INIT {sizeof(rank_spawn_params_t), NULL, NULL, NULL, NULL, 1, 0}

/*
 * Start n ranks of a program as a new world, and create a team of both worlds. Collective over team. In *both the
 * ranks of team come first, then the new ones. These get it from rank_parent. params is used at root only. The call
 * returns when the new ranks are in rank_init, which waits for the parents. The caller frees *both, in both worlds.
 * The call needs tcp or UCX, and a launcher that can start processes at run time.
 *
 * Errors but those of team and root are equal on every rank that lives, and then rank_init of the new ranks fails
 * too.
 * RANK_ERR_ARG: params at root is NULL or invalid, or both is NULL on some rank.
 * RANK_ERR_COUNT: n is less than 1, or too large.
 * RANK_ERR_NOT_SUPPORTED: there is no launcher, or it cannot start processes.
 * RANK_ERR_SPAWN: the launcher could not start the program. The log has the cause.
 * RANK_ERR_PEER_DEAD: a new rank ended before it joined, or a rank of team failed.
 * RANK_ERR_BOOT: the new ranks or the launcher sent invalid data, for example of another library version.
 * RANK_ERR_CONFIG: RANK_CHANNELS excludes tcp and ucx on some rank.
 * RANK_ERR_CHANNEL, RANK_ERR_UNREACHABLE: no network channel could be opened, or none reaches the other world.
 */
RANK_API rank_status_t rank_spawn(const rank_spawn_params_t *params, int root, rank_team_t team,
                                  rank_team_t *both);

/*
 * Get the team of parents and children, in a world that rank_spawn started. *nparents is the number of its first ranks
 * that are parents. nparents may be NULL. The ranks after the parents are those of this world. The call is local.
 * *both is RANK_TEAM_NULL and *nparents is 0 in any other world, and after rank_team_free of the team.
 */
RANK_API rank_status_t rank_parent(rank_team_t *both, int *nparents);

#ifdef __cplusplus
}
#endif

#endif
