/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_state.c: find the server and its ranks, and wait for answers of PMIx.
 *
 * See pmix_internal.h.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <errno.h>
#include <pmix.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_S 60

static struct xr_server *serving;

struct xr_server *xr_server_serving(void)
{
    return serving;
}

void xr_server_serve(struct xr_server *server)
{
    serving = server;
}

bool xr_server_rank_of(const struct xr_server *server, const pmix_proc_t *proc, uint32_t *rank)
{
    *rank = proc->rank;
    return PMIX_CHECK_NSPACE(proc->nspace, server->nspace) && proc->rank < server->size;
}

uint32_t xr_server_local(const struct xr_server *server, uint32_t rank)
{
    uint32_t low = 0, high = server->nlocal;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (server->local[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < server->nlocal && server->local[low] == rank ? low : server->nlocal;
}

rank_status_t xr_server_failed(const char *what, pmix_status_t rc)
{
    rk_error("%s failed: %s", what, PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}

/* ------------------------------------------------- calls that answer later */

void xr_answer_init(struct xr_answer *a)
{
    a->status = a->failed = PMIX_SUCCESS;
    sem_init(&a->come, 0, 0);
}

void xr_answer_come(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    a->status = status;
    sem_post(&a->come);
}

void xr_answer_none(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    if (status != PMIX_SUCCESS)
        a->failed = status;
}

/* The answer takes milliseconds, for a very large job seconds. If PMIx's thread hangs, no client can go on, and the thread
 * may still write to this stack. So the agent ends, and its supervisor ends the ranks. */
static void wait_bounded(struct xr_answer *a)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ANSWER_S;
    while (sem_timedwait(&a->come, &end)) {
        if (errno == EINTR)
            continue;
        rk_error("PMIx's server has not answered for %d s; ending the ranks of this host", ANSWER_S);
        _exit(1);
    }
}

pmix_status_t xr_answer_wait(struct xr_answer *a, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS) {
        wait_bounded(a);
        rc = a->failed ? a->failed : a->status;
    }
    sem_destroy(&a->come);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}
