/* job.c: see job.h. */
#include "launcher/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1u << 24)

const struct rk_app *rk_job_app_of(const struct rk_job *job, uint32_t rank)
{
    const struct rk_app *app = job->apps;

    while (rank - app->first >= app->n)
        app++;
    return app;
}

void rk_job_clear(struct rk_job *job)
{
    if (!job)
        return;
    for (uint32_t i = 0; job->apps && i < job->napps; i++) {
        free(job->apps[i].program);
        free(job->apps[i].wdir);
        free(job->apps[i].path);
        rk_strings_free(job->apps[i].argv);
        rk_strings_free(job->apps[i].env);
    }
    free(job->apps);
    free(job->id);
    rk_strings_free(job->hosts);
    free(job->host_of);
    rk_strings_free(job->env);
    free(job->origin.job);
    free(job->origin.outline);
    rk_strings_free(job->origin.keys);
    memset(job, 0, sizeof(*job));
}

/* Ranks that follow each other on one host are told together. */
static void pack_map(const struct rk_job *job, struct rk_packer *p)
{
    for (uint32_t r = 0; r < job->size;) {
        uint32_t n = 1;
        while (r + n < job->size && job->host_of[r + n] == job->host_of[r])
            n++;
        rk_pack_u32(p, job->host_of[r]);
        rk_pack_u32(p, n);
        r += n;
    }
}

static void pack_origin(const struct rk_origin *o, struct rk_packer *p)
{
    char *none[] = {NULL};

    rk_pack_string(p, o->job ? o->job : "");
    rk_pack_u32(p, o->rank);
    rk_pack_bytes(p, o->outline, o->len);
    rk_pack_strings(p, o->keys ? o->keys : none);
}

void rk_job_pack(const struct rk_job *job, struct rk_packer *p)
{
    rk_pack_string(p, job->id);
    rk_pack_u32(p, job->size);
    rk_pack_u32(p, job->napps);
    for (const struct rk_app *app = job->apps; app < job->apps + job->napps; app++) {
        rk_pack_u32(p, app->n);
        rk_pack_string(p, app->program);
        rk_pack_strings(p, app->argv);
        rk_pack_strings(p, app->env);
        rk_pack_string(p, app->wdir);
        rk_pack_string(p, app->path ? app->path : "");
    }
    rk_pack_strings(p, job->env);
    rk_pack_u32(p, job->torch);
    rk_pack_u32(p, job->report);
    rk_pack_u32(p, job->input);
    rk_pack_u32(p, job->pty);
    rk_pack_u32(p, job->window.rows);
    rk_pack_u32(p, job->window.cols);
    rk_pack_strings(p, job->hosts);
    rk_pack_u32(p, job->fanout);
    rk_pack_u32(p, job->universe);
    pack_map(job, p);
    rk_pack_u64(p, job->nofile);
    rk_pack_u32(p, job->limits.umask);
    for (int i = 0; i < RK_ULIMITS; i++)
        rk_pack_u64(p, job->limits.soft[i]);
    rk_pack_u64(p, job->started_ns);
    pack_origin(&job->origin, p);
}

static char *string_copy(struct rk_unpacker *u)
{
    const char *s = rk_unpack_string(u);
    char *copy = s ? strdup(s) : NULL;

    if (!copy)
        u->failed = true;
    return copy;
}

/* False: the ranks of the programs are not the job's. */
static bool unpack_apps(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t n = rk_unpack_u32(u), ranks = 0;

    /* A program takes 20 bytes at least: what comes from the wire does not make us allocate. */
    if (n == 0 || n > u->left / 20)
        return false;
    out->apps = calloc(n, sizeof(*out->apps));
    if (!out->apps)
        return false;
    out->napps = n;
    for (struct rk_app *app = out->apps; app < out->apps + n && !u->failed; app++) {
        app->first = ranks;
        app->n = rk_unpack_u32(u);
        app->program = string_copy(u);
        app->argv = rk_unpack_strings(u);
        app->env = rk_unpack_strings(u);
        app->wdir = string_copy(u);
        app->path = string_copy(u);
        if (app->n == 0 || app->n > out->size - ranks || !app->argv || !app->argv[0])
            return false;
        ranks += app->n;
    }
    return ranks == out->size;
}

static bool unpack_map(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t at = 0;

    out->hosts = rk_unpack_strings(u);
    out->fanout = rk_unpack_u32(u);
    out->universe = rk_unpack_u32(u);
    while (out->hosts && out->hosts[out->nhosts])
        out->nhosts++;
    if (out->nhosts == 0 || out->fanout == 0)
        return false;
    out->host_of = calloc(out->size, sizeof(*out->host_of));
    while (out->host_of && at < out->size) {
        uint32_t host = rk_unpack_u32(u), n = rk_unpack_u32(u);
        if (u->failed || host >= out->nhosts || n == 0 || n > out->size - at)
            return false;
        while (n--)
            out->host_of[at++] = host;
    }
    return out->host_of != NULL;
}

