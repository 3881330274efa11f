/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx.c: read a sparse matrix in Matrix Market coordinate format. See mtx.h. */
#include "mtx.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum field { REAL, INTEGER, PATTERN };

struct entry {
    int64_t row, col; /* from 0 */
    double val;
    long line;
};

struct reader {
    const char *path;
    FILE *file;
    char *text; /* the present line, without its end */
    size_t room;
    long line;
    enum field field;
    bool symmetric;
    int64_t rows, cols, promised; /* as in the size line */
    struct entry *entries;
    int64_t n, capacity;
    char *err;
    size_t errlen;
};

/* Note what is wrong with a line (0: with the file as a whole). Always returns -1. */
__attribute__((format(printf, 3, 4))) static int fail(struct reader *r, long line,
                                                      const char *fmt, ...)
{
    va_list args;
    int n;

    if (line)
        n = snprintf(r->err, r->errlen, "%s:%ld: ", r->path, line);
    else
        n = snprintf(r->err, r->errlen, "%s: ", r->path);
    if (n < 0 || (size_t)n >= r->errlen)
        return -1;
    va_start(args, fmt);
    vsnprintf(r->err + n, r->errlen - (size_t)n, fmt, args);
    va_end(args);
    return -1;
}

/* ------------------------------------------------------------------- lines */

/* The next line: 1, 0 at the end of the file, -1 on an error. */
static int next_line(struct reader *r)
{
    ssize_t len;

    errno = 0;
    len = getline(&r->text, &r->room, r->file);
    if (len < 0) {
        if (feof(r->file))
            return 0;
        return fail(r, 0, "cannot read: %s", strerror(errno));
    }
    r->line++;
    while (len && (r->text[len - 1] == '\n' || r->text[len - 1] == '\r'))
        r->text[--len] = '\0';
    if (strlen(r->text) != (size_t)len)
        return fail(r, r->line, "the line holds a NUL byte; this is not a text file");
    return 1;
}

static bool is_blank(const char *s)
{
    return s[strspn(s, " \t")] == '\0';
}

/* The next line that is neither blank nor a comment. */
static int next_data_line(struct reader *r)
{
    int got;

    do
        got = next_line(r);
    while (got == 1 && (r->text[0] == '%' || is_blank(r->text)));
    return got;
}

/* A whole number at *at, ended by a blank or the end of the line; moves *at past it. */
static bool take_int(char **at, int64_t *out)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(*at, &end, 10);
    if (end == *at || errno || (*end && !isspace((unsigned char)*end)))
        return false;
    *at = end;
    *out = v;
    return true;
}

static bool take_double(char **at, double *out)
{
    char *end;

    *out = strtod(*at, &end);
    if (end == *at || (*end && !isspace((unsigned char)*end)))
        return false;
    *at = end;
    return true;
}

/* ------------------------------------------------------------------ header */

