/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_request.h: make a request for rk_pair from words of options. */
#ifndef RK_TOPO_PAIR_REQUEST_H
#define RK_TOPO_PAIR_REQUEST_H

#include "lib/topo/pair.h"

/* Options of xrun. gpus and nics: "" without an option, "none", "closest", or numbers, as "0,2-3". */
struct rk_pair_words {
    const char *gpus, *nics;
    uint32_t gpus_per_rank, nics_per_rank; /* 0: not given */
    const char *visible;                   /* CUDA_VISIBLE_DEVICES of the ranks; NULL: not set */
};

struct rk_pair_prepared {
    struct rk_pair_request rq; /* without ranks and cores */
    uint32_t *gpu_list, *nic_list;
    bool *hidden; /* by GPU */
};

/* Return whether ranks are given GPUs or NICs. */
bool rk_pair_gives(const char *words);

/*
 * Set words->visible to the CUDA_VISIBLE_DEVICES that each of n ranks or programs has, given as one value or NULL each.
 * Returns false, with one line in err, if they differ, and ranks are given GPUs. Without GPUs it stays NULL then.
 */
bool rk_pair_set_visible(struct rk_pair_words *words, const char *const *value, uint32_t n, char *err, size_t errlen);

/*
 * Make the request. If ranks are given GPUs, those that CUDA may not use are removed from the machine. where names the
 * machine in err, such as "host a". Returns RANK_ERR_ARG, and one line in err, if the machine does not have what is
 * given. Clear *out in any case.
 */
rank_status_t rk_pair_request_make(const struct rk_pair_words *words, const char *where, struct rk_machine *m,
                                   struct rk_pair_prepared *out, char *err, size_t errlen);
/* No-op for a zeroed request. */
void rk_pair_request_clear(struct rk_pair_prepared *prepared);

/* Return the GPU that a word of CUDA_VISIBLE_DEVICES names, or RK_TOPO_NONE. */
uint32_t rk_gpu_of_word(const struct rk_machine *m, const char *word, size_t len);

#endif
