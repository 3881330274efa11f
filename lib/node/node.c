/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c: create, join and leave the segment of a node; sleep and wake. */
#include "lib/node/node.h"
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/node/node_life.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

enum { RANK_BYTES = sizeof(struct rk_node_slot) + sizeof(struct rk_affinity) };

static long membarrier(int cmd)
{
    return syscall(SYS_membarrier, cmd, 0, 0);
}

static struct rk_node *node_new(int nlocal)
{
    struct rk_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->fd = -1;
    node->bell_rd = node->bell_wr = -1;
    node->nlocal = nlocal;
    node->index = -1;
    return node;
}

static void node_set_base(struct rk_node *node, void *base, size_t bytes)
{
    node->base = base;
    node->bytes = bytes;
    node->head = base;
    node->slots = (struct rk_node_slot *)(void *)(node->base +
                                                  rk_round_up(sizeof(struct rk_node_head), 64));
    node->cores = (struct rk_affinity *)(void *)(node->slots + node->nlocal);
}

rank_status_t rk_node_create(int nlocal, const size_t region_bytes[RK_REGION_COUNT],
                             struct rk_node **out, struct rk_memfd_card *card)
{
    size_t front = rk_round_up(sizeof(struct rk_node_head), 64) +
                   (size_t)nlocal * RANK_BYTES;
    size_t at[RK_REGION_COUNT], total = rk_round_up(front, PAGE);
    struct rk_node *node = node_new(nlocal);
    rank_status_t st;
    void *base;

    if (!node)
        return RANK_ERR_NO_MEMORY;
    for (int i = 0; i < RK_REGION_COUNT; i++) {
        at[i] = total;
        total += rk_round_up(region_bytes[i], PAGE);
    }
    st = rk_memfd_create(total, "the node's segment", &node->fd, &base, card);
    if (st)
        goto err_free;
    node_set_base(node, base, total);
    st = rk_memfd_commit(node->fd, 0, front, RK_LOG_ERROR, "the node's segment");
    if (st)
        goto err_close;
    node->head->nlocal = (uint32_t)nlocal;
    node->head->rank_bytes = RANK_BYTES;
    for (int i = 0; i < RK_REGION_COUNT; i++) {
        node->head->region_at[i] = at[i];
        node->head->region_bytes[i] = region_bytes[i];
    }
    *out = node;
    return RANK_OK;

err_close:
    rk_memfd_close(node->fd, node->base, node->bytes);
err_free:
    free(node);
    return st;
}

rank_status_t rk_node_attach(const struct rk_memfd_card *card, int nlocal, struct rk_node **out)
{
    struct rk_node *node = node_new(nlocal);
    rank_status_t st;
    void *base;

    if (!node)
        return RANK_ERR_NO_MEMORY;
    st = rk_memfd_open(card, &node->fd, &base);
    if (st) {
        free(node);
        return st;
    }
    node_set_base(node, base, card->bytes);
    if (node->head->nlocal != (uint32_t)nlocal || node->head->rank_bytes != RANK_BYTES) {
        rk_fail(RANK_ERR_BOOT, "the node's segment was made by another version of librank; let all ranks of a host use one");
        rk_memfd_close(node->fd, base, card->bytes);
        free(node);
        return RANK_ERR_BOOT;
    }
    *out = node;
    return RANK_OK;
}

void rk_node_settle(struct rk_node *node)
{
    node->core_share = rk_affinity_share(node->cores, node->nlocal, node->index);
    node->oversubscribed = node->core_share == 0;
    node->fence_on_send = atomic_load(&node->head->no_membarrier) != 0;
}

/*
 * A sender has no fence between its store and its load of the sleeping word. Instead a rank runs a membarrier on
 * the senders' cores before it sleeps, which needs this registration.
 */
bool rk_node_prepare(void)
{
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) >= 0;
}

rank_status_t rk_node_join(struct rk_node *node, int index, int world_rank)
{
    rank_status_t st;

    rk_kept_fds_note(node->fd, "the node's shared memory");
    node->index = index;
    node->mine = &node->slots[index];
    rk_affinity_query(&node->cores[index]);
    if (!rk_node_prepare())
        atomic_store(&node->head->no_membarrier, 1);
    node->mine->bell_fd = -1;
    st = rk_node_take_life(node->mine, world_rank);
    if (st)
        return st;
    atomic_fetch_add(&node->head->attached, 1);
    return RANK_OK;
}

rank_status_t rk_node_join_pair(struct rk_node *node, int index, struct rk_node *own)
{
    if (rk_node_bell_fd(own) < 0) {
        return rk_fail(RANK_ERR_SYSTEM, "cannot make a pipe: %m");
    }
    node->pair = true;
    node->index = index;
    node->mine = &node->slots[index];
    rk_affinity_query(&node->cores[index]);
    if (!rk_node_prepare())
        atomic_store(&node->head->no_membarrier, 1);
    node->mine->bell_fd = own->mine->bell_fd;
    node->mine->bell_inode = own->mine->bell_inode;
    rk_node_fill_slot(node->mine, index);
    atomic_fetch_add(&node->head->attached, 1);
    return RANK_OK;
}

