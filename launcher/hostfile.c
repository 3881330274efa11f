/* hostfile.c: lists of hosts in files, users' and resource managers'. See hostlist.h. */
#include "launcher/hostlist.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "slots=4" and the like. */
static bool take_key(const char *word, uint32_t *slots, char *err, size_t errlen)
{
    const char *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : 0;
    char *end;
    unsigned long n;

    if (!eq || !((len == 5 && !strncmp(word, "slots", 5)) || (len == 9 && !strncmp(word, "max_slots", 9)) ||
                 (len == 9 && !strncmp(word, "max-slots", 9)))) {
        snprintf(err, errlen, "'%s' is not understood; behind the host's name stands slots=N", word);
        return false;
    }
    n = strtoul(eq + 1, &end, 10);
    if (!isdigit((unsigned char)eq[1]) || *end || n < 1 || n > 1u << 20) {
        snprintf(err, errlen, "'%s': give a number of ranks from 1 on", word);
        return false;
    }
    if (len == 5)
        *slots = (uint32_t)n;
    else if (!*slots || n < *slots) /* no host takes more than its maximum */
        *slots = (uint32_t)n;
    return true;
}

static bool take_line(struct rk_hostlist *list, char *line, char *err, size_t errlen)
{
    struct rk_hostlist here = {.n = 0};
    uint32_t slots = 0;
    char *name, *word, *save = NULL;
    bool ok;

    line[strcspn(line, "#\r\n")] = '\0';
    name = strtok_r(line, " \t", &save);
    if (!name)
        return true;
    ok = rk_hostlist_parse(&here, name, err, errlen) == RANK_OK;
    while (ok && (word = strtok_r(NULL, " \t", &save)))
        ok = take_key(word, &slots, err, errlen);
    for (uint32_t i = 0; ok && i < here.n; i++)
        ok = rk_hostlist_add(list, here.host[i].name, strlen(here.host[i].name),
                             slots ? slots : here.host[i].slots) == RANK_OK;
    rk_hostlist_clear(&here);
    return ok;
}

rank_status_t rk_hostlist_read(struct rk_hostlist *list, const char *path, char *err, size_t errlen)
{
    FILE *f = fopen(path, "re");
    unsigned number = 0, bad = 0;
    char *line = NULL, text[512];
    size_t cap = 0;

    if (!f) {
        snprintf(err, errlen, "cannot read the hostfile %s: %s", path, strerror(errno));
        return RANK_ERR_ARG;
    }
    list->source = "the hostfile";
    while (getline(&line, &cap, f) >= 0) {
        number++;
        if (take_line(list, line, text, sizeof(text)))
            continue;
        rk_error("%s:%u: %s", path, number, text);
        bad++;
    }
    free(line);
    if (ferror(f)) {
        snprintf(err, errlen, "cannot read the hostfile %s: %s", path, strerror(errno));
        bad++;
    } else if (bad) {
        snprintf(err, errlen, "the hostfile %s has %u bad line%s", path, bad, bad > 1 ? "s" : "");
    } else if (list->n == 0) {
        snprintf(err, errlen, "the hostfile %s names no host", path);
        bad++;
    }
    fclose(f);
    return bad ? RANK_ERR_ARG : RANK_OK;
}

/* -------------------------------------------------------- resource managers */

/* "2(x3),1": slots of Slurm's nodes in their order. */
static bool slurm_slots(struct rk_hostlist *list, const char *text)
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
        while (times-- && at < list->n)
            list->host[at++].slots = (uint32_t)slots;
        text = end + (*end == ',');
    }
    return at == list->n;
}

static rank_status_t from_slurm(struct rk_hostlist *list, const char *nodes, char *err,
                                size_t errlen)
{
    const char *tasks = rk_env("SLURM_TASKS_PER_NODE");
    rank_status_t st;
    char why[256];

    list->source = "Slurm";
    st = rk_hostlist_parse(list, nodes, why, sizeof(why));
    if (st) {
        snprintf(err, errlen, "SLURM_JOB_NODELIST is not understood: %s", why);
        return st;
    }
    if (tasks && !slurm_slots(list, tasks)) {
        snprintf(err, errlen, "SLURM_TASKS_PER_NODE is '%s', which does not fit the %u nodes of %s",
                 tasks, list->n, nodes);
        return RANK_ERR_ARG;
    }
    return RANK_OK;
}

/* A line a slot: PBS's node file, and LSF's. */
static rank_status_t from_lines(struct rk_hostlist *list, const char *variable, const char *path,
                                const char *source, char *err, size_t errlen)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    rank_status_t st = RANK_OK;
    size_t cap = 0;

    if (!f) {
        snprintf(err, errlen, "cannot read %s, which %s names: %s", path, variable,
                 strerror(errno));
        return RANK_ERR_ARG;
    }
    list->source = source;
    while (!st && getline(&line, &cap, f) >= 0) {
        size_t len = strcspn(line, " \t\r\n");
        if (len)
            st = rk_hostlist_add(list, line, len, 1);
    }
    free(line);
    fclose(f);
    if (!st && list->n == 0)
        st = RANK_ERR_ARG;
    if (st)
        snprintf(err, errlen, "%s, which %s names, holds no hosts", path, variable);
    return st;
}

/* "hosta 4 hostb 4" */
static rank_status_t from_pairs(struct rk_hostlist *list, const char *text, char *err, size_t errlen)
{
    const char *at = text;
    rank_status_t st = RANK_OK;

    list->source = "LSF";
    for (at += strspn(at, " "); *at && !st; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        const char *name = at;
        unsigned long slots;
        char *end;
        slots = strtoul(at + len, &end, 10);
        st = slots >= 1 && slots <= 1u << 20 ? rk_hostlist_add(list, name, len, (uint32_t)slots)
                                             : RANK_ERR_ARG;
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
static rank_status_t from_words(struct rk_hostlist *list, const char *text, char *err, size_t errlen)
{
    rank_status_t st = RANK_OK;

    list->source = "LSF";
    for (const char *at = text + strspn(text, " "); *at && !st; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        st = rk_hostlist_add(list, at, len, 1);
        at += len;
    }
    if (!st && list->n)
        return RANK_OK;
    snprintf(err, errlen, "LSB_HOSTS is '%s'; names of hosts are expected", text);
    return RANK_ERR_ARG;
}

rank_status_t rk_hostlist_allocated(struct rk_hostlist *list, char *err, size_t errlen)
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
