/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h: group the ranks of a team by host.
 *
 * A pure function of the host of each rank, which all members know alike.
 */
#ifndef RK_COLL_HOSTS_H
#define RK_COLL_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct rk_arena;
struct rk_sched_line;

struct rk_hosts {
    int n;        /* hosts, in the order of their first ranks */
    int host;     /* own one */
    int local;    /* own place on it */
    int per_host; /* ranks on the host with the fewest */
    int *at;      /* n + 1: start of each host's ranks in ranks */
    int *ranks;   /* all, by host, ascending on each */
    int *host_of; /* by rank */
    int *leaders; /* first rank of each host */
    /* Of the ranks on the own host: for first phases, and for last ones. NULL: none, or not agreed. */
    struct rk_arena *const *arena;
    struct rk_sched_line *in_cells; /* schedules that use each */
    bool agreed;  /* on them (host_arena.h) */
    int *lane;    /* the rank of each host at the own place; valid if local < per_host */
};

/* id[r]: any number that identifies the host of rank r. Returns NULL if out of memory. Caller frees. */
struct rk_hosts *rk_hosts_new(const uint64_t *id, int size, int rank);

#endif
