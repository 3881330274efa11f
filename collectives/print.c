/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c: print rules, algorithms and choices, for rankinfo --coll. */
#include "collectives/coll.h"
#include "collectives/select.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <string.h>

static const char *nodes_name(enum rk_nodes n)
{
    return n == RK_NODES_ONE ? "one" : n == RK_NODES_MANY ? "many" : "any";
}

static void print_bytes(char *out, size_t len, size_t bytes)
{
    if (bytes == RK_ANY_BYTES)
        snprintf(out, len, "any");
    else if (bytes >= 1 << 30 && bytes % (1 << 30) == 0)
        snprintf(out, len, "%zuG", bytes >> 30);
    else if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        snprintf(out, len, "%zuM", bytes >> 20);
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(out, len, "%zuK", bytes / 1024);
    else
        snprintf(out, len, "%zu", bytes);
}

void rk_coll_print_table(FILE *out)
{
    fprintf(out, "Selection: the first rule that matches and has a fitting algorithm of at most twice the least estimated time;\n"
                 "else the one of least estimated time. rankinfo --coll NAME --ranks N --nodes M shows what comes of it.\n"
                 "Bytes are of a block: what one rank contributes or gets.\n\n"
                 "%-15s %-5s %-6s %-6s %-7s %-19s %s\n",
            "collective", "mem", "nodes", "ranks", "bytes", "algorithm", "reason");
    fprintf(out, "%-15s %-5s %-6s %-6s %-7s\n", "", "", "", "<=", "<=");
    for (int i = 0; i < rk_nrules; i++) {
        const struct rk_rule *r = &rk_rules[i];
        char ranks[16] = "any", bytes[24];

        if (r->ranks_max)
            snprintf(ranks, sizeof(ranks), "%d", r->ranks_max);
        print_bytes(bytes, sizeof(bytes) - 1, r->bytes_min ? r->bytes_min : r->bytes_max);
        if (r->bytes_min)
            strcat(bytes, "-");
        fprintf(out, "%-15s %-5s %-6s %-6s %-7s %-19s %s\n", rk_coll_name[r->kind],
                r->mem == RANK_MEM_HOST ? "host" : "cuda", nodes_name(r->nodes), ranks, bytes,
                r->algo, r->why);
    }
    fprintf(out, "\nAlgorithms, for RANK_COLL=collective:algorithm,...; estimates in us for blocks of "
                 "8 B and 1 MiB,\n8 ranks on a node / 64 on a network:\n\n%-15s %-19s %-17s %-21s %-13s %s\n",
            "collective", "algorithm", "8 B", "1 MiB", "needs", "because");
    for (int i = 0; i < rk_nalgos; i++) {
        const struct rk_algo *a = &rk_algos[i];
        char small[40], large[40];

        if (a->needs & (RK_NEEDS_ARENA | RK_NEEDS_CELLS)) {
            snprintf(small, sizeof(small), "%.1f / -", a->cost(&rk_cost_models[true], 8, 8));
            if (a->needs & RK_NEEDS_CELLS)
                snprintf(large, sizeof(large), "%.0f / -", a->cost(&rk_cost_models[true], 8, 1 << 20));
            else
                snprintf(large, sizeof(large), "-");
        } else {
            snprintf(small, sizeof(small), "%.1f / %.1f", a->cost(&rk_cost_models[true], 8, 8),
                     a->cost(&rk_cost_models[false], 64, 8));
            snprintf(large, sizeof(large), "%.0f / %.0f", a->cost(&rk_cost_models[true], 8, 1 << 20),
                     a->cost(&rk_cost_models[false], 64, 1 << 20));
        }
        fprintf(out, "%-15s %-19s %-17s %-21s %-13s %s\n", rk_coll_name[a->kind], a->name, small,
                large,
                a->needs & RK_NEEDS_POW2          ? "2^k ranks"
                : a->needs & (RK_NEEDS_ARENA | RK_NEEDS_CELLS) ? "one node"
                : a->needs & RK_NEEDS_COMMUTATIVE ? "commutative"
                                                  : "",
                a->why);
    }
}

/* ------------------------------------------------------------------- one collective */

/* Blocks above this are not listed. */
enum { CHOICE_BITS = 40 };

struct choice {
    const struct rk_algo *algo;
    const char *why;
    int rule;
};

static struct choice choice_at(const struct rk_forced *forced, struct rk_case *c, size_t bytes, rk_passed_fn *passed,
                               void *arg)
{
    struct choice got;

    c->bytes = bytes;
    c->count = bytes ? (int64_t)bytes : 1;
    got.algo = rk_select_explain(forced, c, &got.why, &got.rule, passed, arg);
    return got;
}

static bool choice_is(const struct choice *a, const struct choice *b)
{
    return a->algo == b->algo && a->rule == b->rule && a->why == b->why;
}

