/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c: see hosts.h. */
#include "collectives/hosts.h"

#include <stdlib.h>

struct rank_on {
    uint64_t host;
    int rank;
};

static int compare_ranks_on(const void *a, const void *b)
{
    const struct rank_on *x = a, *y = b;

    return x->host != y->host ? (x->host > y->host) - (x->host < y->host) : x->rank - y->rank;
}

/* host_of and n, of ranks sorted by host. */
static void number_hosts(struct rk_hosts *h, const struct rank_on *all, int size)
{
    int first = 0;

    for (int i = 0; i < size; i++) { /* first: lowest rank on the host */
        if (i > 0 && all[i].host != all[i - 1].host)
            first = i;
        h->host_of[all[i].rank] = all[first].rank;
    }
    for (int r = 0; r < size; r++)
        h->host_of[r] = h->host_of[r] == r ? h->n++ : h->host_of[h->host_of[r]];
}

struct rk_hosts *rk_hosts_new(const uint64_t *id, int size, int rank)
{
    struct rk_hosts *h = calloc(1, sizeof(*h) + (5 * (size_t)size + 1) * sizeof(int));
    struct rank_on *all = malloc((size_t)size * sizeof(*all));

    if (!h || !all) {
        free(h);
        free(all);
        return NULL;
    }
    h->at = (int *)(h + 1);
    h->ranks = h->at + size + 1;
    h->host_of = h->ranks + size;
    h->leaders = h->host_of + size;
    h->lane = h->leaders + size;
    for (int r = 0; r < size; r++)
        all[r] = (struct rank_on){id[r], r};
    qsort(all, (size_t)size, sizeof(*all), compare_ranks_on);
    number_hosts(h, all, size);
    free(all);
    h->host = h->host_of[rank];
    for (int r = 0; r < size; r++)
        h->at[h->host_of[r] + 1]++;
    h->per_host = size;
    for (int i = 0; i < h->n; i++) {
        if (h->at[i + 1] < h->per_host)
            h->per_host = h->at[i + 1];
        h->at[i + 1] += h->at[i];
        h->leaders[i] = h->at[i]; /* where its next rank goes, until all are placed */
    }
    for (int r = 0; r < size; r++) {
        int place = h->leaders[h->host_of[r]]++;

        h->ranks[place] = r;
        if (r == rank)
            h->local = place - h->at[h->host];
    }
    for (int i = 0; i < h->n; i++) {
        h->leaders[i] = h->ranks[h->at[i]];
        if (h->local < h->per_host)
            h->lane[i] = h->ranks[h->at[i] + h->local];
    }
    return h;
}
