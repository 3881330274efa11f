/* SPDX-License-Identifier: BSD-3-Clause */
/* team_table.c: keep the table of teams by id. */
#include "lib/p2p/team_table.h"

#include <stdlib.h>

enum { SLOTS_MIN = 16 };

static uint32_t home_of(const struct rk_team_table *t, uint64_t id)
{
    return (uint32_t)(id * 0x9e3779b97f4a7c15ull >> 32) & t->mask;
}

static void put_in_slot(struct rk_team_table *t, struct rank_team *team)
{
    uint32_t i = home_of(t, team->id);

    while (t->slots[i])
        i = (i + 1) & t->mask;
    t->slots[i] = team;
}

static bool grow_slots(struct rk_team_table *t)
{
    struct rk_team_table more = {.mask = t->slots ? 2 * t->mask + 1 : SLOTS_MIN - 1, .n = t->n};

    more.slots = calloc((size_t)more.mask + 1, sizeof(struct rank_team *));
    if (!more.slots)
        return false;
    for (uint32_t i = 0; t->slots && i <= t->mask; i++) {
        if (t->slots[i])
            put_in_slot(&more, t->slots[i]);
    }
    free(t->slots);
    *t = more;
    return true;
}

rank_status_t rk_team_table_add(struct rk_team_table *t, struct rank_team *team)
{
    if ((!t->slots || 2 * (t->n + 1) > t->mask) && !grow_slots(t))
        return RANK_ERR_NO_MEMORY;
    put_in_slot(t, team);
    t->n++;
    return RANK_OK;
}

void rk_team_table_remove(struct rk_team_table *t, const struct rank_team *team)
{
    uint32_t i, next;

    if (!t->slots)
        return;
    for (i = home_of(t, team->id); t->slots[i] != team; i = (i + 1) & t->mask) {
        if (!t->slots[i])
            return;
    }
    t->n--;
    /* Move later entries of the run back, if the hole is between their home and them. */
    for (next = (i + 1) & t->mask; t->slots[next]; next = (next + 1) & t->mask) {
        uint32_t from_home = (next - home_of(t, t->slots[next]->id)) & t->mask;
        if (from_home < ((next - i) & t->mask))
            continue;
        t->slots[i] = t->slots[next];
        i = next;
    }
    t->slots[i] = NULL;
    if (t->n == 0) {
        free(t->slots);
        *t = (struct rk_team_table){.slots = NULL};
    }
}

struct rank_team *rk_team_table_find(const struct rk_team_table *t, uint64_t id)
{
    struct rank_team *team;

    if (!t->slots)
        return NULL;
    for (uint32_t i = home_of(t, id); (team = t->slots[i]) != NULL; i = (i + 1) & t->mask) {
        if (team->id == id)
            return team;
    }
    return NULL;
}
