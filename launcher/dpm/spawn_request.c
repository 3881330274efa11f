/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_request.c: pack and unpack spawn requests. See spawn_request.h. */
#include "launcher/dpm/spawn_request.h"

#include <stdlib.h>
#include <string.h>

struct xr_spawn_request_app *xr_spawn_request_add(struct xr_spawn_request *r)
{
    struct xr_spawn_request_app *longer = realloc(r->apps, (r->napps + 1) * sizeof(*longer));

    if (!longer)
        return NULL;
    r->apps = longer;
    memset(&longer[r->napps], 0, sizeof(*longer));
    return &longer[r->napps++];
}

void xr_spawn_request_clear(struct xr_spawn_request *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->napps; i++) {
        xr_strv_free(r->apps[i].argv);
        xr_strv_free(r->apps[i].env);
        free(r->apps[i].wdir);
        free(r->apps[i].path);
    }
    free(r->apps);
    xr_strv_free(r->words);
    xr_strv_free(r->keys);
    memset(r, 0, sizeof(*r));
}

static void pack_words(struct xr_packer *p, char *const *v)
{
    char *none[] = {NULL};

    xr_pack_strings(p, v ? v : none);
}

void xr_spawn_request_pack(const struct xr_spawn_request *r, struct xr_packer *p)
{
    xr_pack_u32(p, r->napps);
    for (uint32_t i = 0; i < r->napps; i++) {
        xr_pack_u32(p, r->apps[i].n);
        pack_words(p, r->apps[i].argv);
        pack_words(p, r->apps[i].env);
        xr_pack_string(p, r->apps[i].wdir ? r->apps[i].wdir : "");
        xr_pack_string(p, r->apps[i].path ? r->apps[i].path : "");
    }
    pack_words(p, r->words);
    pack_words(p, r->keys);
}

/* An empty string is NULL. */
static char *unpack_text(struct xr_unpacker *u)
{
    const char *s = xr_unpack_string(u);

    return s && *s ? strdup(s) : NULL;
}

bool xr_spawn_request_unpack(struct xr_unpacker *u, struct xr_spawn_request *out)
{
    uint32_t n = xr_unpack_u32(u), ranks = 0;

    memset(out, 0, sizeof(*out));
    if (u->failed || n == 0 || n > u->left / 20)
        return false;
    for (uint32_t i = 0; i < n && !u->failed; i++) {
        struct xr_spawn_request_app *app = xr_spawn_request_add(out);
        if (!app)
            return false;
        app->n = xr_unpack_u32(u);
        app->argv = xr_unpack_strings(u);
        app->env = xr_unpack_strings(u);
        app->wdir = unpack_text(u);
        app->path = unpack_text(u);
        if (u->failed || app->n == 0 || app->n > XR_MAX_RANKS - ranks || !app->argv[0])
            return false;
        ranks += app->n;
    }
    out->words = xr_unpack_strings(u);
    out->keys = xr_unpack_strings(u);
    return !u->failed;
}

void xr_spawn_hello_clear(struct xr_spawn_hello *h)
{
    if (!h)
        return;
    xr_strv_free(h->options);
    xr_strv_free(h->busy);
    xr_strv_free(h->env);
    free(h->hosts);
    free(h->parent);
    free(h->job_info);
    xr_spawn_request_clear(&h->request);
    memset(h, 0, sizeof(*h));
}

void xr_spawn_hello_pack(const struct xr_spawn_hello *h, struct xr_packer *p)
{
    pack_words(p, h->options);
    xr_pack_u32(p, h->number);
    xr_pack_string(p, h->parent);
    xr_pack_u32(p, h->rank);
    xr_pack_bytes(p, h->job_info, h->job_info_len);
    pack_words(p, h->busy);
    pack_words(p, h->env);
    xr_pack_string(p, h->hosts ? h->hosts : "");
    xr_spawn_request_pack(&h->request, p);
}

bool xr_spawn_hello_unpack(struct xr_unpacker *u, struct xr_spawn_hello *out)
{
    const void *job_info;

    memset(out, 0, sizeof(*out));
    out->options = xr_unpack_strings(u);
    out->number = xr_unpack_u32(u);
    out->parent = unpack_text(u);
    out->rank = xr_unpack_u32(u);
    job_info = xr_unpack_bytes(u, &out->job_info_len);
    out->job_info = u->failed ? NULL : malloc(out->job_info_len + 1);
    if (!out->job_info || !out->parent)
        return false;
    memcpy(out->job_info, job_info, out->job_info_len);
    out->busy = xr_unpack_strings(u);
    out->env = xr_unpack_strings(u);
    out->hosts = unpack_text(u);
    return !u->failed && xr_spawn_request_unpack(u, &out->request) && xr_unpack_done(u);
}
