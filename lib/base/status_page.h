/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_page.h: the status board: what the ranks of a host wait for, for their
 * launcher to look at.
 *
 * The agent makes it, a piece of shared memory with a slot for each of its
 * ranks, and tells a rank where it is by the variable XRUN_BOARD. A rank writes
 * its slot when a wait has become long, and when that is over; never on the way
 * of a message that comes in time. The launcher only reads, and trusts nothing
 * of what it reads. Where there is no board, nothing is written.
 */
#ifndef RK_BASE_STATUS_PAGE_H
#define RK_BASE_STATUS_PAGE_H

#include "lib/base/compiler.h"

#include <stdbool.h>

#define RK_BOARD_VARIABLE "XRUN_BOARD"
#define RK_BOARD_MAGIC 0x316472616f426b72ull

enum { RK_BOARD_PEERS = 12, RK_BOARD_CALL = 24 };

enum rk_board_state {
    RK_BOARD_NONE,    /* no librank has been here */
    RK_BOARD_JOINING, /* in rank_init */
    RK_BOARD_IN,      /* does not wait, or not for long */
    RK_BOARD_WAITING,
    RK_BOARD_LEFT     /* past rank_finalize */
};

/* In struct rk_wait_for: which of its fields say something. */
enum {
    RK_WAIT_TEAM = 1,
    RK_WAIT_TAG = 2,
    RK_WAIT_ANY_TAG = 4,
    RK_WAIT_BYTES = 8,
    RK_WAIT_ANY_SOURCE = 16
};

struct rk_wait_for {
    char call[RK_BOARD_CALL]; /* "allreduce" */
    uint32_t flags;
    uint32_t team_size;
    uint64_t team;   /* its id; 0: the world */
    uint64_t number; /* of a collective, among those of the team; 0: none */
    uint64_t tag, bytes;
    uint32_t npeers; /* whom it waits for; the first of them are listed */
    int32_t peers[RK_BOARD_PEERS + 1]; /* world ranks; RK_BOARD_GUEST(r): rank r of another job */
};
_Static_assert(sizeof(struct rk_wait_for) % 8 == 0, "is copied in words");

#define RK_BOARD_GUEST(rank) (-1 - (rank))

struct rk_board_slot {
    _Atomic uint32_t turn RK_ALIGNED_LINE; /* odd while it is written */
    _Atomic uint32_t state;
    _Atomic uint32_t pid;
    _Atomic uint32_t joined; /* programs of this rank, one after another, that have come to rank_init */
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC: no progress since then */
    _Atomic uint64_t what[sizeof(struct rk_wait_for) / 8];
    _Atomic uint64_t refused; /* frames that were no good. Behind all that was there before: a library of yesterday may be at the other end */
    _Atomic uint64_t begun_ns; /* WAITING: this wait began then, whatever has come since; 0: not known */
};

struct rk_board_head {
    uint64_t magic, nonce;
    uint32_t slots, slot_bytes;
} RK_ALIGNED_LINE;

RK_INLINE size_t rk_board_bytes(uint32_t slots)
{
    return sizeof(struct rk_board_head) + slots * sizeof(struct rk_board_slot);
}

/* ------------------------------------------------------------------ the rank's side */

struct rk_board {
    void *map;
    size_t bytes;
    struct rk_board_slot *mine;
    uint64_t told_ns;   /* when it was last written */
    const char *inside; /* the call that all waiting belongs to now, or NULL */
    uint64_t begun_ns;  /* of the wait that is written next */
};

/* where: as rk_board_where makes it. NULL if there is no such board or this process cannot map it. */
struct rk_board *rk_board_open(const char *where);
/* A program of this rank joins: how many others have before it. */
uint32_t rk_board_join(struct rk_board *board);
/* NULL is fine. */
void rk_board_close(struct rk_board *board);
/* Write my slot. what: for WAITING, else NULL. */
void rk_board_write(struct rk_board *board, enum rk_board_state state, uint64_t since_ns,
                    const struct rk_wait_for *what);

/* One frame more has been refused. */
RK_INLINE void rk_board_refused(struct rk_board *board)
{
    atomic_fetch_add_explicit(&board->mine->refused, 1, memory_order_relaxed);
}

/* -------------------------------------------------------------- the launcher's side */

struct rk_board_view {
    enum rk_board_state state;
    uint32_t pid;
    uint64_t since_ns;
    uint64_t refused;
    uint64_t begun_ns;
    struct rk_wait_for what; /* if WAITING; its text ends, its peers are counted */
};

/* The value of the variable for the rank with this slot. */
void rk_board_where(char *out, size_t len, int pid, int fd, uint64_t nonce, uint32_t slot);
/* false: it is being written again and again, or makes no sense. */
bool rk_board_read(const struct rk_board_slot *slot, struct rk_board_view *out);

#endif
