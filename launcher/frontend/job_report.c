/* SPDX-License-Identifier: BSD-3-Clause */
/* job_report.c: collect the facts of a job for --json. See job_report.h. */
#include "launcher/frontend/job_report.h"
#include "launcher/util/json_writer.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

struct rank {
    char *cpus; /* NULL: not known */
    uint32_t host; /* index; UINT32_MAX: not placed */
    uint32_t pid;
    bool bound, exited, unfinished;
    int status;
    uint64_t start_ns, end_ns; /* since 1970, by its host's clock */
    uint64_t lived_ns;
    uint64_t usage[XR_USAGE_FIELDS];
    bool has_usage;
};

/* The phases of a start. */
struct phases {
    struct phase {
        char name[40];
        uint64_t ns;
    } *phase;
    size_t n;
};

struct host {
    char *name, *pmix; /* pmix: version */
    uint32_t ranks, node;
};

struct xr_report {
    const char *path;
    const struct xr_job *job;
    FILE *out;
    uint64_t start_ns;
    struct rank *ranks; /* [job->size] */
    struct host *hosts;
    uint32_t nhosts;
    struct phases start;
    struct phases *started; /* [nstarted] of each host, by its number in the job */
    uint32_t nstarted;
    char *cause;
    struct xr_report_spawned *spawned;
    uint32_t nspawned;
};

static uint64_t job_report_wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct xr_report *xr_report_open(const char *path, const struct xr_job *job, char *err,
                                 size_t errlen)
{
    struct xr_report *r = calloc(1, sizeof(*r));

    if (r)
        r->ranks = calloc(job->size, sizeof(*r->ranks));
    if (!r || !r->ranks) {
        snprintf(err, errlen, "out of memory");
        free(r);
        return NULL;
    }
    r->path = path;
    r->job = job;
    r->start_ns = job_report_wall_ns();
    for (uint32_t i = 0; i < job->size; i++)
        r->ranks[i].host = UINT32_MAX;
    r->out = fopen(path, "we");
    if (!r->out) {
        snprintf(err, errlen, "--json: cannot write %s: %s", path, strerror(errno));
        xr_report_close(r);
        return NULL;
    }
    return r;
}

void xr_report_close(struct xr_report *r)
{
    if (!r)
        return;
    if (r->out)
        fclose(r->out);
    for (uint32_t i = 0; i < r->job->size; i++)
        free(r->ranks[i].cpus);
    for (uint32_t i = 0; i < r->nhosts; i++) {
        free(r->hosts[i].name);
        free(r->hosts[i].pmix);
    }
    for (uint32_t i = 0; i < r->nspawned; i++) {
        free((char *)(uintptr_t)r->spawned[i].job);
        free((char *)(uintptr_t)r->spawned[i].parent);
    }
    for (uint32_t i = 0; i < r->nstarted; i++)
        free(r->started[i].phase);
    free(r->started);
    free(r->start.phase);
    free(r->spawned);
    free(r->hosts);
    free(r->ranks);
    free(r->cause);
    free(r);
}

/* ------------------------------------------------------------------- collecting */

static void add_phase(struct phases *p, const char *name, uint64_t ns)
{
    struct phase *more = realloc(p->phase, (p->n + 1) * sizeof(*more));

    if (!more)
        return;
    p->phase = more;
    snprintf(more[p->n].name, sizeof(more->name), "%s", name);
    more[p->n++].ns = ns;
}

void xr_report_phase(struct xr_report *r, const char *name, uint64_t ns)
{
    if (r)
        add_phase(&r->start, name, ns);
}

void xr_report_host_phase(struct xr_report *r, uint32_t node, const char *name, uint64_t ns)
{
    struct phases *more;

    if (!r)
        return;
    if (node >= r->nstarted) {
        more = realloc(r->started, ((size_t)node + 1) * sizeof(*more));
        if (!more)
            return;
        memset(more + r->nstarted, 0, (node + 1 - r->nstarted) * sizeof(*more));
        r->started = more;
        r->nstarted = node + 1;
    }
    add_phase(&r->started[node], name, ns);
}

static bool add_host(struct xr_report *r, const char *name, const char *pmix)
{
    struct host *more = realloc(r->hosts, (r->nhosts + 1) * sizeof(*more));

    if (!more)
        return false;
    r->hosts = more;
    more[r->nhosts] = (struct host){.name = strdup(name), .pmix = strdup(pmix), .node = UINT32_MAX};
    r->nhosts++;
    return true;
}

