/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dead_clients.c: what those have left whom the library was told to forget: ranks that were clients and died.
 *
 * What such a rank has committed goes with its registration, and ranks of other hosts and jobs may still ask for it: that is kept here.
 * The library's thread does one thing after the other, so that the question for it is answered, if it ever is,
 * before the registration goes.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct xr_relic {
    struct xr_post post;
    struct xr_relic *next;
    uint32_t rank;
    bool found; /* once it was posted */
    char *data;
    size_t len;
};

static void dead_clients_on_forgotten(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

/* It comes to the loop with the post, as all that the library's thread has to say. */
static void dead_clients_run(struct xr_post *post, void *arg)
{
    struct xr_relic *e = (struct xr_relic *)post;

    (void)arg;
    e->found = true;
}

static void dead_clients_on_data(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct xr_relic *e = arg;

    if (status != PMIX_SUCCESS || e->data)
        return;
    e->data = malloc(len ? len : 1);
    if (!e->data)
        return;
    if (len)
        memcpy(e->data, data, len);
    e->len = len;
    xr_mailbox_post(xr_server_serving()->mailbox, &e->post);
}

static struct xr_relic *dead_clients_find(const struct xr_server *s, uint32_t rank)
{
    struct xr_relic *e = atomic_load(&s->relics);

    while (e && e->rank != rank)
        e = e->next;
    return e;
}

void xr_server_forget_rank(struct xr_server *s, uint32_t rank)
{
    struct xr_relic *e = calloc(1, sizeof(*e));
    pmix_proc_t proc;

    if (!e || dead_clients_find(s, rank)) {
        free(e);
        return;
    }
    PMIX_LOAD_PROCID(&proc, s->nspace, rank);
    *e = (struct xr_relic){.post.run = dead_clients_run, .next = atomic_load(&s->relics), .rank = rank};
    atomic_store(&s->relics, e); /* the library may hold it: it lives as long as the process */
    PMIx_server_dmodex_request(&proc, dead_clients_on_data, e);
    PMIx_server_deregister_client(&proc, dead_clients_on_forgotten, NULL);
}

bool xr_server_relic(const struct xr_server *s, uint32_t rank, bool *found, const void **data, size_t *len)
{
    const struct xr_relic *e = dead_clients_find(s, rank);

    *found = e && e->found;
    *data = *found ? e->data : NULL;
    *len = *found ? e->len : 0;
    return e != NULL;
}
