/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource_manager.c: read the hosts of Slurm, PBS or LSF. See hostlist.h.
 */
#include "launcher/alloc/hostlist.h"
#include "launcher/util/shell_words.h"
#include "launcher/util/text_file.h"
#include "lib/base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse "2(x3),1", the slots of Slurm's nodes in their order. */
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

/*
 * Read the nodes of a step that has fewer than the job. There srun replaces the job's counts by the step's, but not
 * the job's nodes.
 */
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

/* Read the node file of PBS or LSF, with a line for each slot. */
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

/* Parse "hosta 4 hostb 4". A host with 0, as that of the job's script may be, takes no ranks. */
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

/* Parse "hosta hosta hostb": each host as often as it has slots. */
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
