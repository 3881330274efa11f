/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_test.c: read good and bad files of Matrix Market by the reader of examples/. */
#include "examples/mtx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SYM "%%MatrixMarket matrix coordinate real symmetric\n"
#define GEN "%%MatrixMarket matrix coordinate real general\n"

static char path[] = "/tmp/rank-mtx-test-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int drop_file(void **state)
{
    (void)state;
    return unlink(path);
}

static int read_bytes(const char *text, size_t len, unsigned need, struct mtx *out, char *err,
                      size_t errlen)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    return mtx_read(path, need, out, err, errlen);
}

static int read_text(const char *text, unsigned need, struct mtx *out, char *err, size_t errlen)
{
    return read_bytes(text, strlen(text), need, out, err, errlen);
}

/* The entry (i, j), or 0 where none is stored. */
static double at(const struct mtx *m, int64_t i, int64_t j)
{
    for (int64_t k = m->ptr[i]; k < m->ptr[i + 1]; k++) {
        if (m->col[k] == j)
            return m->val[k];
    }
    return 0.0;
}

static void check_form(const struct mtx *m)
{
    assert_int_equal(m->ptr[0], 0);
    for (int64_t i = 0; i < m->rows; i++) {
        assert_true(m->ptr[i] <= m->ptr[i + 1]);
        for (int64_t k = m->ptr[i]; k < m->ptr[i + 1]; k++) {
            assert_in_range(m->col[k], 0, m->cols - 1);
            if (k > m->ptr[i])
                assert_true(m->col[k - 1] < m->col[k]);
        }
    }
}

/* -------------------------------------------------------------- good files */

static void test_symmetric_is_expanded(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text(SYM "% note\n\n3 3 4\n3 1 -1.5\n1 1 2\n2 2 3e0\n%more\n3 3 4\n",
                               MTX_SYMMETRIC | MTX_DIAGONAL, &m, err, sizeof(err)), 0);
    assert_int_equal(m.rows, 3);
    assert_int_equal(m.cols, 3);
    assert_int_equal(m.ptr[3], 5);
    check_form(&m);
    assert_true(at(&m, 0, 2) == -1.5 && at(&m, 2, 0) == -1.5);
    assert_true(at(&m, 0, 0) == 2.0 && at(&m, 1, 1) == 3.0 && at(&m, 2, 2) == 4.0);
    assert_true(at(&m, 0, 1) == 0.0);
    mtx_free(&m);
    mtx_free(&m);
}

static void test_general_rectangle(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text(GEN "2 3 3\n2 3 7\n1 2 5\n2 1 6\n", 0, &m, err, sizeof(err)), 0);
    assert_int_equal(m.rows, 2);
    assert_int_equal(m.cols, 3);
    assert_int_equal(m.ptr[2], 3);
    check_form(&m);
    assert_true(at(&m, 0, 1) == 5.0 && at(&m, 1, 0) == 6.0 && at(&m, 1, 2) == 7.0);
    mtx_free(&m);
}

static void test_general_that_is_symmetric(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text(GEN "2 2 4\n1 2 5\n2 1 5\n1 1 1\n2 2 1\n", MTX_SYMMETRIC, &m, err,
                               sizeof(err)), 0);
    assert_int_equal(m.ptr[2], 4);
    mtx_free(&m);
}

static void test_integer_and_pattern(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text("%%matrixmarket MATRIX Coordinate Integer General\n1 2 1\n1 2 -9\n",
                               0, &m, err, sizeof(err)), 0);
    assert_true(at(&m, 0, 1) == -9.0);
    mtx_free(&m);
    assert_int_equal(read_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n"
                               "2 1\n", 0, &m, err, sizeof(err)), 0);
    assert_true(at(&m, 0, 1) == 1.0 && at(&m, 1, 0) == 1.0 && at(&m, 1, 1) == 0.0);
    mtx_free(&m);
}

static void test_lines_ended_otherwise(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text("%%MatrixMarket matrix coordinate real general\r\n1 1 1\r\n"
                               "1\t1   2.5  \r\n\r\n", 0, &m, err, sizeof(err)), 0);
    assert_true(at(&m, 0, 0) == 2.5);
    mtx_free(&m);
    assert_int_equal(read_text(GEN "1 1 1\n1 1 2.5", 0, &m, err, sizeof(err)), 0);
    assert_true(at(&m, 0, 0) == 2.5);
    mtx_free(&m);
}

static void test_no_entries(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_text(GEN "3 2 0\n", 0, &m, err, sizeof(err)), 0);
    assert_int_equal(m.ptr[3], 0);
    mtx_free(&m);
}

