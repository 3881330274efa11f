/* SPDX-License-Identifier: BSD-3-Clause */
/* kvs.c: exchange blobs through the PMIx server, and fence. */
#include "lib/base/clock.h"
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/boot/boot_client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Retries of a blob that the server reports as missing. */
enum { TRIES_A_CENSUS = 100, CARD_TRIES = 5000, CARD_PAUSE_NS = 1000000, CARD_LATE_MS = 2500, CARD_REPORT_MS = 30000 };

static void card_arrived(pmix_status_t rc, pmix_value_t *v, void *arg)
{
    struct rk_pending *a = arg;

    rk_tsan_acquire(a);
    if (rc == PMIX_SUCCESS && v && v->type == PMIX_BYTE_OBJECT) {
        a->bytes = malloc(v->data.bo.size + 1);
        if (a->bytes)
            memcpy(a->bytes, v->data.bo.bytes, v->data.bo.size);
        else
            rc = PMIX_ERR_NOMEM;
        a->size = v->data.bo.size;
    }
    rk_pending_arrived(rc, a);
}

/* The key in this context: a later one would find the blobs of the earlier one's peers. May use room. */
static const char *kvs_key(const struct rk_boot *boot, const char *key, char room[PMIX_MAX_KEYLEN + 1])
{
    if (boot->before == 0)
        return key;
    snprintf(room, PMIX_MAX_KEYLEN + 1, "%s.%u", key, (unsigned)boot->before);
    return room;
}

rank_status_t rk_client_put(struct rk_boot *boot, const char *key, const void *data, size_t len)
{
    char room[PMIX_MAX_KEYLEN + 1];
    pmix_value_t v;
    pmix_status_t rc;

    memset(&v, 0, sizeof(v));
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = (char *)(uintptr_t)data; /* PMIx copies */
    v.data.bo.size = len;
    rc = PMIx_Put(PMIX_GLOBAL, kvs_key(boot, key, room), &v);
    return rc == PMIX_SUCCESS ? RANK_OK : rk_client_failed("PMIx_Put", rc);
}

rank_status_t rk_client_commit(struct rk_boot *boot)
{
    pmix_status_t rc = PMIx_Commit();

    (void)boot;
    return rc == PMIX_SUCCESS ? RANK_OK : rk_client_failed("PMIx_Commit", rc);
}

/* Ask once. *gave_up: a rank died and no answer arrived. On success the caller owns *out. */
static pmix_status_t request_card(struct rk_client *c, const pmix_proc_t *proc, const char *key,
                                  struct rk_pending **out, bool *gave_up)
{
    struct rk_pending *a = rk_pending_new();
    pmix_status_t rc;

    if (!a)
        return PMIX_ERR_NOMEM;
    rk_tsan_release(a);
    rc = PMIx_Get_nb(proc, key, NULL, 0, card_arrived, a);
    if (rc == PMIX_SUCCESS) {
        if (!rk_pending_wait(c, a, c->met ? (int)proc->rank : -1, c->met ? RK_GRACE_MET_MS : RK_GRACE_MS)) {
            *gave_up = true;
            return PMIX_ERR_TIMEOUT;
        }
        rc = a->rc;
    }
    if (rc == PMIX_SUCCESS)
        *out = a;
    else
        rk_pending_free(a);
    return rc;
}

/*
 * Fetch a blob, with retries. Two answers can mean "not yet" before the first fence is over:
 * - "not found" for a request that crosses the commit of the blob (4.2.2);
 * - "timed out" for a rank of this host that takes longer than 2 s to commit, though no limit was set (4.1 to 5).
 *   A death ends the retries. Where the server answers no queries about dead processes (proc_table.c),
 *   CARD_LATE_MS (two such answers, 4 s) ends them too, since the report of an early death can be lost.
 */
static pmix_status_t get_card(struct rk_client *c, const pmix_proc_t *proc, const char *key,
                              struct rk_pending **out, bool *gave_up)
{
    const struct timespec pause = {0, CARD_PAUSE_NS};
    uint64_t late = rk_clock_ns() + CARD_LATE_MS * 1000000ull;
    pmix_status_t rc = request_card(c, proc, key, out, gave_up);
    int tries = 0;

