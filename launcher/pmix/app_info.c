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
#include <stdlib.h>

static void about_app(pmix_info_t *info, uint32_t app, const struct xr_server_app *a)
{
    pmix_data_array_t array;
    pmix_rank_t first = a->first;
    uint32_t n = a->n;
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 3, PMIX_INFO);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_APPNUM, &app, PMIX_UINT32);
    PMIX_INFO_LOAD(&item[1], PMIX_APP_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&item[2], PMIX_APPLDR, &first, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(info, PMIX_APP_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

static void app_info_about_rank(pmix_info_t *info, uint32_t number, uint32_t app, uint32_t in_app)
{
    pmix_data_array_t array;
    pmix_rank_t rank = number, app_rank = in_app;
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 3, PMIX_INFO);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&item[1], PMIX_APPNUM, &app, PMIX_UINT32);
    PMIX_INFO_LOAD(&item[2], PMIX_APP_RANK, &app_rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(info, PMIX_PROC_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

rank_status_t xr_server_register_apps(struct xr_server *s, const struct xr_server_job *job)
{
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
        about_app(&info[at++], i, &job->apps[i]);
    for (uint32_t i = 0; i < job->napps; i++) {
        for (uint32_t k = 0; k < job->apps[i].n; k++)
            app_info_about_rank(&info[at++], job->apps[i].first + k, i, k);
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
