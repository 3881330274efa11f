/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c: exchange PMIx events with other hosts and jobs.
 *
 * libpmix keeps the registrations and delivers events between clients of one
 * server. Events for more than this host go to the agent, and events of other hosts
 * and jobs go to libpmix as local ones. Deaths of ranks are events, too.
 */
#include "launcher/overlay/event.h"
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

pmix_status_t xr_upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *done_arg)
{
    (void)codes;
    (void)ncodes;
    (void)info;
    (void)ninfo;
    (void)done;
    (void)done_arg;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t xr_upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                          pmix_op_cbfunc_t done, void *done_arg)
{
    (void)codes;
    (void)ncodes;
    (void)done;
    (void)done_arg;
    return PMIX_OPERATION_SUCCEEDED;
}

/* -------------------------------------------------------------- events of this host */

struct raised {
    struct xr_post post;
    struct xr_event event;
    pmix_info_t *info;
    size_t ninfo;
};

static void events_destroy(struct raised *r)
{
    if (r->info)
        PMIX_INFO_FREE(r->info, r->ninfo);
    free(r);
}

/* Pack the number of attributes, then the attributes. */
static pmix_status_t events_pack(struct raised *r, pmix_data_buffer_t *to)
{
    uint32_t n = (uint32_t)r->ninfo;
    pmix_status_t rc = PMIx_Data_pack(NULL, to, &n, 1, PMIX_UINT32);

    if (rc == PMIX_SUCCESS && n)
        rc = PMIx_Data_pack(NULL, to, r->info, (int32_t)n, PMIX_INFO);
    return rc;
}

static void events_run(struct xr_post *post, void *arg)
{
    struct raised *r = (struct raised *)post;
    struct xr_server *server = arg;
    pmix_data_buffer_t buffer;
    pmix_status_t rc;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    rc = events_pack(r, &buffer);
    r->event.info = buffer.base_ptr;
    r->event.len = buffer.bytes_used;
    if (rc != PMIX_SUCCESS)
        rk_warn("an event of rank %u stays on its host: %s", r->event.rank, PMIx_Error_string(rc));
    else if (r->event.len > XR_EVENT_MAX)
        rk_warn("an event of rank %u stays on its host: it has %zu bytes, and %u is the most",
                r->event.rank, r->event.len, XR_EVENT_MAX);
    else
        server->events->raised(server->arg, &r->event);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    events_destroy(r);
}

static bool travels(pmix_data_range_t range)
{
    return range != PMIX_RANGE_RM && range != PMIX_RANGE_LOCAL && range != PMIX_RANGE_PROC_LOCAL;
}

/* Does the event go to other jobs? Their servers check a range of named processes. */
static bool is_wide(pmix_data_range_t range)
{
    return range == PMIX_RANGE_SESSION || range == PMIX_RANGE_GLOBAL || range == PMIX_RANGE_CUSTOM;
}

pmix_status_t xr_upcall_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct raised *r;
    uint32_t rank;

    (void)done;
    (void)done_arg;
    if (!travels(range) || !xr_server_rank_of(server, source, &rank))
        return PMIX_OPERATION_SUCCEEDED;
    r = calloc(1, sizeof(*r));
    if (!r)
        return PMIX_ERR_NOMEM;
    r->post.run = events_run;
    r->event = (struct xr_event){.rank = rank, .range = range, .wide = is_wide(range), .code = code};
    r->ninfo = ninfo;
    if (ninfo)
        PMIX_INFO_CREATE(r->info, ninfo);
    if (ninfo && !r->info) {
        free(r);
        return PMIX_ERR_NOMEM;
    }
    for (size_t i = 0; i < ninfo; i++)
        PMIX_INFO_XFER(&r->info[i], &info[i]);
    xr_threadshift_post(server->shift, &r->post);
    return PMIX_OPERATION_SUCCEEDED;
}

/* ------------------------------------------------------- events of other hosts and jobs */

