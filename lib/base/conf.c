/* SPDX-License-Identifier: BSD-3-Clause */
/* conf.c: parse and print the rows of a configuration table. */
#include "lib/base/conf.h"
#include "lib/base/compiler.h"
#include "lib/base/choice_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------ values */

/* Parse a number with a suffix of the given list; returns 0 on success. */
static int parse_scaled(const char *text, const char *const *suffix, const int64_t *scale, int n,
                        int64_t *out)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || errno)
        return -1;
    while (*end == ' ')
        end++;
    for (int i = 0; i < n; i++) {
        if (strcasecmp(end, suffix[i]) == 0)
            return __builtin_mul_overflow((int64_t)v, scale[i], out) ? -1 : 0;
    }
    return -1;
}

static int parse_size(const char *text, int64_t *out)
{
    static const char *const suffix[] = {"",  "b",  "k",  "kb", "kib", "m", "mb",
                                         "mib", "g", "gb", "gib", "t",   "tb", "tib"};
    static const int64_t scale[] = {1,       1,       1 << 10, 1 << 10,  1 << 10,  1 << 20,  1 << 20,
                                    1 << 20, 1 << 30, 1 << 30, 1 << 30,  1LL << 40, 1LL << 40,
                                    1LL << 40};
    return parse_scaled(text, suffix, scale, (int)RK_ARRAY_LEN(suffix), out);
}

static int parse_time(const char *text, int64_t *out)
{
    static const char *const suffix[] = {"", "ns", "us", "ms", "s", "m", "min"};
    static const int64_t scale[] = {1000,    1,          1000,          1000000,
                                    1000000000, 60000000000LL, 60000000000LL};
    return parse_scaled(text, suffix, scale, (int)RK_ARRAY_LEN(suffix), out);
}

/* Index of word (len long) among the '|' separated allowed ones, or -1. */
static int word_index(const char *allowed, const char *word, size_t len)
{
    int i = 0;

    for (const char *p = allowed;; i++) {
        size_t n = strcspn(p, "|");
        if (n == len && strncasecmp(p, word, len) == 0)
            return i;
        if (p[n] == '\0')
            return -1;
        p += n + 1;
    }
}

static rank_status_t conf_bad(const struct rk_conf_row *row, const char *text, char *err, size_t errlen)
{
    char lo[32], hi[32];

    switch (row->type) {
    case RK_CONF_BOOL:
        snprintf(err, errlen, "%s is '%s'; allowed are on and off", row->name, text);
        break;
    case RK_CONF_ENUM:
        snprintf(err, errlen, "%s is '%s'; allowed is one of %s", row->name, text, row->allowed);
        break;
    case RK_CONF_SET:
        snprintf(err, errlen, "%s is '%s'; allowed is a comma-separated list of %s", row->name,
                 text, row->allowed);
        break;
    case RK_CONF_INT:
    case RK_CONF_SIZE:
        snprintf(lo, sizeof(lo), "%lld", (long long)row->min);
        snprintf(hi, sizeof(hi), "%lld", (long long)(row->max ? row->max : INT64_MAX));
        snprintf(err, errlen, "%s is '%s'; allowed is %s from %s to %s%s%s", row->name, text,
                 row->type == RK_CONF_INT ? "a whole number" : "a size (4096, 64K, 1M)", lo, hi,
                 row->allowed ? ", or " : "", row->allowed ? row->allowed : "");
        break;
    case RK_CONF_TIME:
        snprintf(err, errlen, "%s is '%s'; allowed is a time (50us, 2ms, 1s) up to %llds%s%s",
                 row->name, text,
                 (long long)((row->max ? row->max : INT64_MAX) / 1000000000LL),
                 row->allowed ? ", or " : "", row->allowed ? row->allowed : "");
        break;
    case RK_CONF_STRING:
        snprintf(err, errlen, "%s is '%s'; allowed is one of %s, or a path with a / in it", row->name, text, row->allowed);
        break;
    case RK_CONF_PICKS: /* writes its own message */
        snprintf(err, errlen, "%s: not a valid text", row->name);
        break;
    }
    return RANK_ERR_CONFIG;
}