/* More entries than the reader's first allocation, in falling order. */
static void test_many_entries(void **state)
{
    enum { N = 5000 };
    char *text = malloc(N * 32), err[256], *end = text;
    struct mtx m;

    (void)state;
    assert_non_null(text);
    end += sprintf(end, "%s%d %d %d\n", GEN, N, N, N);
    for (int i = N; i > 0; i--)
        end += sprintf(end, "%d %d %d\n", i, N + 1 - i, i);
    assert_int_equal(read_text(text, 0, &m, err, sizeof(err)), 0);
    free(text);
    check_form(&m);
    for (int i = 0; i < N; i++)
        assert_true(at(&m, i, N - 1 - i) == i + 1);
    mtx_free(&m);
}

static void test_the_power_network(void **state)
{
    const char *top = getenv("top_srcdir");
    char file[4096], err[256];
    struct mtx m;

    (void)state;
    snprintf(file, sizeof(file), "%s/examples/data/1138_bus.mtx", top ? top : ".");
    if (mtx_read(file, MTX_SYMMETRIC | MTX_DIAGONAL, &m, err, sizeof(err)))
        fail_msg("%s", err);
    assert_int_equal(m.rows, 1138);
    assert_int_equal(m.ptr[1138], 2 * 2596 - 1138);
    check_form(&m);
    assert_true(at(&m, 0, 0) == 1474.779 && at(&m, 4, 0) == -9.017133 && at(&m, 0, 4) == -9.017133);
    mtx_free(&m);
}

/* --------------------------------------------------------------- bad files */

