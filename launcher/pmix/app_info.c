/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_info.c: register the program of each rank, from which MPI_APPNUM comes.
 *
 * This second registration adds to the first one: PMIx derives the data of single
 * ranks from the maps only if the same call contains none. A job of one program does
 * not need it. See pmix_internal.h.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <pmix.h>

/* Load three numbers into an array with a key of its own. */
static void put_array(pmix_info_t *info, const char *key, const char *const keys[3], const uint32_t values[3],
                      const pmix_data_type_t types[3])
{
    pmix_data_array_t array;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 3, PMIX_INFO);
    for (int i = 0; i < 3; i++)
        PMIX_INFO_LOAD(&((pmix_info_t *)array.array)[i], keys[i], &values[i], types[i]);
    PMIX_INFO_LOAD(info, key, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

rank_status_t xr_server_register_apps(struct xr_server *s, const struct xr_server_job *job)
{
    static const char *const of_app[] = {PMIX_APPNUM, PMIX_APP_SIZE, PMIX_APPLDR};
    static const char *const of_rank[] = {PMIX_RANK, PMIX_APPNUM, PMIX_APP_RANK};
    static const pmix_data_type_t app_types[] = {PMIX_UINT32, PMIX_UINT32, PMIX_PROC_RANK};
    static const pmix_data_type_t rank_types[] = {PMIX_PROC_RANK, PMIX_UINT32, PMIX_PROC_RANK};
    size_t n = (size_t)job->napps + job->size, at = 1;
    struct xr_answer a;
    pmix_info_t *info;
    uint32_t napps = job->napps;
    pmix_status_t rc;

    PMIX_INFO_CREATE(info, n + 1);
    if (!info)
        return RANK_ERR_NO_MEMORY;
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_NUM_APPS, &napps, PMIX_UINT32);
    for (uint32_t i = 0; i < job->napps; i++)
        put_array(&info[at++], PMIX_APP_INFO_ARRAY, of_app, (uint32_t[]){i, job->apps[i].n, job->apps[i].first}, app_types);
    for (uint32_t i = 0; i < job->napps; i++) {
        for (uint32_t k = 0; k < job->apps[i].n; k++)
            put_array(&info[at++], PMIX_PROC_INFO_ARRAY, of_rank, (uint32_t[]){job->apps[i].first + k, i, k}, rank_types);
    }
    xr_answer_init(&a);
    rc = xr_answer_wait(&a, PMIx_server_register_nspace(s->nspace, (int)job->nlocal, info, at,
                                                        xr_answer_come, &a));
    PMIX_INFO_FREE(info, n + 1);
    if (rc == PMIX_SUCCESS)
        return RANK_OK;
    rk_error("registering the job's programs with PMIx failed: %s", PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}
