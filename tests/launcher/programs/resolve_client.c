/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve_client.c: resolve the nodes and peers of this job and of another one.
 *
 * resolve_client N HOSTS NHOSTS PER   spawns N more of it, connects with them and queries; HOSTS: how many of the own job's
 *                                     hosts there are; NHOSTS: the spawned one's; PER: a host takes so many ranks of each
 */
#include "client_common.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool failed;
static size_t per = 1000; /* ranks of a job on one host */

static void complain(const char *what, const char *job, pmix_status_t rc, size_t n, size_t wanted)
{
    fprintf(stderr, "rank %u of %s: %s of %s: %s, %zu, not %zu\n", me.rank, me.nspace, what, job, PMIx_Error_string(rc),
            n, wanted);
    failed = true;
}

/* Which ranks of a job run on which of its hosts; libpmix 4.2.2 has it of another job only for the own host. */
static void resolve(const char *job, size_t hosts, size_t ranks)
{
    bool own = PMIX_CHECK_NSPACE(job, me.nspace);
    char *nodes = NULL, *save = NULL, here[256];
    size_t n = 0;
    pmix_status_t rc = PMIx_Resolve_nodes(job, &nodes);

    if (rc != PMIX_SUCCESS) {
        complain("PMIx_Resolve_nodes", job, rc, 0, hosts);
        return;
    }
    gethostname(here, sizeof(here));
    for (char *node = strtok_r(nodes, ",", &save); node; node = strtok_r(NULL, ",", &save), n++) {
        pmix_proc_t *procs = NULL;
        size_t nprocs = 0, found = 0, wanted = per * (n + 1) <= ranks ? per : ranks - per * n;
        if (!own && strcmp(node, here) != 0)
            continue;
        rc = PMIx_Resolve_peers(node, job, &procs, &nprocs);
        for (size_t i = 0; i < nprocs; i++)
            found += PMIX_CHECK_NSPACE(procs[i].nspace, job) && procs[i].rank < ranks;
        if (rc != PMIX_SUCCESS || found != wanted || nprocs != wanted)
            complain(node, job, rc, found, wanted);
        if (procs)
            PMIX_PROC_FREE(procs, nprocs);
    }
    free(nodes);
    if (n != hosts)
        complain("hosts", job, rc, n, hosts);
}

/* PMIX_LOCAL_PROCS names the ranks of PMIX_LOCAL_PEERS. */
static void local_procs(void)
{
    pmix_value_t *procs, *size_here;
    pmix_status_t rc = PMIx_Get(&all, PMIX_LOCAL_PROCS, NULL, 0, &procs);
    bool among = false;

    if (rc != PMIX_SUCCESS || procs->type != PMIX_DATA_ARRAY || procs->data.darray->type != PMIX_PROC) {
        complain("PMIX_LOCAL_PROCS", me.nspace, rc, 0, 1);
        return;
    }
    need("PMIX_LOCAL_SIZE", PMIx_Get(&all, PMIX_LOCAL_SIZE, NULL, 0, &size_here));
    for (size_t i = 0; i < procs->data.darray->size; i++)
        among = among || PMIX_CHECK_PROCID((pmix_proc_t *)procs->data.darray->array + i, &me);
    if (!among || procs->data.darray->size != size_here->data.uint32)
        complain("PMIX_LOCAL_PROCS", me.nspace, rc, procs->data.darray->size, size_here->data.uint32);
    PMIX_VALUE_RELEASE(procs);
    PMIX_VALUE_RELEASE(size_here);
}

static void meet(const char *parent, const char *child)
{
    pmix_proc_t both[2];

    PMIX_LOAD_PROCID(&both[0], parent, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&both[1], child, PMIX_RANK_WILDCARD);
    need("PMIx_Connect", PMIx_Connect(both, 2, NULL, 0));
}

static void spawn(char **argv, uint32_t n, char *nspace)
{
    pmix_app_t app;
    pmix_status_t rc;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(argv[0]);
    for (char **arg = argv; *arg; arg++)
        PMIX_ARGV_APPEND(rc, app.argv, *arg);
    need("append", rc);
    app.maxprocs = (int)n;
    need("PMIx_Spawn", PMIx_Spawn(NULL, 0, &app, 1, nspace));
    PMIX_APP_DESTRUCT(&app);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    size_t hosts = argc > 2 ? (size_t)atoi(argv[2]) : 1, child_hosts = argc > 3 ? (size_t)atoi(argv[3]) : 1;
    pmix_value_t *parent;
    pmix_nspace_t child = "";
    pmix_info_t info;

    if (argc > 4)
        per = (size_t)atoi(argv[4]);
    start();
    local_procs();
    if (PMIx_Get(&me, PMIX_PARENT_ID, NULL, 0, &parent) == PMIX_SUCCESS) {
        uint32_t parents;
        pmix_proc_t job;
        /* Also before they are connected. */
        resolve(me.nspace, child_hosts, size);
        PMIX_LOAD_PROCID(&job, parent->data.proc->nspace, PMIX_RANK_WILDCARD);
        parents = get_u32(&job, PMIX_JOB_SIZE);
        resolve(parent->data.proc->nspace, hosts, parents);
        meet(parent->data.proc->nspace, me.nspace);
        resolve(parent->data.proc->nspace, hosts, parents);
    } else {
        resolve(me.nspace, hosts, size);
        if (me.rank == 0) {
            spawn(argv, n, child);
            PMIX_INFO_LOAD(&info, "child", child, PMIX_STRING);
            need("PMIx_Publish", PMIx_Publish(&info, 1));
        } else {
            pmix_pdata_t data;
            pmix_info_t wait;
            int every = 0;
            PMIX_PDATA_CONSTRUCT(&data);
            PMIX_LOAD_KEY(data.key, "child");
            PMIX_INFO_LOAD(&wait, PMIX_WAIT, &every, PMIX_INT);
            need("PMIx_Lookup", PMIx_Lookup(&data, 1, &wait, 1));
            PMIX_LOAD_NSPACE(child, data.value.data.string);
        }
        if (me.rank == 0) {
            resolve(child, child_hosts, n);
        }
        meet(me.nspace, child);
        resolve(child, child_hosts, n);
        resolve(me.nspace, hosts, size);
    }
    return failed ? 9 : finish();
}
