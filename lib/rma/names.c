/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c: keep ids for the wire. */
#include "lib/rma/names.h"
#include "lib/base/log.h"

#include <stdlib.h>

enum { NONE = UINT32_MAX };

void rk_ids_init(struct rk_ids *names, uint32_t gen)
{
    *names = (struct rk_ids){.first_free = NONE, .gen = gen};
}

void rk_ids_destroy(struct rk_ids *names)
{
    free(names->at);
    rk_ids_init(names, names->gen);
}

static bool names_grow(struct rk_ids *names)
{
    uint32_t n = names->n ? names->n * 2 : 16;
    struct rk_name *at = realloc(names->at, n * sizeof(*at));

    if (!at) {
        rk_error("out of memory for one-sided calls");
        return false;
    }
    for (uint32_t i = n; i-- > names->n;) {
        at[i] = (struct rk_name){NULL, names->gen, names->first_free};
        names->first_free = i;
    }
    names->at = at;
    names->n = n;
    return true;
}

bool rk_ids_take(struct rk_ids *names, void *held, struct rk_id *id)
{
    struct rk_name *name;

    if (names->first_free == NONE && !names_grow(names))
        return false;
    id->index = names->first_free;
    name = &names->at[id->index];
    names->first_free = name->next_free;
    name->held = held;
    id->gen = name->gen;
    return true;
}

void rk_ids_drop(struct rk_ids *names, struct rk_id id)
{
    struct rk_name *name;

    if (!rk_ids_find(names, id))
        return;
    name = &names->at[id.index];
    name->held = NULL;
    name->gen++;
    name->next_free = names->first_free;
    names->first_free = id.index;
}
