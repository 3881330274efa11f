/* SPDX-License-Identifier: BSD-3-Clause */
/* call_text.c: compare two ranks' calls, and format messages about calls. */
#include "collectives/call_text.h"
#include "collectives/op/op_name.h"
#include "lib/base/status_page.h"

#include <stdio.h>

static const char *const arg_name[RK_CALL_ARGS] = {
    [RK_ARG_KIND] = "the collective", [RK_ARG_FORM] = "the form", [RK_ARG_COUNT] = "count", [RK_ARG_DTYPE] = "dtype",
    [RK_ARG_OP] = "op", [RK_ARG_ROOT] = "root", [RK_ARG_LIST] = "the list of counts"};

static const char *const form_name[] = {"unknown", "blocking", "nonblocking", "persistent"};

const char *rk_coll_kind_name(uint64_t kind)
{
    return kind < RK_COLL_COUNT ? rk_coll_name[kind] : "collective";
}

bool rk_call_compare(const struct rk_call_desc *a, int rank_a, const struct rk_call_desc *b, int rank_b, struct rk_call_diff *out)
{
    const int64_t values[RK_CALL_ARGS][2] = {
        [RK_ARG_KIND] = {a->kind, b->kind}, [RK_ARG_FORM] = {a->form, b->form}, [RK_ARG_COUNT] = {a->count, b->count},
        [RK_ARG_DTYPE] = {(int64_t)a->dtype, (int64_t)b->dtype}, [RK_ARG_OP] = {(int64_t)a->op, (int64_t)b->op},
        [RK_ARG_ROOT] = {a->root, b->root}, [RK_ARG_LIST] = {(int64_t)a->counts, (int64_t)b->counts}};

    for (uint32_t i = 0; i < RK_CALL_ARGS; i++) {
        if (values[i][0] == values[i][1])
            continue;
        *out = (struct rk_call_diff){i, a->kind == b->kind ? a->kind : RK_COLL_COUNT, {rank_a, rank_b},
                                     {values[i][0], values[i][1]}};
        return true;
    }
    return false;
}

/* Values of other ranks may be anything. */
static void value_text(const struct rk_call_diff *diff, int i, char *out, size_t len)
{
    int64_t value = diff->value[i];

    if (diff->arg == RK_ARG_KIND)
        snprintf(out, len, "%s", rk_coll_kind_name((uint64_t)value));
    else if (diff->arg == RK_ARG_FORM)
        snprintf(out, len, "%s", form_name[value >= 0 && value <= RK_FORM_PERSISTENT ? value : 0]);
    else if (diff->arg == RK_ARG_DTYPE)
        rk_dtype_text((rank_dtype_t)value, out, len);
    else if (diff->arg == RK_ARG_OP)
        rk_op_text((rank_op_t)value, out, len);
    else if (diff->arg == RK_ARG_LIST)
        snprintf(out, len, "%s", i ? "another one" : "one");
    else
        snprintf(out, len, "%lld", (long long)value);
}

void rk_call_text(const struct rank_team *team, unsigned kind, uint64_t number, char *out, size_t len)
{
    char on[80];

    rk_board_team_text(team->id, (uint32_t)team->size, on, sizeof(on));
    snprintf(out, len, "%s #%llu on %s", rk_coll_kind_name(kind), (unsigned long long)number, on);
}

void rk_call_diff_text(const struct rank_team *team, uint64_t number, const struct rk_call_diff *diff, const char *ranks_a,
                       const char *ranks_b, char *out, size_t len)
{
    char call[RK_CALL_TEXT / 2], a[RK_OP_NAME], b[RK_OP_NAME];

    rk_call_text(team, diff->kind, number, call, sizeof(call));
    if (diff->arg == RK_ARG_GONE) {
        snprintf(out, len, "%s: rank %s waits for rank %s, which has completed another call", call, ranks_a, ranks_b);
        return;
    }
    if (diff->arg == RK_ARG_EARLIER) {
        snprintf(out, len, "%s: ranks %s and %s have made different calls before", call, ranks_a, ranks_b);
        return;
    }
    value_text(diff, 0, a, sizeof(a));
    value_text(diff, 1, b, sizeof(b));
    snprintf(out, len, "%s: %s is %s on rank %s and %s on rank %s", call, arg_name[diff->arg], a, ranks_a, b, ranks_b);
}