    uint64_t report_ns = rk_clock_ns() + CARD_REPORT_MS * 1000000ull;

    while (!*gave_up && !c->met &&
           ((rc == PMIX_ERR_TIMEOUT && (!atomic_load(&c->no_census) || rk_clock_ns() < late)) ||
            (rc == PMIX_ERR_NOT_FOUND && tries++ < CARD_TRIES))) {
        if (rk_clock_ns() >= report_ns) { /* it lives: only the user can decide whether to wait on */
            rk_warn("rank %u has not joined for %d s: does it call rank_init?", (unsigned)proc->rank, CARD_REPORT_MS / 1000);
            report_ns = UINT64_MAX;
        }
        nanosleep(&pause, NULL);
        /*
         * A server without a record of dead processes answers at once; no wait lasts long enough to receive a
         * report.
         */
        if (rc == PMIX_ERR_NOT_FOUND && c->dead) {
            if (tries % TRIES_A_CENSUS == 0)
                rk_client_census(c);
            if (atomic_load(&c->dead[proc->rank])) {
                *gave_up = true;
                break;
            }
        }
        rc = request_card(c, proc, key, out, gave_up);
    }
    return rc;
}

rank_status_t rk_client_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len)
{
    char room[PMIX_MAX_KEYLEN + 1];
    pmix_proc_t proc;
    struct rk_pending *a;
    pmix_status_t rc;
    rank_status_t st = RANK_OK;
    bool gave_up = false;

    if (rk_kept_fds_closed("asking the PMIx server for another rank"))
        return RANK_ERR_SYSTEM;
    PMIX_LOAD_PROCID(&proc, rk_client_of(boot)->me.nspace, (pmix_rank_t)rank);
    boot->fetched++;
    rc = get_card(rk_client_of(boot), &proc, kvs_key(boot, key, room), &a, &gave_up);
    if (gave_up) {
        return rk_fail(RANK_ERR_PEER_DEAD, "a rank died, and the PMIx server has no address of rank %d", rank);
    }
    if (rc == PMIX_ERR_TIMEOUT && !rk_client_of(boot)->met) {
        return rk_fail(RANK_ERR_BOOT, "rank %d has not joined in time, or has died", rank);
    }
    if (rc != PMIX_SUCCESS) {
        rk_debug("no address %s of rank %d: %s", key, rank, PMIx_Error_string(rc));
        return RANK_ERR_UNREACHABLE;
    }
    if (!a->bytes || a->size > *len) {
        rk_fail(RANK_ERR_BOOT, "the address %s of rank %d is of another version", key, rank);
        st = RANK_ERR_BOOT;
    } else {
        memcpy(data, a->bytes, a->size);
        *len = a->size;
    }
    rk_pending_free(a);
    return st;
}

/* ------------------------------------------------------------------------- fence */

rank_status_t rk_client_fence(struct rk_boot *boot)
{
    struct rk_pending *a;
    pmix_status_t rc;
    bool arrived = true;

    if (rk_kept_fds_closed("a fence"))
        return RANK_ERR_SYSTEM;
    a = rk_pending_new();
    if (!a)
        return RANK_ERR_NO_MEMORY;
    rk_tsan_release(a);
    rc = PMIx_Fence_nb(NULL, 0, NULL, 0, rk_pending_arrived, a);
    if (rc == PMIX_SUCCESS) {
        arrived = rk_pending_wait(rk_client_of(boot), a, -1, RK_GRACE_MS);
        rc = arrived ? a->rc : PMIX_ERR_PARTIAL_SUCCESS;
    } else if (rc == PMIX_OPERATION_SUCCEEDED) {
        rc = PMIX_SUCCESS;
    }
    if (arrived) /* else it is abandoned */
        rk_pending_free(a);
    if (rc == PMIX_ERR_PARTIAL_SUCCESS) {
        return rk_fail(RANK_ERR_PEER_DEAD, "a rank died before all had met");
    }
    if (rc != PMIX_SUCCESS)
        return rk_client_failed("the PMIx fence", rc);
    rk_client_of(boot)->met = true;
    return RANK_OK;
}
