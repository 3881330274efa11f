/* SPDX-License-Identifier: BSD-3-Clause */
/* node_map.c: number the nodes of the job. */
#include "lib/base/fnv.h"
#include "lib/base/kept_fds.h"
#include "lib/boot/boot_client.h"

#include <stdlib.h>
#include <string.h>

/*
 * Hash of the name of a rank's node. The launcher's names are unique, and came with the job: no server is queried.
 * PMIX_NODEID would do, but libpmix 4.2 has it for local ranks only.
 */
static bool query_node_name(const struct rk_client *c, int rank, uint64_t *id)
{
    pmix_value_t *v = NULL;
    pmix_proc_t proc;
    pmix_info_t here;
    bool found;

    PMIX_LOAD_PROCID(&proc, c->me.nspace, (pmix_rank_t)rank);
    PMIX_INFO_LOAD(&here, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (PMIx_Get(&proc, PMIX_HOSTNAME, &here, 1, &v) != PMIX_SUCCESS || !v)
        return false;
    found = v->type == PMIX_STRING && v->data.string;
    if (found)
        *id = rk_fnv64(RK_FNV64_START, v->data.string, strlen(v->data.string));
    PMIX_VALUE_RELEASE(v);
    return found;
}

struct node_of_rank {
    uint64_t id;
    int rank;
};

static int by_id_and_rank(const void *a, const void *b)
{
    const struct node_of_rank *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->rank - y->rank;
}

/* Number the nodes in the order of their lowest ranks. */
static void number_nodes(struct rk_boot *boot, struct node_of_rank *all)
{
    int nodes = 0, first = 0;

    qsort(all, (size_t)boot->size, sizeof(*all), by_id_and_rank);
    for (int i = 0; i < boot->size; i++) { /* of each rank: the lowest rank of its node */
        if (all[i].id != all[first].id)
            first = i;
        boot->node_of[all[i].rank] = all[first].rank;
    }
    for (int r = 0; r < boot->size; r++) {
        int lowest = boot->node_of[r];
        boot->node_of[r] = lowest == r ? nodes++ : boot->node_of[lowest];
    }
}

static rank_status_t map_nodes(struct rk_boot *boot)
{
    struct node_of_rank *all = calloc((size_t)boot->size, sizeof(*all));
    bool found = true;
    rank_status_t st;

    boot->node_of = calloc((size_t)boot->size, sizeof(int));
    for (int r = 0; all && r < boot->size && found && boot->nlocal < boot->size; r++) {
        all[r].rank = r;
        found = query_node_name(rk_client_of(boot), r, &all[r].id);
    }
    if (found && all && boot->node_of && boot->nlocal < boot->size) /* else all are on node 0 */
        number_nodes(boot, all);
    st = !all || !boot->node_of ? RANK_ERR_NO_MEMORY : found ? RANK_OK : RANK_ERR_NOT_SUPPORTED;
    if (st) {
        free(boot->node_of);
        boot->node_of = NULL;
    }
    free(all);
    return st;
}

int rk_boot_node_of(struct rk_boot *boot, int rank)
{
    rank_status_t st;

    if (!boot->node_of && rk_kept_fds_closed("rank_node_of"))
        return RANK_ERR_SYSTEM;
    st = boot->node_of ? RANK_OK : map_nodes(boot);
    return st ? (int)st : boot->node_of[rank];
}