/* %%MatrixMarket matrix coordinate FIELD SYMMETRY */
static int read_banner(struct reader *r)
{
    char word[5][32];
    int end = 0, got = next_line(r);

    if (got < 0)
        return -1;
    if (got == 0)
        return fail(r, 0, "the file is empty");
    if (sscanf(r->text, "%31s %31s %31s %31s %31s %n", word[0], word[1], word[2], word[3], word[4],
               &end) != 5 ||
        r->text[end] || strcasecmp(word[0], "%%MatrixMarket") != 0)
        return fail(r, r->line, "expected '%%%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
    if (strcasecmp(word[1], "matrix") != 0 || strcasecmp(word[2], "coordinate") != 0)
        return fail(r, r->line, "holds '%s %s'; only 'matrix coordinate' is read", word[1],
                    word[2]);
    if (strcasecmp(word[3], "real") == 0)
        r->field = REAL;
    else if (strcasecmp(word[3], "integer") == 0)
        r->field = INTEGER;
    else if (strcasecmp(word[3], "pattern") == 0)
        r->field = PATTERN;
    else
        return fail(r, r->line, "the field is '%s'; real, integer and pattern are read", word[3]);
    if (strcasecmp(word[4], "symmetric") == 0)
        r->symmetric = true;
    else if (strcasecmp(word[4], "general") != 0)
        return fail(r, r->line, "the symmetry is '%s'; general and symmetric are read", word[4]);
    return 0;
}

/* ROWS COLUMNS ENTRIES */
static int read_sizes(struct reader *r)
{
    int got = next_data_line(r);
    char *at = r->text;

    if (got < 0)
        return -1;
    if (got == 0)
        return fail(r, r->line, "the file ends before the line 'ROWS COLUMNS ENTRIES'");
    if (!take_int(&at, &r->rows) || !take_int(&at, &r->cols) || !take_int(&at, &r->promised) ||
        !is_blank(at))
        return fail(r, r->line, "expected three whole numbers: ROWS COLUMNS ENTRIES");
    if (r->rows < 1 || r->cols < 1 || r->promised < 0)
        return fail(r, r->line, "the sizes %" PRId64 " x %" PRId64 " with %" PRId64
                    " entries make no matrix", r->rows, r->cols, r->promised);
    if (r->rows > INT32_MAX || r->cols > INT32_MAX)
        return fail(r, r->line, "more than %d rows or columns are not supported", INT32_MAX);
    if (r->symmetric && r->rows != r->cols)
        return fail(r, r->line, "a symmetric matrix has as many rows as columns, not %" PRId64
                    " x %" PRId64, r->rows, r->cols);
    if (r->promised > r->rows * r->cols)
        return fail(r, r->line, "%" PRId64 " entries do not fit into %" PRId64 " x %" PRId64,
                    r->promised, r->rows, r->cols);
    return 0;
}

/* ----------------------------------------------------------------- entries */

static int add(struct reader *r, int64_t row, int64_t col, double val)
{
    if (r->n == r->capacity) {
        /* Grow with what is really there, not with what the header promises. */
        int64_t capacity = r->capacity ? 2 * r->capacity : 1024;
        struct entry *more = realloc(r->entries, (size_t)capacity * sizeof(*more));

        if (!more)
            return fail(r, r->line, "out of memory after %" PRId64 " entries", r->n);
        r->entries = more;
        r->capacity = capacity;
    }
    r->entries[r->n++] = (struct entry){row, col, val, r->line};
    return 0;
}

/* ROW COLUMN [VALUE], from 1 */
static int read_entry(struct reader *r)
{
    char *at = r->text;
    int64_t row, col, whole;
    double val = 1.0;
    bool ok = take_int(&at, &row) && take_int(&at, &col);

    if (ok && r->field == REAL) {
        ok = take_double(&at, &val);
    } else if (ok && r->field == INTEGER) {
        ok = take_int(&at, &whole);
        val = ok ? (double)whole : 0.0;
    }
    if (!ok || !is_blank(at))
        return fail(r, r->line, "expected 'ROW COLUMN%s', found '%.40s'",
                    r->field == PATTERN ? "" : r->field == REAL ? " VALUE" : " WHOLE-NUMBER",
                    r->text);
    if (row < 1 || row > r->rows)
        return fail(r, r->line, "row %" PRId64 " is out of range; the matrix has rows 1 to %"
                    PRId64, row, r->rows);
    if (col < 1 || col > r->cols)
        return fail(r, r->line, "column %" PRId64 " is out of range; the matrix has columns 1 to %"
                    PRId64, col, r->cols);
    if (!isfinite(val))
        return fail(r, r->line, "the value is not a finite number");
    if (r->symmetric && col > row)
        return fail(r, r->line, "entry (%" PRId64 ", %" PRId64 ") lies above the diagonal; a "
                    "symmetric file stores the lower triangle", row, col);
    if (add(r, row - 1, col - 1, val))
        return -1;
    return r->symmetric && row != col ? add(r, col - 1, row - 1, val) : 0;
}

static int read_entries(struct reader *r)
{
    for (int64_t i = 0; i < r->promised; i++) {
        int got = next_data_line(r);

        if (got < 0)
            return -1;
        if (got == 0)
            return fail(r, r->line, "the file ends after %" PRId64 " of %" PRId64 " entries; is "
                        "it truncated?", i, r->promised);
        if (read_entry(r))
            return -1;
    }
    switch (next_data_line(r)) {
    case 0:
        return 0;
    case 1:
        return fail(r, r->line, "more lines than the %" PRId64 " entries that the header promises",
                    r->promised);
    default:
        return -1;
    }
}

/* ------------------------------------------------------------------ checks */

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->col != y->col)
        return x->col < y->col ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static const struct entry *find(const struct reader *r, int64_t row, int64_t col)
{
    int64_t lo = 0, hi = r->n;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const struct entry *e = &r->entries[mid];

        if (e->row == row && e->col == col)
            return e;
        if (e->row < row || (e->row == row && e->col < col))
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static int check_twice(struct reader *r)
{
    for (int64_t i = 1; i < r->n; i++) {
        const struct entry *a = &r->entries[i - 1], *b = &r->entries[i];

        if (a->row == b->row && a->col == b->col)
            return fail(r, b->line, "entry (%" PRId64 ", %" PRId64 ") was already given on line "
                        "%ld", b->row + 1, b->col + 1, a->line);
    }
    return 0;
}

static int check_symmetric(struct reader *r)
{
    if (r->rows != r->cols)
        return fail(r, 0, "the matrix is not symmetric: it has %" PRId64 " rows and %" PRId64
                    " columns", r->rows, r->cols);
    for (int64_t i = 0; i < r->n; i++) {
        const struct entry *e = &r->entries[i], *t = find(r, e->col, e->row);

        if (!t)
            return fail(r, e->line, "the matrix is not symmetric: entry (%" PRId64 ", %" PRId64
                        ") has no partner at (%" PRId64 ", %" PRId64 ")", e->row + 1, e->col + 1,
                        e->col + 1, e->row + 1);
        if (t->val != e->val)
            return fail(r, e->line, "the matrix is not symmetric: (%" PRId64 ", %" PRId64 ") is "
                        "%g here and its partner on line %ld is %g", e->row + 1, e->col + 1,
                        e->val, t->line, t->val);
    }
    return 0;
}

static int check_diagonal(struct reader *r)
{
    int64_t n = r->rows < r->cols ? r->rows : r->cols;

    for (int64_t i = 0; i < n; i++) {
        const struct entry *e = find(r, i, i);

        if (!e)
            return fail(r, r->line, "row %" PRId64 " has no entry on the diagonal", i + 1);
        if (!(e->val > 0.0))
            return fail(r, e->line, "the diagonal entry of row %" PRId64 " is %g; it must be "
                        "positive", i + 1, e->val);
    }
    return 0;
}

/* -------------------------------------------------------------------- whole */

/* Sorted entries to compressed rows. */
static int compress(struct reader *r, struct mtx *out)
{
    struct mtx m = {.rows = r->rows, .cols = r->cols};

    m.ptr = calloc((size_t)r->rows + 1, sizeof(*m.ptr));
    m.col = malloc((size_t)(r->n + 1) * sizeof(*m.col));
    m.val = malloc((size_t)(r->n + 1) * sizeof(*m.val));
    if (!m.ptr || !m.col || !m.val) {
        mtx_free(&m);
        return fail(r, 0, "out of memory for %" PRId64 " rows", r->rows);
    }
    for (int64_t i = 0; i < r->n; i++) {
        m.ptr[r->entries[i].row + 1]++;
        m.col[i] = r->entries[i].col;
        m.val[i] = r->entries[i].val;
    }
    for (int64_t i = 0; i < r->rows; i++)
        m.ptr[i + 1] += m.ptr[i];
    *out = m;
    return 0;
}

static int read_all(struct reader *r, unsigned need, struct mtx *out)
{
    if (read_banner(r) || read_sizes(r) || read_entries(r))
        return -1;
    if (r->n)
        qsort(r->entries, (size_t)r->n, sizeof(*r->entries), by_place);
    if (check_twice(r))
        return -1;
    if ((need & MTX_SYMMETRIC) && !r->symmetric && check_symmetric(r))
        return -1;
    if ((need & MTX_DIAGONAL) && check_diagonal(r))
        return -1;
    return compress(r, out);
}

int mtx_read(const char *path, unsigned need, struct mtx *out, char *err, size_t errlen)
{
    struct reader r = {.path = path, .err = err, .errlen = errlen};
    int result;

    r.file = fopen(path, "re");
    if (!r.file)
        return fail(&r, 0, "cannot open: %s", strerror(errno));
    result = read_all(&r, need, out);
    fclose(r.file);
    free(r.text);
    free(r.entries);
    return result;
}

void mtx_free(struct mtx *m)
{
    free(m->ptr);
    free(m->col);
    free(m->val);
    *m = (struct mtx){0};
}
