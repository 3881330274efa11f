/* SPDX-License-Identifier: BSD-3-Clause */
/* retired.c: queue the memory of freed objects. */
#include "lib/base/retired.h"

#include <stddef.h>

void rk_retired_put(struct rk_retired *r, struct rk_link *link)
{
    link->next = NULL;
    pthread_mutex_lock(&r->lock);
    if (r->newest)
        r->newest->next = link;
    else
        r->oldest = link;
    r->newest = link;
    r->n++;
    pthread_mutex_unlock(&r->lock);
}

struct rk_link *rk_retired_take(struct rk_retired *r)
{
    struct rk_link *link = NULL;

    pthread_mutex_lock(&r->lock);
    if (r->n > r->keep) {
        link = r->oldest;
        r->oldest = link->next;
        r->n--;
        if (!r->oldest)
            r->newest = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return link;
}
