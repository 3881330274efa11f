/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostfile.c: read a list of hosts from a hostfile. See hostlist.h.
 */
#include "launcher/alloc/hostlist.h"
#include "launcher/util/text_file.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"
#include "lib/base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words behind a host's name; 0: not given. */
struct host_keys {
    uint32_t slots, most;
    bool binding, ifhn; /* words of other launchers that have no effect here */
};

enum key { KEY_SLOTS, KEY_MOST, KEY_MACHINE, KEY_BINDING, KEY_IFHN, KEY_UNKNOWN };

/* Find a key. Words of other launchers have the meaning that they have there. */
static enum key find_key(const char *word, size_t len)
{
    static const struct {
        const char *name;
        enum key key;
    } keys[] = {
        {"slots", KEY_SLOTS},     {"cpu", KEY_SLOTS},      {"cpus", KEY_SLOTS},     {"count", KEY_SLOTS},
        {"max_slots", KEY_MOST},  {"max-slots", KEY_MOST}, {"slots_max", KEY_MOST}, {"slots-max", KEY_MOST},
        {"boards", KEY_MACHINE},  {"sockets", KEY_MACHINE}, {"cores", KEY_MACHINE}, /* the agent finds these itself */
        {"binding", KEY_BINDING}, {"ifhn", KEY_IFHN},
    };

    for (size_t i = 0; i < RK_ARRAY_LEN(keys); i++) {
        if (strlen(keys[i].name) == len && memcmp(keys[i].name, word, len) == 0)
            return keys[i].key;
    }
    return KEY_UNKNOWN;
}

/* Parse "slots=4" and the like. */
static bool take_key(const char *word, struct host_keys *keys, char *err, size_t errlen)
{
    const char *eq = strchr(word, '=');
    enum key which = eq ? find_key(word, (size_t)(eq - word)) : KEY_UNKNOWN;
    uint32_t *key = which == KEY_SLOTS ? &keys->slots : &keys->most;
    char *end;
    unsigned long n;

    if (which == KEY_UNKNOWN) {
        snprintf(err, errlen, "'%s' is not understood; behind the host's name stands slots=N", word);
        return false;
    }
    if (which == KEY_BINDING || which == KEY_IFHN) {
        keys->binding = keys->binding || which == KEY_BINDING;
        keys->ifhn = keys->ifhn || which == KEY_IFHN;
        return true;
    }
    n = strtoul(eq + 1, &end, 10);
    if (!isdigit((unsigned char)eq[1]) || *end || n < 1 || n > 1u << 20) {
        snprintf(err, errlen, "'%s': give a number%s from 1 on", word, which == KEY_MACHINE ? "" : " of ranks");
        return false;
    }
    if (which == KEY_MACHINE)
        return true;
    if (*key) {
        snprintf(err, errlen, "'%s': that was said before on this line", word);
        return false;
    }
    *key = (uint32_t)n;
    return true;
}

/* Make "slots=2" of "slots = 2". */
static void join_assignments(char *line)
{
    char *to = line;

    for (char *from = line; *from; from++) {
        if (*from == '=') {
            while (to > line && isblank((unsigned char)to[-1]))
                to--;
            from += strspn(from + 1, " \t");
            *to++ = '=';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static bool take_line(struct xr_hostlist *list, char *line, struct host_keys *given, char *err, size_t errlen)
{
    struct xr_hostlist here = {.n = 0};
    struct host_keys keys = {0};
    char *name, *word, *save = NULL;
    bool ok;

    *given = keys;
    line[strcspn(line, "#\r")] = '\0';
    join_assignments(line);
    name = strtok_r(line, " \t", &save);
    if (!name)
        return true;
    ok = xr_hostlist_parse(&here, name, err, errlen) == RANK_OK;
    while (ok && (word = strtok_r(NULL, " \t", &save)))
        ok = take_key(word, &keys, err, errlen);
    *given = keys;
    for (uint32_t i = 0; ok && i < here.n; i++) {
        uint32_t slots = keys.slots ? keys.slots : here.host[i].slots;
        if (keys.slots && here.host[i].slots) {
            snprintf(err, errlen, "'%s': how many ranks it takes stands behind the colon and in slots=; leave one out",
                     name);
            ok = false;
        } else {
            if (keys.most && (!slots || keys.most < slots)) /* the limit holds from the first round on */
                slots = keys.most;
            ok = xr_hostlist_add(list, here.host[i].name, strlen(here.host[i].name), slots) == RANK_OK;
            if (ok)
                xr_hostlist_limit(list, here.host[i].name, keys.most);
            else
                snprintf(err, errlen, "out of memory");
        }
    }
    xr_hostlist_clear(&here);
    return ok;
}

/* Warn of words without effect: the user may count on them. */
static void warn_unused(const char *path, unsigned line, const struct host_keys *keys)
{
    if (keys->binding)
        rk_warn("%s:%u: binding= has no effect; --bind and --rankfile choose the cores of a rank", path, line);
    if (keys->ifhn)
        rk_warn("%s:%u: ifhn= has no effect; --if chooses the network of the agents", path, line);
}

rank_status_t xr_hostlist_read(struct xr_hostlist *list, const char *path, char *err, size_t errlen)
{
    struct xr_text_file f;
    unsigned bad = 0;
    struct host_keys given;
    char *line, text[512];

    if (!xr_text_file_open(path, &f, text, sizeof(text))) {
        snprintf(err, errlen, "cannot read the hostfile %s: %s", path, text);
        xr_text_file_close(&f);
        return RANK_ERR_ARG;
    }
    list->source = "the hostfile";
    while ((line = xr_text_file_line(&f))) {
        if (f.nul) {
            snprintf(text, sizeof(text), "the line holds a NUL byte");
        } else if (take_line(list, line, &given, text, sizeof(text))) {
            warn_unused(path, f.number, &given);
            continue;
        }
        xr_shell_words_show(text);
        rk_error("%s:%u: %s", path, f.number, text);
        bad++;
    }
    if (!xr_text_file_close(&f)) {
        snprintf(err, errlen, "the hostfile %s cannot be read to its end", path);
        return RANK_ERR_ARG;
    }
    if (bad)
        snprintf(err, errlen, "the hostfile %s has %u bad line%s", path, bad, xr_plural(bad));
    else if (list->n == 0)
        snprintf(err, errlen, "the hostfile %s names no host", path);
    return bad || list->n == 0 ? RANK_ERR_ARG : RANK_OK;
}
