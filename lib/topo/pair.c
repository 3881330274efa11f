/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.c: check a request, deal GPUs in order or by list. See pair.h.
 *
 * Without placement, rank i has GPU i in PCI order, and the cores follow the GPU. With placement, the GPU follows the
 * cores (pair_gpus.c). The NIC follows the GPU, or the cores without one (pair_nics.c).
 */
#include "lib/topo/pair_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rk_pair_reason_text(enum rk_pair_reason reason)
{
    static const char *const texts[] = {
        [RK_PAIR_IN_ORDER] = "ranks have GPUs in PCI order",
        [RK_PAIR_SHARED] = "consecutive ranks share GPUs",
        [RK_PAIR_NEAREST] = "none is nearer",
        [RK_PAIR_EQUAL_LOADS] = "nearer ones have their share of ranks",
        [RK_PAIR_LISTED] = "by the list",
        [RK_PAIR_LEAST_LOADED] = "least loaded of those as near",
        [RK_PAIR_PCI_ORDER] = "first in PCI order of those as near",
        [RK_PAIR_RDMA_FIRST] = "RDMA before nearer Ethernet",
        [RK_PAIR_ONLY] = "there is no other",
    };

    return texts[reason];
}

/* ----------------------------------------------------------------- checks */

static rank_status_t check_device_list(const struct rk_pair_devices *rq, const char *kind, uint32_t n, char *err,
                                size_t errlen)
{
    for (uint32_t i = 0; i < rq->nmap; i++) {
        if (rq->map[i] >= n) {
            snprintf(err, errlen, "%s %u is not there: the machine has %u", kind, rq->map[i], n);
            return RANK_ERR_ARG;
        }
        if (rq->hidden && rq->hidden[rq->map[i]]) {
            snprintf(err, errlen, "%s %u is hidden from this job", kind, rq->map[i]);
            return RANK_ERR_ARG;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (rq->map[j] == rq->map[i]) {
                snprintf(err, errlen, "%s %u is listed twice", kind, rq->map[i]);
                return RANK_ERR_ARG;
            }
        }
    }
    return RANK_OK;
}

/* List the devices to choose from, and check that a rank can have as many as it needs. */
static rank_status_t pool_make(const struct rk_pair_devices *rq, const char *kind, const struct rk_device *all,
                               uint32_t n, struct rk_pair_pool *out, char *err, size_t errlen)
{
    rank_status_t st = rq->bind == RK_PAIR_MAP ? check_device_list(rq, kind, n, err, errlen) : RANK_OK;

    *out = (struct rk_pair_pool){.all = all, .rq = rq};
    if (st || rq->bind == RK_PAIR_NONE)
        return st;
    out->device = malloc(((size_t)n + 1) * sizeof(*out->device));
    if (!out->device) {
        snprintf(err, errlen, "out of memory for the pairing");
        return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; rq->bind == RK_PAIR_CLOSEST && i < n; i++) {
        if (!rq->hidden || !rq->hidden[i])
            out->device[out->n++] = i;
    }
    for (uint32_t i = 0; rq->bind == RK_PAIR_MAP && i < rq->nmap; i++)
        out->device[out->n++] = rq->map[i];
    out->per_rank = rq->per_rank ? rq->per_rank : out->n > 0;
    if (out->per_rank <= out->n)
        return RANK_OK;
    snprintf(err, errlen, "%u %s%s for each rank %s too many: there %s %u", out->per_rank, kind,
             out->per_rank == 1 ? "" : "s", out->per_rank == 1 ? "is" : "are", out->n == 1 ? "is" : "are", out->n);
    return RANK_ERR_ARG;
}

static rank_status_t check_placed(const struct rk_machine *m, const struct rk_pair_request *rq, char *err,
                                  size_t errlen)
{
    for (uint32_t r = 0; rq->placed && r < rq->ranks; r++) {
        for (uint32_t i = 0; i < rq->placed[r].n; i++) {
            if (rq->placed[r].core[i] < m->ncores)
                continue;
            snprintf(err, errlen, "rank %u: core %u is not there: the machine has %u", r, rq->placed[r].core[i],
                     m->ncores);
            return RANK_ERR_ARG;
        }
    }
    return RANK_OK;
}

/* ------------------------------------------------------------------- GPUs */

/*
 * Return the i-th GPU of the rank, as an index into the pool. Loads are equal within one: the first GPUs of the ranks
 * are spread evenly, and a rank has consecutive ones from there.
 */