static bool on_placed(struct xr_report *r, struct xr_unpacker *u)
{
    const char *name = xr_unpack_string(u), *pmix = xr_unpack_string(u);
    uint32_t n = xr_unpack_u32(u);

    if (!name || !pmix || !add_host(r, name, pmix))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u), bound = xr_unpack_u32(u);
        uint64_t start = xr_unpack_u64(u);
        const char *cpus = xr_unpack_string(u);
        struct rank *at;
        if (u->failed || rank >= r->job->size || !cpus)
            return false;
        at = &r->ranks[rank];
        at->host = r->nhosts - 1;
        if (r->job->host_of)
            r->hosts[at->host].node = r->job->host_of[rank];
        at->pid = pid;
        at->bound = bound;
        at->start_ns = start;
        free(at->cpus);
        at->cpus = strdup(cpus);
        r->hosts[at->host].ranks++;
    }
    return xr_unpack_done(u);
}

static bool on_usage(struct xr_report *r, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u);
    uint64_t end = xr_unpack_u64(u);

    if (u->failed || rank >= r->job->size)
        return false;
    r->ranks[rank].end_ns = end;
    for (int i = 0; i < XR_USAGE_FIELDS; i++)
        r->ranks[rank].usage[i] = xr_unpack_u64(u);
    r->ranks[rank].has_usage = true;
    return xr_unpack_done(u);
}

bool xr_report_message(struct xr_report *r, uint32_t kind, struct xr_unpacker *u)
{
    if (!r)
        return true;
    return kind == XR_MSG_PLACED ? on_placed(r, u) : on_usage(r, u);
}

void xr_report_exited(struct xr_report *r, uint32_t rank, uint32_t pid, int status,
                      uint64_t lived_ns, bool unfinished)
{
    struct rank *at;

    if (!r || rank >= r->job->size)
        return;
    at = &r->ranks[rank];
    at->pid = pid;
    at->status = status;
    at->lived_ns = lived_ns;
    at->unfinished = unfinished;
    at->exited = true;
}

void xr_report_spawned(struct xr_report *r, const struct xr_report_spawned *spawned)
{
    struct xr_report_spawned *more = r ? realloc(r->spawned, (r->nspawned + 1) * sizeof(*more)) : NULL, *at;

    if (!more)
        return;
    r->spawned = more;
    at = &more[r->nspawned++];
    *at = *spawned;
    at->job = spawned->job ? strdup(spawned->job) : NULL;
    at->parent = spawned->parent ? strdup(spawned->parent) : NULL;
}

void xr_report_cause(struct xr_report *r, const char *fmt, ...)
{
    va_list ap;

    if (!r || r->cause)
        return;
    va_start(ap, fmt);
    if (vasprintf(&r->cause, fmt, ap) < 0)
        r->cause = NULL;
    va_end(ap);
}

/* --------------------------------------------------------------------- writing */

static void write_apps(struct xr_json *j, const struct xr_job *job)
{
    xr_json_array(j, "programs");
    for (uint32_t i = 0; i < job->napps; i++) {
        const struct xr_app *app = &job->apps[i];
        xr_json_object(j, NULL);
        xr_json_int(j, "first_rank", app->first);
        xr_json_int(j, "ranks", app->n);
        xr_json_text(j, "path", app->program);
        xr_json_flat_array(j, "argv");
        for (char *const *arg = app->argv; *arg; arg++)
            xr_json_text(j, NULL, *arg);
        xr_json_end(j);
        xr_json_text(j, "wdir", app->wdir);
        xr_json_end(j);
    }
    xr_json_end(j);
}

static void write_phases(struct xr_json *j, const struct phases *p)
{
    for (size_t i = 0; i < p->n; i++)
        xr_json_fixed(j, p->phase[i].name, (double)p->phase[i].ns * 1e-6);
    xr_json_end(j);
}

static void write_hosts(struct xr_json *j, const struct xr_report *r)
{
    xr_json_array(j, "hosts");
    for (uint32_t i = 0; i < r->nhosts; i++) {
        xr_json_flat_object(j, NULL);
        xr_json_text(j, "name", r->hosts[i].name);
        xr_json_int(j, "ranks", r->hosts[i].ranks);
        xr_json_text(j, "pmix", r->hosts[i].pmix);
        if (r->hosts[i].node < r->nstarted) {
            xr_json_flat_object(j, "startup_ms");
            write_phases(j, &r->started[r->hosts[i].node]);
        }
        xr_json_end(j);
    }
    xr_json_end(j);
}

