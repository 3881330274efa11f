/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dead_clients.c: deregister clients that died, and keep their modex data.
 *
 * libpmix:  4.2.2.
 * Symptom:  a fence that names a dead rank never reaches the host, unless the rank is deregistered. Deregistration drops
 *           what the rank has committed, although other hosts and jobs may still request it.
 * Upstream: openpmix/openpmix#4186, merged in August 2026, answers such requests with "not found"; none known that
 *           keeps the data.
 * Retire:   when the oldest supported libpmix ends fences that name a lost client without deregistration, and
 *           tests/launcher/pmix_hosts.sh passes without this file.
 *
 * The data is requested before the deregistration. libpmix's thread handles both in order, so the reply, if there is
 * one, comes first.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct xr_dead_client {
    struct xr_post post;
    struct xr_dead_client *next;
    uint32_t rank;
    bool found; /* set in the agent's loop */
    char *data;
    size_t len;
};

static void on_forgotten(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

static void dead_clients_run(struct xr_post *post, void *arg)
{
    struct xr_dead_client *e = (struct xr_dead_client *)post;

    (void)arg;
    e->found = true;
}

static void dead_clients_on_data(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct xr_dead_client *e = arg;

    if (status != PMIX_SUCCESS || e->data)
        return;
    e->data = malloc(len ? len : 1);
    if (!e->data)
        return;
    if (len)
        memcpy(e->data, data, len);
    e->len = len;
    xr_threadshift_post(xr_server_serving()->shift, &e->post);
}

static struct xr_dead_client *dead_clients_find(const struct xr_server *s, uint32_t rank)
{
    struct xr_dead_client *e = atomic_load(&s->dead);

    while (e && e->rank != rank)
        e = e->next;
    return e;
}

void xr_dead_client_add(struct xr_server *s, uint32_t rank)
{
    struct xr_dead_client *e = calloc(1, sizeof(*e));
    pmix_proc_t proc;

    if (!e || dead_clients_find(s, rank)) {
        free(e);
        return;
    }
    PMIX_LOAD_PROCID(&proc, s->nspace, rank);
    *e = (struct xr_dead_client){.post.run = dead_clients_run, .next = atomic_load(&s->dead), .rank = rank};
    atomic_store(&s->dead, e); /* libpmix may hold it: never freed */
    PMIx_server_dmodex_request(&proc, dead_clients_on_data, e);
    PMIx_server_deregister_client(&proc, on_forgotten, NULL);
}

bool xr_dead_client_data(const struct xr_server *s, uint32_t rank, bool *found, const void **data, size_t *len)
{
    const struct xr_dead_client *e = dead_clients_find(s, rank);

    *found = e && e->found;
    *data = *found ? e->data : NULL;
    *len = *found ? e->len : 0;
    return e != NULL;
}
