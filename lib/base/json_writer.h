/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_writer.h: write JSON, value by value.
 *
 * The output is valid for any bytes of a text: what is not UTF-8 becomes U+FFFD.
 * In an object each value has a key; in an array key is NULL. Errors of the file
 * show at the end: in rk_json_close, or in ferror of the caller's file.
 */
#ifndef RK_BASE_JSON_WRITER_H
#define RK_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RK_JSON_DEPTH 16

struct rk_json {
    FILE *out;
    int depth;
    bool seeks; /* an own regular file: rk_json_checkpoint works */
    struct {
        char close;
        bool some; /* not the first value */
        bool flat; /* all on one line */
    } level[RK_JSON_DEPTH];
};

/* The document is an object. */
void rk_json_begin(struct rk_json *json, FILE *out);
void rk_json_finish(struct rk_json *json);

/* The document is an array in a file of its own. Returns 0, or -1 with errno. */
int rk_json_open(struct rk_json *json, const char *path);
/* Make the file a whole document as it is. Later values are written over its end. Only flushes if the file cannot seek. */
void rk_json_checkpoint(struct rk_json *json);
/* Finish and close. Returns 0, or -1 with errno if any byte could not be written. No-op if there is no file. */
int rk_json_close(struct rk_json *json);

void rk_json_object(struct rk_json *json, const char *key);
void rk_json_array(struct rk_json *json, const char *key);
/* The same, on one line. */
void rk_json_flat_object(struct rk_json *json, const char *key);
void rk_json_flat_array(struct rk_json *json, const char *key);
void rk_json_end(struct rk_json *json);

/* NULL is written as null. */
void rk_json_text(struct rk_json *json, const char *key, const char *value);
void rk_json_int(struct rk_json *json, const char *key, int64_t value);
/* Seconds, to the microsecond. */
void rk_json_seconds(struct rk_json *json, const char *key, uint64_t ns);
/* Three decimals, or six digits. null if the value is infinite or no number. */
void rk_json_fixed(struct rk_json *json, const char *key, double value);
void rk_json_real(struct rk_json *json, const char *key, double value);
void rk_json_bool(struct rk_json *json, const char *key, bool value);
void rk_json_null(struct rk_json *json, const char *key);

#endif
