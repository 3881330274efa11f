/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_server.h: the PMI-1 server of an agent, for MPICH and what derives from it.
 *
 * Each rank is given one end of a socket pair (PMI_FD) on which its library
 * speaks lines of text. Ranks are numbered here as this host counts them, from
 * 0. All happens in the agent's loop.
 */
#ifndef XR_LAUNCHER_PMI1_PMI1_SERVER_H
#define XR_LAUNCHER_PMI1_PMI1_SERVER_H

#include "launcher/dpm/rpc.h"
#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_pmi1;

struct xr_pmi1_ops {
    /* A rank has said its first word. */
    void (*joined)(void *arg, uint32_t rank);
    void (*aborted)(void *arg, uint32_t rank, int code, const char *text);
    /*
     * All ranks of this host wait in a barrier, and this is what they have put
     * since the last; or (lost) one has gone and no barrier will ever be whole.
     * When all hosts have come to this, or one that has lost a rank, each calls
     * xr_pmi1_exchanged with what the others gave. NULL: there is no other host.
     */
    void (*exchange)(void *arg, bool lost, const void *blob, size_t len);
    /* A rank has ended that others wait for in their MPI_Init, some of them in ways that no answer
     * of this server's ends. Once. */
    void (*stranded)(void *arg, uint32_t rank);
    /* A rank asks what is not known here; to be answered by xr_pmi1_errand_done with the id. The packer is emptied. NULL:
     * there is nobody to ask. */
    void (*errand)(void *arg, uint32_t rank, uint32_t id, enum xr_errand what, struct xr_packer *payload);
};

struct xr_pmi1_job {
    const char *id;   /* becomes the name of the key-value space */
    uint32_t size;    /* ranks of the job */
    uint32_t universe; /* as many as the hosts take; 0: any number */
    uint32_t local;   /* those on this host */
    char *const *keys; /* key=value, there from the start; or NULL */
    const uint32_t *node_of; /* [size] the number of each rank's host; NULL: all are on one */
};

rank_status_t xr_pmi1_open(struct event_base *base, const struct xr_pmi1_job *job,
                           const struct xr_pmi1_ops *ops, void *arg, struct xr_pmi1 **out);
/* NULL is fine. Clients see their connection end. */
void xr_pmi1_close(struct xr_pmi1 *pmi1);

/* Before a rank starts: *fd is its end of the connection, which becomes XR_PMI1_FD in it; the
 * caller closes it when the rank has it. app: the number of its program among the job's. Several
 * threads may do this at once, for different ranks, while the loop does not run. On failure errno says why. */
rank_status_t xr_pmi1_add(struct xr_pmi1 *pmi1, uint32_t rank, uint32_t app, int *fd);

/* A rank's process has ended. What it said before is heard first. True: it was a client and has not
 * finalized. NULL is fine. */
bool xr_pmi1_exited(struct xr_pmi1 *pmi1, uint32_t rank);
/* After its end has been reported: see ops->stranded. NULL is fine. */
void xr_pmi1_check_stranded(struct xr_pmi1 *pmi1);

/* The answer to an errand, as rpc.h says; NULL: there is none. */
void xr_pmi1_errand_done(struct xr_pmi1 *pmi1, uint32_t id, struct xr_unpacker *answer);

/* Has any rank been a client? NULL is fine. */
bool xr_pmi1_used(const struct xr_pmi1 *pmi1);

/* Is a rank in a barrier? NULL is fine. */
bool xr_pmi1_waits(const struct xr_pmi1 *pmi1, uint32_t rank);

/* See ops->exchange. lost may come at any time, also unasked. */
void xr_pmi1_exchanged(struct xr_pmi1 *pmi1, bool lost, const void *blob, size_t len);

/*
 * The value of PMI_process_mapping: blocks (first host, hosts, ranks on each) in
 * the order of ranks. Returns its length as snprintf does.
 */
int xr_pmi1_mapping(const uint32_t *node_of, uint32_t size, char *out, size_t len);

#endif
