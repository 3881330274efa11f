/* SPDX-License-Identifier: BSD-3-Clause */
/* json_writer.c: write JSON, value by value. */
#include "launcher/util/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

/* Length of the UTF-8 character at s, or 0 if malformed. */
static int utf8(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    for (int i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) /* also at the end of the text */
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    return n;
}

static void quoted(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    fputc('"', out);
    while (*s) {
        int n = utf8(s);
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(out, "\\u%04x", *s);
        else if (n)
            fwrite(s, 1, (size_t)n, out);
        else
            fputs("\\ufffd", out);
        s += n ? n : 1;
    }
    fputc('"', out);
}

/* Write the separator and the key before a value. */
static void before(struct xr_json *j, const char *key)
{
    if (j->level[j->depth].some)
        fputc(',', j->out);
    if (j->level[j->depth].flat)
        fputs(j->level[j->depth].some ? " " : "", j->out);
    else
        fprintf(j->out, "\n%*s", 2 * (j->depth + 1), "");
    j->level[j->depth].some = true;
    if (key) {
        quoted(j->out, key);
        fputs(": ", j->out);
    }
}

static void json_writer_begin(struct xr_json *j, const char *brackets, bool flat)
{
    fputc(brackets[0], j->out);
    flat = flat || (j->depth >= 0 && j->level[j->depth].flat);
    j->depth++;
    j->level[j->depth].close = brackets[1];
    j->level[j->depth].some = false;
    j->level[j->depth].flat = flat;
}

static void close_level(struct xr_json *j)
{
    if (j->level[j->depth].some && !j->level[j->depth].flat)
        fprintf(j->out, "\n%*s", 2 * j->depth, "");
    fputc(j->level[j->depth].close, j->out);
    j->depth--;
}

void xr_json_begin(struct xr_json *j, FILE *out)
{
    j->out = out;
    j->depth = -1;
    j->seeks = false;
    json_writer_begin(j, "{}", false);
}

int xr_json_open(struct xr_json *j, const char *path)
{
    struct stat st;

    j->out = fopen(path, "we");
    if (!j->out)
        return -1;
    j->depth = -1;
    j->seeks = fstat(fileno(j->out), &st) == 0 && S_ISREG(st.st_mode);
    json_writer_begin(j, "[]", false);
    return 0;
}

void xr_json_finish(struct xr_json *j)
{
    while (j->depth >= 0)
        close_level(j);
    fputc('\n', j->out);
}

void xr_json_checkpoint(struct xr_json *j)
{
    struct xr_json copy = *j;
    long at = j->seeks ? ftell(j->out) : -1;

    if (at < 0) {
        fflush(j->out);
        return;
    }
    xr_json_finish(&copy);
    if (fflush(j->out) == 0)
        fseek(j->out, at, SEEK_SET);
}

int xr_json_close(struct xr_json *j)
{
    int bad;

    if (!j->out)
        return 0;
    errno = 0;
    xr_json_finish(j);
    bad = ferror(j->out);
    if (fclose(j->out))
        bad = 1;
    j->out = NULL;
    if (bad && !errno)
        errno = EIO;
    return bad ? -1 : 0;
}

void xr_json_object(struct xr_json *j, const char *key)
{
    before(j, key);
    json_writer_begin(j, "{}", false);
}

void xr_json_array(struct xr_json *j, const char *key)
{
    before(j, key);
    json_writer_begin(j, "[]", false);
}

void xr_json_flat_object(struct xr_json *j, const char *key)
{
    before(j, key);
    json_writer_begin(j, "{}", true);
}

void xr_json_flat_array(struct xr_json *j, const char *key)
{
    before(j, key);
    json_writer_begin(j, "[]", true);
}

void xr_json_end(struct xr_json *j)
{
    close_level(j);
}

void xr_json_text(struct xr_json *j, const char *key, const char *value)
{
    before(j, key);
    if (value)
        quoted(j->out, value);
    else
        fputs("null", j->out);
}

void xr_json_int(struct xr_json *j, const char *key, int64_t value)
{
    before(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void xr_json_seconds(struct xr_json *j, const char *key, uint64_t ns)
{
    before(j, key);
    fprintf(j->out, "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns % 1000000000 / 1000);
}

void xr_json_fixed(struct xr_json *j, const char *key, double value)
{
    before(j, key);
    if (isfinite(value))
        fprintf(j->out, "%.3f", value);
    else
        fputs("null", j->out);
}

void xr_json_real(struct xr_json *j, const char *key, double value)
{
    before(j, key);
    if (isfinite(value))
        fprintf(j->out, "%.6g", value);
    else
        fputs("null", j->out);
}

void xr_json_bool(struct xr_json *j, const char *key, bool value)
{
    before(j, key);
    fputs(value ? "true" : "false", j->out);
}

void xr_json_null(struct xr_json *j, const char *key)
{
    before(j, key);
    fputs("null", j->out);
}
