/* local_alias.c: see twins.h. */
#include "launcher/alloc/local_alias.h"
#include "launcher/util/pack.h"
#include "launcher/util/shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* full: the first name of this host that has a domain, or NULL. */
static bool is_own(struct xr_here *here, const char *full, const char *name)
{
    return xr_here_is(here, name) && !(full && xr_here_differ(full, name));
}

rank_status_t xr_twins_merge(struct xr_hostlist *hosts, struct xr_here *here)
{
    struct xr_hostlist merged = {.source = hosts->source};
    uint32_t own = XR_NO_HOST, others = 0;
    const char *full = NULL;
    rank_status_t st = RANK_OK;

    for (uint32_t i = 0; i < hosts->n; i++) {
        const char *name = hosts->host[i].name;
        if (!is_own(here, full, name))
            continue;
        if (!full && xr_here_domain(name))
            full = name;
        others += own != XR_NO_HOST;
        own = own == XR_NO_HOST ? i : own;
    }
    if (!others)
        return RANK_OK;
    for (uint32_t i = 0; !st && i < hosts->n; i++) {
        const struct xr_hostspec *h = &hosts->host[is_own(here, full, hosts->host[i].name) ? own : i];
        st = xr_hostlist_add(&merged, h->name, strlen(h->name), hosts->host[i].slots);
        xr_hostlist_limit(&merged, h->name, hosts->host[i].most);
    }
    if (st) {
        xr_hostlist_clear(&merged);
        return st;
    }
    xr_hostlist_clear(hosts);
    *hosts = merged;
    return RANK_OK;
}

struct seen {
    uint64_t machine;
    uint32_t host;
};

/* By machine, and then as the user named them. */
static int compare(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->machine != y->machine)
        return x->machine < y->machine ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

uint32_t xr_twins_find(struct xr_plan *p, char *line, size_t len)
{
    struct seen *all = calloc(p->hosts.n, sizeof(*all));
    uint32_t twins = 0, last;

    for (uint32_t i = 0; all && i < p->hosts.n; i++)
        all[i] = (struct seen){p->known[i].machine, i};
    if (all)
        qsort(all, p->hosts.n, sizeof(*all), compare);
    for (uint32_t i = 0; all && i < p->hosts.n; i = last) {
        for (last = i + 1; last < p->hosts.n && all[i].machine && all[last].machine == all[i].machine;)
            last++;
        for (uint32_t k = i; k < last; k++)
            p->known[all[k].host].names = last - i;
        if (last - i > 1 && twins == 0)
            snprintf(line, len, "%s and %s are one host", p->hosts.host[all[i].host].name,
                     p->hosts.host[all[i + 1].host].name);
        twins += last - i - 1;
    }
    free(all);
    if (twins > 1)
        snprintf(line + strlen(line), len - strlen(line), " (and there are %u more such names)", twins - 1);
    return twins;
}

bool xr_twins_allowed(const struct xr_plan *p)
{
    const char *wrong, *slash;
    char **words;
    bool ssh;

    if (!p->where->agent)
        return false;
    words = xr_words_split(p->where->agent, &wrong);
    slash = words && words[0] ? strrchr(words[0], '/') : NULL;
    ssh = words && words[0] && strcmp(slash ? slash + 1 : words[0], "ssh") == 0;
    xr_strings_free(words);
    return !ssh;
}
