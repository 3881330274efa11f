/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.c: parse the options about hosts and places. See policy.h.
 */
#include "launcher/map/policy.h"
#include "launcher/util/strv.h"
#include "launcher/util/cidr.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"
#include "lib/topo/pair.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool policy_number(const char *text, unsigned long max, char **end, uint32_t *out)
{
    unsigned long n = isdigit((unsigned char)*text) ? strtoul(text, end, 10) : 0;

    *out = (uint32_t)n;
    return n >= 1 && n <= max;
}

static bool find_level(const char *word, enum xr_level *out)
{
    static const struct {
        const char *word;
        enum xr_level level;
    } other[] = {{"socket", XR_LEVEL_PACKAGE}, {"l3cache", XR_LEVEL_L3}, {"host", XR_LEVEL_NODE}};

    for (int l = 0; l <= XR_LEVEL_HWTHREAD; l++) {
        if (strcmp(word, xr_level_name((enum xr_level)l)) == 0) {
            *out = (enum xr_level)l;
            return true;
        }
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(other); i++) {
        if (strcmp(word, other[i].word) == 0) {
            *out = other[i].level;
            return true;
        }
    }
    return false;
}

bool xr_policy_map_by(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    enum xr_level level;
    uint32_t ppr = 0;
    char *end = NULL;

    if (strncmp(value, "ppr:", 4) == 0) {
        if (policy_number(value + 4, 1u << 20, &end, &ppr) && *end == ':' && find_level(end + 1, &level) &&
            level != XR_LEVEL_SLOT) {
            w->request.map = level;
            w->request.ppr = ppr;
            return true;
        }
    } else if (find_level(value, &level)) {
        w->request.map = level;
        w->request.ppr = 0;
        return true;
    }
    snprintf(err, errlen,
             "--map-by is '%s'; give slot, node, package, numa, l3, core, hwthread or ppr:N: and one "
             "of these but slot",
             value);
    return false;
}

bool xr_policy_rank_by(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    static const char *const words[] = {"slot", "node", "fill"};

    for (size_t i = 0; i < RK_ARRAY_LEN(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            w->request.order = (enum xr_order)i;
            return true;
        }
    }
    snprintf(err, errlen, "--rank-by is '%s'; give slot, node or fill", value);
    return false;
}

bool xr_policy_bind(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    static const char *const words[] = {"share", "none", "package", "numa", "l3", "core", "hwthread"};

    for (size_t i = 0; i < RK_ARRAY_LEN(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            w->request.bind = (enum xr_bind)i;
            return true;
        }
    }
    snprintf(err, errlen, "--bind is '%s'; give share, none, hwthread, core, l3, numa or package",
             value);
    return false;
}

bool xr_policy_cpus(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    char *end = NULL;

    if (policy_number(value, 1u << 20, &end, &w->request.cpus) && !*end)
        return true;
    snprintf(err, errlen, "--cpus-per-rank is '%s'; give a number of cores from 1 on", value);
    return false;
}

bool xr_policy_gpus(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    char *end = NULL;

    if (policy_number(value, 1024, &end, &w->gpus_per_rank) && !*end)
        return true;
    snprintf(err, errlen, "--gpus-per-rank is '%s'; give a number of GPUs from 1 on", value);
    return false;
}

/* option: with its name, and devices: a plural, for the message. */
static bool device_bind(const char **bind, const char *option, const char *devices, const char *value, char *err,
                               size_t errlen)
{
    bool ok = strcmp(value, "closest") == 0 || strcmp(value, "none") == 0;
    uint32_t *list = NULL, n;

    if (strncmp(value, "map:", 4) == 0)
        ok = rk_device_list(value + 4, &list, &n);
    free(list);
    *bind = value;
    if (!ok)
        snprintf(err, errlen, "%s is '%s'; give closest, none or map: and numbers of %s, as map:0,2-3", option, value, devices);
    return ok;
}

bool xr_policy_gpu_bind(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    return device_bind(&w->gpu_bind, "--gpu-bind", "GPUs", value, err, errlen);
}

bool xr_policy_nics(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    char *end = NULL;

    if (policy_number(value, 1024, &end, &w->nics_per_rank) && !*end)
        return true;
    snprintf(err, errlen, "--nics-per-rank is '%s'; give a number of NICs from 1 on", value);
    return false;
}

