/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_writer.h: write JSON, value by value.
 *
 * The output is valid for any bytes of a text: what is not UTF-8 becomes U+FFFD.
 * In an object each value has a key; in an array key is NULL. Errors of the file
 * show at the end: in xr_json_close, or in ferror of the caller's file.
 */
#ifndef XR_LAUNCHER_UTIL_JSON_WRITER_H
#define XR_LAUNCHER_UTIL_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define XR_JSON_DEPTH 16

struct xr_json {
    FILE *out;
    int depth;
    bool seeks; /* an own regular file: xr_json_checkpoint works */
    struct {
        char close;
        bool some; /* not the first value */
        bool flat; /* all on one line */
    } level[XR_JSON_DEPTH];
};

/* The document is an object. */
void xr_json_begin(struct xr_json *json, FILE *out);
void xr_json_finish(struct xr_json *json);

/* The document is an array in a file of its own. Returns 0, or -1 with errno. */
int xr_json_open(struct xr_json *json, const char *path);
/* Make the file a whole document as it is. Later values are written over its end. Only flushes if the file cannot seek. */
void xr_json_checkpoint(struct xr_json *json);
/* Finish and close. Returns 0, or -1 with errno if any byte could not be written. No-op if there is no file. */
int xr_json_close(struct xr_json *json);

void xr_json_object(struct xr_json *json, const char *key);
void xr_json_array(struct xr_json *json, const char *key);
/* The same, on one line. */
void xr_json_flat_object(struct xr_json *json, const char *key);
void xr_json_flat_array(struct xr_json *json, const char *key);
void xr_json_end(struct xr_json *json);

/* NULL is written as null. */
void xr_json_text(struct xr_json *json, const char *key, const char *value);
void xr_json_int(struct xr_json *json, const char *key, int64_t value);
/* Seconds, to the microsecond. */
void xr_json_seconds(struct xr_json *json, const char *key, uint64_t ns);
/* Three decimals, or six digits. null if the value is infinite or no number. */
void xr_json_fixed(struct xr_json *json, const char *key, double value);
void xr_json_real(struct xr_json *json, const char *key, double value);
void xr_json_bool(struct xr_json *json, const char *key, bool value);
void xr_json_null(struct xr_json *json, const char *key);

#endif
