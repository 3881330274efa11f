/* SPDX-License-Identifier: BSD-3-Clause */
/* hostfile.c: lists of hosts in files, users' and resource managers'. See hostlist.h. */
#include "launcher/alloc/hostlist.h"
#include "launcher/util/text_file.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands behind a host's name; 0: nothing was said. */
struct keys {
    uint32_t slots, most;
    bool binding, ifhn; /* words of other launchers that ask for what is not done here */
};

/* What a word is about. */
enum key { KEY_SLOTS, KEY_MOST, KEY_MACHINE, KEY_BINDING, KEY_IFHN, KEY_UNKNOWN };

/* Words of other launchers have the meaning that they have there. */
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

/* "slots=4" and the like. */
static bool take_key(const char *word, struct keys *keys, char *err, size_t errlen)
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

/* "slots = 2" as "slots=2". */
static void close_up(char *line)
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

static bool hostfile_take_line(struct xr_hostlist *list, char *line, struct keys *said, char *err, size_t errlen)
{
    struct xr_hostlist here = {.n = 0};
    struct keys keys = {0};
    char *name, *word, *save = NULL;
    bool ok;

    *said = keys;
    line[strcspn(line, "#\r")] = '\0';
    close_up(line);
    name = strtok_r(line, " \t", &save);
    if (!name)
        return true;
    ok = xr_hostlist_parse(&here, name, err, errlen) == RANK_OK;
    while (ok && (word = strtok_r(NULL, " \t", &save)))
        ok = take_key(word, &keys, err, errlen);
    *said = keys;
    for (uint32_t i = 0; ok && i < here.n; i++) {
        uint32_t slots = keys.slots ? keys.slots : here.host[i].slots;
        if (keys.slots && here.host[i].slots) {
            snprintf(err, errlen, "'%s': how many ranks it takes stands behind the colon and in slots=; leave one out",
                     name);
            ok = false;
        } else {
            if (keys.most && (!slots || keys.most < slots)) /* nor does it in the first round */
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

/* Not silently: the user may count on it. */
static void warn_unused(const char *path, unsigned line, const struct keys *keys)
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
    struct keys said;
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
        } else if (hostfile_take_line(list, line, &said, text, sizeof(text))) {
            warn_unused(path, f.number, &said);
            continue;
        }
        xr_words_show(text);
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

/* -------------------------------------------------------- resource managers */

/* "2(x3),1": slots of Slurm's nodes in their order. */
static bool slurm_slots(struct xr_hostlist *list, const char *text)
{
    uint32_t at = 0;

    while (*text && at < list->n) {
        char *end;
        unsigned long slots = strtoul(text, &end, 10), times = 1;
        if (end == text || slots < 1 || slots > 1u << 20)
            return false;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtoul(end + 2, &end, 10);
            if (*end++ != ')')
                return false;
        }
        if (times < 1 || times > list->n - at)
            return false;
        while (times--)
            list->host[at++].slots = (uint32_t)slots;
        if (*end && (*end != ',' || !end[1]))
            return false;
        text = end + (*end == ',');
    }
    return at == list->n && !*text;
}

/* Inside a step of fewer nodes than the job has: srun has put the step's counts in place of the job's, but not its nodes. */
static bool from_step(struct xr_hostlist *list, const char *tasks)
{
    const char *nodes = rk_env("SLURM_STEP_NODELIST"), *own = rk_env("SLURM_STEP_TASKS_PER_NODE");
    struct xr_hostlist step = {.source = "Slurm's step"};
    char why[256];

    if (!nodes || !*nodes || xr_hostlist_parse(&step, nodes, why, sizeof(why)) ||
        !slurm_slots(&step, own && *own ? own : tasks)) {
        xr_hostlist_clear(&step);
        return false;
    }
    xr_hostlist_clear(list);
    *list = step;
    return true;
}

static rank_status_t from_slurm(struct xr_hostlist *list, const char *nodes, char *err,
                                size_t errlen)
{
    const char *tasks = rk_env("SLURM_TASKS_PER_NODE");
    rank_status_t st;
    char why[256];

    list->source = "Slurm";
    st = xr_hostlist_parse(list, nodes, why, sizeof(why));
    if (st) {
        snprintf(err, errlen, "SLURM_JOB_NODELIST is not understood: %s", why);
        return st;
    }
    if (tasks && !slurm_slots(list, tasks) && !from_step(list, tasks)) {
        snprintf(err, errlen, "SLURM_TASKS_PER_NODE is '%s', which does not fit the %u node%s of %s",
                 tasks, list->n, xr_plural(list->n), nodes);
        return RANK_ERR_ARG;
    }
    return RANK_OK;
}

/* A line a slot: PBS's node file, and LSF's. */
static rank_status_t from_lines(struct xr_hostlist *list, const char *variable, const char *path,
                                const char *source, char *err, size_t errlen)
{
    struct xr_text_file f;
    const char *wrong = NULL;
    char *line, why[256];

    if (!xr_text_file_open(path, &f, why, sizeof(why))) {
        snprintf(err, errlen, "cannot read %s, which %s names: %s", path, variable, why);
        xr_text_file_close(&f);
        return RANK_ERR_ARG;
    }
    list->source = source;
    while (!wrong && (line = xr_text_file_line(&f))) {
        size_t len = strcspn(line, " \t\r");
        if (f.nul)
            wrong = "the line holds a NUL byte";
        else if (len)
            xr_hostlist_take(list, line, len, 1, &wrong);
        if (wrong)
            snprintf(err, errlen, "%s:%u, which %s names: '%.*s': %s", path, f.number, variable,
                     (int)(len > 255 ? 255 : len), line, wrong);
    }
    if (!xr_text_file_close(&f) && !wrong) {
        snprintf(err, errlen, "%s, which %s names, cannot be read to its end", path, variable);
        return RANK_ERR_ARG;
    }
    if (!wrong && list->n == 0)
        snprintf(err, errlen, "%s, which %s names, holds no hosts", path, variable);
    return wrong || list->n == 0 ? RANK_ERR_ARG : RANK_OK;
}

/* "hosta 4 hostb 4"; a host with 0, as that of the job's script may be, takes no ranks. */
static rank_status_t from_pairs(struct xr_hostlist *list, const char *text, char *err, size_t errlen)
{
    const char *at = text, *wrong;
    rank_status_t st = RANK_OK;

    list->source = "LSF";
    for (at += strspn(at, " "); *at && !st; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        const char *name = at;
        unsigned long slots;
        char *end;
        slots = strtoul(at + len, &end, 10);
        if (end == at + len || slots > 1u << 20)
            st = RANK_ERR_ARG;
        else if (slots)
            st = xr_hostlist_take(list, name, len, (uint32_t)slots, &wrong);
        at = end;
    }
    if (st || list->n == 0) {
        snprintf(err, errlen, "LSB_MCPU_HOSTS is '%s'; pairs of a host and its slots are expected",
                 text);
        return RANK_ERR_ARG;
    }
    return RANK_OK;
}

/* "hosta hosta hostb": each as often as it has slots */
static rank_status_t from_words(struct xr_hostlist *list, const char *text, char *err, size_t errlen)
{
    rank_status_t st = RANK_OK;
    const char *wrong;

    list->source = "LSF";
    for (const char *at = text + strspn(text, " "); *at && !st; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        st = xr_hostlist_take(list, at, len, 1, &wrong);
        at += len;
    }
    if (!st && list->n)
        return RANK_OK;
    snprintf(err, errlen, "LSB_HOSTS is '%s'; names of hosts are expected", text);
    return RANK_ERR_ARG;
}

rank_status_t xr_hostlist_allocated(struct xr_hostlist *list, char *err, size_t errlen)
{
    const char *v;

    if ((v = rk_env("SLURM_JOB_NODELIST")) && *v)
        return from_slurm(list, v, err, errlen);
    if ((v = rk_env("PBS_NODEFILE")) && *v)
        return from_lines(list, "PBS_NODEFILE", v, "PBS", err, errlen);
    if ((v = rk_env("LSB_DJOB_HOSTFILE")) && *v)
        return from_lines(list, "LSB_DJOB_HOSTFILE", v, "LSF", err, errlen);
    if ((v = rk_env("LSB_MCPU_HOSTS")) && *v)
        return from_pairs(list, v, err, errlen);
    if ((v = rk_env("LSB_HOSTS")) && *v)
        return from_words(list, v, err, errlen);
    return RANK_OK;
}
