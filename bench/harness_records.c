/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_records.c: see harness_records.h. */
#include "bench/harness_records.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *bench_records_open(struct bench_records *r, const char *json, const char *csv)
{
    memset(r, 0, sizeof(*r));
    if (*json && xr_json_open(&r->json, json))
        return "--json";
    if (*csv && !(r->csv = fopen(csv, "we")))
        return "--csv";
    return NULL;
}

static void add_json(struct xr_json *j, const struct bench_field *field, int n)
{
    xr_json_flat_object(j, NULL);
    for (const struct bench_field *f = field; f < field + n; f++) {
        switch (f->kind) {
        case BENCH_FIELD_NONE:
            break;
        case BENCH_FIELD_NULL:
            xr_json_null(j, f->key);
            break;
        case BENCH_FIELD_INT:
            xr_json_int(j, f->key, f->number);
            break;
        case BENCH_FIELD_REAL:
            xr_json_real(j, f->key, f->real);
            break;
        case BENCH_FIELD_BOOL:
            xr_json_bool(j, f->key, f->number != 0);
            break;
        case BENCH_FIELD_TEXT:
            xr_json_text(j, f->key, f->text);
            break;
        }
    }
    xr_json_end(j);
    xr_json_checkpoint(j); /* a failure later leaves what was measured */
}

/* In quotes where it has to be. */
static void csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void add_csv(FILE *out, const struct bench_field *field, int n)
{
    for (const struct bench_field *f = field; f < field + n; f++) {
        fputs(f > field ? "," : "", out);
        if (f->kind == BENCH_FIELD_INT)
            fprintf(out, "%" PRId64, f->number);
        else if (f->kind == BENCH_FIELD_REAL && isfinite(f->real))
            fprintf(out, "%.6g", f->real);
        else if (f->kind == BENCH_FIELD_BOOL)
            fputs(f->number ? "true" : "false", out);
        else if (f->kind == BENCH_FIELD_TEXT)
            csv_text(out, f->text);
    }
    fputc('\n', out);
}

void bench_records_add(struct bench_records *r, const struct bench_field *field, int n)
{
    if (r->json.out)
        add_json(&r->json, field, n);
    if (!r->csv)
        return;
    for (int i = 0; i < n && !r->headed; i++)
        fprintf(r->csv, "%s%s", i ? "," : "", field[i].key);
    fputs(r->headed ? "" : "\n", r->csv);
    r->headed = true;
    add_csv(r->csv, field, n);
    fflush(r->csv);
}

const char *bench_records_close(struct bench_records *r)
{
    FILE *csv = r->csv;
    bool bad;

    r->csv = NULL;
    if (xr_json_close(&r->json)) {
        if (csv)
            fclose(csv);
        return "--json";
    }
    if (!csv)
        return NULL;
    errno = 0;
    bad = ferror(csv) != 0;
    bad = fclose(csv) != 0 || bad;
    if (bad && !errno)
        errno = EIO;
    return bad ? "--csv" : NULL;
}
