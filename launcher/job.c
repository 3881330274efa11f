/* job.c: see job.h. */
#include "launcher/job.h"

#include <stdlib.h>
#include <string.h>

void rk_job_clear(struct rk_job *job)
{
    if (!job)
        return;
    free(job->id);
    free(job->program);
    free(job->wdir);
    rk_strings_free(job->argv);
    rk_strings_free(job->env);
    memset(job, 0, sizeof(*job));
}

void rk_job_pack(const struct rk_job *job, struct rk_packer *p)
{
    rk_pack_string(p, job->id);
    rk_pack_u32(p, job->size);
    rk_pack_string(p, job->program);
    rk_pack_strings(p, job->argv);
    rk_pack_strings(p, job->env);
    rk_pack_string(p, job->wdir);
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

rank_status_t rk_job_unpack(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t bind;

    memset(out, 0, sizeof(*out));
    out->id = string_copy(u);
    out->size = rk_unpack_u32(u);
    out->program = string_copy(u);
    out->argv = rk_unpack_strings(u);
    out->env = rk_unpack_strings(u);
    out->wdir = string_copy(u);
    bind = rk_unpack_u32(u);
    out->nofile = rk_unpack_u64(u);
    out->started_ns = rk_unpack_u64(u);
    if (!rk_unpack_done(u) || bind > RK_BIND_NONE || out->size == 0 || !out->argv[0])
        return RANK_ERR_ARG;
    out->bind = (enum rk_bind)bind;
    return RANK_OK;
}
