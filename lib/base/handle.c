/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.c: keep tables of ids. */
#include "lib/base/handle.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>

enum { HANDLES_FIRST = 16, NO_INDEX = UINT32_MAX };

void rk_handles_open(struct rk_handles *table)
{
    *table = (struct rk_handles){.first_free = NO_INDEX};
}

void rk_handles_close(struct rk_handles *table)
{
    free(table->at);
    table->at = NULL;
    table->n = 0;
    table->first_free = NO_INDEX;
}

static bool handles_grow(struct rk_handles *table)
{
    uint32_t n = table->n ? table->n * 2 : HANDLES_FIRST;
    struct rk_handle *at = n > table->n ? realloc(table->at, n * sizeof(*at)) : NULL;

    if (!at) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for ids of objects");
        return false;
    }
    for (uint32_t i = n; i-- > table->n;) {
        at[i] = (struct rk_handle){NULL, 0, table->first_free};
        table->first_free = i;
    }
    table->at = at;
    table->n = n;
    return true;
}

static uint32_t next_gen(struct rk_handles *table)
{
    if (++table->count == 0) /* it has wrapped: no generation is 0 */
        table->count = 1;
    return table->count;
}

bool rk_handle_put(struct rk_handles *table, void *object, struct rk_id *id)
{
    struct rk_handle *h;

    if (table->first_free == NO_INDEX && !handles_grow(table))
        return false;
    id->index = table->first_free;
    h = &table->at[id->index];
    table->first_free = h->next_free;
    h->object = object;
    id->gen = h->gen = next_gen(table);
    return true;
}

void rk_handle_drop(struct rk_handles *table, struct rk_id id)
{
    struct rk_handle *h;

    if (!rk_handle_get(table, id))
        return;
    h = &table->at[id.index];
    h->object = NULL;
    h->next_free = table->first_free;
    table->first_free = id.index;
}

bool rk_handle_was_dropped(const struct rk_handles *table, struct rk_id id)
{
    return id.gen && id.gen <= table->count && id.index < table->n && !rk_handle_get(table, id);
}
