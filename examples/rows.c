/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c: spread the rows of a sparse matrix over the ranks of a team. See rows.h. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_PTR = 1, TAG_COL, TAG_VAL };

int rows_owner(const struct rows *a, int64_t row)
{
    int lo = 0, hi = rank_team_size(a->team);

    /* The last rank that starts at or before this row: the ranks before it that start at the
     * same row own nothing. */
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;

        if (a->first[mid] <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Rank k starts at the first row with at least k shares of the entries before it. */
static void partition(const struct mtx *whole, int size, int64_t *first)
{
    int64_t entries = whole->ptr[whole->rows], row = 0;

    for (int k = 0; k < size; k++) {
        int64_t before = entries / size * k + entries % size * k / size;

        while (row < whole->rows && whole->ptr[row] < before)
            row++;
        first[k] = row;
    }
    first[size] = whole->rows;
}

/* On rank 0: send each rank its rows, and keep mine. All sends are in flight at once. */
static rank_status_t send_parts(const struct mtx *whole, const struct rows *a)
{
    int size = rank_team_size(a->team), n = 0;
    rank_request_t *reqs = calloc(3 * (size_t)size, sizeof(*reqs));
    rank_status_t st = reqs ? RANK_OK : RANK_ERR_NO_MEMORY, st2;

    for (int k = 1; k < size && !st; k++) {
        int64_t row = a->first[k], count = a->first[k + 1] - row;
        int64_t begin = whole->ptr[row], entries = whole->ptr[row + count] - begin;

        st = rank_isend(whole->ptr + row, count + 1, RANK_INT64, k, TAG_PTR, a->team, &reqs[n++]);
        if (!st)
            st = rank_isend(whole->col + begin, entries, RANK_INT64, k, TAG_COL, a->team,
                            &reqs[n++]);
        if (!st)
            st = rank_isend(whole->val + begin, entries, RANK_F64, k, TAG_VAL, a->team,
                            &reqs[n++]);
    }
    st2 = reqs ? rank_waitall(n, reqs, NULL) : RANK_OK;
    free(reqs);
    return st ? st : st2;
}

/* On every rank: fill ptr, col and val, from rank 0's copy or from messages. */
static rank_status_t take_part(const struct mtx *whole, struct rows *a)
{
    int64_t begin, entries;
    rank_status_t st = RANK_OK;

    a->ptr = malloc((size_t)(a->mine + 1) * sizeof(*a->ptr));
    if (!a->ptr)
        return RANK_ERR_NO_MEMORY;
    if (whole)
        memcpy(a->ptr, whole->ptr, (size_t)(a->mine + 1) * sizeof(*a->ptr));
    else
        st = rank_recv(a->ptr, a->mine + 1, RANK_INT64, 0, TAG_PTR, a->team, NULL);
    if (st)
        return st;
    begin = a->ptr[0];
    entries = a->ptr[a->mine] - begin;
    for (int64_t i = 0; i <= a->mine; i++)
        a->ptr[i] -= begin;
    a->col = malloc((size_t)(entries + 1) * sizeof(*a->col));
    a->val = malloc((size_t)(entries + 1) * sizeof(*a->val));
    if (!a->col || !a->val)
        return RANK_ERR_NO_MEMORY;
    if (whole) {
        memcpy(a->col, whole->col, (size_t)entries * sizeof(*a->col));
        memcpy(a->val, whole->val, (size_t)entries * sizeof(*a->val));
        return RANK_OK;
    }
    st = rank_recv(a->col, entries, RANK_INT64, 0, TAG_COL, a->team, NULL);
    return st ? st : rank_recv(a->val, entries, RANK_F64, 0, TAG_VAL, a->team, NULL);
}

rank_status_t rows_spread(const struct mtx *whole, rank_team_t team, struct rows *out)
{
    struct rows a = {.team = team};
    int me = rank_team_rank(team), size = rank_team_size(team);
    int64_t sizes[2] = {0, 0};
    rank_status_t st;

    a.first = calloc((size_t)size + 1, sizeof(*a.first));
    if (!a.first)
        return RANK_ERR_NO_MEMORY;
    if (whole) {
        sizes[0] = whole->rows;
        sizes[1] = whole->ptr[whole->rows];
        partition(whole, size, a.first);
    }
    st = rank_bcast(sizes, 2, RANK_INT64, 0, team);
    if (!st)
        st = rank_bcast(a.first, size + 1, RANK_INT64, 0, team);
    a.n = sizes[0];
    a.entries = sizes[1];
    a.mine = a.first[me + 1] - a.first[me];
    if (!st)
        st = take_part(whole, &a);
    if (!st && whole)
        st = send_parts(whole, &a);
    if (st)
        rows_free(&a);
    else
        *out = a;
    return st;
}

void rows_free(struct rows *a)
{
    free(a->first);
    free(a->ptr);
    free(a->col);
    free(a->val);
    *a = (struct rows){0};
}
