/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c: print rules and algorithms, for rankinfo --coll. */
#include "collectives/coll.h"
#include "collectives/select.h"

static const char *nodes_name(enum rk_nodes n)
{
    return n == RK_NODES_ONE ? "one" : n == RK_NODES_MANY ? "many" : "any";
}

static void print_bytes(char *out, size_t len, size_t bytes)
{
    if (bytes == RK_ANY_BYTES)
        snprintf(out, len, "any");
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(out, len, "%zuK", bytes / 1024);
    else
        snprintf(out, len, "%zu", bytes);
}

void rk_coll_print_table(FILE *out)
{
    fprintf(out, "Selection: the first rule that matches and has a fitting algorithm; else the one of least estimated time.\n"
                 "Bytes are of a block: what one rank contributes or gets.\n\n"
                 "%-15s %-5s %-6s %-6s %-7s %-19s %s\n",
            "collective", "mem", "nodes", "ranks", "bytes", "algorithm", "reason");
    fprintf(out, "%-15s %-5s %-6s %-6s %-7s\n", "", "", "", "<=", "<=");
    for (int i = 0; i < rk_nrules; i++) {
        const struct rk_rule *r = &rk_rules[i];
        char ranks[16] = "any", bytes[24];

        if (r->ranks_max)
            snprintf(ranks, sizeof(ranks), "%d", r->ranks_max);
        print_bytes(bytes, sizeof(bytes), r->bytes_max);
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

        if (a->needs & RK_NEEDS_ARENA) {
            snprintf(small, sizeof(small), "%.1f / -", a->cost(&rk_cost_models[true], 8, 8));
            snprintf(large, sizeof(large), "-");
        } else {
            snprintf(small, sizeof(small), "%.1f / %.1f", a->cost(&rk_cost_models[true], 8, 8),
                     a->cost(&rk_cost_models[false], 64, 8));
            snprintf(large, sizeof(large), "%.0f / %.0f", a->cost(&rk_cost_models[true], 8, 1 << 20),
                     a->cost(&rk_cost_models[false], 64, 1 << 20));
        }
        fprintf(out, "%-15s %-19s %-17s %-21s %-13s %s\n", rk_coll_name[a->kind], a->name, small,
                large,
                a->needs & RK_NEEDS_POW2    ? "2^k ranks"
                : a->needs & RK_NEEDS_ARENA ? "one node"
                                            : "",
                a->why);
    }
}
