/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_server.h: serve PMI-1 to MPICH and its derivatives.
 *
 * Room: the PMI-1 server of an agent: parser, key-value space, barriers, spawn, names.
 * Callers: agent.
 * Never: starts a process; sends a message to another host itself.
 * Tests: tests/launcher/unit/pmi1_test.c, tests/fuzz/fuzz_pmi1.c, tests/foreign/mpich{4,5}.sh.
 *
 * Each rank gets one end of a socket pair (PMI_FD), on which its library sends lines of
 * text. Ranks are numbered as local ranks of this host. Everything runs in the
 * agent's loop.
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
    /* A rank has sent init. */
    void (*joined)(void *arg, uint32_t rank);
    void (*aborted)(void *arg, uint32_t rank, int code, const char *text);
    /*
     * All ranks of this host wait in a barrier; blob: what they have put since the
     * last one. Or lost: a rank has gone, and no barrier can complete any more.
     * When all hosts have called this, or one with lost, each calls
     * xr_pmi1_exchanged with the blobs of the others. NULL if there is no other host.
     */
    void (*exchange)(void *arg, bool lost, const void *blob, size_t len);
    /* A rank has ended for which others wait in MPI_Init, some without PMI-1. Called once. */
    void (*stranded)(void *arg, uint32_t rank);
    /* A request for the first xrun; answer it by xr_pmi1_rpc_done with the id. Empties the packer. NULL: such requests
     * fail. */
    void (*rpc)(void *arg, uint32_t rank, uint32_t id, enum xr_rpc what, struct xr_packer *payload);
};

struct xr_pmi1_job {
    const char *id;   /* becomes the name of the key-value space */
    uint32_t size;    /* ranks of the job */
    uint32_t universe; /* as many as the hosts take; 0: any number */
    uint32_t local;   /* ranks on this host */
    char *const *keys; /* key=value, put before the start; or NULL */
    const uint32_t *node_of; /* [size] the number of each rank's host; NULL: all are on one */
};

rank_status_t xr_pmi1_open(struct event_base *base, const struct xr_pmi1_job *job,
                           const struct xr_pmi1_ops *ops, void *arg, struct xr_pmi1 **out);
/* No-op if NULL. Closes all connections. */
void xr_pmi1_close(struct xr_pmi1 *pmi1);

/* Make the connection of a rank before its start. *fd: the rank's end, which becomes XR_PMI1_FD there; the caller closes
 * it afterwards. app: the number of its program in the job. Several threads may call this at once for
 * different ranks while the loop does not run. Sets errno on failure. */
rank_status_t xr_pmi1_add(struct xr_pmi1 *pmi1, uint32_t rank, uint32_t app, int *fd);

/* A rank's process has ended. Handles what it has sent first. Returns true if it was a client and has not finalized.
 * No-op if NULL. */
bool xr_pmi1_exited(struct xr_pmi1 *pmi1, uint32_t rank);
/* Call after an end has been reported: see ops->stranded. No-op if NULL. */
void xr_pmi1_check_stranded(struct xr_pmi1 *pmi1);

/* The answer to a request, as in rpc.h, or NULL if there is none. */
void xr_pmi1_rpc_done(struct xr_pmi1 *pmi1, uint32_t id, struct xr_unpacker *answer);

/* Has any rank been a client? False if NULL. */
bool xr_pmi1_used(const struct xr_pmi1 *pmi1);

/* Is a rank in a barrier? False if NULL. */
bool xr_pmi1_waits(const struct xr_pmi1 *pmi1, uint32_t rank);

/* See ops->exchange. A call with lost may come at any time. */
void xr_pmi1_exchanged(struct xr_pmi1 *pmi1, bool lost, const void *blob, size_t len);

/*
 * The value of PMI_process_mapping: blocks (first host, hosts, ranks on each) in
 * the order of ranks. Returns its length as snprintf does.
 */
int xr_pmi1_mapping(const uint32_t *node_of, uint32_t size, char *out, size_t len);

#endif
