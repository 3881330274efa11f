/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h: share a segment in a node; detect deaths; sleep and wake.
 *
 * Room: the node's segment, life locks, doorbells, core counts, CMA.
 * Callers: lib/core, lib/channel, lib/p2p, lib/rma, lib/world, tools.
 * Never: handles frames or messages.
 * Tests: tests/unit/node_test.c, tests/unit/affinity_test.c, tests/mp/waits/wait_sleep.c.
 *
 * The lowest local rank creates a memfd; its card has the path to open it (/proc/PID/fd/FD) and a nonce. A process
 * that can map it and finds the nonce is on the node, which a host name cannot prove. No name exists in a file
 * system, so nothing can be left behind.
 *
 * Each rank holds a robust mutex in its slot while it lives; the kernel marks it when the owner dies. Each slot
 * also has the doorbell on which its rank sleeps. The rest are regions, sized by the rooms above at creation and
 * backed piece by piece by rk_node_commit.
 */
#ifndef RK_NODE_NODE_H
#define RK_NODE_NODE_H

#include "lib/base/compiler.h"
#include "lib/node/affinity.h"
#include "lib/mem/memfd.h"
#include "lib/rank.h"

#include <pthread.h>
#include <stdbool.h>

enum { RK_ARENA_WORDS = 48 };
enum rk_node_region { RK_REGION_FIFOS, RK_REGION_ARENAS, RK_REGION_CELLS, RK_REGION_EXPORTS, RK_REGION_COUNT };

/* Fields are grouped into cache lines by writer. */
struct rk_node_slot {
    /* Written by the owner when it falls asleep or wakes; read by every sender. */
    _Atomic uint32_t sleeping RK_ALIGNED_LINE; /* RK_AWAKE, RK_ASLEEP_* */
    _Atomic uint32_t bell; /* futex word */
    int32_t bell_fd;       /* write end of the pipe that wakes the owner from epoll, or -1 */
    uint64_t bell_inode;   /* inode of the pipe */
    /* Written by senders: fifos newly opened to this rank. */
    _Atomic uint32_t opened RK_ALIGNED_LINE;
    /* Life lock. */
    pthread_mutex_t life RK_ALIGNED_LINE;
    _Atomic uint32_t state; /* RK_SLOT_* */
    _Atomic uint32_t lock_lost; /* the lock has lost its owner: check the process instead */
    _Atomic uint32_t alone; /* DONE without the collective barrier: see rk_node_leave_alone */
    int32_t world_rank;
    int32_t pid;
    uint32_t probe_word;   /* copy of the word at probe_addr */
    uint64_t probe_addr;   /* address in the owner's private memory, to test CMA */
    uint64_t start_time;   /* start time of the process, to detect a reused pid */
};

enum { RK_AWAKE, RK_ASLEEP_FUTEX, RK_ASLEEP_FD };
enum { RK_SLOT_EMPTY, RK_SLOT_UP, RK_SLOT_DONE, RK_SLOT_DEAD };

struct rk_node_head {
    uint64_t nonce; /* first, for rk_memfd */
    uint32_t nlocal;
    uint32_t rank_bytes; /* size of a rank's slot and cores, which identifies the version */
    uint64_t region_at[RK_REGION_COUNT], region_bytes[RK_REGION_COUNT];
    _Atomic uint32_t attached RK_ALIGNED_LINE;
    _Atomic uint32_t no_membarrier;  /* some rank could not register: senders must fence */
    _Atomic uint32_t arena_of_world; /* its memory is backed */
    _Atomic uint32_t has_kinds; /* some rank may have memory of other kinds; set before the ranks meet */
    _Atomic uint64_t arenas_taken[RK_ARENA_WORDS]; /* bits: collectives/shm/arena_table.c */
    _Atomic uint32_t deaths RK_ALIGNED_LINE;  /* slots marked DEAD; read in every progress call */
};

struct rk_node {
    int fd;
    char *base;
    size_t bytes;
    struct rk_node_head *head;
    struct rk_node_slot *slots; /* [nlocal] */
    struct rk_affinity *cores;     /* [nlocal]: usable cores of each; written before it counts as attached */
    struct rk_node_slot *mine;
    int nlocal, index; /* index: own slot */
    int bell_rd, bell_wr; /* own pipe, created by rk_node_bell_fd; -1 before */
    int *bell_to;         /* descriptors of other ranks' pipes, opened on first use */
    bool fence_on_send;  /* no membarrier: a sender needs a full fence before it reads sleeping */
    bool alone;          /* rk_node_leave_alone */
    bool pair;           /* rk_node_join_pair */
    bool oversubscribed; /* ranks take turns on this rank's cores */
    int core_share;      /* rk_affinity_share; 0: oversubscribed */
};