static int parse_set(const struct rk_conf_row *row, const char *text, uint32_t *out)
{
    uint32_t bits = 0;

    for (const char *p = text;;) {
        size_t n = strcspn(p, ",");
        int i = word_index(row->allowed, p, n);
        if (i < 0)
            return -1;
        bits |= 1u << i;
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    *out = bits;
    return 0;
}

static rank_status_t replace_text(char **at, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        return RANK_ERR_NO_MEMORY;
    free(*at);
    *at = copy;
    return RANK_OK;
}

/* Spelling of the table. */
static rank_status_t parse_word(const struct rk_conf_row *row, const char *text, char **at, char *err, size_t errlen)
{
    int i = word_index(row->allowed, text, strlen(text));
    const char *word = row->allowed;
    rank_status_t st;
    char *copy;

    if (i < 0)
        return conf_bad(row, text, err, errlen);
    while (i-- > 0)
        word += strcspn(word, "|") + 1;
    copy = strndup(word, strcspn(word, "|"));
    st = copy ? replace_text(at, copy) : RANK_ERR_NO_MEMORY;
    free(copy);
    return st;
}

rank_status_t rk_conf_parse_value(const struct rk_conf_row *row, const char *text, void *into,
                                  char *err, size_t errlen)
{
    void *at = (char *)into + row->offset;
    int64_t v = 0;
    int i, fail = 0;
    uint32_t set;

    switch (row->type) {
    case RK_CONF_BOOL:
        i = word_index("off|no|false|0|on|yes|true|1", text, strlen(text));
        if (i < 0)
            return conf_bad(row, text, err, errlen);
        *(bool *)at = i >= 4;
        return RANK_OK;
    case RK_CONF_ENUM:
        i = word_index(row->allowed, text, strlen(text));
        if (i < 0)
            return conf_bad(row, text, err, errlen);
        *(int *)at = i;
        return RANK_OK;
    case RK_CONF_SET:
        if (parse_set(row, text, &set))
            return conf_bad(row, text, err, errlen);
        *(uint32_t *)at = set;
        return RANK_OK;
    case RK_CONF_PICKS:
        if (rk_choice_list_check(row->name, text, row->allowed, err, errlen))
            return RANK_ERR_CONFIG;
        return replace_text(at, text);
    case RK_CONF_STRING:
        if (row->allowed && !strchr(text, '/'))
            return parse_word(row, text, at, err, errlen);
        return replace_text(at, text);
    case RK_CONF_INT:
    case RK_CONF_SIZE:
    case RK_CONF_TIME:
        break;
    }
    if (row->allowed && strcasecmp(text, row->allowed) == 0) {
        *(int64_t *)at = -1;
        return RANK_OK;
    }
    if (row->type == RK_CONF_INT) {
        static const char *const none[] = {""};
        static const int64_t one[] = {1};
        fail = parse_scaled(text, none, one, 1, &v);
    } else if (row->type == RK_CONF_SIZE) {
        fail = parse_size(text, &v);
    } else {
        fail = parse_time(text, &v);
    }
    if (fail || v < row->min || (row->max && v > row->max))
        return conf_bad(row, text, err, errlen);
    *(int64_t *)at = v;
    return RANK_OK;
}

rank_status_t rk_conf_set_defaults(const struct rk_conf_row *rows, void *into)
{
    char err[256];

    for (; rows->name; rows++) {
        rank_status_t st = rk_conf_parse_value(rows, rows->dflt, into, err, sizeof(err));
        if (st)
            return st;
    }
    return RANK_OK;
}

/* Units of parse_size and parse_time, largest first; the last one always fits. */
static const struct unit {
    int64_t scale;
    const char *name;
} size_units[] = {{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}, {1, ""}},
  time_units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};

/* Format as a whole number of the largest exact unit. */
static void format_scaled(int64_t v, const struct unit *unit, char *out, size_t outlen)
{
    while (unit->scale > 1 && (v == 0 || v % unit->scale))
        unit++;
    snprintf(out, outlen, "%lld%s", (long long)(v / unit->scale), unit->name);
}

void rk_conf_format(const struct rk_conf_row *row, const void *from, char *out, size_t outlen)
{
    const void *at = (const char *)from + row->offset;
    size_t n = 0;
    int64_t v;

    switch (row->type) {
    case RK_CONF_BOOL:
        snprintf(out, outlen, "%s", *(const bool *)at ? "on" : "off");
        return;
    case RK_CONF_STRING:
    case RK_CONF_PICKS:
        snprintf(out, outlen, "%s", *(char *const *)at);
        return;
    case RK_CONF_ENUM:
    case RK_CONF_SET: {
        uint32_t bits = row->type == RK_CONF_SET ? *(const uint32_t *)at
                                                 : 1u << *(const int *)at;
        const char *p = row->allowed;
        out[0] = '\0';
        for (int i = 0;; i++) {
            size_t len = strcspn(p, "|");
            if ((bits >> i & 1) && n < outlen)
                n += (size_t)snprintf(out + n, outlen - n, "%s%.*s", n ? "," : "", (int)len, p);
            if (p[len] == '\0')
                return;
            p += len + 1;
        }
    }
    case RK_CONF_INT:
    case RK_CONF_SIZE:
    case RK_CONF_TIME:
        break;
    }
    v = *(const int64_t *)at;
    if (v < 0 && row->allowed)
        snprintf(out, outlen, "%s", row->allowed);
    else if (row->type == RK_CONF_TIME)
        format_scaled(v, time_units, out, outlen);
    else if (row->type == RK_CONF_SIZE)
        format_scaled(v, size_units, out, outlen);
    else
        snprintf(out, outlen, "%lld", (long long)v);
}

/* ------------------------------------------------------------ nearest names */

int rk_edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    int row[65];

    if (n > 64 || m > 64)
        return (int)(n > m ? n : m); /* far from anything */
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diag = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int up = row[j];
            int cost = diag + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            if (row[j - 1] + 1 < cost)
                cost = row[j - 1] + 1;
            if (up + 1 < cost)
                cost = up + 1;
            diag = up;
            row[j] = cost;
        }
    }
    return row[m];
}

const struct rk_conf_row *rk_conf_nearest(const struct rk_conf_row *rows, const char *name)
{
    const struct rk_conf_row *best = NULL;
    int least = (int)strlen(name) / 3 + 1;

    for (; rows->name; rows++) {
        int d = rk_edit_distance(rows->name, name);
        if (d < least) {
            least = d;
            best = rows;
        }
    }
    return best;
}
