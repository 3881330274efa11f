/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disconnect.c: report to the launcher that jobs are no longer connected.
 *
 * A launcher may end connected jobs together when one of them fails.
 */
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"

#include <stdlib.h>

static bool name(struct rk_client *c, int number, pmix_proc_t *out)
{
    char space[RK_NSPACE_MAX];
    int rank = number;

    if (number < c->pub.size) {
        PMIX_LOAD_PROCID(out, c->me.nspace, (pmix_rank_t)rank);
        return true;
    }
    if (!rk_nspaces_find(c->spaces, number, space, &rank))
        return false;
    PMIX_LOAD_PROCID(out, space, (pmix_rank_t)rank);
    return true;
}

rank_status_t rk_client_disconnect_begin(struct rk_boot *boot, const int *numbers, int n, void (*wake)(void *),
                                       void *arg, struct rk_pending **out)
{
    struct rk_client *c = rk_client_of(boot);
    pmix_proc_t *procs = calloc((size_t)n, sizeof(*procs));
    struct rk_pending *a = rk_pending_new();
    pmix_status_t rc = PMIX_SUCCESS;
    rank_status_t st = procs && a ? RANK_OK : RANK_ERR_NO_MEMORY;

    *out = NULL;
    for (int i = 0; i < n && !st; i++)
        st = name(c, numbers[i], &procs[i]) ? RANK_OK : RANK_ERR_BOOT;
    if (!st) {
        a->wake = wake;
        a->wake_arg = arg;
        rk_tsan_release(a);
        rc = PMIx_Disconnect_nb(procs, (size_t)n, NULL, 0, rk_pending_arrived, a);
    }
    free(procs);
    if (!st && rc == PMIX_SUCCESS) {
        *out = a;
        return RANK_OK;
    }
    if (a)
        rk_pending_free(a);
    if (!st)
        rk_debug("PMIx_Disconnect: %s", PMIx_Error_string(rc));
    return st ? st : RANK_ERR_BOOT;
}

rank_status_t rk_client_disconnect_end(struct rk_boot *boot, struct rk_pending *a)
{
    rank_status_t st;

    (void)boot;
    if (!rk_pending_is_ready(a)) {
        rk_pending_abandon(a);
        return RANK_ERR_UNREACHABLE;
    }
    if (a->rc != PMIX_SUCCESS)
        rk_debug("PMIx_Disconnect: %s", PMIx_Error_string(a->rc));
    st = a->rc == PMIX_SUCCESS ? RANK_OK : RANK_ERR_BOOT;
    rk_pending_free(a);
    return st;
}
