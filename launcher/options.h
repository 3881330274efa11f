/*
 * options.h: what xrun can be told.
 *
 * One table holds every option: parsing, --help and the man page come from it.
 */
#ifndef RK_LAUNCHER_OPTIONS_H
#define RK_LAUNCHER_OPTIONS_H

#include "launcher/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RK_MAX_RANKS (1 << 20)

struct rk_options {
    int n;
    const char **set; /* -x arguments, in order; points into argv */
    int nset;
    const char *wdir; /* or NULL */
    bool tag_output, timestamp, label_host;
    double timeout; /* seconds; 0: none */
    bool timeout_traces;
    double kill_grace; /* seconds; less than 0: each end has its own */
    double heartbeat;  /* seconds; 0: none */
    bool heartbeat_kill;
    bool status; /* not a job to run, but one to ask about */
    enum rk_bind bind;
    bool go_on; /* --on-failure continue */
    bool verbose;
    bool help, version, man;
    char **command; /* points into argv: program, arguments, NULL */
};

/*
 * Reads argv. RANK_ERR_ARG: err holds one line that says what is wrong and what to do. Checks only
 * what can be checked without looking at the machine.
 */
rank_status_t rk_options_parse(int argc, char **argv, struct rk_options *out, char *err,
                               size_t errlen);
void rk_options_free(struct rk_options *options);

void rk_options_help(FILE *to);
/* The option list of xrun.1. */
void rk_options_man(FILE *to);

#endif
