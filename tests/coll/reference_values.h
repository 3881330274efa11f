/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reference_values.h: compute elements and reductions of every datatype slowly.
 * The obvious way, without a line of the library.
 *
 * Inputs are such that every result can be represented, so that the order of
 * a sum does not matter: what is tested with them is the right result. Bits
 * are another matter (coll_reproducible.c).
 */
#ifndef TESTS_COLL_REFERENCE_VALUES_H
#define TESTS_COLL_REFERENCE_VALUES_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

struct value {
    int64_t n;     /* integers, bytes, bits; values of integer pairs */
    double re, im; /* floating point, complex; values of other pairs */
    int64_t index; /* of pairs */
};

/* All of them, in the order of rank.h. */
enum { VALUE_DTYPES = 19, VALUE_OPS = 13 };
extern const rank_dtype_t value_dtypes[VALUE_DTYPES];
extern const rank_op_t value_ops[VALUE_OPS];

size_t value_size(rank_dtype_t dtype);
bool value_is_float(rank_dtype_t dtype);
struct value value_load(rank_dtype_t dtype, const void *at);
void value_store(rank_dtype_t dtype, void *at, struct value v);
bool value_equal(struct value a, struct value b);

/* Element i of what rank contributes to a reduction among size ranks. */
struct value value_input(rank_dtype_t dtype, rank_op_t op, int rank, int size, int64_t i);
/* a op b; AVG adds. */
struct value value_op(rank_dtype_t dtype, rank_op_t op, struct value a, struct value b);
/* Element i of the result. */
struct value value_expected(rank_dtype_t dtype, rank_op_t op, int size, int64_t i);

/* Fill a buffer with the inputs of elements first to first + count - 1. */
void value_fill(void *buf, rank_dtype_t dtype, rank_op_t op, int rank, int size, int64_t first,
                int64_t count);
/* The first element that is not as expected, or -1. */
int64_t value_check(const void *buf, rank_dtype_t dtype, rank_op_t op, int size, int64_t first,
                    int64_t count);
/* The same of the first ranks only; not of RANK_AVG. */
int64_t value_check_prefix(const void *buf, rank_dtype_t dtype, rank_op_t op, int ranks, int size, int64_t first,
                           int64_t count);

/* Is the pair in the table of the documentation? By hand, not from the library. */
bool value_defined(rank_op_t op, rank_dtype_t dtype);

#endif
