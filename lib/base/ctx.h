/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h: the context, from which everything hangs but the configuration and the log.
 *
 * Each room keeps its own state behind a pointer whose type only that room
 * knows, so that a lower room never sees a higher one.
 */
#ifndef RK_BASE_CTX_H
#define RK_BASE_CTX_H

struct rk_ctx {
    int level;                    /* rank_thread_level_t, as asked for */
    struct rk_board *board;       /* lib/base/status_page.h: for the launcher to look at; NULL: none */
    struct rk_boot *boot;         /* lib/boot: PMIx, who we are */
    struct rk_node *node;         /* lib/mem: the segment that ranks of this node share */
    struct rk_segments *segments; /* lib/mem: symmetric allocations mapped here */
    struct rk_engine *engine;     /* lib/channel: peers, open channels, progress, waiting */
    struct rk_p2p *p2p;           /* lib/p2p: matching */
    struct rk_rma *rma;           /* lib/rma: symmetric memory in use */
    struct rk_coll *coll;         /* collectives: schedules in flight */
    struct rank_team *world;
    struct rank_team *parents;    /* with those who spawned us; NULL: nobody, or parted */
    int nparents;
    struct rk_family *families;   /* lib/world: the jobs that we are connected with */
};

#endif