void rk_node_drop_fd(struct rk_node *node)
{
    if (node->fd >= 0)
        close(node->fd);
    node->fd = -1;
}

void rk_node_close(struct rk_node *node)
{
    bool unmap = true;

    if (!node)
        return;
    if (node->mine && node->alone)
        atomic_store(&node->mine->alone, 1);
    if (node->mine && node->pair)
        atomic_store(&node->mine->state, RK_SLOT_DONE);
    else if (node->mine)
        unmap = rk_node_leave_life(node->mine);
    if (node->mine && node->alone)
        rk_node_notify_all(node);
    if (node->bell_rd >= 0)
        close(node->bell_rd);
    if (node->bell_wr >= 0)
        close(node->bell_wr);
    for (int i = 0; node->bell_to && i < node->nlocal; i++) {
        if (node->bell_to[i] >= 0)
            close(node->bell_to[i]);
    }
    free(node->bell_to);
    if (!node->pair)
        rk_kept_fds_forget(node->fd);
    rk_memfd_close(node->fd, unmap ? node->base : NULL, node->bytes);
    free(node);
}

void rk_node_abandon(struct rk_node *node)
{
    atomic_store(&node->mine->alone, 1);
    rk_node_leave_life(node->mine);
    rk_node_notify_all(node);
}

void rk_node_leave_alone(struct rk_node *node)
{
    node->alone = true;
}

static rank_status_t commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes, int level)
{
    return rk_memfd_commit(node->fd, node->head->region_at[r] + offset, bytes, level,
                           r == RK_REGION_FIFOS ? "message boxes" : "collectives");
}

rank_status_t rk_node_commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes)
{
    return commit(node, r, offset, bytes, RK_LOG_ERROR);
}

bool rk_node_try_commit(struct rk_node *node, enum rk_node_region r, size_t offset, size_t bytes)
{
    return commit(node, r, offset, bytes, RK_LOG_DEBUG) == RANK_OK;
}

/* ------------------------------------------------------------ sleep and wake */

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/*
 * Open another rank's doorbell pipe. Also for reading, so that a write never meets a pipe without reader and
 * raises SIGPIPE when the owner has just died. Verifies the inode: the pid may have been reused.
 */
static int open_bell(const struct rk_node_slot *slot)
{
    char path[64];
    struct stat sb;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", slot->pid, slot->bell_fd);
    if (!rk_is_own_process(slot->pid) || stat(path, &sb) < 0 || !S_ISFIFO(sb.st_mode) || sb.st_ino != slot->bell_inode)
        return -1;
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &sb) < 0 || sb.st_ino != slot->bell_inode)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void ring_fd(struct rk_node *node, int index)
{
    const struct rk_node_slot *slot = &node->slots[index];
    char byte = 1;
    int fd;

    if (index == node->index) {
        fd = node->bell_wr;
    } else {
        if (!node->bell_to) {
            node->bell_to = malloc((size_t)node->nlocal * sizeof(int));
            if (!node->bell_to)
                return; /* the sleeper wakes soon by itself */
            for (int i = 0; i < node->nlocal; i++)
                node->bell_to[i] = -1;
        }
        if (node->bell_to[index] < 0 && slot->bell_fd >= 0)
            node->bell_to[index] = open_bell(slot);
        fd = node->bell_to[index];
    }
    /* A full pipe is readable already. */
    if (fd >= 0 && write(fd, &byte, 1) < 0 && errno != EAGAIN)
        rk_debug("cannot wake rank %d: %m", slot->world_rank);
}

void rk_node_ring(struct rk_node *node, int index)
{
    struct rk_node_slot *slot = &node->slots[index];
    uint32_t how = atomic_exchange(&slot->sleeping, RK_AWAKE);

    if (how == RK_AWAKE)
        return; /* another rank has rung */
    atomic_fetch_add(&slot->bell, 1);
    if (how == RK_ASLEEP_FUTEX)
        futex(&slot->bell, FUTEX_WAKE, 1, NULL);
    else
        ring_fd(node, index);
}

uint32_t rk_node_sleep_begin(struct rk_node *node, uint32_t how)
{
    uint32_t bell = atomic_load(&node->mine->bell);

    atomic_store(&node->mine->sleeping, how);
    /* After this either a sender sees the word above, or the final check sees its frame. */
    if (!node->fence_on_send)
        membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    atomic_thread_fence(memory_order_seq_cst);
    return bell;
}

void rk_node_sleep(struct rk_node *node, uint32_t bell, uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

    futex(&node->mine->bell, FUTEX_WAIT, bell, &t);
}

void rk_node_sleep_end(struct rk_node *node)
{
    atomic_store(&node->mine->sleeping, RK_AWAKE);
}

int rk_node_bell_fd(struct rk_node *node)
{
    struct stat sb;
    int p[2];

    if (node->bell_rd >= 0)
        return node->bell_rd;
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    if (fstat(p[1], &sb) < 0) {
        close(p[0]);
        close(p[1]);
        return -1;
    }
    node->bell_rd = p[0];
    node->bell_wr = p[1];
    node->mine->bell_inode = sb.st_ino;
    node->mine->bell_fd = p[1];
    return node->bell_rd;
}