static const struct bad {
    const char *text;
    unsigned need;
    int line; /* 0: the message names no line */
    const char *says;
} bad_files[] = {
    {"", 0, 0, "the file is empty"},
    {"\n", 0, 1, "expected '%%MatrixMarket"},
    {"1 1 1\n1 1 1\n", 0, 1, "expected '%%MatrixMarket"},
    {"%%MatrixMarket matrix coordinate real\n", 0, 1, "expected '%%MatrixMarket"},
    {"%%MatrixMarket matrix coordinate real general extra\n", 0, 1, "expected '%%MatrixMarket"},
    {"%MatrixMarket matrix coordinate real general\n", 0, 1, "expected '%%MatrixMarket"},
    {"%%MatrixMarket matrix array real general\n", 0, 1, "only 'matrix coordinate'"},
    {"%%MatrixMarket vector coordinate real general\n", 0, 1, "only 'matrix coordinate'"},
    {"%%MatrixMarket matrix coordinate complex general\n", 0, 1, "the field is 'complex'"},
    {"%%MatrixMarket matrix coordinate real hermitian\n", 0, 1, "the symmetry is 'hermitian'"},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n", 0, 1, "the symmetry is 'skew-"},
    {SYM, 0, 1, "the file ends before"},
    {SYM "% only\n% comments\n", 0, 3, "the file ends before"},
    {SYM "3 3\n", 0, 2, "expected three whole numbers"},
    {SYM "3 3 x\n", 0, 2, "expected three whole numbers"},
    {SYM "3 3 1 1\n", 0, 2, "expected three whole numbers"},
    {SYM "3.0 3 1\n", 0, 2, "expected three whole numbers"},
    {SYM "99999999999999999999 3 1\n", 0, 2, "expected three whole numbers"},
    {SYM "0 0 0\n", 0, 2, "make no matrix"},
    {SYM "-3 -3 1\n", 0, 2, "make no matrix"},
    {SYM "3 3 -1\n", 0, 2, "make no matrix"},
    {SYM "3000000000 3000000000 1\n", 0, 2, "not supported"},
    {SYM "2 3 1\n", 0, 2, "as many rows as columns"},
    {GEN "2 2 5\n", 0, 2, "do not fit"},
    {SYM "2 2 2\n", 0, 2, "the file ends after 0 of 2 entries"},
    {SYM "2 2 2\n1 1 1\n", 0, 3, "the file ends after 1 of 2 entries"},
    {SYM "2 2 2\n1 1 1\n2 2", 0, 4, "expected 'ROW COLUMN VALUE', found '2 2'"},
    {SYM "2 2 1\n1 1 1\n2 2 1\n", 0, 4, "more lines than the 1 entries"},
    {SYM "2 2 1\n1 1 1x\n", 0, 3, "expected 'ROW COLUMN VALUE'"},
    {SYM "2 2 1\n1 1 1 1\n", 0, 3, "expected 'ROW COLUMN VALUE'"},
    {SYM "2 2 1\none 1 1\n", 0, 3, "expected 'ROW COLUMN VALUE'"},
    {SYM "2 2 1\n1.5 1 1\n", 0, 3, "expected 'ROW COLUMN VALUE'"},
    {SYM "2 2 1\n1 1 nan\n", 0, 3, "not a finite number"},
    {SYM "2 2 1\n1 1 1e999\n", 0, 3, "not a finite number"},
    {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", 0, 3, "WHOLE-NUMBER"},
    {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n", 0, 3, "'ROW COLUMN'"},
    {SYM "2 2 1\n0 1 1\n", 0, 3, "row 0 is out of range; the matrix has rows 1 to 2"},
    {SYM "2 2 1\n3 1 1\n", 0, 3, "row 3 is out of range"},
    {SYM "2 2 1\n-1 1 1\n", 0, 3, "row -1 is out of range"},
    {SYM "%\n2 2 2\n1 1 1\n\n2 7 1\n", 0, 6, "column 7 is out of range; the matrix has columns"},
    {SYM "2 2 1\n1 2 1\n", 0, 3, "above the diagonal"},
    {SYM "2 2 2\n2 1 1\n2 1 3\n", 0, 4, "already given on line 3"},
    {GEN "2 2 3\n2 1 1\n1 2 1\n2 1 1\n", 0, 5, "already given on line 3"},
    {GEN "2 3 1\n1 1 1\n", MTX_SYMMETRIC, 0, "not symmetric: it has 2 rows and 3 columns"},
    {GEN "2 2 2\n1 1 1\n2 1 1\n", MTX_SYMMETRIC, 4, "not symmetric: entry (2, 1) has no partner"},
    {GEN "2 2 2\n1 2 1\n2 1 2\n", MTX_SYMMETRIC, 3, "not symmetric: (1, 2) is 1 here and its"},
    {SYM "2 2 2\n1 1 1\n2 1 1\n", MTX_DIAGONAL, 4, "row 2 has no entry on the diagonal"},
    {SYM "2 2 2\n1 1 1\n2 2 0\n", MTX_DIAGONAL, 4, "must be positive"},
    {SYM "2 2 2\n1 1 -1\n2 2 1\n", MTX_DIAGONAL, 3, "must be positive"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++) {
        const struct bad *b = &bad_files[i];
        struct mtx m, untouched;
        char err[512] = "", where[128];

        memset(&m, 0x5a, sizeof(m));
        untouched = m;
        if (read_text(b->text, b->need, &m, err, sizeof(err)) != -1)
            fail_msg("case %zu was read: %s", i, b->text);
        if (b->line)
            snprintf(where, sizeof(where), "%s:%d: ", path, b->line);
        else
            snprintf(where, sizeof(where), "%s: ", path);
        if (strncmp(err, where, strlen(where)) != 0 || !strstr(err, b->says))
            fail_msg("case %zu: expected '%s%s...', got '%s'", i, where, b->says, err);
        assert_memory_equal(&m, &untouched, sizeof(m));
    }
}

static void test_nul_byte(void **state)
{
    static const char text[] = GEN "1 1 1\n1 1\0 1\n";
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(read_bytes(text, sizeof(text) - 1, 0, &m, err, sizeof(err)), -1);
    assert_non_null(strstr(err, ":3: the line holds a NUL byte"));
}

static void test_no_file(void **state)
{
    struct mtx m;
    char err[256];

    (void)state;
    assert_int_equal(mtx_read("/nonexistent/a.mtx", 0, &m, err, sizeof(err)), -1);
    assert_string_equal(err, "/nonexistent/a.mtx: cannot open: No such file or directory");
    assert_int_equal(mtx_read("/tmp", 0, &m, err, sizeof(err)), -1);
    assert_string_equal(err, "/tmp: cannot read: Is a directory");
}

/* A message that does not fit is cut, not written past the end. */
static void test_short_message_buffer(void **state)
{
    struct mtx m;
    char err[8];

    (void)state;
    memset(err, 'x', sizeof(err));
    assert_int_equal(read_text("", 0, &m, err, 4), -1);
    assert_memory_equal(err, "/tm\0xxxx", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symmetric_is_expanded),
        cmocka_unit_test(test_general_rectangle),
        cmocka_unit_test(test_general_that_is_symmetric),
        cmocka_unit_test(test_integer_and_pattern),
        cmocka_unit_test(test_lines_ended_otherwise),
        cmocka_unit_test(test_no_entries),
        cmocka_unit_test(test_many_entries),
        cmocka_unit_test(test_the_power_network),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_nul_byte),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_short_message_buffer),
    };
    return cmocka_run_group_tests_name("mtx", tests, make_file, drop_file);
}
