/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.h: define the configuration table.
 *
 * A row has name, type, default, unit, documentation and target of a variable. Parser, rankinfo and man page use
 * the rows. Values come from a file (/etc/rank.conf or the installed one, then ~/.rank.conf; or only the file in
 * RANK_CONF), then from the environment, which has priority. A bad value is an error that names the variable and
 * the valid values.
 */
#ifndef RK_BASE_CONF_H
#define RK_BASE_CONF_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stdio.h>

enum rk_conf_type {
    RK_CONF_BOOL,   /* on off yes no true false 1 0 -> bool */
    RK_CONF_INT,    /* -> int64_t, between min and max */
    RK_CONF_SIZE,   /* 4096, 64K, 1M, 2GiB -> int64_t bytes */
    RK_CONF_TIME,   /* 50us, 2ms, 1s; a bare number is microseconds -> int64_t ns */
    RK_CONF_ENUM,   /* one of allowed -> int, its index */
    RK_CONF_SET,    /* comma list of allowed -> uint32_t, a bit for each index */
    RK_CONF_STRING, /* -> const char *, never NULL */
    RK_CONF_PICKS   /* comma list of key:word (choice_list.h) -> const char *, never NULL */
};

struct rk_conf_row {
    const char *name;
    enum rk_conf_type type;
    const char *dflt;
    const char *unit; /* "" if none */
    const char *doc;
    /*
     * ENUM and SET: words separated by '|'; PICKS: see choice_list.h; STRING: such words, or a path; NULL: any
     * text; INT, SIZE, TIME: a word that stands for -1, or NULL
     */
    const char *allowed;
    int64_t min, max;    /* INT, SIZE, TIME; both 0: not negative */
    size_t offset;       /* in the struct that the table fills */
};

/* Values of the library's table. The rows are in conf_table.c. */
struct rk_conf {
    int log;
    uint32_t channels; /* bits RK_CONF_SELF, _SHM, _UCX */
    int64_t eager_max;
    int64_t eager_window;
    int64_t unexpected_max;
    int64_t rndv_unexpected_max;
    int64_t conn_memory;
    int64_t spin; /* ns; -1: depends on whether ranks exceed cores */
    bool progress_thread;
    bool crash_stack;
    int cma;
    int large;
    const char *paths;
    int64_t shm_box;
    const char *coll;
    bool coll_shm, coll_reproducible, coll_trace;
    const char *nics;
    const char *secret_file;
    const char *modules;
    int cuda;
    int cuda_ucx;
    int64_t spawn_timeout; /* ns; 0: none */
    int ucx_rma;
    int errors;
};

enum { RK_CONF_SELF = 1, RK_CONF_SHM = 2, RK_CONF_UCX = 4, RK_CONF_TCP = 8 };
enum { RK_CONF_CMA_AUTO, RK_CONF_CMA_ON, RK_CONF_CMA_OFF };
enum { RK_CONF_CUDA_AUTO, RK_CONF_CUDA_ON, RK_CONF_CUDA_OFF };
enum { RK_CONF_CUDA_UCX_AUTO, RK_CONF_CUDA_UCX_ON, RK_CONF_CUDA_UCX_OFF };
enum { RK_CONF_ERRORS_AUTO, RK_CONF_ERRORS_REPORT, RK_CONF_ERRORS_QUIET, RK_CONF_ERRORS_ABORT };
enum { RK_CONF_UCX_RMA_AUTO, RK_CONF_UCX_RMA_ON, RK_CONF_UCX_RMA_OFF };
enum { RK_CONF_LARGE_AUTO, RK_CONF_LARGE_CMA = 2 }; /* else 1 + enum rk_proto of lib/channel/shm/proto.h */

extern struct rk_conf rk_conf;
extern const struct rk_conf_row rk_conf_rows[]; /* the last row has the name NULL */

/* Fill rk_conf from files and environment; logs each bad value and then returns RANK_ERR_CONFIG. */
rank_status_t rk_conf_load(void);

/* Frees what rk_conf_load allocated. */
void rk_conf_unload(void);

/* The parser, for any table (tests, the launcher). */
rank_status_t rk_conf_set_defaults(const struct rk_conf_row *rows, void *into);
/* On RANK_ERR_CONFIG err gets the message. */
rank_status_t rk_conf_parse_value(const struct rk_conf_row *row, const char *text, void *into,
                                  char *err, size_t errlen);
/* name=value lines with # comments. Never reads past len; NUL bytes are an error. */
rank_status_t rk_conf_parse_text(const struct rk_conf_row *rows, void *into, const char *file,
                                 const char *text, size_t len);
/* Format the current value of a row. */
void rk_conf_format(const struct rk_conf_row *row, const void *from, char *out, size_t outlen);
/* Source of the value of row i of rk_conf_rows: "default", "environment" or a file name. */
const char *rk_conf_origin(int i);
/* Row with the most similar name, or NULL if none is similar. */
const struct rk_conf_row *rk_conf_nearest(const struct rk_conf_row *rows, const char *name);
/* For "did you mean", of options too. */
int rk_edit_distance(const char *a, const char *b);

/*
 * Lines of the same files with names that begin with prefix: xrun's options. The system's file comes first. where:
 * "file:line". Malformed files and lines are left to rk_conf_load.
 */
typedef void rk_conf_line_fn(void *arg, const char *where, const char *name, const char *value);
void rk_conf_others(const char *prefix, rk_conf_line_fn *take, void *arg);

/* The only place that reads the environment. */
const char *rk_env(const char *name);

/*
 * Is this process a rank of the xrun that set the XRUN_ variables? XRUN_JOB is its PMIx namespace. Ranks of
 * another launcher, started by a rank of xrun, inherit the variables but have another namespace.
 */
bool rk_env_is_of_xrun(void);

#endif
