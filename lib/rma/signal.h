/* SPDX-License-Identifier: BSD-3-Clause */
/* signal.h: wait for a word of the own memory. */
#ifndef RK_RMA_SIGNAL_H
#define RK_RMA_SIGNAL_H

#include "lib/rma/rma.h"

struct rk_rma_wait {
    struct rank_mem *mem;
    const uint64_t *at;
    uint64_t value, seen;
    rank_cmp_t cmp;
    const struct rk_peer *peer; /* the writer; NULL: any */
    bool dead;                  /* all possible writers are dead */
    bool over;
};

bool rk_rma_word_is_so(void *wait);

#endif
