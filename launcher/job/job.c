/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c: see job.h. */
#include "launcher/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1u << 24)

const struct xr_app *xr_job_app_of(const struct xr_job *job, uint32_t rank)
{
    const struct xr_app *app = job->apps;

    while (rank - app->first >= app->n)
        app++;
    return app;
}

void xr_job_clear(struct xr_job *job)
{
    if (!job)
        return;
    for (uint32_t i = 0; job->apps && i < job->napps; i++) {
        free(job->apps[i].program);
        free(job->apps[i].wdir);
        free(job->apps[i].path);
        xr_strv_free(job->apps[i].argv);
        xr_strv_free(job->apps[i].env);
    }
    free(job->apps);
    free(job->gpu_bind);
    free(job->nic_bind);
    free(job->id);
    xr_strv_free(job->hosts);
    free(job->host_of);
    xr_strv_free(job->env);
    free(job->origin.job);
    free(job->origin.job_info);
    xr_strv_free(job->origin.keys);
    memset(job, 0, sizeof(*job));
}

/* Pack the map. A run of ranks on one host is one entry. */
static void pack_map(const struct xr_job *job, struct xr_packer *p)
{
    for (uint32_t r = 0; r < job->size;) {
        uint32_t n = 1;
        while (r + n < job->size && job->host_of[r + n] == job->host_of[r])
            n++;
        xr_pack_u32(p, job->host_of[r]);
        xr_pack_u32(p, n);
        r += n;
    }
}

static void pack_origin(const struct xr_origin *o, struct xr_packer *p)
{
    char *none[] = {NULL};

    xr_pack_string(p, o->job ? o->job : "");
    xr_pack_u32(p, o->rank);
    xr_pack_bytes(p, o->job_info, o->len);
    xr_pack_strings(p, o->keys ? o->keys : none);
}

void xr_job_pack(const struct xr_job *job, struct xr_packer *p)
{
    xr_pack_string(p, job->id);
    xr_pack_u32(p, job->size);
    xr_pack_u32(p, job->napps);
    for (const struct xr_app *app = job->apps; app < job->apps + job->napps; app++) {
        xr_pack_u32(p, app->n);
        xr_pack_string(p, app->program);
        xr_pack_strings(p, app->argv);
        xr_pack_strings(p, app->env);
        xr_pack_string(p, app->wdir);
        xr_pack_string(p, app->path ? app->path : "");
    }
    xr_pack_strings(p, job->env);
    xr_pack_u32(p, job->no_mpi);
    xr_pack_u32(p, job->torch);
    xr_pack_u32(p, job->gpus_per_rank);
    xr_pack_string(p, job->gpu_bind ? job->gpu_bind : "");
    xr_pack_u32(p, job->nics_per_rank);
    xr_pack_string(p, job->nic_bind ? job->nic_bind : "");
    xr_pack_u32(p, job->report);
    xr_pack_u32(p, job->input);
    xr_pack_u32(p, job->pty);
    xr_pack_u32(p, job->window.rows);
    xr_pack_u32(p, job->window.cols);
    xr_pack_strings(p, job->hosts);
    xr_pack_u32(p, job->fanout);
    xr_pack_u32(p, job->universe);
    xr_pack_u32(p, job->slots_given);
    pack_map(job, p);
    xr_pack_u64(p, job->nofile);
    xr_pack_u32(p, job->limits.umask);
    for (int i = 0; i < XR_ULIMITS; i++)
        xr_pack_u64(p, job->limits.soft[i]);
    xr_pack_u64(p, job->started_ns);
    pack_origin(&job->origin, p);
}

static char *string_copy(struct xr_unpacker *u)
{
    const char *s = xr_unpack_string(u);
    char *copy = s ? strdup(s) : NULL;

    if (!copy)
        u->failed = true;
    return copy;
}

