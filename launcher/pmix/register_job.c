/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register_job.c: register the job and its ranks with PMIx.
 *
 * The least that clients need is registered: node map and process map, from which
 * PMIx derives the local peers, and the sizes. Data of single ranks would have to be
 * complete to be of use.
 */
#include "launcher/pmix/pmix_internal.h"
#include "launcher/util/pack.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCAL_PROCS_MAX 256 /* each client of a host gets an entry for each rank of it */

/* Join the texts with sep between them. NULL without memory. */
static char *register_job_join(const char *const *texts, uint32_t n, char sep)
{
    size_t len = 1;
    char *all, *at;

    for (uint32_t i = 0; i < n; i++)
        len += strlen(texts[i]) + 1;
    all = at = malloc(len);
    for (uint32_t i = 0; all && i < n; i++) {
        if (i)
            *at++ = sep;
        at = stpcpy(at, texts[i]);
    }
    return all;
}

/* PMIX_LOCAL_PROCS of this host. The other data of hosts PMIx derives from the maps. */
static void about_local(pmix_info_t *info, const struct xr_server_job *job)
{
    pmix_data_array_t array, procs;
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 2, PMIX_INFO);
    PMIX_DATA_ARRAY_CONSTRUCT(&procs, job->nlocal, PMIX_PROC);
    for (uint32_t i = 0; i < job->nlocal; i++)
        PMIX_LOAD_PROCID((pmix_proc_t *)procs.array + i, job->id, job->local[i]);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_HOSTNAME, job->host, PMIX_STRING);
    PMIX_INFO_LOAD(&item[1], PMIX_LOCAL_PROCS, &procs, PMIX_DATA_ARRAY);
    PMIX_INFO_LOAD(info, PMIX_NODE_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&procs);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

rank_status_t xr_server_register_job(struct xr_server *s, const struct xr_server_job *job)
{
    char *ranks = register_job_join(job->ranks_of, job->nhosts, ';'), *nodes = NULL, *procs = NULL;
    char *hosts = register_job_join(job->hosts, job->nhosts, ',');
    bool oversubscribed = job->oversubscribed;
    struct xr_answer a;
    uint32_t size = job->size, universe = job->universe > size ? job->universe : size;
    pmix_info_t info[10];
    pmix_proc_t parent;
    size_t ninfo = 6;
    pmix_status_t rc;

    if (!ranks || !hosts) {
        free(ranks);
        free(hosts);
        return RANK_ERR_NO_MEMORY;
    }
    rc = xr_pack_host_map(job, hosts, &nodes);
    if (rc == PMIX_SUCCESS)
        rc = xr_pack_rank_map(job, ranks, &procs);
    free(ranks);
    free(hosts);
    if (rc == PMIX_SUCCESS) {
        PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, procs, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[3], PMIX_UNIV_SIZE, &universe, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[4], PMIX_MAX_PROCS, &size, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[5], PMIX_NODE_OVERSUBSCRIBED, &oversubscribed, PMIX_BOOL);
        if (job->folder) {
            PMIX_INFO_LOAD(&info[ninfo], PMIX_TMPDIR, job->folder, PMIX_STRING);
            ninfo++;
            PMIX_INFO_LOAD(&info[ninfo], PMIX_NSDIR, job->folder, PMIX_STRING);
            ninfo++;
        }
        if (job->nlocal && job->nlocal <= LOCAL_PROCS_MAX)
            about_local(&info[ninfo++], job);
        if (job->origin && job->origin->job) {
            PMIX_LOAD_PROCID(&parent, job->origin->job, job->origin->rank);
            PMIX_INFO_LOAD(&info[ninfo], PMIX_PARENT_ID, &parent, PMIX_PROC);
            ninfo++;
        }
        xr_answer_init(&a);
        rc = xr_answer_wait(&a, PMIx_server_register_nspace(s->nspace, (int)job->nlocal, info, ninfo,
                                                            xr_answer_come, &a));
        for (size_t i = 0; i < ninfo; i++)
            PMIX_INFO_DESTRUCT(&info[i]);
    }
    free(nodes);
    free(procs);
    return rc == PMIX_SUCCESS ? RANK_OK : xr_server_failed("registering the job with PMIx", rc);
}

/* PMIx's thread works in order, so it suffices to wait for the last call. */
rank_status_t xr_server_register_ranks(struct xr_server *s, const struct xr_server_job *job)
{
    struct xr_answer a;
    pmix_status_t rc = PMIX_SUCCESS;

    if (job->nlocal == 0)
        return RANK_OK;
    xr_answer_init(&a);
    for (uint32_t i = 0; i < job->nlocal && rc == PMIX_SUCCESS; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, s->nspace, job->local[i]);
        rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL,
                                         i + 1 < job->nlocal ? xr_answer_none : xr_answer_come, &a);
    }
    rc = xr_answer_wait(&a, rc);
    return rc == PMIX_SUCCESS ? RANK_OK : xr_server_failed("registering the ranks with PMIx", rc);
}

/* The parent job, which the clients of a spawned job may query. */
rank_status_t xr_server_register_origin(struct xr_server *s, const struct xr_server_job *job)
{
    struct xr_unpacker u;

    if (!job->origin || !job->origin->job)
        return RANK_OK;
    u = (struct xr_unpacker){job->origin->job_info, job->origin->len, false};
    return xr_server_add_job(s, &u) ? RANK_OK : RANK_ERR_BOOT;
}
