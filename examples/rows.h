/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows.h: spread the rows of a sparse matrix over the ranks of a team.
 *
 * Each rank owns a run of consecutive rows, chosen so that all have about the
 * same number of entries; a rank may own none. Vectors are spread likewise.
 */
#ifndef ROWS_H
#define ROWS_H

#include "mtx.h"

#include <rank.h>

struct rows {
    rank_team_t team;
    int64_t n;       /* rows (and columns) of the whole matrix */
    int64_t entries; /* of the whole matrix */
    int64_t *first;  /* rank k owns rows first[k] to first[k + 1] - 1 */
    int64_t mine;    /* rows that this rank owns */
    int64_t *ptr;    /* its part, as in struct mtx, counted from its first row */
    int64_t *col;
    double *val;
};

/* The rank that owns a row. */
int rows_owner(const struct rows *a, int64_t row);

/* Spread the matrix that rank 0 has; whole is NULL on the others. Collective. */
rank_status_t rows_spread(const struct mtx *whole, rank_team_t team, struct rows *out);

/* Free what rows_spread made; an all-zero struct is fine. */
void rows_free(struct rows *a);

#endif
