/*
 * json_writer.h: write JSON, value by value.
 *
 * Whatever bytes a text holds, what comes out is valid: what is not UTF-8 is
 * replaced by U+FFFD. In an object each value has a key; in an array key is
 * NULL. Whether all could be written is asked of the file, at the end.
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
    struct {
        char close;
        bool some; /* a value was there before */
        bool flat; /* all on one line */
    } level[XR_JSON_DEPTH];
};

/* The whole is an object. */
void xr_json_begin(struct xr_json *json, FILE *out);
void xr_json_finish(struct xr_json *json);

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
void xr_json_real(struct xr_json *json, const char *key, double value);
void xr_json_bool(struct xr_json *json, const char *key, bool value);
void xr_json_null(struct xr_json *json, const char *key);

#endif
