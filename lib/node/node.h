/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h: the segment that the ranks of one node share, and who of them lives.
 *
 * The lowest local rank makes a memfd and says in its card how to open it
 * (/proc/PID/fd/FD) and a nonce; whoever can open and map it and finds the
 * nonce is on the node, which no host name can prove. Nothing has a name in a
 * file system, so nothing can be left behind.
 *
 * Each rank holds a robust mutex in its slot as long as it lives: the kernel
 * marks it when the owner dies. Each slot also has the doorbell that its rank
 * sleeps on. The rest are regions, sized by the rooms above at creation and
 * backed with memory piece by piece by rk_node_commit.
 */
#ifndef RK_NODE_NODE_H
#define RK_NODE_NODE_H

#include "lib/base/compiler.h"
#include "lib/node/affinity.h"
#include "lib/mem/memfd.h"
#include "lib/rank.h"

#include <pthread.h>
#include <stdbool.h>

enum rk_node_region { RK_REGION_BOXES, RK_REGION_ARENAS, RK_REGION_COUNT };

/* One line each for what is written by whom, so that nothing bounces. */
struct rk_node_slot {
    /* written by the owner when it goes to sleep and wakes; read by every sender */
    _Atomic uint32_t sleeping RK_ALIGNED_LINE; /* RK_AWAKE, RK_ASLEEP_* */
    _Atomic uint32_t bell; /* the futex word */
    int32_t bell_fd;       /* the owner's end of a pipe that wakes it from epoll, or -1 */
    uint64_t bell_inode;   /* of that pipe */
    /* written by senders: boxes newly opened to this rank */
    _Atomic uint32_t opened RK_ALIGNED_LINE;
    /* life */
    pthread_mutex_t life RK_ALIGNED_LINE;
    _Atomic uint32_t state; /* RK_SLOT_* */
    _Atomic uint32_t lock_lost; /* life was found without its owner: ask for the process instead */
    _Atomic uint32_t alone; /* it is DONE, and has not waited for the others: see rk_node_leave_alone */
    int32_t world_rank;
    int32_t pid;
    uint32_t probe_word;   /* a copy of the word at probe_addr */
    uint64_t probe_addr;   /* an address in the owner's private memory, to try CMA on */
    _Atomic int64_t memory; /* XPMEM's name of the owner's memory; 0: not looked for yet, negative: none */
    uint64_t start_time;   /* of the process, so that a reused pid is not taken for it */
};

enum { RK_AWAKE, RK_ASLEEP_FUTEX, RK_ASLEEP_FD };
enum { RK_SLOT_EMPTY, RK_SLOT_UP, RK_SLOT_DONE, RK_SLOT_DEAD };

struct rk_node_head {
    uint64_t nonce; /* first, as rk_memfd wants it */
    uint32_t nlocal;
    uint32_t rank_bytes; /* of a rank's slot and cores: another version has others */
    uint64_t region_at[RK_REGION_COUNT], region_bytes[RK_REGION_COUNT];
    _Atomic uint32_t attached RK_ALIGNED_LINE;
    _Atomic uint32_t no_membarrier;  /* some rank could not register: senders must fence */
    _Atomic uint32_t arenas_taken;
    _Atomic uint32_t deaths RK_ALIGNED_LINE;  /* slots marked DEAD; read on every progress */
};

struct rk_node {
    int fd;
    char *base;
    size_t bytes;
    struct rk_node_head *head;
    struct rk_node_slot *slots; /* [nlocal] */
    struct rk_cores *cores;     /* [nlocal]: what each may use; written before it counts as attached */
    struct rk_node_slot *mine;
    int nlocal, index; /* index: mine */
    int bell_rd, bell_wr; /* my pipe, made by rk_node_bell_fd; -1 before */
    int *bell_to;         /* descriptors of others' pipes, opened when first rung */
    bool fence_on_send;  /* no membarrier: a sender needs a full fence before it looks at sleeping */
    bool alone;          /* rk_node_leave_alone */
    bool oversubscribed; /* ranks take turns on the cores that this one may use */
    int core_share;      /* rk_cores_share; 0: oversubscribed */
};

/* What rk_node_join does first, and does again. A process that has one thread only is through in no time; with
 * more the kernel waits until every core has switched: 10 ms and more. So it is worth calling before there are others. */
bool rk_node_prepare(void);
/* Make the segment (the lowest local rank). Region sizes may be 0. */
rank_status_t rk_node_create(int nlocal, const size_t region_bytes[RK_REGION_COUNT],
                             struct rk_node **out, struct rk_memfd_card *card);
/* Attach to it. RANK_ERR_UNREACHABLE: this process does not share memory with the maker. */
rank_status_t rk_node_attach(const struct rk_memfd_card *card, int nlocal, struct rk_node **out);
/* Fill my slot and take my life lock; after it peers may see me as up. */
rank_status_t rk_node_join(struct rk_node *node, int index, int world_rank);
/* Once all are attached: settles fence_on_send, oversubscribed and core_share. */
void rk_node_settle(struct rk_node *node);
/* 1 if the process of a slot still runs (it may have lost its lock with a thread). */
int rk_node_process_alive(const struct rk_node_slot *slot);
/* Leave in peace. NULL is fine. */
void rk_node_close(struct rk_node *node);

RK_INLINE void *rk_node_at(const struct rk_node *node, enum rk_node_region r, size_t offset)
{
    return node->base + node->head->region_at[r] + offset;
}

/* Back a piece of a region with memory, or RANK_ERR_NO_MEMORY; never a SIGBUS later. */
rank_status_t rk_node_commit(struct rk_node *node, enum rk_node_region r, size_t offset,
                             size_t bytes);
/* The same of what one can do without: nothing is said if there is none. */
bool rk_node_try_commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes);

/* Look at every life lock; marks the dead in the segment and counts them in head->deaths.
 * Returns the number newly found by this call. */
int rk_node_check_lives(struct rk_node *node);
/* I leave, and others do not (finalize after a death): at rk_node_close they look round as after a death. */
void rk_node_leave_alone(struct rk_node *node);
/* Leave so at once, and close and unmap nothing: the descriptors may be other files by now. */
void rk_node_abandon(struct rk_node *node);
/* Of one that has been up: it has left, is dead, or on its way: its life lock has lost its owner, though the process may not
 * have ended yet. */
bool rk_node_is_going(struct rk_node *node, int index);
/* Mark one as dead on a word from elsewhere (PMIx); harmless if it is gone already. */
void rk_node_mark_dead(struct rk_node *node, int index);

RK_INLINE bool rk_node_is_dead(const struct rk_node *node, int index)
{
    return atomic_load_explicit(&node->slots[index].state, memory_order_relaxed) == RK_SLOT_DEAD;
}

/* Wake rank index if it sleeps. Call after publishing what it waits for. */
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
 * Sleeping, in three steps: bell = rk_node_sleep_begin(node, how); look once
 * more whether what is waited for has come; if not, rk_node_sleep(node, bell,
 * ns), or poll the descriptor of rk_node_bell_fd among others. Then, always,
 * rk_node_sleep_end(node).
 */
uint32_t rk_node_sleep_begin(struct rk_node *node, uint32_t how);
void rk_node_sleep(struct rk_node *node, uint32_t bell, uint64_t ns);
void rk_node_sleep_end(struct rk_node *node);

/* A descriptor that becomes readable when this rank is rung while RK_ASLEEP_FD; -1 if none can be
 * made. */
int rk_node_bell_fd(struct rk_node *node);

#endif
