/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_state.c: find the server and its ranks, and wait for answers of PMIx.
 *
 * See pmix_internal.h.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <pmix.h>
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
    *a = (struct xr_answer){.lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER, .status = PMIX_SUCCESS,
                            .failed = PMIX_SUCCESS};
}

void xr_answer_come(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    pthread_mutex_lock(&a->lock);
    a->status = status;
    a->here = true;
    pthread_cond_signal(&a->come);
    pthread_mutex_unlock(&a->lock);
}

void xr_answer_none(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    if (status != PMIX_SUCCESS)
        a->failed = status;
}

bool xr_answer_await(struct xr_answer *a, uint32_t ms)
{
    uint64_t deadline = rk_clock_ns() + ms * 1000000ull;
    bool here;

    pthread_mutex_lock(&a->lock);
    while (!a->here && rk_cond_wait_until(&a->come, &a->lock, deadline))
        ;
    here = a->here;
    pthread_mutex_unlock(&a->lock);
    return here;
}

/* The answer takes milliseconds, for a very large job seconds. If PMIx's thread hangs, no client can go on, and the thread
 * may still write to this stack. So the agent ends, and its supervisor ends the ranks. */
static void wait_bounded(struct xr_answer *a)
{
    if (xr_answer_await(a, ANSWER_S * 1000))
        return;
    rk_error("PMIx's server has not answered for %d s; ending the ranks of this host", ANSWER_S);
    _exit(1);
}

pmix_status_t xr_answer_wait(struct xr_answer *a, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS) {
        wait_bounded(a);
        rc = a->failed ? a->failed : a->status;
    }
    pthread_cond_destroy(&a->come);
    pthread_mutex_destroy(&a->lock);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}
