/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mtx.h: read a sparse matrix in Matrix Market coordinate format.
 *
 * Takes real, integer and pattern (every value 1) fields, general and
 * symmetric storage. Strict: what the format does not allow is refused with
 * the file, the line and the reason, never repaired.
 */
#ifndef MTX_H
#define MTX_H

#include <stddef.h>
#include <stdint.h>

/* Compressed rows: row i has the entries ptr[i] to ptr[i + 1] - 1, columns ascending. Symmetric
 * files are expanded to both triangles. */
struct mtx {
    int64_t rows, cols;
    int64_t *ptr; /* rows + 1 */
    int64_t *col;
    double *val;
};

/* What a caller can demand of the matrix. */
enum {
    MTX_SYMMETRIC = 1, /* by its header, or because every entry has an equal partner */
    MTX_DIAGONAL = 2   /* every diagonal entry is stored and positive */
};

/* 0, or -1 with a message "file:line: what is wrong" in err; *out is then untouched. */
int mtx_read(const char *path, unsigned need, struct mtx *out, char *err, size_t errlen);

/* Free what mtx_read made; an all-zero struct is fine. */
void mtx_free(struct mtx *m);

#endif
