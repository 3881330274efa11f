/*
 * json_writer.h: write JSON, value by value.
 *
 * Whatever bytes a text holds, what comes out is valid: what is not UTF-8 is
 * replaced by U+FFFD. In an object each value has a key; in an array key is
 * NULL. Whether all could be written is asked of the file, at the end.
 */
#ifndef RK_LAUNCHER_UTIL_JSON_WRITER_H
#define RK_LAUNCHER_UTIL_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RK_JSON_DEPTH 16

struct rk_json {
    FILE *out;
    int depth;
    struct {
        char close;
        bool some; /* a value was there before */
        bool flat; /* all on one line */
    } level[RK_JSON_DEPTH];
};

/* The whole is an object. */
void rk_json_begin(struct rk_json *json, FILE *out);
void rk_json_finish(struct rk_json *json);

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
void rk_json_real(struct rk_json *json, const char *key, double value);
void rk_json_bool(struct rk_json *json, const char *key, bool value);
void rk_json_null(struct rk_json *json, const char *key);

#endif
