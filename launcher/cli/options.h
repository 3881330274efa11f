/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what xrun can be told.
 *
 * One table (options.c) holds every option: parsing, --help, the man page, the
 * completion for bash and the variables that mirror them come from it.
 */
#ifndef XR_LAUNCHER_CLI_OPTIONS_H
#define XR_LAUNCHER_CLI_OPTIONS_H

#include "launcher/job/job.h"
#include "launcher/map/policy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define XR_OPTION_NAMES 5
#define XR_HEARTBEAT_DEFAULT (-1)
#define XR_OPTIONS_ANEW "--hosts-anew" /* what follows it on a command line says the hosts alone */

/* What is said of one program, between two ':'. */
struct xr_app_options {
    int n;
    const char **set; /* -x arguments, in order */
    int nset;
    const char **files; /* --env-file arguments, in order */
    int nfiles;
    const char *path; /* --path, or NULL */
    const char *wdir; /* or NULL */
    const char **command; /* program, arguments, NULL */
};

struct xr_spawned;

struct xr_options {
    int n; /* ranks of all programs; 0: there is one, and it was not said */
    struct xr_app_options *apps;
    int napps;
    struct xr_app_options *app; /* while reading: the one whose options come now */
    struct xr_app_options defaults; /* what a program is not told itself */
    char **shared; /* XRUN_X: -x arguments of all programs; or NULL */
    const char **words; /* what files, command and where.hostfiles point into */
    const char **next, **next_file; /* and where the next goes */
    const char **sets, **next_set; /* the same for set */
    const char **genv, **next_genv; /* -genv so far: for the programs that follow, too */
    char **kept; /* values that are not argv's */
    int nkept;
    const char *prefix; /* or NULL */
    const char *output_dir; /* or NULL */
    const char *json; /* or NULL */
    uint32_t input, pty; /* as in struct xr_job */
    bool input_given;
    bool hosts_said, files_said; /* by the command line: --host and --hostfile that follow add to what is there */
    bool no_mpi, torch, quiet;
    bool habit; /* an option of other launchers that asks for what xrun does anyway */
    bool tag_output, timestamp, label_host;
    double timeout; /* seconds; 0: none */
    bool timeout_traces;
    double kill_grace; /* seconds; less than 0: each end has its own */
    double heartbeat;  /* seconds; 0: none; XR_HEARTBEAT_DEFAULT: the user gave none */
    bool heartbeat_kill;
    bool status;     /* not a job to run, but one to ask about */
    const char *job; /* this one; NULL: list them */
    struct xr_where where;
    bool go_on; /* --on-failure continue */
    bool verbose;
    bool help, version, man;
    /* main.c: for jobs that ranks spawn. */
    char **argv, **environment; /* xrun's own; the latter before anything was taken out */
    struct xr_spawned *spawned; /* this is one; or NULL */
};

/*
 * parse.c: reads argv, which must stay. RANK_ERR_ARG: err holds one line that says what is wrong and what to do. Checks only
 * what can be checked without looking at the machine.
 */
rank_status_t xr_options_parse(int argc, char **argv, struct xr_options *out, char *err,
                               size_t errlen);
/* The same on top of what before says, which is called with options that are all at their defaults. */
rank_status_t xr_options_parse_over(int argc, char **argv,
                                    bool (*before)(struct xr_options *o, char *err, size_t errlen),
                                    struct xr_options *out, char *err, size_t errlen);
/*
 * What is wrong with each word of argv alone: not what one option says of another, which may be right only together
 * with what stands elsewhere.
 */
rank_status_t xr_options_glance(int argc, char **argv, struct xr_options *out, char *err, size_t errlen);
/* Are the ranks that options name among n? */
bool xr_options_check_ranks(const struct xr_options *options, uint32_t n, char *err, size_t errlen);
void xr_options_free(struct xr_options *options);
/* A copy that lives as long as the options. NULL: no memory. */
const char *xr_options_keep(struct xr_options *options, const char *value);
/* Is something to be printed, and nothing to be run? */
bool xr_options_ask(const struct xr_options *options);

/*
 * env_options.c: what the configuration files and then the environment say, by variables that mirror
 * the options: XRUN_TIMEOUT=5 is --timeout 5. For xr_options_parse_over. Warns of unknown ones.
 */
bool xr_options_variables(struct xr_options *o, char *err, size_t errlen);

/* A row of the table, for what is made of all of them. */
struct xr_option_row {
    const char *const *names; /* XR_OPTION_NAMES, or fewer and a NULL */
    const char *value;        /* or NULL: a flag */
    const char *doc;
    bool per_app;             /* may follow a ':' */
    bool pair;                /* two words follow */
    char variable[40];        /* XRUN_TIMEOUT; empty: there is none */
};

/* Row i. False: there are no more. */
bool xr_options_row(size_t i, struct xr_option_row *out);
/* Do as row i says. value: of a flag NULL, or on, off, yes, no, 1, 0 or the like. */
bool xr_options_apply(struct xr_options *o, size_t i, const char *value, char *err, size_t errlen);

void xr_options_help(FILE *to);
/* The option list of xrun.1. */
void xr_options_man(FILE *to);

#endif
