/* SPDX-License-Identifier: BSD-3-Clause */
/* halo.c: plan and exchange just the needed entries. See halo.h. */
#include "halo.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_INDEX = 11, TAG_VALUE };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The columns outside my rows that my entries name: sorted, each once. */
static rank_status_t find_ghosts(const struct rows *a, int64_t lo, int64_t hi, int64_t **ghosts,
                                 int64_t *count)
{
    int64_t entries = a->ptr[a->mine], n = 0, unique = 0;
    int64_t *list = malloc((size_t)(entries + 1) * sizeof(*list));

    if (!list)
        return RANK_ERR_NO_MEMORY;
    for (int64_t i = 0; i < entries; i++) {
        if (a->col[i] < lo || a->col[i] >= hi)
            list[n++] = a->col[i];
    }
    qsort(list, (size_t)n, sizeof(*list), by_value);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || list[i] != list[i - 1])
            list[unique++] = list[i];
    }
    *ghosts = list;
    *count = unique;
    return RANK_OK;
}

/* From counts for each rank to the list of those with more than none. */
static rank_status_t list_peers(const int64_t *counts, int size, struct halo_peer **out, int *n,
                                int64_t *total)
{
    struct halo_peer *list = calloc((size_t)size, sizeof(*list));
    int64_t offset = 0;
    int k = 0;

    if (!list)
        return RANK_ERR_NO_MEMORY;
    for (int rank = 0; rank < size; rank++) {
        if (counts[rank] == 0)
            continue;
        list[k++] = (struct halo_peer){rank, counts[rank], offset};
        offset += counts[rank];
    }
    *out = list;
    *n = k;
    *total = offset;
    return RANK_OK;
}

/* Send each owner the rows of it that we want; receive what others want of ours. */
static rank_status_t swap_indices(const struct rows *a, struct halo *h, const int64_t *ghosts)
{
    int64_t lo = a->first[rank_team_rank(a->team)];
    int64_t total = h->nto ? h->to[h->nto - 1].offset + h->to[h->nto - 1].count : 0;
    rank_status_t st = RANK_OK, st2;
    int n = 0;

    h->send_index = malloc((size_t)(total + 1) * sizeof(*h->send_index));
    h->send_value = malloc((size_t)(total + 1) * sizeof(*h->send_value));
    h->reqs = calloc((size_t)(h->nfrom + h->nto + 1), sizeof(rank_request_t));
    if (!h->send_index || !h->send_value || !h->reqs)
        return RANK_ERR_NO_MEMORY;
    for (int k = 0; k < h->nto && !st; k++)
        st = rank_irecv(h->send_index + h->to[k].offset, h->to[k].count, RANK_INT64,
                        h->to[k].rank, TAG_INDEX, a->team, &h->reqs[n++]);
    for (int k = 0; k < h->nfrom && !st; k++)
        st = rank_isend(ghosts + h->from[k].offset, h->from[k].count, RANK_INT64, h->from[k].rank,
                        TAG_INDEX, a->team, &h->reqs[n++]);
    st2 = rank_waitall(n, h->reqs, NULL);
    for (int64_t i = 0; i < total; i++)
        h->send_index[i] -= lo;
    return st ? st : st2;
}

/* Global columns to places in a local vector. */
static void renumber(struct rows *a, int64_t lo, int64_t hi, const int64_t *ghosts, int64_t count)
{
    for (int64_t i = 0; i < a->ptr[a->mine]; i++) {
        if (a->col[i] >= lo && a->col[i] < hi) {
            a->col[i] -= lo;
        } else {
            const int64_t *at =
                bsearch(&a->col[i], ghosts, (size_t)count, sizeof(*ghosts), by_value);

            a->col[i] = a->mine + (at - ghosts);
        }
    }
}

static rank_status_t plan(struct rows *a, struct halo *h, const int64_t *ghosts, int64_t *counts)
{
    int size = rank_team_size(a->team);
    int64_t *want = counts, *wanted = counts + size, total;
    rank_status_t st;

    /* Sorted columns lie owner by owner, so one pass counts them. */
    for (int64_t i = 0; i < h->ghosts; i++)
        want[rows_owner(a, ghosts[i])]++;
    st = rank_alltoall(want, wanted, 1, RANK_INT64, a->team);
    if (!st)
        st = list_peers(want, size, &h->from, &h->nfrom, &total);
    if (!st)
        st = list_peers(wanted, size, &h->to, &h->nto, &total);
    return st ? st : swap_indices(a, h, ghosts);
}

rank_status_t halo_plan(struct rows *a, struct halo *out)
{
    int me = rank_team_rank(a->team);
    int64_t lo = a->first[me], hi = a->first[me + 1];
    struct halo h = {.team = a->team, .mine = a->mine};
    int64_t *ghosts = NULL, *counts = NULL;
    rank_status_t st = find_ghosts(a, lo, hi, &ghosts, &h.ghosts);

    if (!st) {
        counts = calloc(2 * (size_t)rank_team_size(a->team), sizeof(*counts));
        st = counts ? plan(a, &h, ghosts, counts) : RANK_ERR_NO_MEMORY;
    }
    if (!st) {
        renumber(a, lo, hi, ghosts, h.ghosts);
        *out = h;
    } else {
        halo_free(&h);
    }
    free(ghosts);
    free(counts);
    return st;
}

rank_status_t halo_exchange(struct halo *h, double *x)
{
    rank_status_t st = RANK_OK, st2;
    int n = 0;

    for (int k = 0; k < h->nfrom && !st; k++)
        st = rank_irecv(x + h->mine + h->from[k].offset, h->from[k].count, RANK_F64,
                        h->from[k].rank, TAG_VALUE, h->team, &h->reqs[n++]);
    for (int k = 0; k < h->nto && !st; k++) {
        const struct halo_peer *to = &h->to[k];

        for (int64_t i = to->offset; i < to->offset + to->count; i++)
            h->send_value[i] = x[h->send_index[i]];
        st = rank_isend(h->send_value + to->offset, to->count, RANK_F64, to->rank, TAG_VALUE,
                        h->team, &h->reqs[n++]);
    }
    st2 = rank_waitall(n, h->reqs, NULL);
    return st ? st : st2;
}

void halo_free(struct halo *h)
{
    free(h->from);
    free(h->to);
    free(h->send_index);
    free(h->send_value);
    free(h->reqs);
    *h = (struct halo){0};
}
