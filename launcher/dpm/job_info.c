/* job_info.c: see outline.h. */
#include "launcher/dpm/job_info.h"
#include "launcher/cli/options.h"

#include <stdlib.h>
#include <string.h>

void rk_outline_pack(const struct rk_job *job, struct rk_packer *p)
{
    rk_pack_string(p, job->id);
    rk_pack_u32(p, job->size);
    rk_pack_u32(p, job->napps);
    for (uint32_t i = 0; i < job->napps; i++)
        rk_pack_u32(p, job->apps[i].n);
    rk_pack_strings(p, job->hosts);
    /* Ranks in a row are mostly on the same host. */
    for (uint32_t r = 0, n; r < job->size; r += n) {
        n = 1;
        while (r + n < job->size && job->host_of[r + n] == job->host_of[r])
            n++;
        rk_pack_u32(p, job->host_of[r]);
        rk_pack_u32(p, n);
    }
}

static bool take_apps(struct rk_unpacker *u, struct rk_job *out)
{
    uint32_t n = rk_unpack_u32(u), first = 0;

    if (u->failed || n == 0 || n > u->left / 4)
        return false;
    out->apps = calloc(n, sizeof(*out->apps));
    if (!out->apps)
        return false;
    out->napps = n;
    for (uint32_t i = 0; i < n; i++) {
        out->apps[i].first = first;
        out->apps[i].n = rk_unpack_u32(u);
        if (u->failed || out->apps[i].n > out->size - first)
            return false;
        first += out->apps[i].n;
    }
    return first == out->size;
}

static bool take_map(struct rk_unpacker *u, struct rk_job *out)
{
    out->hosts = rk_unpack_strings(u);
    while (out->hosts && out->hosts[out->nhosts])
        out->nhosts++;
    out->host_of = out->nhosts ? calloc(out->size, sizeof(*out->host_of)) : NULL;
    if (!out->host_of)
        return false;
    for (uint32_t at = 0; at < out->size;) {
        uint32_t host = rk_unpack_u32(u), n = rk_unpack_u32(u);
        if (u->failed || host >= out->nhosts || n == 0 || n > out->size - at)
            return false;
        while (n--)
            out->host_of[at++] = host;
    }
    return true;
}

bool rk_outline_unpack(struct rk_unpacker *u, struct rk_job *out)
{
    const char *id = rk_unpack_string(u);

    memset(out, 0, sizeof(*out));
    out->size = rk_unpack_u32(u);
    if (u->failed || !id || out->size == 0 || out->size > RK_MAX_RANKS)
        return false;
    out->id = strdup(id);
    return out->id && take_apps(u, out) && take_map(u, out);
}
