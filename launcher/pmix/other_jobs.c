/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * other_jobs.c: register other jobs with PMIx, and the parent of a spawned job.
 *
 * Clients can then query ranks of these jobs. They are registered without local
 * processes, even if they run on this host: these have the server of their own
 * job's agent.
 */
#include "launcher/dpm/job_info.h"
#include "launcher/pmix/pmix_internal.h"
#include "launcher/dpm/spawn_request.h"
#include "lib/base/log.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool xr_server_has_job(const struct xr_server *s, const char *id)
{
    if (strcmp(id, s->nspace) == 0)
        return true;
    for (char **o = s->others; o && *o; o++) {
        if (strcmp(*o, id) == 0)
            return true;
    }
    return false;
}

static void other_jobs_about_rank(pmix_info_t *info, const struct xr_job *job, uint32_t number)
{
    pmix_data_array_t array;
    pmix_rank_t rank = number;
    uint32_t node = job->host_of[number];
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 3, PMIX_INFO);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&item[1], PMIX_HOSTNAME, job->hosts[node], PMIX_STRING);
    PMIX_INFO_LOAD(&item[2], PMIX_NODEID, &node, PMIX_UINT32);
    PMIX_INFO_LOAD(info, PMIX_PROC_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

/* Registering this number of ranks may take seconds. */
#define MANY_RANKS 50000u

/* The ranks of each host of a job, as "0,1,2". NULL without memory. Caller frees each text and the array. */
static char **ranks_of_hosts(const struct xr_job *job)
{
    char **texts = calloc(job->nhosts, sizeof(*texts));
    size_t *lens = calloc(job->nhosts, sizeof(*lens));
    FILE **to = calloc(job->nhosts, sizeof(*to));
    bool ok = texts && lens && to;

    for (uint32_t i = 0; ok && i < job->size; i++) {
        uint32_t h = job->host_of[i];
        bool first = !to[h];
        if (first)
            to[h] = open_memstream(&texts[h], &lens[h]);
        ok = to[h] && fprintf(to[h], first ? "%u" : ",%u", i) > 0;
    }
    for (uint32_t h = 0; to && h < job->nhosts; h++) {
        if (to[h] && fclose(to[h]))
            ok = false;
    }
    free(to);
    free(lens);
    if (ok)
        return texts;
    for (uint32_t h = 0; texts && h < job->nhosts; h++)
        free(texts[h]);
    free(texts);
    return NULL;
}

/*
 * The ranks of a host, for PMIx_Resolve_peers. libpmix 4.2.2 sends such an array of a job
 * without local clients in the form of versions before 3.1. So a client finds the
 * ranks on its own host only (openpmix/openpmix#3359).
 */
static void about_host(pmix_info_t *info, const struct xr_job *job, uint32_t number, const char *ranks)
{
    pmix_data_array_t array;
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 3, PMIX_INFO);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_HOSTNAME, job->hosts[number], PMIX_STRING);
    PMIX_INFO_LOAD(&item[1], PMIX_NODEID, &number, PMIX_UINT32);
    PMIX_INFO_LOAD(&item[2], PMIX_LOCAL_PEERS, ranks, PMIX_STRING);
    PMIX_INFO_LOAD(info, PMIX_NODE_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

/* The hosts with ranks, for PMIx_Resolve_nodes and PMIx_Resolve_peers. NULL without memory. */
static pmix_info_t *about_hosts(const struct xr_job *job, size_t *n)
{
    char **ranks = ranks_of_hosts(job), *names = NULL;
    pmix_info_t *info = NULL;
    size_t len = 0;
    FILE *to = ranks ? open_memstream(&names, &len) : NULL;

    *n = 1;
    if (to)
        PMIX_INFO_CREATE(info, job->nhosts + 1);
    for (uint32_t h = 0; info && h < job->nhosts; h++) {
        if (!ranks[h])
            continue;
        fprintf(to, "%s%s", *n > 1 ? "," : "", job->hosts[h]);
        about_host(&info[(*n)++], job, h, ranks[h]);
    }
    if (to && fclose(to) && info) {
        PMIX_INFO_FREE(info, job->nhosts + 1);
        info = NULL;
    }
    if (info)
        PMIX_INFO_LOAD(&info[0], PMIX_NODE_LIST, names, PMIX_STRING);
    free(names);
    for (uint32_t h = 0; ranks && h < job->nhosts; h++)
        free(ranks[h]);
    free(ranks);
    return info;
}

static pmix_status_t register_other(const char *id, pmix_info_t *info, size_t n)
{
    struct xr_answer a;
    pmix_nspace_t nspace;

    PMIX_LOAD_NSPACE(nspace, id);
    xr_answer_init(&a);
    return xr_answer_wait(&a, PMIx_server_register_nspace(nspace, 0, info, n, xr_answer_come, &a));
}

/*
 * Register without maps. From maps a client that queries the job would learn which of
 * its ranks are local, and other clients would not. Open MPI would then take one
 * process for local on one side and for remote on the other, with other algorithms.
 */
static pmix_status_t register_ranks_of(const struct xr_job *job)
{
    uint32_t size = job->size, napps = job->napps;
    pmix_info_t *info;
    pmix_status_t rc;
    size_t n = (size_t)size + 3;

    PMIX_INFO_CREATE(info, n);
    if (!info)
        return PMIX_ERR_NOMEM;
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[1], PMIX_MAX_PROCS, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_NUM_APPS, &napps, PMIX_UINT32);
    for (uint32_t i = 0; i < size; i++)
        other_jobs_about_rank(&info[3 + i], job, i);
    rc = register_other(job->id, info, n);
    PMIX_INFO_FREE(info, n);
    return rc;
}

