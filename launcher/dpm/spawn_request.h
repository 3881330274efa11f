/*
 * spawn_request.h: a job that a rank wants to be started: what it asks for, and what
 * the new xrun is told on top.
 */
#ifndef RK_LAUNCHER_DPM_SPAWN_REQUEST_H
#define RK_LAUNCHER_DPM_SPAWN_REQUEST_H

#include "launcher/util/pack.h"
#include "launcher/cli/options.h"

struct rk_request_app {
    uint32_t n; /* those of all are RK_MAX_RANKS at most */
    char **argv;
    char **env;  /* NAME=value, besides what the first job has */
    char *wdir;  /* or NULL */
    char *path;  /* where to look for the program before PATH, or NULL */
};

struct rk_request {
    struct rk_request_app *apps;
    uint32_t napps;
    char **words; /* xrun's options, for the whole job */
    char **keys;  /* key=value, put for PMI-1 before the ranks start */
};

/* NULL and one that is half made are fine. */
void rk_request_clear(struct rk_request *request);
void rk_request_pack(const struct rk_request *request, struct rk_packer *p);
/* False: it makes no sense. Clear it in any case. */
bool rk_request_unpack(struct rk_unpacker *u, struct rk_request *out);
/* One more program, all 0. NULL: no memory. */
struct rk_request_app *rk_request_add(struct rk_request *request);
/* Append a copy to a NULL-terminated array, which may be NULL. False: no memory. */
bool rk_request_word(char ***words, const char *word);

/* What a spawned job is told first. */
struct rk_hello {
    char **options;   /* of the first xrun: its words before the first program */
    uint32_t number;  /* of the job among the spawned */
    char *parent;     /* name of the job that it was spawned by */
    uint32_t rank;    /* and who */
    void *outline;    /* of that */
    size_t outline_len;
    char *hosts;      /* the first job's, as --host has them; or NULL: nobody has named any. Files may not be there any more */
    char **env;       /* what the first program's ranks have besides xrun's environment */
    char **busy;      /* "ranks host": how many run where already, in the order of the hosts' names */
    struct rk_request request;
};

void rk_hello_clear(struct rk_hello *hello);
void rk_hello_pack(const struct rk_hello *hello, struct rk_packer *p);
bool rk_hello_unpack(struct rk_unpacker *u, struct rk_hello *out);

#endif
