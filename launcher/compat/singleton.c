/* SPDX-License-Identifier: BSD-3-Clause */
/* singleton.c: see singleton.h. */
#include "launcher/compat/singleton.h"
#include "launcher/util/procfs.h"
#include "launcher/compat/elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Delays of process probes: the first after this time, each further one after three times as long. */
#define FIRST_MS 17
#define PROBES 6 /* the last after 6 s */
/* A wrapper's child may be the program, or its child. */
#define GENERATIONS 4

struct app {
    struct xr_singletons_app is;
    uint32_t left;             /* ranks here that have not ended */
    bool over;                 /* nothing more to report */
    char uses[64];
};

struct xr_singletons {
    struct event *timer;
    struct app *apps; /* [napps] */
    uint32_t napps, open; /* open: those that are not over */
    void (*report)(void *arg, uint32_t app, bool over, const char *uses);
    void *arg;
    unsigned probes;
};

/* Return whether the name is a library of Open MPI, MPICH or a derivative. */
static bool is_mpi(const char *name)
{
    return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_", 7) == 0 ||
           strncmp(name, "libmpich", 8) == 0 || strncmp(name, "libmpifort", 10) == 0;
}

static bool find_library(void *arg, const char *path)
{
    struct app *a = arg;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!is_mpi(name))
        return true;
    snprintf(a->uses, sizeof(a->uses), "%s", name);
    return false;
}

static void close_app(struct xr_singletons *s, struct app *a)
{
    a->over = true;
    if (--s->open == 0)
        event_del(s->timer);
}

static void report_singleton(struct xr_singletons *s, struct app *a)
{
    s->report(s->arg, (uint32_t)(a - s->apps), a->left == 0, a->uses);
    close_app(s, a);
}

/* Return whether a launcher that the rank runs serves this process: then one of these variables differs. */
static bool is_served(pid_t rank, pid_t pid)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMI_FD", "PMI_PORT"};
    char mine[300], its[300];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && pid != rank; i++) {
        if (!xr_procfs_variable(pid, names[i], its, sizeof(its)))
            continue;
        if (!xr_procfs_variable(rank, names[i], mine, sizeof(mine)) || strcmp(mine, its) != 0)
            return true;
    }
    return false;
}

static void probe_app(struct app *a)
{
    pid_t pid = a->is.pid;

    for (int i = 0; i < GENERATIONS && !a->uses[0] && !is_served(a->is.pid, pid); i++) {
        xr_procfs_each_file(pid, find_library, a);
        if (xr_procfs_children(pid, &pid, 1) == 0)
            break;
    }
}

static void on_probe(evutil_socket_t fd, short what, void *arg)
{
    struct xr_singletons *s = arg;
    struct timeval next;
    uint32_t ms = FIRST_MS;

    (void)fd;
    (void)what;
    s->probes++;
    for (uint32_t i = 0; i < s->napps; i++) {
        struct app *a = &s->apps[i];
        if (a->over)
            continue;
        probe_app(a);
        if (s->probes == PROBES && a->uses[0])
            report_singleton(s, a);
    }
    if (s->probes == PROBES || s->open == 0)
        return;
    for (unsigned i = 0; i < s->probes; i++)
        ms *= 3;
    next = (struct timeval){ms / 1000, ms % 1000 * 1000};
    event_add(s->timer, &next);
}

rank_status_t xr_singletons_watch(struct event_base *base, const struct xr_singletons_app *apps, uint32_t napps,
                                  void (*report)(void *arg, uint32_t app, bool over, const char *uses), void *arg,
                                  struct xr_singletons **out)
{
    const struct timeval first = {0, FIRST_MS * 1000};
    struct xr_singletons *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return RANK_ERR_NO_MEMORY;
    s->napps = napps;
    s->report = report;
    s->arg = arg;
    s->apps = calloc(napps ? napps : 1, sizeof(*s->apps));
    s->timer = evtimer_new(base, on_probe, s);
    for (uint32_t i = 0; s->apps && i < napps; i++) {
        s->apps[i].is = apps[i];
        s->apps[i].left = apps[i].local;
        s->apps[i].over = apps[i].local == 0;
        s->open += !s->apps[i].over;
    }
    if (!s->apps || !s->timer || (s->open > 0 && event_add(s->timer, &first))) {
        xr_singletons_destroy(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void xr_singletons_destroy(struct xr_singletons *s)
{
    if (!s)
        return;
    if (s->timer)
        event_free(s->timer);
    free(s->apps);
    free(s);
}

void xr_singletons_joined(struct xr_singletons *s, uint32_t app)
{
    if (s && !s->apps[app].over)
        close_app(s, &s->apps[app]);
}

void xr_singletons_ended(struct xr_singletons *s, uint32_t app, bool well)
{
    struct app *a = s ? &s->apps[app] : NULL;

    if (!a || a->over || (a->left-- > 1 && well))
        return;
    if (well && !a->uses[0])
        xr_elf_needs(a->is.program, is_mpi, a->uses, sizeof(a->uses));
    if (well && a->uses[0])
        report_singleton(s, a);
    else
        close_app(s, a);
}