static pmix_status_t register_hosts_of(const struct xr_job *job)
{
    size_t n;
    pmix_info_t *info = about_hosts(job, &n);
    pmix_status_t rc = info ? register_other(job->id, info, n) : PMIX_ERR_NOMEM;

    if (info)
        PMIX_INFO_FREE(info, job->nhosts + 1);
    return rc;
}

/* Register a job unless it is registered; with its hosts if hosts. */
static bool add_job(struct xr_server *s, const struct xr_job *job, bool hosts)
{
    pmix_status_t rc;

    if (xr_server_has_job(s, job->id))
        return true;
    xr_job_queries_keep(&s->queries, job->id);
    if (job->size >= MANY_RANKS)
        s->events->busy(s->arg);
    rc = register_ranks_of(job);
    if (rc == PMIX_SUCCESS && hosts)
        rc = register_hosts_of(job);
    if (rc != PMIX_SUCCESS)
        rk_error("registering the job %s with PMIx failed: %s", job->id, PMIx_Error_string(rc));
    return rc == PMIX_SUCCESS && xr_strv_add(&s->others, job->id);
}

bool xr_server_add_job(struct xr_server *s, struct xr_unpacker *u)
{
    struct xr_job job;
    bool ok = xr_job_info_unpack(u, &job) && add_job(s, &job, true);

    xr_job_clear(&job);
    return ok;
}

bool xr_server_add_spawned(struct xr_server *s, struct xr_unpacker *u, pmix_spawn_cbfunc_t done, void *done_arg)
{
    struct xr_job job;
    pmix_info_t *info;
    size_t n;
    bool ok = xr_job_info_unpack(u, &job) && add_job(s, &job, false);

    if (ok) {
        info = about_hosts(&job, &n);
        ok = info && xr_spawn_reply(job.id, info, n, job.nhosts + (size_t)1, done, done_arg);
    }
    xr_job_clear(&job);
    return ok;
}

static void other_jobs_remove(struct xr_server *s, char *id)
{
    size_t n = 0, at = 0;

    while (s->others && s->others[n]) {
        if (strcmp(s->others[n], id) == 0)
            at = n + 1;
        n++;
    }
    if (at) {
        free(s->others[at - 1]);
        memmove(&s->others[at - 1], &s->others[at], (n - at + 1) * sizeof(*s->others));
    }
    free(id);
}

void xr_server_job_ended(struct xr_server *s, const char *id)
{
    char **past = &s->past[s->npast % XR_SERVER_PAST], *copy = NULL;

    if (xr_server_has_job(s, id) && strcmp(id, s->nspace) != 0)
        copy = strdup(id);
    if (!copy)
        return;
    s->npast++;
    if (*past) {
        xr_job_queries_forget(&s->queries, *past);
        other_jobs_remove(s, *past);
    }
    *past = copy;
}

/*
 * Some clients query their own PMIX_PARENT_ID, some their job's, which the first registration
 * has. This adds to the first one, as in app_info.c.
 */
rank_status_t xr_server_register_parent(struct xr_server *s, const struct xr_server_job *job)
{
    struct xr_answer a;
    pmix_info_t *info;
    pmix_proc_t parent;
    pmix_status_t rc;

    if (!job->origin || !job->origin->job || job->nlocal == 0)
        return RANK_OK;
    PMIX_LOAD_PROCID(&parent, job->origin->job, job->origin->rank);
    PMIX_INFO_CREATE(info, job->nlocal);
    if (!info)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < job->nlocal; i++) {
        pmix_data_array_t array;
        pmix_info_t *item;
        PMIX_DATA_ARRAY_CONSTRUCT(&array, 2, PMIX_INFO);
        item = array.array;
        PMIX_INFO_LOAD(&item[0], PMIX_RANK, &job->local[i], PMIX_PROC_RANK);
        PMIX_INFO_LOAD(&item[1], PMIX_PARENT_ID, &parent, PMIX_PROC);
        PMIX_INFO_LOAD(&info[i], PMIX_PROC_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
    }
    xr_answer_init(&a);
    rc = xr_answer_wait(&a, PMIx_server_register_nspace(s->nspace, (int)job->nlocal, info, job->nlocal,
                                                        xr_answer_come, &a));
    PMIX_INFO_FREE(info, job->nlocal);
    if (rc == PMIX_SUCCESS)
        return RANK_OK;
    rk_error("registering the ranks' parent with PMIx failed: %s", PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}
