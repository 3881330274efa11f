/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * duplicate_hosts.c: find names of one machine. See duplicate_hosts.h.
 */
#include "launcher/map/duplicate_hosts.h"
#include "launcher/util/shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    uint64_t machine;
    uint32_t host;
};

/* Compare by machine, then by the user's order. */
static int duplicate_hosts_compare(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->machine != y->machine)
        return x->machine < y->machine ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

uint32_t xr_duplicate_hosts_find(struct xr_plan *p, char *line, size_t len)
{
    struct seen *all = calloc(p->hosts.n, sizeof(*all));
    uint32_t duplicates = 0, last;

    for (uint32_t i = 0; all && i < p->hosts.n; i++)
        all[i] = (struct seen){p->known[i].machine, i};
    if (all)
        qsort(all, p->hosts.n, sizeof(*all), duplicate_hosts_compare);
    for (uint32_t i = 0; all && i < p->hosts.n; i = last) {
        for (last = i + 1; last < p->hosts.n && all[i].machine && all[last].machine == all[i].machine;)
            last++;
        for (uint32_t k = i; k < last; k++)
            p->known[all[k].host].names = last - i;
        if (last - i > 1 && duplicates == 0)
            snprintf(line, len, "%s and %s are one host", p->hosts.host[all[i].host].name,
                     p->hosts.host[all[i + 1].host].name);
        duplicates += last - i - 1;
    }
    free(all);
    if (duplicates > 1)
        snprintf(line + strlen(line), len - strlen(line), " (and there are %u more such names)", duplicates - 1);
    return duplicates;
}

bool xr_duplicate_hosts_allowed(const struct xr_plan *p)
{
    return p->where->agent && !xr_shell_words_run_program(p->where->agent, "ssh");
}
