/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retired.h: keep the memory of freed objects for stale handles of users.
 *
 * A handle is a pointer, and a freed object rejects it by its cleared magic. So its memory is never returned, and is
 * used again only after at least `keep` others were freed. The queue belongs to the process: handles outlive
 * contexts. Any thread.
 */
#ifndef RK_BASE_RETIRED_H
#define RK_BASE_RETIRED_H

#include "lib/base/list.h"

#include <pthread.h>

struct rk_retired {
    pthread_mutex_t lock;
    struct rk_link *oldest, *newest; /* chained through next */
    int n, keep;
};

#define RK_RETIRED_INIT(least) {.lock = PTHREAD_MUTEX_INITIALIZER, .keep = (least)}

/* Link is in the object, which rejects its handle from now on. */
void rk_retired_put(struct rk_retired *r, struct rk_link *link);
/* The link of the object that was freed first; NULL while no more than keep of them are here. */
struct rk_link *rk_retired_take(struct rk_retired *r);

#endif
