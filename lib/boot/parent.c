/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parent.c: format and parse the parent variable.
 *
 * Fields are separated by commas: numbers in hex, then names and the ucx address.
 */
#include "lib/boot/parent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRONT_MAX = 160 }; /* characters before the name */

char *rk_parent_text(const struct rk_boot_parent *parent)
{
    size_t room = FRONT_MAX + 2 * RK_NSPACE_MAX + 2 * parent->card_len;
    char *text = strchr(parent->server, ',') || strchr(parent->root_space, ',') ? NULL
                                                                                : malloc(room);
    char *at = text;

    if (!text)
        return NULL;
    at += snprintf(at, room, "1,%llx,%llx,%llx,%llx,%x,%x,%s,%s,", (unsigned long long)parent->job,
                   (unsigned long long)parent->pair, (unsigned long long)parent->both,
                   (unsigned long long)parent->root_job, (unsigned)parent->root_rank,
                   (unsigned)parent->root_size, parent->server, parent->root_space);
    for (size_t i = 0; i < parent->card_len; i++)
        at += sprintf(at, "%02x", parent->card[i]);
    return text;
}

/* Parse a number up to max and its comma; NULL: malformed. */
static const char *parent_take_number(const char *at, uint64_t max, uint64_t *out)
{
    size_t digits = at ? strspn(at, "0123456789abcdef") : 0;

    if (digits == 0 || digits > 16 || at[digits] != ',')
        return NULL;
    *out = strtoull(at, NULL, 16);
    return *out <= max ? at + digits + 1 : NULL;
}

static const char *take_name(const char *at, char *out)
{
    const char *end = at ? strchr(at, ',') : NULL;

    if (!end || end - at >= RK_NSPACE_MAX)
        return NULL;
    memcpy(out, at, (size_t)(end - at));
    out[end - at] = '\0';
    return end + 1;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_card(const char *at, struct rk_boot_parent *out)
{
    size_t len = at ? strlen(at) : 0;

    if (len == 0 || len % 2 || len / 2 > sizeof(out->card))
        return false;
    out->card_len = len / 2;
    for (size_t i = 0; i < len / 2; i++) {
        int high = digit(at[2 * i]), low = digit(at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out->card[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool rk_parent_parse(const char *text, struct rk_boot_parent *out)
{
    uint64_t version = 0, rank = 0, size = 0;
    const char *at = text;

    memset(out, 0, sizeof(*out));
    at = parent_take_number(at, 1, &version);
    at = parent_take_number(at, UINT64_MAX, &out->job);
    at = parent_take_number(at, UINT64_MAX, &out->pair);
    at = parent_take_number(at, UINT64_MAX, &out->both);
    at = parent_take_number(at, UINT64_MAX, &out->root_job);
    at = parent_take_number(at, RK_JOB_SIZE_MAX, &rank);
    at = parent_take_number(at, RK_JOB_SIZE_MAX, &size);
    at = take_name(at, out->server);
    at = take_name(at, out->root_space);
    out->root_rank = (int)rank;
    out->root_size = (int)size;
    return version == 1 && take_card(at, out) && rank < size && out->root_space[0];
}
