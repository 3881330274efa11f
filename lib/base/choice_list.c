/* SPDX-License-Identifier: BSD-3-Clause */
/* choice_list.c: check lists of the form "key:word,key:word@range". */
#include "lib/base/choice_list.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Words of a key of that length, up to the next ',' or the end; NULL if unknown. */
static const char *choice_list_words_of(const char *allowed, const char *key, size_t len)
{
    for (const char *p = allowed; *p;) {
        size_t n = strcspn(p, ":");

        if (n == len && memcmp(p, key, len) == 0)
            return p + n + 1;
        p += strcspn(p, ",");
        p += *p == ',';
    }
    return NULL;
}

static bool among(const char *words, const char *word, size_t len)
{
    for (const char *p = words;; p++) {
        size_t n = strcspn(p, "|,");

        if (n == len && memcmp(p, word, len) == 0)
            return true;
        p += n;
        if (*p != '|')
            return false;
    }
}

/* Format "shm|ring,..." as "shm, ring". */
static const char *listed(const char *words, char *out, size_t len)
{
    size_t at = 0;

    for (const char *p = words; *p && *p != ',' && at + 3 < len; p++) {
        out[at++] = *p == '|' ? ',' : *p;
        if (*p == '|')
            out[at++] = ' ';
    }
    out[at] = '\0';
    return out;
}

static const char *keys(const char *allowed, char *out, size_t len)
{
    size_t at = 0;

    out[0] = '\0';
    for (const char *p = allowed; *p && at < len;) {
        at += (size_t)snprintf(out + at, len - at, "%s%.*s", at ? ", " : "", (int)strcspn(p, ":"), p);
        p += strcspn(p, ",");
        p += *p == ',';
    }
    return out;
}

/* Parse "64K" at *at, before end, and step over it. */
static bool size_at(const char **at, const char *end, size_t *out)
{
    static const char units[] = "KMGT";
    const char *first = *at, *unit;
    size_t v = 0;

    while (*at < end && isdigit((unsigned char)**at)) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (size_t)(**at - '0'), &v))
            return false;
        ++*at;
    }
    if (*at == first)
        return false;
    if (*at < end && **at && (unit = strchr(units, toupper((unsigned char)**at)))) {
        if (__builtin_mul_overflow(v, (size_t)1 << (10 * (unit - units + 1)), &v))
            return false;
        ++*at;
    }
    *out = v;
    return true;
}

bool rk_choice_list_range(const char *text, size_t len, size_t *from, size_t *to)
{
    const char *at = text, *end = text + len;
    bool has_from = size_at(&at, end, from);

    if (!has_from)
        *from = 0;
    if (has_from && at == end) {
        *to = *from;
        return true;
    }
    if (at == end || *at++ != '-')
        return false;
    if (at == end) {
        *to = SIZE_MAX;
        return has_from;
    }
    return size_at(&at, end, to) && at == end && *to >= *from;
}

static rank_status_t choice_list_check_one(const char *name, const char *item, size_t len, const char *allowed,
                               char *err, size_t errlen)
{
    const char *colon = memchr(item, ':', len), *range = memchr(item, '@', len), *words;
    size_t key = colon ? (size_t)(colon - item) : len, word = range ? (size_t)(range - item) : len, from, to;
    char list[256];

    words = choice_list_words_of(allowed, item, key);
    if (!words) {
        snprintf(err, errlen, "%s: there is no '%.*s'; there are: %s", name, (int)key, item,
                 keys(allowed, list, sizeof(list)));
        return RANK_ERR_CONFIG;
    }
    listed(words, list, sizeof(list));
    if (!colon) {
        snprintf(err, errlen, "%s: '%.*s' wants one of these behind a colon: %s", name, (int)len,
                 item, list);
        return RANK_ERR_CONFIG;
    }
    word = word > key ? word - key - 1 : 0;
    if (!among(words, colon + 1, word)) {
        snprintf(err, errlen, "%s: %.*s has no '%.*s'; it has: %s", name, (int)key, item,
                 (int)word, colon + 1, list);
        return RANK_ERR_CONFIG;
    }
    if (range && !rk_choice_list_range(range + 1, (size_t)(item + len - range - 1), &from, &to)) {
        snprintf(err, errlen, "%s: '%.*s' behind %.*s is not a range of sizes; write 64K-1M, 64K- or -1M", name,
                 (int)(item + len - range), range, (int)(range - item), item);
        return RANK_ERR_CONFIG;
    }
    return RANK_OK;
}

rank_status_t rk_choice_list_check(const char *name, const char *text, const char *allowed, char *err,
                             size_t errlen)
{
    while (*text) {
        size_t blank, len;

        blank = strspn(text, " \t");
        text += blank;
        len = strcspn(text, ",");
        for (blank = len; blank > 0 && (text[blank - 1] == ' ' || text[blank - 1] == '\t');)
            blank--;
        if (blank > 0) {
            rank_status_t st = choice_list_check_one(name, text, blank, allowed, err, errlen);
            if (st)
                return st;
        }
        text += len;
        text += *text == ',';
    }
    return RANK_OK;
}
