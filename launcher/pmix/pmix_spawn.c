/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_spawn.c: turn PMIx_Spawn into a spawn request.
 *
 * Attributes for placement and environment become options of the new xrun or of its
 * programs. Other attributes are ignored, or refused if they are marked as required.
 */
#include "launcher/pmix/pmix_internal.h"
#include "launcher/dpm/spawn_request.h"
#include "launcher/map/policy.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct spawn {
    struct xr_rpc_call call;
    pmix_spawn_cbfunc_t done;
    void *done_arg;
};

static void on_started(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                       struct xr_unpacker *u)
{
    struct spawn *s = (struct spawn *)call;
    size_t len;

    if (status == PMIX_SUCCESS) {
        xr_unpack_bytes(u, &len);
        if (xr_unpack_u32(u) == 1 && xr_server_add_spawned(server, u, s->done, s->done_arg))
            return;
        status = PMIX_ERROR;
    }
    s->done(status, "", s->done_arg);
}

static bool add_option(struct xr_spawn_request *r, const char *option, const char *value)
{
    return xr_strv_add(&r->words, option) && xr_strv_add(&r->words, value);
}

/* "l3", "ppr:2:numa", "core:PE=2": modifiers that xrun does not support are cut from the end. */
static pmix_status_t add_policy(struct xr_spawn_request *r, const char *policy, bool required)
{
    struct xr_policy where = {.hosts = NULL};
    char *word = strdup(policy), why[256], *colon;
    pmix_status_t rc = PMIX_SUCCESS;

    while (word && !xr_policy_map_by(&where, word, why, sizeof(why))) {
        colon = strrchr(word, ':');
        *(colon ? colon : word) = '\0';
        if (*word == '\0')
            break;
    }
    if (!word || (*word && !add_option(r, "--map-by", word)))
        rc = PMIX_ERR_NOMEM;
    else if (required && strcmp(word, policy) != 0)
        rc = PMIX_ERR_NOT_SUPPORTED;
    free(word);
    return rc;
}

static bool set_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
    return *to != NULL;
}

static bool set_variable(struct xr_spawn_request_app *app, const pmix_envar_t *e)
{
    char *text;
    bool ok;

    if (!e->envar || !e->value || asprintf(&text, "%s=%s", e->envar, e->value) < 0)
        return false;
    ok = xr_strv_add(&app->env, text);
    free(text);
    return ok;
}

/* app: NULL for an attribute of the whole job. */
static pmix_status_t set_attribute(struct xr_spawn_request *r, struct xr_spawn_request_app *app, const pmix_info_t *info)
{
    const pmix_value_t *v = &info->value;
    const char *text = v->type == PMIX_STRING ? v->data.string : NULL;
    bool ok = true;

    if (PMIX_CHECK_KEY(info, PMIX_HOST) && text)
        ok = add_option(r, "--host", text);
    else if (PMIX_CHECK_KEY(info, PMIX_HOSTFILE) && text)
        ok = add_option(r, "--hostfile", text);
    else if (PMIX_CHECK_KEY(info, PMIX_MAPBY) && text)
        return add_policy(r, text, PMIX_INFO_IS_REQUIRED(info));
    else if (PMIX_CHECK_KEY(info, PMIX_WDIR) && text && app)
        ok = *text == '\0' || set_text(&app->wdir, text);
    else if (PMIX_CHECK_KEY(info, PMIX_SET_ENVAR) && v->type == PMIX_ENVAR && app)
        ok = set_variable(app, &v->data.envar);
    else if (PMIX_CHECK_KEY(info, PMIX_TAG_OUTPUT))
        ok = !PMIX_INFO_TRUE(info) || xr_strv_add(&r->words, "--tag-output");
    else if (PMIX_INFO_IS_REQUIRED(info))
        return PMIX_ERR_NOT_SUPPORTED;
    return ok ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

static bool copy_words(char ***to, char *const *from)
{
    bool ok = true;

    for (; ok && from && *from; from++)
        ok = xr_strv_add(to, *from);
    return ok;
}

static pmix_status_t add_app(struct xr_spawn_request *r, const pmix_app_t *from, const pmix_info_t job_info[],
                              size_t njob)
{
    struct xr_spawn_request_app *app = xr_spawn_request_add(r);
    pmix_status_t rc = PMIX_SUCCESS;
    bool ok;

    if (!app)
        return PMIX_ERR_NOMEM;
    if (from->maxprocs < 1 || !from->cmd || !*from->cmd)
        return PMIX_ERR_BAD_PARAM;
    app->n = (uint32_t)from->maxprocs;
    /* The command is executed; argv[0] of the client is ignored. */
    ok = xr_strv_add(&app->argv, from->cmd) &&
         copy_words(&app->argv, from->argv && from->argv[0] ? from->argv + 1 : NULL) &&
         copy_words(&app->env, from->env) && (!from->cwd || !*from->cwd || set_text(&app->wdir, from->cwd));
    if (!ok)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < njob && !rc; i++) {
        if (PMIX_CHECK_KEY(&job_info[i], PMIX_WDIR) || PMIX_CHECK_KEY(&job_info[i], PMIX_SET_ENVAR))
            rc = set_attribute(r, app, &job_info[i]);
    }
    for (size_t i = 0; i < from->ninfo && !rc; i++)
        rc = set_attribute(r, app, &from->info[i]);
    return rc;
}

pmix_status_t xr_upcall_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[], size_t ninfo,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                              void *done_arg)
{
    struct xr_spawn_request r = {0};
    pmix_status_t rc = PMIX_SUCCESS;
    struct spawn *s;
    uint32_t rank;

    if (!xr_server_rank_of(xr_server_serving(), proc, &rank))
        return PMIX_ERR_NOT_SUPPORTED;
    if (napps == 0)
        return PMIX_ERR_BAD_PARAM;
    s = calloc(1, sizeof(*s));
    if (!s)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < ninfo && !rc; i++)
        rc = PMIX_CHECK_KEY(&job_info[i], PMIX_WDIR) || PMIX_CHECK_KEY(&job_info[i], PMIX_SET_ENVAR)
                 ? PMIX_SUCCESS
                 : set_attribute(&r, NULL, &job_info[i]);
    for (size_t i = 0; i < napps && !rc; i++)
        rc = add_app(&r, &apps[i], job_info, ninfo);
    if (!rc)
        xr_spawn_request_pack(&r, &s->call.payload);
    xr_spawn_request_clear(&r);
    s->call.refused = rc;
    s->call.what = XR_RPC_SPAWN;
    s->call.rank = rank;
    s->call.done = on_started;
    s->done = done;
    s->done_arg = done_arg;
    xr_rpc_post(&s->call);
    return PMIX_SUCCESS;
}