/*
 * Register for membarrier; rk_node_join repeats it. Instant while the process has one thread; with more the kernel
 * waits for a switch on every core (10 ms and more), so call it early.
 */
bool rk_node_prepare(void);
/* Create the segment (the lowest local rank). Region sizes may be 0. */
rank_status_t rk_node_create(int nlocal, const size_t region_bytes[RK_REGION_COUNT],
                             struct rk_node **out, struct rk_memfd_card *card);
/* Attach to it. RANK_ERR_UNREACHABLE: this process does not share memory with the creator. */
rank_status_t rk_node_attach(const struct rk_memfd_card *card, int nlocal, struct rk_node **out);
/* Fill the own slot and take its life lock; peers may then see this rank as up. */
rank_status_t rk_node_join(struct rk_node *node, int index, int world_rank);
/*
 * The same in a segment of two processes that a socket connects: its end shows a death, and there is no life lock. Rings
 * wake the owner of own, the segment of its context's node.
 */
rank_status_t rk_node_join_pair(struct rk_node *node, int index, struct rk_node *own);
/* All memory that is needed is backed, and all are attached: close the descriptor. */
void rk_node_drop_fd(struct rk_node *node);
/* Call once all are attached: sets fence_on_send, oversubscribed and core_share. */
void rk_node_settle(struct rk_node *node);
/* 1 if the process of a slot still runs (it may have lost its lock with a thread). */
int rk_node_process_alive(const struct rk_node_slot *slot);
/* Leave in an orderly way. No-op if NULL. */
void rk_node_close(struct rk_node *node);

RK_INLINE void *rk_node_at(const struct rk_node *node, enum rk_node_region r, size_t offset)
{
    return node->base + node->head->region_at[r] + offset;
}

/* Back a piece of a region, or return RANK_ERR_NO_MEMORY; no SIGBUS later. */
rank_status_t rk_node_commit(struct rk_node *node, enum rk_node_region r, size_t offset,
                             size_t bytes);
/* The same for optional memory: returns false silently. */
bool rk_node_try_commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes);

/*
 * Check every life lock; marks the dead in the segment and counts them in head->deaths. Returns the number found
 * by this call.
 */
int rk_node_check_deaths(struct rk_node *node);
/* Leave without the others (finalize after a death): at rk_node_close they check the node as after a death. */
void rk_node_leave_alone(struct rk_node *node);
/* Leave so at once; closes and unmaps nothing, as the descriptors may be other files by now. */
void rk_node_abandon(struct rk_node *node);
/* Of a rank that was up: has it left, died, or lost its life lock while the process still ends? */
bool rk_node_is_going(struct rk_node *node, int index);
/* Mark a rank as dead on a report from elsewhere (PMIx); no-op if it is gone already. */
void rk_node_mark_dead(struct rk_node *node, int index);

RK_INLINE bool rk_node_is_dead(const struct rk_node *node, int index)
{
    return atomic_load_explicit(&node->slots[index].state, memory_order_relaxed) == RK_SLOT_DEAD;
}

/* Wake rank index if it sleeps. Call after publishing the awaited data. */
void rk_node_ring(struct rk_node *node, int index);

RK_INLINE void rk_node_wake(struct rk_node *node, int index)
{
    if (rk_unlikely(node->fence_on_send))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst); /* the sleeper's membarrier does the rest */
    if (rk_unlikely(atomic_load_explicit(&node->slots[index].sleeping, memory_order_relaxed)))
        rk_node_ring(node, index);
}

/*
 * Sleep in three steps: bell = rk_node_sleep_begin(node, how); check the condition once more; if it is false,
 * rk_node_sleep(node, bell, ns), or poll the descriptor of rk_node_bell_fd among others. Then, always,
 * rk_node_sleep_end(node).
 */
uint32_t rk_node_sleep_begin(struct rk_node *node, uint32_t how);
void rk_node_sleep(struct rk_node *node, uint32_t bell, uint64_t ns);
void rk_node_sleep_end(struct rk_node *node);

/* Descriptor that becomes readable when this rank is rung while RK_ASLEEP_FD; -1 on failure. */
int rk_node_bell_fd(struct rk_node *node);

#endif
