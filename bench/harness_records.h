/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_records.h: write one record a size, as JSON and as CSV. */
/* JSON: an array of objects; CSV: a line of headings first. */
#ifndef RK_BENCH_HARNESS_RECORDS_H
#define RK_BENCH_HARNESS_RECORDS_H

#include "launcher/util/json_writer.h"

enum bench_field_kind { BENCH_FIELD_NONE, BENCH_FIELD_NULL, BENCH_FIELD_INT, BENCH_FIELD_REAL, BENCH_FIELD_BOOL, BENCH_FIELD_TEXT };

/* BENCH_FIELD_NONE: this benchmark has no such field. JSON leaves it out; in CSV it is empty, as NULL is. */
struct bench_field {
    const char *key;
    enum bench_field_kind kind;
    int64_t number;
    double real;
    const char *text;
};

/* out is NULL: that file is not wanted. */
struct bench_records {
    struct xr_json json;
    FILE *csv;
    bool headed;
};

/* path is "": none. Returns NULL, or with errno the option of the file that cannot be opened. */
const char *bench_records_open(struct bench_records *r, const char *json, const char *csv);
/* Every record has the same keys in the same order. */
void bench_records_add(struct bench_records *r, const struct bench_field *field, int n);
/* Returns NULL, or with errno the option of the file that is not whole. */
const char *bench_records_close(struct bench_records *r);

#endif
