/* harness_json.c: see harness_json.h. */
#include "bench/harness_json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const char end_of_array[] = "\n]\n";

int bench_json_open(struct bench_json *json, const char *path)
{
    struct stat st;

    json->some = json->in_record = false;
    json->out = fopen(path, "we");
    json->rewinds = json->out && fstat(fileno(json->out), &st) == 0 && S_ISREG(st.st_mode);
    return json->out ? 0 : -1;
}

int bench_json_close(struct bench_json *json)
{
    int bad;

    if (!json->out)
        return 0;
    fputs(json->some ? end_of_array : "[]\n", json->out);
    bad = ferror(json->out);
    if (fclose(json->out))
        bad = 1;
    json->out = NULL;
    if (bad && !errno)
        errno = EIO;
    return bad ? -1 : 0;
}

void bench_json_begin(struct bench_json *json)
{
    if (!json->out)
        return;
    fputs(json->some ? ",\n{" : "[\n{", json->out);
    json->some = true;
    json->in_record = false;
}

void bench_json_end(struct bench_json *json)
{
    if (!json->out)
        return;
    fputc('}', json->out);
    /* What was measured survives a later failure, and can be read then. */
    if (json->rewinds)
        fputs(end_of_array, json->out);
    if (fflush(json->out) == 0 && json->rewinds)
        fseek(json->out, -(long)strlen(end_of_array), SEEK_CUR);
}

static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void key_of(struct bench_json *json, const char *key)
{
    if (json->in_record)
        fputs(", ", json->out);
    json->in_record = true;
    quoted(json->out, key);
    fputs(": ", json->out);
}

void bench_json_text(struct bench_json *json, const char *key, const char *value)
{
    if (!json->out)
        return;
    key_of(json, key);
    quoted(json->out, value);
}

void bench_json_int(struct bench_json *json, const char *key, int64_t value)
{
    if (!json->out)
        return;
    key_of(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void bench_json_bool(struct bench_json *json, const char *key, bool value)
{
    if (!json->out)
        return;
    key_of(json, key);
    fputs(value ? "true" : "false", json->out);
}

void bench_json_real(struct bench_json *json, const char *key, double value)
{
    if (!json->out)
        return;
    key_of(json, key);
    if (__builtin_isfinite(value))
        fprintf(json->out, "%.6g", value);
    else
        fputs("null", json->out);
}

void bench_json_null(struct bench_json *json, const char *key)
{
    if (!json->out)
        return;
    key_of(json, key);
    fputs("null", json->out);
}
