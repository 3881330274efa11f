/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_request.h: pack a rank's request for a new job.
 *
 * Also the first message to the new job's xrun, which contains the request.
 */
#ifndef XR_LAUNCHER_DPM_SPAWN_REQUEST_H
#define XR_LAUNCHER_DPM_SPAWN_REQUEST_H

#include "launcher/util/pack.h"
#include "launcher/job/job.h"

struct xr_spawn_request_app {
    uint32_t n; /* ranks; the sum of all programs is at most XR_MAX_RANKS */
    char **argv;
    char **env;  /* NAME=value, added to the first job's environment */
    char *wdir;  /* or NULL */
    char *path;  /* searched for the program before PATH, or NULL */
};

struct xr_spawn_request {
    struct xr_spawn_request_app *apps;
    uint32_t napps;
    char **words; /* xrun's options, for the whole job */
    char **keys;  /* key=value, put for PMI-1 before the ranks start */
};

/* No-op if NULL. The request may be half built. */
void xr_spawn_request_clear(struct xr_spawn_request *request);
void xr_spawn_request_pack(const struct xr_spawn_request *request, struct xr_packer *p);
/* Returns false if it is malformed. Caller clears the request in any case. */
bool xr_spawn_request_unpack(struct xr_unpacker *u, struct xr_spawn_request *out);
/* Append a program, all 0. NULL without memory. */
struct xr_spawn_request_app *xr_spawn_request_add(struct xr_spawn_request *request);

/* The first message to a spawned job. */
struct xr_spawn_hello {
    char **options;   /* of the first xrun, before the first program */
    uint32_t number;  /* of the job among the spawned ones */
    char *parent;     /* name of the job that spawned it */
    uint32_t rank;    /* the parent process in that job */
    void *job_info;    /* job info of that job */
    size_t job_info_len;
    char *hosts;      /* the first job's, as for --host, since its hostfile may be gone; NULL: none were given */
    char **env;       /* what the first program's ranks have in addition to xrun's environment */
    char **busy;      /* "ranks host": the running ranks by host, sorted by host */
    struct xr_spawn_request request;
};

void xr_spawn_hello_clear(struct xr_spawn_hello *hello);
void xr_spawn_hello_pack(const struct xr_spawn_hello *hello, struct xr_packer *p);
bool xr_spawn_hello_unpack(struct xr_unpacker *u, struct xr_spawn_hello *out);

#endif
