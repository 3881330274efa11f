/* SPDX-License-Identifier: BSD-3-Clause */
/* job_info.c: pack and unpack job info. See job_info.h. */
#include "launcher/dpm/job_info.h"
#include "launcher/job/job.h"

#include <stdlib.h>
#include <string.h>

void xr_job_info_pack(const struct xr_job *job, struct xr_packer *p)
{
    xr_pack_string(p, job->id);
    xr_pack_u32(p, job->size);
    xr_pack_u32(p, job->napps);
    for (uint32_t i = 0; i < job->napps; i++)
        xr_pack_u32(p, job->apps[i].n);
    xr_pack_strings(p, job->hosts);
    /* Run-length coded: consecutive ranks are mostly on one host. */
    for (uint32_t r = 0, n; r < job->size; r += n) {
        n = 1;
        while (r + n < job->size && job->host_of[r + n] == job->host_of[r])
            n++;
        xr_pack_u32(p, job->host_of[r]);
        xr_pack_u32(p, n);
    }
}

static bool unpack_apps(struct xr_unpacker *u, struct xr_job *out)
{
    uint32_t n = xr_unpack_u32(u), first = 0;

    if (u->failed || n == 0 || n > u->left / 4)
        return false;
    out->apps = calloc(n, sizeof(*out->apps));
    if (!out->apps)
        return false;
    out->napps = n;
    for (uint32_t i = 0; i < n; i++) {
        out->apps[i].first = first;
        out->apps[i].n = xr_unpack_u32(u);
        if (u->failed || out->apps[i].n > out->size - first)
            return false;
        first += out->apps[i].n;
    }
    return first == out->size;
}

static bool unpack_map(struct xr_unpacker *u, struct xr_job *out)
{
    out->hosts = xr_unpack_strings(u);
    while (out->hosts && out->hosts[out->nhosts])
        out->nhosts++;
    out->host_of = out->nhosts ? calloc(out->size, sizeof(*out->host_of)) : NULL;
    if (!out->host_of)
        return false;
    for (uint32_t at = 0; at < out->size;) {
        uint32_t host = xr_unpack_u32(u), n = xr_unpack_u32(u);
        if (u->failed || host >= out->nhosts || n == 0 || n > out->size - at)
            return false;
        while (n--)
            out->host_of[at++] = host;
    }
    return true;
}

bool xr_job_info_unpack(struct xr_unpacker *u, struct xr_job *out)
{
    const char *id = xr_unpack_string(u);

    memset(out, 0, sizeof(*out));
    out->size = xr_unpack_u32(u);
    if (u->failed || !id || out->size == 0 || out->size > XR_MAX_RANKS)
        return false;
    out->id = strdup(id);
    return out->id && unpack_apps(u, out) && unpack_map(u, out);
}
