/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_request.h: a job that a rank wants to be started: what it asks for, and what
 * the new xrun is told on top.
 */
#ifndef XR_LAUNCHER_DPM_SPAWN_REQUEST_H
#define XR_LAUNCHER_DPM_SPAWN_REQUEST_H

#include "launcher/util/pack.h"
#include "launcher/job/job.h"

struct xr_request_app {
    uint32_t n; /* those of all are XR_MAX_RANKS at most */
    char **argv;
    char **env;  /* NAME=value, besides what the first job has */
    char *wdir;  /* or NULL */
    char *path;  /* where to look for the program before PATH, or NULL */
};

struct xr_request {
    struct xr_request_app *apps;
    uint32_t napps;
    char **words; /* xrun's options, for the whole job */
    char **keys;  /* key=value, put for PMI-1 before the ranks start */
};

/* NULL and one that is half made are fine. */
void xr_request_clear(struct xr_request *request);
void xr_request_pack(const struct xr_request *request, struct xr_packer *p);
/* False: it makes no sense. Clear it in any case. */
bool xr_request_unpack(struct xr_unpacker *u, struct xr_request *out);
/* One more program, all 0. NULL: no memory. */
struct xr_request_app *xr_request_add(struct xr_request *request);
/* Append a copy to a NULL-terminated array, which may be NULL. False: no memory. */
bool xr_request_word(char ***words, const char *word);

/* What a spawned job is told first. */
struct xr_hello {
    char **options;   /* of the first xrun: its words before the first program */
    uint32_t number;  /* of the job among the spawned */
    char *parent;     /* name of the job that it was spawned by */
    uint32_t rank;    /* and who */
    void *outline;    /* of that */
    size_t outline_len;
    char *hosts;      /* the first job's, as --host has them; or NULL: nobody has named any. Files may not be there any more */
    char **env;       /* what the first program's ranks have besides xrun's environment */
    char **busy;      /* "ranks host": how many run where already, in the order of the hosts' names */
    struct xr_request request;
};

void xr_hello_clear(struct xr_hello *hello);
void xr_hello_pack(const struct xr_hello *hello, struct xr_packer *p);
bool xr_hello_unpack(struct xr_unpacker *u, struct xr_hello *out);

#endif
