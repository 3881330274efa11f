/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_table.c: query the PMIx server which processes of this host are gone.
 *
 * Deaths are events, but an event can be lost while a client connects (4.2.2), and a server need not report
 * earlier deaths to a new client. A rank that has waited a while before the first fence is over queries the
 * process table: a standard key that xrun and PRRTE serve and Slurm does not. An undisturbed start queries
 * nothing.
 */
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"

/* PMIx uses it until the answer arrives, perhaps after the client has ended. One query a process: all contexts get it. */
static char key[] = PMIX_QUERY_LOCAL_PROC_TABLE, *keys[] = {key, NULL};
static pmix_info_t fresh; /* else libpmix returns its cached answer */
static pmix_query_t query = {.keys = keys, .qualifiers = &fresh, .nqual = 1};
static atomic_bool asking;

static void on_table(pmix_status_t status, pmix_info_t *info, size_t n, void *arg, pmix_release_cbfunc_t release,
                     void *release_arg)
{
    bool any = false;

    (void)arg;
    for (size_t i = 0; status == PMIX_SUCCESS && i < n; i++) {
        const pmix_data_array_t *table = info[i].value.data.darray;
        const pmix_proc_info_t *p;
        if (info[i].value.type != PMIX_DATA_ARRAY || !table || table->type != PMIX_PROC_INFO)
            continue;
        any = true;
        p = table->array;
        for (size_t j = 0; j < table->size; j++) {
            if (p[j].state >= PMIX_PROC_STATE_TERMINATED)
                rk_client_record_death(&p[j].proc);
        }
    }
    if (!any)
        rk_client_no_census();
    if (release)
        release(release_arg);
    atomic_store(&asking, false);
}

void rk_client_census(struct rk_client *c)
{
    if (atomic_load(&c->no_census) || atomic_exchange(&asking, true))
        return;
    PMIX_INFO_LOAD(&fresh, PMIX_QUERY_REFRESH_CACHE, NULL, PMIX_BOOL);
    if (PMIx_Query_info_nb(&query, 1, on_table, NULL) != PMIX_SUCCESS) {
        atomic_store(&c->no_census, true);
        atomic_store(&asking, false);
    }
}

void rk_client_census_over(void)
{
    atomic_store(&asking, false);
}
