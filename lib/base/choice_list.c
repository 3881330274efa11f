/* SPDX-License-Identifier: BSD-3-Clause */
/* choice_list.c: check lists of the form "key:word,key:word". */
#include "lib/base/choice_list.h"

#include <stdbool.h>
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

static rank_status_t choice_list_check_one(const char *name, const char *item, size_t len, const char *allowed,
                               char *err, size_t errlen)
{
    const char *colon = memchr(item, ':', len), *words;
    size_t key = colon ? (size_t)(colon - item) : len;
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
    if (!among(words, colon + 1, len - key - 1)) {
        snprintf(err, errlen, "%s: %.*s has no '%.*s'; it has: %s", name, (int)key, item,
                 (int)(len - key - 1), colon + 1, list);
        return RANK_ERR_CONFIG;
    }
    return RANK_OK;
}

rank_status_t rk_picks_check(const char *name, const char *text, const char *allowed, char *err,
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
