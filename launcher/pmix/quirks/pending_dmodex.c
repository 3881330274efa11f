/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending_dmodex.c: find out that libpmix has no answer to a dmodex request.
 *
 * libpmix:  4.2.2.
 * Symptom:  libpmix defers a request for data of a rank that has ended, as if the rank might still commit. The request
 *           is never answered.
 * Upstream: openpmix/openpmix#4186, merged in August 2026: such a request is answered "not found".
 * Retire:   when the oldest supported libpmix has that change.
 *
 * libpmix's thread works in order. An event that no client receives is sent after the request; its completion shows that
 * the request has been answered, or never will be.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>

pmix_status_t xr_pending_dmodex_flush(struct xr_server *server, pmix_op_cbfunc_t done, void *arg)
{
    pmix_status_t rc;
    pmix_proc_t self;
    pmix_info_t info;

    PMIX_LOAD_PROCID(&self, server->nspace, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info, PMIX_EVENT_DO_NOT_CACHE, NULL, PMIX_BOOL);
    rc = PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE, &self, PMIX_RANGE_PROC_LOCAL, &info, 1, done, arg);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}
