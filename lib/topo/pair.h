/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h: choose GPU, NIC and cores for each rank of a machine.
 *
 * Pure functions of machine and request: each process that calls them gets the same result.
 */
#ifndef RK_TOPO_PAIR_H
#define RK_TOPO_PAIR_H

#include "lib/topo/topo_machine.h"

enum rk_pair_bind {
    RK_PAIR_CLOSEST, /* by distance at equal loads */
    RK_PAIR_NONE,    /* no device */
    RK_PAIR_MAP      /* rank i has the next per_rank devices of a list, which is repeated */
};

/* What is asked of GPUs or of NICs. Devices are indices in the machine. */
struct rk_pair_devices {
    enum rk_pair_bind bind;
    uint32_t per_rank; /* 0: one, if the machine has any */
    const uint32_t *map;
    uint32_t nmap;
    const bool *hidden; /* a flag for each device that may not be used; NULL: none */
};

/* Cores of a rank, as indices in the machine. n 0: not bound. */
struct rk_pair_cores {
    const uint32_t *core;
    uint32_t n;
};

struct rk_pair_request {
    uint32_t ranks;
    const struct rk_pair_cores *placed; /* the cores of each rank; NULL: cores beside its GPU are chosen */
    struct rk_pair_devices gpus, nics;
};

enum rk_pair_reason {
    RK_PAIR_IN_ORDER,    /* rank i has GPU i in PCI order */
    RK_PAIR_SHARED,      /* consecutive ranks share a GPU */
    RK_PAIR_NEAREST,     /* none is nearer */
    RK_PAIR_EQUAL_LOADS, /* nearer ones have their share of ranks */
    RK_PAIR_LISTED,      /* by the list */
    RK_PAIR_LEAST_LOADED, /* of NICs as near */
    RK_PAIR_PCI_ORDER,   /* of NICs as near and as loaded */
    RK_PAIR_RDMA_FIRST,  /* a nearer NIC has no RDMA */
    RK_PAIR_ONLY         /* the machine has no other one, or none that is shown */
};

struct rk_pair_link {
    uint32_t device;
    enum rk_path path; /* from the farthest core to a GPU, from GPU or cores to a NIC */
    enum rk_pair_reason reason;
};

struct rk_pair_rank {
    const struct rk_pair_link *gpu, *nic;
    uint32_t ngpus, nnics;
    const uint32_t *core; /* those of the request, or the chosen ones */
    uint32_t ncores;
};

struct rk_pairing {
    struct rk_pair_rank *rank;
    uint32_t ranks;
    struct rk_pair_link *gpus, *nics; /* all ranks' */
    uint32_t *cores;                  /* chosen; NULL if they were given */
};

/*
 * Pair ranks with devices. out is written on success; free it with rk_pair_free.
 * Returns RANK_ERR_ARG, and one line in err, for an unknown, doubled or hidden device of a list, or too many a rank.
 */
rank_status_t rk_pair(const struct rk_machine *m, const struct rk_pair_request *rq, struct rk_pairing *out,
                      char *err, size_t errlen);
/* No-op for a zeroed pairing. */
void rk_pair_free(struct rk_pairing *p);
/* Read "0,2" or "0-3,7": at most 1,024 numbers up to 1023. Returns false if it is malformed. Caller frees *list. */
bool rk_device_list(const char *text, uint32_t **list, uint32_t *n);
const char *rk_pair_reason_text(enum rk_pair_reason reason);

/* Distance from the cores of a rank to a GPU or NIC: 0 beside it, up to twice RK_PAIR_FAR in another package. */
#define RK_PAIR_FAR ((int64_t)1 << 24)
int64_t rk_pair_core_distance(const struct rk_machine *m, const struct rk_pair_cores *cores, const struct rk_device *d);

#endif
