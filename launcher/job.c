/* job.c: see job.h. */
#include "launcher/job.h"

#include <stdlib.h>
#include <string.h>

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
        rk_strings_free(job->apps[i].argv);
        rk_strings_free(job->apps[i].env);
    }
    free(job->apps);
    free(job->id);
    rk_strings_free(job->env);
    memset(job, 0, sizeof(*job));
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
    }
    rk_pack_strings(p, job->env);
    rk_pack_u32(p, job->torch);
    rk_pack_u32(p, job->report);
    rk_pack_u32(p, job->input);
    rk_pack_u32(p, job->pty);
    rk_pack_u32(p, job->window.rows);
    rk_pack_u32(p, job->window.cols);
    rk_pack_u32(p, job->bind);
    rk_pack_u64(p, job->nofile);
    rk_pack_u64(p, job->started_ns);
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
        if (app->n == 0 || app->n > out->size - ranks || !app->argv || !app->argv[0])
            return false;
        ranks += app->n;
    }
    return ranks == out->size;
}

rank_status_t rk_job_unpack(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t torch, report, bind;
    bool ok;

    memset(out, 0, sizeof(*out));
    out->id = string_copy(u);
    out->size = rk_unpack_u32(u);
    ok = unpack_apps(u, out);
    out->env = rk_unpack_strings(u);
    torch = rk_unpack_u32(u);
    report = rk_unpack_u32(u);
    out->input = rk_unpack_u32(u);
    out->pty = rk_unpack_u32(u);
    out->window.rows = (uint16_t)rk_unpack_u32(u);
    out->window.cols = (uint16_t)rk_unpack_u32(u);
    bind = rk_unpack_u32(u);
    out->nofile = rk_unpack_u64(u);
    out->started_ns = rk_unpack_u64(u);
    if (!ok || !rk_unpack_done(u) || bind > RK_BIND_NONE || torch > 1 || report > 1)
        return RANK_ERR_ARG;
    out->torch = torch;
    out->report = report;
    out->bind = (enum rk_bind)bind;
    return RANK_OK;
}