static void write_usage(struct xr_json *j, const uint64_t *usage)
{
    xr_json_flat_object(j, "rusage");
    xr_json_seconds(j, "user", usage[XR_USAGE_USER_NS]);
    xr_json_seconds(j, "system", usage[XR_USAGE_SYSTEM_NS]);
    xr_json_int(j, "max_rss_kib", (int64_t)usage[XR_USAGE_MAX_RSS_KIB]);
    xr_json_int(j, "minor_faults", (int64_t)usage[XR_USAGE_MINOR_FAULTS]);
    xr_json_int(j, "major_faults", (int64_t)usage[XR_USAGE_MAJOR_FAULTS]);
    xr_json_int(j, "blocks_in", (int64_t)usage[XR_USAGE_BLOCKS_IN]);
    xr_json_int(j, "blocks_out", (int64_t)usage[XR_USAGE_BLOCKS_OUT]);
    xr_json_int(j, "voluntary_switches", (int64_t)usage[XR_USAGE_VOLUNTARY]);
    xr_json_int(j, "involuntary_switches", (int64_t)usage[XR_USAGE_INVOLUNTARY]);
    xr_json_end(j);
}

static void write_rank(struct xr_json *j, const struct xr_report *r, uint32_t rank)
{
    const struct rank *at = &r->ranks[rank];

    xr_json_flat_object(j, NULL);
    xr_json_int(j, "rank", rank);
    xr_json_int(j, "program", xr_job_app_of(r->job, rank) - r->job->apps);
    xr_json_text(j, "host", at->host < r->nhosts ? r->hosts[at->host].name : NULL);
    if (at->pid)
        xr_json_int(j, "pid", at->pid);
    else
        xr_json_null(j, "pid");
    xr_json_text(j, "cpus", at->cpus);
    xr_json_bool(j, "bound", at->bound);
    if (at->start_ns)
        xr_json_seconds(j, "start", at->start_ns);
    else
        xr_json_null(j, "start");
    if (at->exited) {
        xr_json_seconds(j, "end", at->end_ns);
        xr_json_seconds(j, "seconds", at->lived_ns);
        if (WIFSIGNALED(at->status)) {
            xr_json_null(j, "exit_code");
            xr_json_int(j, "signal", WTERMSIG(at->status));
        } else {
            xr_json_int(j, "exit_code", WEXITSTATUS(at->status));
            xr_json_null(j, "signal");
        }
        xr_json_bool(j, "unfinished", at->unfinished);
    }
    if (at->has_usage)
        write_usage(j, at->usage);
    xr_json_end(j);
}

static void write_spawned(struct xr_json *j, const struct xr_report *r)
{
    xr_json_array(j, "spawned");
    for (uint32_t i = 0; i < r->nspawned; i++) {
        const struct xr_report_spawned *s = &r->spawned[i];
        xr_json_flat_object(j, NULL);
        xr_json_text(j, "job", s->job);
        xr_json_text(j, "parent", s->parent);
        xr_json_int(j, "parent_rank", s->rank);
        xr_json_int(j, "size", s->size);
        xr_json_bool(j, "started", s->started);
        xr_json_seconds(j, "start", s->start_ns);
        xr_json_seconds(j, "end", s->end_ns);
        xr_json_int(j, "exit_code", s->code);
        xr_json_end(j);
    }
    xr_json_end(j);
}

bool xr_report_write(struct xr_report *r, int exit_code, bool output_lost)
{
    struct utsname system;
    struct xr_json j;
    bool bad;

    if (!r)
        return true;
    xr_json_begin(&j, r->out);
    xr_json_text(&j, "job", r->job->id);
    xr_json_flat_object(&j, "versions");
    xr_json_text(&j, "xrun", rank_version());
    xr_json_text(&j, "pmix", r->nhosts ? r->hosts[0].pmix : NULL);
    xr_json_text(&j, "kernel", uname(&system) ? NULL : system.release);
    xr_json_end(&j);
    xr_json_int(&j, "size", r->job->size);
    xr_json_seconds(&j, "start", r->start_ns);
    xr_json_seconds(&j, "end", job_report_wall_ns());
    xr_json_int(&j, "exit_code", exit_code);
    xr_json_text(&j, "cause", r->cause);
    xr_json_bool(&j, "output_lost", output_lost);
    xr_json_object(&j, "startup_ms");
    write_phases(&j, &r->start);
    write_apps(&j, r->job);
    write_hosts(&j, r);
    xr_json_array(&j, "ranks");
    for (uint32_t i = 0; i < r->job->size; i++)
        write_rank(&j, r, i);
    xr_json_end(&j);
    write_spawned(&j, r);
    xr_json_finish(&j);
    bad = ferror(r->out);
    errno = bad ? EIO : 0;
    if (fclose(r->out) || bad) {
        rk_error("--json: cannot write %s: %s", r->path, strerror(errno));
        bad = true;
    }
    r->out = NULL;
    return !bad;
}
