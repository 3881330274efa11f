/* harness_json.h: an array of flat records, written as it grows. A file is whole after each record, however the program ends. */
#ifndef RK_BENCH_HARNESS_JSON_H
#define RK_BENCH_HARNESS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bench_json {
    FILE *out; /* NULL: nothing is written */
    bool some, in_record;
    bool rewinds; /* a record may be written over the end of the array */
};

/* Returns 0, or -1 with errno. */
int bench_json_open(struct bench_json *json, const char *path);
/* Ends the array. Returns 0, or -1 with errno if anything could not be written. */
int bench_json_close(struct bench_json *json);

void bench_json_begin(struct bench_json *json);
void bench_json_end(struct bench_json *json);
void bench_json_text(struct bench_json *json, const char *key, const char *value);
void bench_json_int(struct bench_json *json, const char *key, int64_t value);
void bench_json_bool(struct bench_json *json, const char *key, bool value);
/* null where the value is not a number that JSON has. */
void bench_json_real(struct bench_json *json, const char *key, double value);
void bench_json_null(struct bench_json *json, const char *key);

#endif
