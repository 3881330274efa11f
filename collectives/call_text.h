/* SPDX-License-Identifier: BSD-3-Clause */
/* call_text.h: compare two ranks' calls, and format messages about calls. */
#ifndef RK_COLLECTIVES_CALL_TEXT_H
#define RK_COLLECTIVES_CALL_TEXT_H

#include "collectives/algo.h"

enum { RK_CALL_TEXT = 320 };

/*
 * The argument in which calls differ; the first one counts. EARLIER: only an earlier call differed. GONE: a rank has
 * completed the call, another one waits for it there.
 */
enum rk_call_arg {
    RK_ARG_NONE,
    RK_ARG_KIND,
    RK_ARG_FORM,
    RK_ARG_COUNT,
    RK_ARG_DTYPE,
    RK_ARG_OP,
    RK_ARG_ROOT,
    RK_ARG_LIST,
    RK_ARG_EARLIER,
    RK_ARG_GONE,
    RK_CALL_ARGS
};

/* A difference, which is sent to other ranks. Two ranks of the team, and the argument's value there. */
struct rk_call_diff {
    uint32_t arg;  /* enum rk_call_arg */
    uint32_t kind; /* enum rk_coll_kind; RK_COLL_COUNT: not the same */
    int32_t rank[2];
    int64_t value[2];
};

/* Find the first difference between the calls of ranks a and b, which have the same number. Returns false if there is none. */
bool rk_call_compare(const struct rk_call_desc *a, int rank_a, const struct rk_call_desc *b, int rank_b, struct rk_call_diff *out);

/* "allreduce"; kind may be of another process. */
const char *rk_coll_kind_name(uint64_t kind);
/* "allreduce #1 on world". kind RK_COLL_COUNT: "collective #1 on world". */
void rk_call_text(const struct rank_team *team, unsigned kind, uint64_t number, char *out, size_t len);
/* The same, with what differs between the ranks in the two lists. */
void rk_call_diff_text(const struct rank_team *team, uint64_t number, const struct rk_call_diff *diff, const char *ranks_a,
                       const char *ranks_b, char *out, size_t len);

#endif
