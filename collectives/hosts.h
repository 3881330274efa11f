/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h: group the ranks of a team by host.
 *
 * A pure function of the host of each rank, which all members know alike.
 */
#ifndef RK_COLL_HOSTS_H
#define RK_COLL_HOSTS_H

struct rk_hosts {
    int n;        /* hosts, in the order of their first ranks */
    int host;     /* own one */
    int local;    /* own place on it */
    int per_host; /* ranks on the host with the fewest */
    int *at;      /* n + 1: start of each host's ranks in ranks */
    int *ranks;   /* all, by host, ascending on each */
    int *host_of; /* by rank */
    int *leaders; /* first rank of each host */
    int *lane;    /* the rank of each host at the own place; valid if local < per_host */
};

/* node[r]: any number that identifies the host of rank r. Returns NULL if out of memory. Caller frees. */
struct rk_hosts *rk_hosts_new(const int *node, int size, int rank);

#endif