bool xr_policy_nic_bind(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    return device_bind(&w->nic_bind, "--nic-bind", "NICs", value, err, errlen);
}

static const char *policy_device_words(const char *bind, uint32_t per_rank)
{
    if (!bind)
        return per_rank ? "closest" : "";
    return strncmp(bind, "map:", 4) == 0 ? bind + 4 : bind;
}

const char *xr_policy_gpu_words(const struct xr_policy *w)
{
    return policy_device_words(w->gpu_bind, w->gpus_per_rank);
}

const char *xr_policy_nic_words(const struct xr_policy *w)
{
    return policy_device_words(w->nic_bind, w->nics_per_rank);
}

bool xr_policy_fanout(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    char *end = NULL;

    if (policy_number(value, 4096, &end, &w->fanout) && !*end)
        return true;
    snprintf(err, errlen, "--fanout is '%s'; give how many agents one process starts, from 1 on",
             value);
    return false;
}

bool xr_policy_start_timeout(struct xr_policy *w, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);

    if (end != value && !*end && isfinite(s) && s > 0 && s <= 1e6) {
        w->start_timeout = s;
        return true;
    }
    snprintf(err, errlen, "--start-timeout is '%s'; give seconds, more than 0", value);
    return false;
}

/* Check an option value that is a command line. */
static bool check_words(const char *option, const char *value, bool needed, char *err, size_t errlen)
{
    const char *wrong;
    char **words = xr_shell_words_split(value, &wrong);
    bool ok = words && (words[0] || !needed);

    if (!words)
        snprintf(err, errlen, "%s is '%s': %s", option, value, wrong ? wrong : "out of memory");
    else if (!ok)
        snprintf(err, errlen, "%s is '%s', which names no command", option, value);
    xr_strv_free(words);
    return ok;
}

bool xr_policy_check(const struct xr_policy *w, char *err, size_t errlen)
{
    struct xr_cidr network;

    if (w->rankfile && (w->request.map != XR_LEVEL_SLOT || w->request.ppr)) {
        snprintf(err, errlen, "--rankfile and --map-by both say where ranks go; leave one out");
        return false;
    }
    if (w->rankfile && (w->request.order || w->request.cpus ||
                        (w->request.bind != XR_BIND_SHARE && w->request.bind != XR_BIND_HWTHREAD))) {
        snprintf(err, errlen, "--rankfile and --%s both say %s; leave one out",
                 w->request.order ? "rank-by" : w->request.cpus ? "cpus-per-rank" : "bind",
                 w->request.order ? "which number a rank has" : "what a rank may run on");
        return false;
    }
    if (w->gpus_per_rank && w->gpu_bind && strcmp(w->gpu_bind, "none") == 0) {
        snprintf(err, errlen, "--gpus-per-rank %u and --gpu-bind none contradict each other; leave one out", w->gpus_per_rank);
        return false;
    }
    if (w->nics_per_rank && w->nic_bind && strcmp(w->nic_bind, "none") == 0) {
        snprintf(err, errlen, "--nics-per-rank %u and --nic-bind none contradict each other; leave one out", w->nics_per_rank);
        return false;
    }
    if (w->topo && (w->hosts || w->nhostfiles)) {
        snprintf(err, errlen, "--topo shows one machine, and --%s names others; --dry-run shows a map of hosts",
                 w->hosts ? "host" : "hostfile");
        return false;
    }
    if (w->xml && !w->dry_run && !w->topo) {
        snprintf(err, errlen, "--xml %s is a machine to plan for; add --dry-run or --topo", w->xml);
        return false;
    }
    if (w->interface && strchr(w->interface, '/') && !xr_cidr_parse(w->interface, &network)) {
        snprintf(err, errlen, "--if is '%s'; give an interface, or a network as 10.1.0.0/16", w->interface);
        return false;
    }
    if ((w->agent && !check_words("--agent", w->agent, true, err, errlen)) ||
        (w->ssh_args && !check_words("--ssh-args", w->ssh_args, false, err, errlen)))
        return false;
    if (w->request.ppr && w->request.cpus > 1 && w->request.map >= XR_LEVEL_CORE) {
        snprintf(err, errlen, "--cpus-per-rank %u does not go with ranks on each %s", w->request.cpus,
                 xr_level_name(w->request.map));
        return false;
    }
    return true;
}