/* The least block from at upwards behind which a rule or a word of RANK_COLL ends; else end. */
static size_t choice_edge(const struct rk_forced *forced, enum rk_coll_kind kind, size_t at, size_t end)
{
    for (int i = 0; i < rk_nrules; i++) {
        if (rk_rules[i].kind == kind && rk_rules[i].bytes_max >= at && rk_rules[i].bytes_max < end)
            end = rk_rules[i].bytes_max;
        if (rk_rules[i].kind == kind && rk_rules[i].bytes_min > at && rk_rules[i].bytes_min - 1 < end)
            end = rk_rules[i].bytes_min - 1;
    }
    for (const struct rk_pick *p = forced->pick; p < forced->pick + forced->npicks; p++) {
        if (p->algo->kind == kind && p->from > at && p->from - 1 < end)
            end = p->from - 1;
        if (p->algo->kind == kind && p->to >= at && p->to < end)
            end = p->to;
    }
    return end;
}

/* Last block in [first, end] with the choice of first: in steps of an eighth, then halved down to a byte. */
static size_t choice_end(const struct rk_forced *forced, struct rk_case *c, size_t first, size_t end)
{
    struct choice here = choice_at(forced, c, first, NULL, NULL), next;
    size_t last = first, other = first, edge;

    if (first == end)
        return end;
    do {
        last = other;
        other += other / 8 + 1;
        edge = choice_edge(forced, c->kind, last + 1, end);
        other = other < edge ? other : edge;
        next = choice_at(forced, c, other, NULL, NULL);
    } while (choice_is(&next, &here) && other < end);
    if (choice_is(&next, &here))
        return end;
    while (other - last > 1) {
        size_t mid = last + (other - last) / 2;

        next = choice_at(forced, c, mid, NULL, NULL);
        if (choice_is(&next, &here))
            last = mid;
        else
            other = mid;
    }
    return last;
}

static void print_passed(void *arg, int rule, const struct rk_algo *algo, const char *why)
{
    fprintf(arg, "%-24s passed over: %s %s: %s\n", "", rule < 0 ? "RANK_COLL," : "the rule for", algo->name, why);
}

static void print_range(FILE *out, const struct rk_case *c, size_t first, size_t last, const char *name, const char *before, const char *why)
{
    char from[24], to[24], range[56];

    print_bytes(from, sizeof(from), first);
    print_bytes(to, sizeof(to), last);
    snprintf(range, sizeof(range), "%s-%s", from, last == (size_t)1 << CHOICE_BITS ? "" : to);
    fprintf(out, "%-24s %-19s %s%s\n", last ? range : c->kind == RK_COLL_BARRIER ? "" : "any", name, before, why);
}

/*
 * Print the choice for each range of blocks; one for all, if not all ranks have the lengths. staged: of device buffers, which
 * algorithms of the host reach by copies.
 */
static void print_choices(FILE *out, const struct rk_forced *forced, struct rk_case *c, bool staged, bool passed)
{
    bool any = c->kind == RK_COLL_BARRIER || rk_coll_has_own_counts(c->kind);
    size_t end = any ? 0 : (size_t)1 << CHOICE_BITS;

    for (size_t first = !any; first <= end;) {
        struct choice got = choice_at(forced, c, first, NULL, NULL);
        size_t last = choice_end(forced, c, first, end);

        print_range(out, c, first, last, got.algo->name,
                    staged && !(got.algo->needs & RK_NEEDS_DEVICE) ? "through the host: " : got.rule < 0 ? "" : "rule: ", got.why);
        if (passed)
            choice_at(forced, c, first, print_passed, out);
        first = last + 1;
    }
}

rank_status_t rk_coll_print_choice(FILE *out, const char *collective, int ranks, int nodes, rank_mem_kind_t mem)
{
    static const char *const forms[] = {"blocking", "nonblocking", "persistent"};
    bool arena = nodes == 1 && rk_conf.coll_shm;
    struct rk_case c = {.mem = nodes == 1 ? mem : RANK_MEM_HOST, .one_node = nodes == 1, .cells = arena, .size = ranks,
                        .nodes = nodes, .per_node = ranks / nodes};
    struct rk_forced forced;
    int kind = 0;

    while (kind < RK_COLL_COUNT && strcmp(rk_coll_name[kind], collective) != 0)
        kind++;
    if (kind == RK_COLL_COUNT) {
        rk_error("there is no collective '%s'; rankinfo --coll lists them", collective);
        return RANK_ERR_ARG;
    }
    if (rk_forced_parse(rk_conf.coll, &forced))
        return RANK_ERR_CONFIG;
    c.kind = (enum rk_coll_kind)kind;
    for (int f = 0; f < (int)RK_ARRAY_LEN(forms); f++) {
        c.arena = arena && f == 0;
        c.persistent = f == 2;
        fprintf(out, "%s%s, %s, %d ranks on %d node%s%s, by bytes of a block\n\n%-24s %-19s %s\n", f ? "\n" : "", collective,
                forms[f], ranks, nodes, nodes == 1 ? "" : "s", mem == RANK_MEM_HOST ? "" : ", device buffers", "bytes", "algorithm", "reason");
        print_choices(out, &forced, &c, mem != RANK_MEM_HOST, f == 0);
    }
    return RANK_OK;
}