struct delivery {
    pmix_proc_t source;
    pmix_info_t *info;
    size_t ninfo;
};

static void on_delivered(pmix_status_t status, void *arg)
{
    struct delivery *t = arg;

    (void)status;
    if (t->info)
        PMIX_INFO_FREE(t->info, t->ninfo);
    free(t);
}

/* Unpack what events_pack has packed. Each attribute takes a byte at least, which bounds their number. */
static bool events_unpack(const struct xr_event *event, struct delivery *t)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {.bytes = malloc(event->len ? event->len : 1), .size = event->len};
    uint32_t n = 0;
    int32_t count = 1;
    bool ok = bytes.bytes != NULL;

    if (!ok)
        return false;
    memcpy(bytes.bytes, event->info, event->len);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    ok = PMIx_Data_load(&buffer, &bytes) == PMIX_SUCCESS &&
         PMIx_Data_unpack(NULL, &buffer, &n, &count, PMIX_UINT32) == PMIX_SUCCESS && n <= event->len;
    if (ok && n) {
        PMIX_INFO_CREATE(t->info, n);
        t->ninfo = n;
        count = (int32_t)n;
        ok = t->info && PMIx_Data_unpack(NULL, &buffer, t->info, &count, PMIX_INFO) == PMIX_SUCCESS &&
             count == (int32_t)n;
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

void xr_server_deliver_event(struct xr_server *server, const char *job, const struct xr_event *event)
{
    struct delivery *t = calloc(1, sizeof(*t));

    if (!t)
        return;
    PMIX_LOAD_PROCID(&t->source, job ? job : server->nspace, event->rank);
    if (!events_unpack(event, t)) {
        rk_warn("an event of rank %u of %s cannot be read here", event->rank, t->source.nspace);
        on_delivered(PMIX_ERROR, t);
        return;
    }
    if (PMIx_Notify_event(event->code, &t->source, (pmix_data_range_t)event->range, t->info, t->ninfo,
                          on_delivered, t) != PMIX_SUCCESS)
        on_delivered(PMIX_ERROR, t);
}

/* ---------------------------------------------------------------------------- deaths */

struct death {
    pmix_proc_t source, affected;
    pmix_info_t info[3];
};

static void on_death_delivered(pmix_status_t status, void *arg)
{
    struct death *n = arg;

    (void)status;
    for (size_t i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&n->info[i]);
    free(n);
}

void xr_server_deliver_death(struct xr_server *s, uint32_t rank, bool by_signal)
{
    xr_server_deliver_other_death(s, s->nspace, rank, by_signal);
}

void xr_server_deliver_other_death(struct xr_server *s, const char *job, uint32_t rank, bool by_signal)
{
    struct death *n = calloc(1, sizeof(*n));
    bool over = rank == XR_ALL_RANKS;
    pmix_proc_t all;
    pmix_status_t rc;

    if (!n)
        return;
    PMIX_LOAD_PROCID(&n->source, job, over ? PMIX_RANK_WILDCARD : rank);
    PMIX_LOAD_PROCID(&n->affected, job, over ? PMIX_RANK_WILDCARD : rank);
    PMIX_LOAD_PROCID(&all, s->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&n->info[0], PMIX_EVENT_AFFECTED_PROC, &n->affected, PMIX_PROC);
    PMIX_INFO_LOAD(&n->info[1], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    PMIX_INFO_LOAD(&n->info[2], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    rc = PMIx_Notify_event(over        ? PMIX_EVENT_JOB_END
                           : by_signal ? PMIX_ERR_PROC_ABORTED
                                       : PMIX_ERR_PROC_TERM_WO_SYNC,
                           &n->source, PMIX_RANGE_CUSTOM, n->info, 3, on_death_delivered, n);
    if (rc != PMIX_SUCCESS)
        on_death_delivered(rc, n);
    if (over)
        xr_server_job_ended(s, job);
}