/* Returns false if the programs' ranks are not the job's. */
static bool unpack_apps(struct xr_unpacker *u, struct xr_job *out)
{
    uint32_t n = xr_unpack_u32(u), ranks = 0;

    /* A program takes at least 20 bytes: do not allocate for a larger count than that allows. */
    if (n == 0 || n > u->left / 20)
        return false;
    out->apps = calloc(n, sizeof(*out->apps));
    if (!out->apps)
        return false;
    out->napps = n;
    for (struct xr_app *app = out->apps; app < out->apps + n && !u->failed; app++) {
        app->first = ranks;
        app->n = xr_unpack_u32(u);
        app->program = string_copy(u);
        app->argv = xr_unpack_strings(u);
        app->env = xr_unpack_strings(u);
        app->wdir = string_copy(u);
        app->path = string_copy(u);
        if (app->n == 0 || app->n > out->size - ranks || !app->argv || !app->argv[0])
            return false;
        ranks += app->n;
    }
    return ranks == out->size;
}

static bool unpack_map(struct xr_unpacker *u, struct xr_job *out)
{
    uint32_t at = 0;

    out->hosts = xr_unpack_strings(u);
    out->fanout = xr_unpack_u32(u);
    out->universe = xr_unpack_u32(u);
    out->slots_given = xr_unpack_u32(u) != 0;
    while (out->hosts && out->hosts[out->nhosts])
        out->nhosts++;
    if (out->nhosts == 0 || out->fanout == 0)
        return false;
    out->host_of = calloc(out->size, sizeof(*out->host_of));
    while (out->host_of && at < out->size) {
        uint32_t host = xr_unpack_u32(u), n = xr_unpack_u32(u);
        if (u->failed || host >= out->nhosts || n == 0 || n > out->size - at)
            return false;
        while (n--)
            out->host_of[at++] = host;
    }
    return out->host_of != NULL;
}

static bool unpack_origin(struct xr_unpacker *u, struct xr_origin *out)
{
    char *job = string_copy(u);
    const void *job_info;

    out->rank = xr_unpack_u32(u);
    job_info = xr_unpack_bytes(u, &out->len);
    out->keys = xr_unpack_strings(u);
    if (u->failed || !*job) {
        free(job);
        return !u->failed;
    }
    out->job = job;
    out->job_info = malloc(out->len + 1);
    if (out->job_info)
        memcpy(out->job_info, job_info, out->len);
    return out->job_info != NULL;
}

rank_status_t xr_job_unpack(struct xr_unpacker *u, struct xr_job *out)
{
    uint32_t no_mpi, torch, report;
    bool ok;

    memset(out, 0, sizeof(*out));
    out->id = string_copy(u);
    out->size = xr_unpack_u32(u);
    ok = out->size <= MAX_RANKS && unpack_apps(u, out);
    out->env = xr_unpack_strings(u);
    no_mpi = xr_unpack_u32(u);
    torch = xr_unpack_u32(u);
    out->gpus_per_rank = xr_unpack_u32(u);
    out->gpu_bind = string_copy(u);
    out->nics_per_rank = xr_unpack_u32(u);
    out->nic_bind = string_copy(u);
    report = xr_unpack_u32(u);
    out->input = xr_unpack_u32(u);
    out->pty = xr_unpack_u32(u);
    out->window.rows = (uint16_t)xr_unpack_u32(u);
    out->window.cols = (uint16_t)xr_unpack_u32(u);
    ok = ok && unpack_map(u, out);
    out->nofile = xr_unpack_u64(u);
    out->limits.umask = xr_unpack_u32(u);
    for (int i = 0; i < XR_ULIMITS; i++)
        out->limits.soft[i] = xr_unpack_u64(u);
    out->started_ns = xr_unpack_u64(u);
    ok = ok && unpack_origin(u, &out->origin);
    if (!ok || !xr_unpack_done(u) || no_mpi > 1 || torch > 1 || report > 1)
        return RANK_ERR_ARG;
    out->no_mpi = no_mpi;
    out->torch = torch;
    out->report = report;
    return RANK_OK;
}