static bool unpack_origin(struct rk_unpacker *u, struct rk_origin *out)
{
    char *job = string_copy(u);
    const void *outline;

    out->rank = rk_unpack_u32(u);
    outline = rk_unpack_bytes(u, &out->len);
    out->keys = rk_unpack_strings(u);
    if (u->failed || !*job) {
        free(job);
        return !u->failed;
    }
    out->job = job;
    out->outline = malloc(out->len + 1);
    if (out->outline)
        memcpy(out->outline, outline, out->len);
    return out->outline != NULL;
}

rank_status_t rk_job_unpack(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t torch, report;
    bool ok;

    memset(out, 0, sizeof(*out));
    out->id = string_copy(u);
    out->size = rk_unpack_u32(u);
    ok = out->size <= MAX_RANKS && unpack_apps(u, out);
    out->env = rk_unpack_strings(u);
    torch = rk_unpack_u32(u);
    report = rk_unpack_u32(u);
    out->input = rk_unpack_u32(u);
    out->pty = rk_unpack_u32(u);
    out->window.rows = (uint16_t)rk_unpack_u32(u);
    out->window.cols = (uint16_t)rk_unpack_u32(u);
    ok = ok && unpack_map(u, out);
    out->nofile = rk_unpack_u64(u);
    out->limits.umask = rk_unpack_u32(u);
    for (int i = 0; i < RK_ULIMITS; i++)
        out->limits.soft[i] = rk_unpack_u64(u);
    out->started_ns = rk_unpack_u64(u);
    ok = ok && unpack_origin(u, &out->origin);
    if (!ok || !rk_unpack_done(u) || torch > 1 || report > 1)
        return RANK_ERR_ARG;
    out->torch = torch;
    out->report = report;
    return RANK_OK;
}

uint32_t rk_job_ranks_on(const struct rk_job *job, uint32_t host)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < job->size; r++)
        n += job->host_of[r] == host;
    return n;
}

void rk_job_set_size(struct rk_job *job, uint32_t n)
{
    job->size = job->apps[0].n = n;
}

void rk_seats_clear(struct rk_seats *seats)
{
    if (!seats)
        return;
    rk_strings_free(seats->cpus);
    memset(seats, 0, sizeof(*seats));
}

void rk_seats_pack(const struct rk_seats *seats, struct rk_packer *p)
{
    rk_pack_u32(p, seats->units);
    rk_pack_u32(p, seats->oversubscribed);
    rk_pack_strings(p, seats->cpus);
}

rank_status_t rk_seats_unpack(struct rk_unpacker *u, struct rk_seats *out)
{
    memset(out, 0, sizeof(*out));
    out->units = rk_unpack_u32(u);
    out->oversubscribed = rk_unpack_u32(u) != 0;
    out->cpus = rk_unpack_strings(u);
    return rk_unpack_done(u) ? RANK_OK : RANK_ERR_ARG;
}

void rk_job_map_clear(struct rk_job_map *map)
{
    for (uint32_t i = 0; map->ranks && i < map->n; i++)
        free(map->ranks[i]);
    free(map->ranks);
    free(map->hosts);
    memset(map, 0, sizeof(*map));
}

rank_status_t rk_job_map_make(const struct rk_job *job, struct rk_job_map *out)
{
    struct rk_packer *text = calloc(job->nhosts, sizeof(*text));
    rank_status_t st = RANK_OK;
    char number[16];

    memset(out, 0, sizeof(*out));
    out->runs = true;
    out->hosts = calloc(job->nhosts, sizeof(*out->hosts));
    out->ranks = calloc(job->nhosts, sizeof(*out->ranks));
    if (!text || !out->hosts || !out->ranks)
        st = RANK_ERR_NO_MEMORY;
    for (uint32_t r = 0; !st && r < job->size; r++) {
        struct rk_packer *t = &text[job->host_of[r]];
        /* One whose host has had ranks before, but not the last one. */
        bool again = t->len && job->host_of[r - 1] != job->host_of[r];
        int n = snprintf(number, sizeof(number), "%s%u", t->len ? "," : "", r);
        rk_pack_raw(t, number, (size_t)n);
        out->runs &= !again;
    }
    for (uint32_t h = 0; h < job->nhosts && text; h++) {
        if (!st && text[h].len) {
            rk_pack_raw(&text[h], "", 1);
            if (text[h].failed)
                st = RANK_ERR_NO_MEMORY;
            out->hosts[out->n] = job->hosts[h];
            out->ranks[out->n++] = (char *)text[h].data;
        } else {
            rk_packer_free(&text[h]);
        }
    }
    free(text);
    return st;
}

rank_status_t rk_by_host_make(const struct rk_job *job, struct rk_by_host *out)
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

void rk_by_host_clear(struct rk_by_host *by_host)
{
    free(by_host->first);
    free(by_host->ranks);
    *by_host = (struct rk_by_host){NULL, NULL};
}
