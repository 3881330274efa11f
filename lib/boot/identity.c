/* SPDX-License-Identifier: BSD-3-Clause */
/* identity.c: query the PMIx server about this process. */
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"
#include "lib/boot/parent.h"

#include <stdlib.h>
#include <string.h>

rank_status_t rk_client_query_size(struct rk_client *c)
{
    pmix_proc_t all;
    pmix_value_t *v = NULL;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&all, c->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        return rk_client_failed("asking the PMIx server for the job's size", rc);
    c->pub.size = v->type == PMIX_UINT32 ? (int)v->data.uint32 : 0;
    PMIX_VALUE_RELEASE(v);
    if (c->pub.size < 1 || c->pub.rank >= c->pub.size) {
        return rk_fail(RANK_ERR_BOOT, "the PMIx server reports rank %d of %d", c->pub.rank, c->pub.size);
    }
    return RANK_OK;
}

static int identity_by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* "0,1,5" or "0-3,7" */
static rank_status_t parse_local(struct rk_boot *boot, const char *text)
{
    boot->local = malloc((size_t)boot->size * sizeof(int));
    if (!boot->local)
        return RANK_ERR_NO_MEMORY;
    boot->nlocal = 0;
    for (const char *p = text; *p;) {
        char *end;
        long lo = strtol(p, &end, 10), hi = lo;
        if (end == p)
            break;
        if (*end == '-') {
            p = end + 1;
            hi = strtol(p, &end, 10);
            if (end == p)
                break;
        }
        for (long r = lo; r <= hi && r >= 0 && r < boot->size && boot->nlocal < boot->size; r++)
            boot->local[boot->nlocal++] = (int)r;
        p = *end ? end + 1 : end;
    }
    qsort(boot->local, (size_t)boot->nlocal, sizeof(int), identity_by_value);
    boot->local_index = -1;
    for (int i = 0; i < boot->nlocal; i++) {
        if (boot->local[i] == boot->rank)
            boot->local_index = i;
    }
    return boot->local_index < 0 ? RANK_ERR_BOOT : RANK_OK;
}

rank_status_t rk_client_query_local(struct rk_client *c)
{
    pmix_proc_t all;
    pmix_value_t *v = NULL;
    pmix_status_t rc;
    rank_status_t st;
    char self[16];

    PMIX_LOAD_PROCID(&all, c->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v);
    if (rc == PMIX_SUCCESS && v->type == PMIX_STRING && v->data.string) {
        st = parse_local(&c->pub, v->data.string);
        PMIX_VALUE_RELEASE(v);
        if (st == RANK_ERR_BOOT)
            rk_fail(RANK_ERR_BOOT, "the PMIx server's list of local peers lacks this rank");
        return st;
    }
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(v);
    /* Not reported: no rank is known to be local. */
    snprintf(self, sizeof(self), "%d", c->pub.rank);
    return parse_local(&c->pub, self);
}

/* The part of "name.number;where" before the number: equal on all hosts of a launcher. */
static void name_server(struct rk_boot *boot)
{
    static const char *const uris[] = {"PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",
                                       "PMIX_SERVER_URI4", "PMIX_SERVER_URI41"};
    const char *uri = NULL;
    size_t len;

    for (size_t i = 0; i < RK_ARRAY_LEN(uris) && !uri; i++)
        uri = rk_env(uris[i]);
    len = uri ? strcspn(uri, ";") : 0;
    while (len > 0 && uri[len] != '.')
        len--;
    snprintf(boot->server, sizeof(boot->server), "%.*s", (int)len, uri ? uri : "");
}

/*
 * The node's segment counts the ranks and cores of the own job; only the launcher has those of the parent and of
 * its other jobs. The value counts for spawned jobs alone: elsewhere it may mean slots, not cores. Uses local data
 * only.
 */
static bool query_oversubscribed(const pmix_proc_t *all)
{
    pmix_value_t *v = NULL;
    pmix_info_t here;
    bool oversubscribed;

    PMIX_INFO_LOAD(&here, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (PMIx_Get(all, PMIX_NODE_OVERSUBSCRIBED, &here, 1, &v) != PMIX_SUCCESS || !v)
        return false;
    oversubscribed = v->type == PMIX_BOOL && v->data.flag;
    PMIX_VALUE_RELEASE(v);
    return oversubscribed;
}

/*
 * Was this job started by rank_spawn? The variable that records it is inherited by all descendants, other jobs
 * included. It counts only if the server reports the same parent, or, where it reports none (Open MPI 4), if its
 * name is the same.
 */
rank_status_t rk_client_query_parent(struct rk_client *c)
{
    const char *text = rk_env(RK_PARENT_VARIABLE);
    struct rk_boot_parent *parent;
    pmix_value_t *v = NULL;
    pmix_proc_t all;
    pmix_status_t rc;
    bool same;

    name_server(&c->pub);
    if (!text)
        return RANK_OK;
    parent = malloc(sizeof(*parent));
    if (!parent)
        return RANK_ERR_NO_MEMORY;
    PMIX_LOAD_PROCID(&all, c->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        rc = PMIx_Get(&c->me, PMIX_PARENT_ID, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        v = NULL;
    same = rk_parent_parse(text, parent);
    if (same && v)
        same = v->type == PMIX_PROC &&
               PMIX_CHECK_NSPACE(v->data.proc->nspace, parent->root_space) &&
               v->data.proc->rank == (pmix_rank_t)parent->root_rank;
    else if (same)
        same = parent->server[0] && strcmp(parent->server, c->pub.server) == 0 &&
               !PMIX_CHECK_NSPACE(c->me.nspace, parent->root_space);
    if (v)
        PMIX_VALUE_RELEASE(v);
    if (same) {
        c->pub.parent = parent;
        c->pub.oversubscribed = query_oversubscribed(&all);
        return RANK_OK;
    }
    rk_debug("%s belongs to another job (parent according to the server: %s)", RK_PARENT_VARIABLE,
             PMIx_Error_string(rc));
    free(parent);
    return RANK_OK;
}
