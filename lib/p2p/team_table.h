/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_table.h: find teams by their ids, by open addressing.
 */
#ifndef RK_P2P_TEAM_TABLE_H
#define RK_P2P_TEAM_TABLE_H

#include "lib/p2p/team.h"

/* All zeros: empty. */
struct rk_team_table {
    struct rank_team **slots; /* a power of two, at least twice the teams; NULL entries are free */
    uint32_t mask, n;
};

/* RANK_ERR_NO_MEMORY: the team is not in the table. */
rank_status_t rk_team_table_add(struct rk_team_table *t, struct rank_team *team);
/* No-op if the team is not in the table. */
void rk_team_table_remove(struct rk_team_table *t, const struct rank_team *team);
/* NULL if no team has the id. */
struct rank_team *rk_team_table_find(const struct rk_team_table *t, uint64_t id);

#endif