uint32_t xr_job_ranks_on(const struct xr_job *job, uint32_t host)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < job->size; r++)
        n += job->host_of[r] == host;
    return n;
}

void xr_job_set_size(struct xr_job *job, uint32_t n)
{
    job->size = job->apps[0].n = n;
}

void xr_local_ranks_clear(struct xr_local_ranks *local_ranks)
{
    if (!local_ranks)
        return;
    xr_strv_free(local_ranks->cpus);
    memset(local_ranks, 0, sizeof(*local_ranks));
}

void xr_local_ranks_pack(const struct xr_local_ranks *local_ranks, struct xr_packer *p)
{
    xr_pack_u32(p, local_ranks->units);
    xr_pack_u32(p, local_ranks->oversubscribed);
    xr_pack_strings(p, local_ranks->cpus);
}

rank_status_t xr_local_ranks_unpack(struct xr_unpacker *u, struct xr_local_ranks *out)
{
    memset(out, 0, sizeof(*out));
    out->units = xr_unpack_u32(u);
    out->oversubscribed = xr_unpack_u32(u) != 0;
    out->cpus = xr_unpack_strings(u);
    return xr_unpack_done(u) ? RANK_OK : RANK_ERR_ARG;
}

void xr_job_map_clear(struct xr_job_map *map)
{
    for (uint32_t i = 0; map->ranks && i < map->n; i++)
        free(map->ranks[i]);
    free(map->ranks);
    free(map->hosts);
    memset(map, 0, sizeof(*map));
}

rank_status_t xr_job_map_make(const struct xr_job *job, struct xr_job_map *out)
{
    struct xr_packer *text = calloc(job->nhosts, sizeof(*text));
    rank_status_t st = RANK_OK;
    char number[16];

    memset(out, 0, sizeof(*out));
    out->runs = true;
    out->hosts = calloc(job->nhosts, sizeof(*out->hosts));
    out->ranks = calloc(job->nhosts, sizeof(*out->ranks));
    if (!text || !out->hosts || !out->ranks)
        st = RANK_ERR_NO_MEMORY;
    for (uint32_t r = 0; !st && r < job->size; r++) {
        struct xr_packer *t = &text[job->host_of[r]];
        /* A host that has ranks already, but not the previous one. */
        bool again = t->len && job->host_of[r - 1] != job->host_of[r];
        int n = snprintf(number, sizeof(number), "%s%u", t->len ? "," : "", r);
        xr_pack_raw(t, number, (size_t)n);
        out->runs &= !again;
    }
    for (uint32_t h = 0; h < job->nhosts && text; h++) {
        if (!st && text[h].len) {
            xr_pack_raw(&text[h], "", 1);
            if (text[h].failed)
                st = RANK_ERR_NO_MEMORY;
            out->hosts[out->n] = job->hosts[h];
            out->ranks[out->n++] = (char *)text[h].data;
        } else {
            xr_packer_free(&text[h]);
        }
    }
    free(text);
    return st;
}

rank_status_t xr_by_host_make(const struct xr_job *job, struct xr_by_host *out)
{
    uint32_t *at = calloc((size_t)job->nhosts + 1, sizeof(*at));

    out->first = calloc((size_t)job->nhosts + 1, sizeof(*out->first));
    out->ranks = calloc(job->size ? job->size : 1, sizeof(*out->ranks));
    if (!at || !out->first || !out->ranks) {
        free(at);
        return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < job->size; r++)
        out->first[job->host_of[r] + 1]++;
    for (uint32_t h = 0; h < job->nhosts; h++)
        out->first[h + 1] += out->first[h];
    for (uint32_t r = 0; r < job->size; r++) {
        uint32_t h = job->host_of[r];
        out->ranks[out->first[h] + at[h]++] = r;
    }
    free(at);
    return RANK_OK;
}

void xr_by_host_clear(struct xr_by_host *by_host)
{
    free(by_host->first);
    free(by_host->ranks);
    *by_host = (struct xr_by_host){NULL, NULL};
}
