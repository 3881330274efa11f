/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: read the command line and the variables of xrun.
 *
 * Room: options, their variables, the programs of a job.
 * Called by: frontend, main.c.
 * Never: starts a process; opens a connection.
 * Tests: tests/launcher/unit/{launcher,habits}_test.c, tests/launcher/{xrun,apps,habits,environ}.sh.
 *
 * The table in options.c holds every option. Parsing, --help, the options part of xrun.1 and the variables XRUN_...
 * come from it; completion/xrun reads --help.
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
/* A word that xrun puts into the command lines of spawned jobs: hosts after it replace those before it. */
#define XR_OPTIONS_ANEW "--hosts-anew"

/* Options of one program, between two ':'. */
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
    int n; /* ranks of all programs; 0: one program, without -n */
    struct xr_app_options *apps;
    int napps;
    struct xr_app_options *app; /* while parsing: the program of the next option */
    struct xr_app_options defaults; /* options that a program does not set itself */
    char **shared; /* XRUN_X: -x arguments of all programs; or NULL */
    const char **words; /* storage of files, command and where.hostfiles */
    const char **next, **next_file; /* the next free places in it */
    const char **sets, **next_set; /* the same for set */
    const char **genv, **next_genv; /* -genv so far: also for the programs that follow */
    char **kept; /* values that are not argv's */
    int nkept;
    const char *prefix; /* or NULL */
    const char *output_dir; /* or NULL */
    const char *json; /* or NULL */
    uint32_t input, pty; /* as in struct xr_job */
    bool input_given;
    bool hosts_given, hostfiles_given; /* on the command line: a further --host or --hostfile adds to them */
    bool no_mpi, torch, quiet;
    bool no_effect; /* options of other launchers that ask for the default */
    bool tag_output, timestamp, label_host;
    double timeout; /* seconds; 0: none */
    bool timeout_traces;
    double kill_grace; /* seconds; negative: the default of each ending */
    double heartbeat;  /* seconds; 0: none; XR_HEARTBEAT_DEFAULT: not given */
    bool heartbeat_kill;
    bool status;     /* report on a running job instead of starting one */
    const char *job; /* of --status; NULL: list the jobs */
    struct xr_policy where;
    bool go_on; /* --on-failure continue */
    bool verbose;
    bool help, version, man;
    /* Set by main.c, for jobs that ranks spawn. */
    char **argv, **environment; /* xrun's own; the environment before variables of other launchers were removed */
    struct xr_spawned *spawned; /* NULL: this is no spawned job */
};

/*
 * Parse argv, which must outlive out. Checks what can be checked without the machine. Returns RANK_ERR_ARG with one
 * line in err: the mistake, and what to do. Call xr_options_free in any case.
 */
rank_status_t xr_options_parse(int argc, char **argv, struct xr_options *out, char *err,
                               size_t errlen);
/* Parse argv on top of the values that before sets; before is called with options at their defaults. */
rank_status_t xr_options_parse_over(int argc, char **argv,
                                    bool (*before)(struct xr_options *o, char *err, size_t errlen),
                                    struct xr_options *out, char *err, size_t errlen);
/* Parse each word of argv by itself, without the checks of one option against another. */
rank_status_t xr_options_parse_words(int argc, char **argv, struct xr_options *out, char *err, size_t errlen);
/* Return whether the ranks of --stdin and --pty are below n, else false with a text in err. */
bool xr_options_check_ranks(const struct xr_options *options, uint32_t n, char *err, size_t errlen);
/* No-op if NULL. */
void xr_options_free(struct xr_options *options);
/* Copy value until xr_options_free. Returns NULL without memory. */
const char *xr_options_keep(struct xr_options *options, const char *value);
/* Return whether xrun only prints, and starts no job. */
bool xr_options_prints_only(const struct xr_options *options);

/*
 * Set the options of the configuration files, then those of the environment: XRUN_TIMEOUT=5 is --timeout 5. A
 * parameter of xr_options_parse_over. Warns of unknown variables. Returns false with a text in err if a value is bad.
 */
bool xr_options_from_env(struct xr_options *o, char *err, size_t errlen);

/* A row of the table of options. */
struct xr_option_row {
    const char *const *names; /* XR_OPTION_NAMES, or fewer and a NULL */
    const char *value;        /* name of the value, or NULL for a flag */
    const char *group;        /* title of its group; rows of a group stand together */
    const char *help;         /* one sentence */
    const char *detail;       /* more for xrun.1, or NULL */
    bool per_app;             /* may follow a ':' */
    bool pair;                /* two words follow */
    char variable[40];        /* XRUN_TIMEOUT; empty: there is none */
};

/* Return row i in out. Returns false behind the last row. */
bool xr_options_row(size_t i, struct xr_option_row *out);
/* Apply row i. value: of a flag NULL, or on, off, yes, no, true, false, 1, 0. Returns false with a text in err. */
bool xr_options_apply(struct xr_options *o, size_t i, const char *value, char *err, size_t errlen);

/* Print --help. completion/xrun and tests read its lines with options: "  -n, -np N". */
void xr_options_help(FILE *to);
/* Print the OPTIONS section of xrun.1. */
void xr_options_man(FILE *to);

#endif
