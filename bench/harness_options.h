/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_options.h: parse the command line, after nccl-tests. */
#ifndef RK_BENCH_HARNESS_OPTIONS_H
#define RK_BENCH_HARNESS_OPTIONS_H

#include "bench/backend.h"
#include "lib/base/conf.h"

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_AUTO = -1 };                                  /* of every int64_t below */
enum { BENCH_RANK0, BENCH_AVG, BENCH_MIN, BENCH_MAX };     /* average */
enum { BENCH_MAX_NAMES = 64 };

struct bench_opts {
    int64_t min, max, step, factor; /* bytes, and the way from min to max */
    int64_t iters, warmup;          /* auto: by time */
    int64_t check;                  /* checked iterations a size */
    int64_t time;                   /* ns of measuring for each size, where iters is auto */
    int64_t window;                 /* messages in flight in a bandwidth test */
    int64_t depth;                  /* messages outstanding, as --tx-depth gives; auto: by windows */
    bool both;                      /* both ranks send, put or get at once */
    bool gbits;                     /* bandwidths are printed in Gb/s */
    const char *limit_bw_text, *limit_lat_text;
    double limit_bw, limit_lat;     /* GB/s and us; 0: none */
    int dtype, op;                  /* by index; BENCH_DTYPES, BENCH_OPS: all */
    int64_t root;                   /* auto: all */
    int average;
    const char *mem_text, *target_text; /* as given */
    struct be_mem mem[2];           /* of what is sent, and received */
    struct be_mem target;           /* of windows; not if target_auto */
    bool target_auto;               /* a window lies where --mem has the data */
    int64_t blocks, block;          /* of a list, and bytes of each */
    int64_t pairs;                  /* of mrate; auto: half of the ranks */
    bool untouched, hist;
    const char *json, *csv; /* "": none */
    const char *listen, *connect; /* addresses; "": under a launcher */
    bool help, list;
    const char *names[BENCH_MAX_NAMES]; /* benchmarks, as given */
    int names_n;
};

/* The words of -d and -o, in the order of rank.h, with "all" at the end. */
extern const char bench_dtype_words[], bench_op_words[];
/* The handles of their places. */
rank_dtype_t bench_dtype(int i);
rank_op_t bench_op(int i);
/* Copy word i of such a list. */
const char *bench_word(const char *words, int i, char *out, size_t outlen);

/* Returns 0, or -1 with one line in err that gives the remedy. Frees nothing: free with the next. */
int bench_opts_parse(struct bench_opts *opts, int argc, char **argv, char *err, size_t errlen);
void bench_opts_free(struct bench_opts *opts);
/* Is a buffer or a window to lie in a device's memory, or managed by its driver? */
bool bench_opts_need_device(const struct bench_opts *opts);

/* The options for --help. */
void bench_opts_print(FILE *out);

/* The size after that one: by factor, or by step where step is not 0; -1: it would be more than max. */
int64_t bench_next_size(int64_t size, int64_t max, int64_t step, int64_t factor);

#endif
