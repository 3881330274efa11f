/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_internal.h: share pairing between the files of lib/topo/pair*.c. */
#ifndef RK_TOPO_PAIR_INTERNAL_H
#define RK_TOPO_PAIR_INTERNAL_H

#include "lib/topo/pair.h"

/* The devices of one kind that the request leaves. */
struct rk_pair_pool {
    const struct rk_device *all;
    const struct rk_pair_devices *rq;
    uint32_t *device; /* index in the machine of each */
    uint32_t n, per_rank;
};

/* Classes of ranks and GPUs: each rank needs several GPUs, each class has a cost for each GPU. */
struct rk_pair_problem {
    uint32_t classes, gpus, per_rank, ranks;
    const uint32_t *size; /* ranks of a class */
    const int64_t *cost;  /* classes x gpus */
};

/*
 * Assign each class to GPUs with the least total cost and loads that are equal within one.
 * count, classes x gpus: ranks of the class that have the GPU, at most its size. Of equals the lower GPU.
 */
rank_status_t rk_pair_assign(const struct rk_pair_problem *p, uint32_t *count);

/* Choose GPUs by the given cores. */
rank_status_t rk_pair_gpus_by_cores(const struct rk_machine *m, const struct rk_pair_request *rq,
                                    const struct rk_pair_pool *gpus, struct rk_pairing *out);
/* Choose cores beside the GPUs; without GPUs divide all cores. */
rank_status_t rk_pair_choose_cores(const struct rk_machine *m, struct rk_pairing *out);
/* Choose NICs by GPUs or else cores. */
rank_status_t rk_pair_choose_nics(const struct rk_machine *m, const struct rk_pair_pool *nics, struct rk_pairing *out);

/* Return RK_PATH_NODE if all cores are beside a device, else RK_PATH_SYS. */
enum rk_path rk_pair_core_path(const struct rk_machine *m, const struct rk_pair_rank *rank, const struct rk_device *d);

#endif
