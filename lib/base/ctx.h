/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h: define the context, which holds the state of a world.
 *
 * Room: what every room uses: context, status texts, log, configuration, lists, ids, slabs, clock, JSON.
 * Callers: all rooms of the library; launcher, bench and tools for all but the context.
 * Never: includes another room's header; keeps state of a job.
 * Tests: tests/unit/base_test.c, tests/unit/conf_test.c, tests/unit/handle_test.c, tests/unit/slab_test.c.
 *
 * Each room keeps its state behind a pointer to a type that only it defines, so that a lower room never sees a
 * higher one.
 *
 * Per process, for all contexts:
 * - base: configuration, log, reported errors, crash stacks, descriptors to keep, the life between rank_init and
 *   rank_finalize, memory of freed objects (retired.h: teams, memories, requests);
 * - core/root.c: the context of rank_init; world/init.c: the number of contexts so far;
 * - boot: the client of libpmix: its opens, event handlers, dead ranks, queries, abandoned answers;
 * - node: the word that tests CMA;
 * - mem/limits.c: room below the memory limit of the process.
 */
#ifndef RK_BASE_CTX_H
#define RK_BASE_CTX_H

#include "lib/base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct rk_ctx {
    int level;                    /* rank_thread_level_t, as requested */
    bool has_progress_thread;
    bool connects;                /* processes of other jobs may connect, and map memory */
    bool ucx_for_conns;           /* its UCX carries connections, and opens no tcp of its own */
    bool forked;                  /* this process is a child of the context's own */
    bool closing;                 /* rank_ctx_close ends all waits with RANK_ERR_CLOSED */
    uint64_t close_by;            /* then: time at which other threads must have returned; else 0 */
    _Atomic int unlocked;         /* calls that run without the lock: they resolve names */
    struct rk_board *board;       /* status page for the launcher (status_page.h); NULL: none */
    struct rk_boot *boot;         /* lib/boot: PMIx, identity */
    struct rk_node *node;         /* lib/node: the segment shared by the ranks of this node */
    struct rk_segments *segments; /* lib/mem: symmetric allocations mapped here */
    struct rk_engine *engine;     /* lib/core: peers, open channels, progress, waits */
    struct rk_p2p *p2p;           /* lib/p2p: matching */
    struct rk_rma *rma;           /* lib/rma: symmetric memory in use */
    struct rk_coll *coll;         /* collectives: schedules in flight */
    struct rk_queues *queues;     /* lib/queue: operations in the order of streams */
    struct rank_team *world;
    struct rank_team *parents;    /* team with the parents; NULL: none, or disconnected */
    int nparents;
    char *devices;                /* lib/world: GPU and NIC of this rank as text; NULL: not found so far */
    struct rk_conns *conns;       /* lib/conn: listeners and connections; NULL: none so far */
    char *name;                   /* shown to the peers of connections; NULL: the program's */
    char *net_devices;            /* for UCX, in place of RANK_NICS; NULL: that */
    struct rk_ctx *next_in_process; /* lib/world/process.c */
    struct rk_connected *families; /* lib/dpm: connected jobs */
    struct rk_link retired;
    _Atomic uint32_t magic;       /* core/root.h: a handle points here */
};

#endif