static uint32_t gpu_in_order(const struct rk_pair_pool *gpus, uint32_t ranks, uint32_t rank, uint32_t i)
{
    uint64_t step = gpus->n % gpus->per_rank == 0 ? gpus->per_rank : 1; /* whole groups, if they fit */

    if ((uint64_t)ranks * gpus->per_rank <= gpus->n)
        return rank * gpus->per_rank + i;
    return (uint32_t)((rank * (gpus->n / step) / ranks * step + i) % gpus->n);
}

static void deal_gpus(const struct rk_pair_pool *gpus, struct rk_pairing *out)
{
    bool listed = gpus->rq->bind == RK_PAIR_MAP;
    bool shared = (uint64_t)out->ranks * gpus->per_rank > gpus->n;

    for (uint32_t r = 0; r < out->ranks; r++) {
        for (uint32_t i = 0; i < gpus->per_rank; i++) {
            uint32_t at = listed ? (uint32_t)(((uint64_t)r * gpus->per_rank + i) % gpus->n)
                                 : gpu_in_order(gpus, out->ranks, r, i);
            out->gpus[(size_t)r * gpus->per_rank + i] = (struct rk_pair_link){
                gpus->device[at], RK_PATH_NODE,
                listed         ? RK_PAIR_LISTED
                : gpus->n == 1 ? RK_PAIR_ONLY
                : shared       ? RK_PAIR_SHARED
                               : RK_PAIR_IN_ORDER};
        }
    }
}

/* -------------------------------------------------------------------- all */

static rank_status_t pairing_make(const struct rk_pair_request *rq, const struct rk_pair_pool *gpus,
                                  const struct rk_pair_pool *nics, struct rk_pairing *p)
{
    size_t ranks = rq->ranks;

    p->ranks = rq->ranks;
    p->rank = calloc(ranks + 1, sizeof(*p->rank));
    p->gpus = calloc(ranks * gpus->per_rank + 1, sizeof(*p->gpus));
    p->nics = calloc(ranks * nics->per_rank + 1, sizeof(*p->nics));
    if (!p->rank || !p->gpus || !p->nics)
        return RANK_ERR_NO_MEMORY;
    for (size_t r = 0; r < ranks; r++) {
        p->rank[r] = (struct rk_pair_rank){p->gpus + r * gpus->per_rank, p->nics + r * nics->per_rank,
                                           gpus->per_rank, nics->per_rank, NULL, 0};
        if (rq->placed) {
            p->rank[r].core = rq->placed[r].core;
            p->rank[r].ncores = rq->placed[r].n;
        }
    }
    return RANK_OK;
}

static rank_status_t pair_all(const struct rk_machine *m, const struct rk_pair_request *rq,
                              const struct rk_pair_pool *gpus, const struct rk_pair_pool *nics, struct rk_pairing *p)
{
    rank_status_t st = pairing_make(rq, gpus, nics, p);

    if (!st && gpus->per_rank && rq->placed && rq->gpus.bind == RK_PAIR_CLOSEST)
        st = rk_pair_gpus_by_cores(m, rq, gpus, p);
    else if (!st && gpus->per_rank)
        deal_gpus(gpus, p);
    if (!st && !rq->placed)
        st = rk_pair_choose_cores(m, p);
    for (uint32_t r = 0; !st && r < p->ranks; r++) {
        for (uint32_t i = 0; i < p->rank[r].ngpus; i++) {
            struct rk_pair_link *link = &p->gpus[(size_t)r * gpus->per_rank + i];
            link->path = rk_pair_core_path(m, &p->rank[r], &m->gpu[link->device]);
        }
    }
    if (!st && nics->per_rank)
        st = rk_pair_choose_nics(m, nics, p);
    return st;
}

rank_status_t rk_pair(const struct rk_machine *m, const struct rk_pair_request *rq, struct rk_pairing *out,
                      char *err, size_t errlen)
{
    struct rk_pair_pool gpus = {.n = 0}, nics = {.n = 0};
    struct rk_pairing p = {.ranks = 0};
    rank_status_t st = check_placed(m, rq, err, errlen);

    if (!st)
        st = pool_make(&rq->gpus, "GPU", m->gpu, m->ngpus, &gpus, err, errlen);
    if (!st)
        st = pool_make(&rq->nics, "NIC", m->nic, m->nnics, &nics, err, errlen);
    if (!st) {
        st = pair_all(m, rq, &gpus, &nics, &p);
        if (st)
            snprintf(err, errlen, "out of memory for the pairing of %u ranks", rq->ranks);
    }
    free(gpus.device);
    free(nics.device);
    if (st)
        rk_pair_free(&p);
    else
        *out = p;
    return st;
}

void rk_pair_free(struct rk_pairing *p)
{
    free(p->rank);
    free(p->gpus);
    free(p->nics);
    free(p->cores);
    memset(p, 0, sizeof(*p));
}
