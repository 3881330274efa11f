/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_page.h: share with the launcher what the ranks of a host wait for.
 *
 * The agent creates the page, shared memory with a slot for each of its ranks, and passes its location in the
 * variable XRUN_BOARD. A rank writes its slot when a wait has become long, and when that ends; never on the path
 * of a message that comes in time. The launcher only reads, and trusts nothing. Without a page nothing is written.
 */
#ifndef RK_BASE_STATUS_PAGE_H
#define RK_BASE_STATUS_PAGE_H

#include "lib/base/compiler.h"

#include <stdbool.h>

#define RK_BOARD_VARIABLE "XRUN_BOARD"
#define RK_BOARD_MAGIC 0x316472616f426b72ull

enum { RK_BOARD_PEERS = 12, RK_BOARD_CALL = 24 };

enum rk_board_state {
    RK_BOARD_NONE,    /* rank_init has not been called */
    RK_BOARD_JOINING, /* in rank_init */
    RK_BOARD_IN,      /* does not wait, or not for long */
    RK_BOARD_WAITING,
    RK_BOARD_LEFT     /* after rank_finalize */
};

/* Valid fields of struct rk_wait_for. */
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
    uint64_t team;   /* team id; 0: the world */
    uint64_t number; /* of a collective in its team; 0: none */
    uint64_t tag, bytes;
    uint32_t npeers; /* awaited peers; the first ones are listed */
    int32_t peers[RK_BOARD_PEERS + 1]; /* world ranks; RK_BOARD_OTHER_JOB(r): rank r of another job */
};
_Static_assert(sizeof(struct rk_wait_for) % 8 == 0, "is copied in words");

#define RK_BOARD_OTHER_JOB(rank) (-1 - (rank))

/* "world", "team 3 of rank 0 (4 ranks)": a team by its id and size. */
void rk_board_team_text(uint64_t id, uint32_t size, char *out, size_t len);

struct rk_board_slot {
    _Atomic uint32_t turn RK_ALIGNED_LINE; /* odd during a write */
    _Atomic uint32_t state;
    _Atomic uint32_t pid;
    _Atomic uint32_t joined; /* programs of this rank that have called rank_init */
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC: no progress since */
    _Atomic uint64_t what[sizeof(struct rk_wait_for) / 8];
    _Atomic uint64_t refused; /* rejected frames. New fields go last: the other side may be an older version */
    _Atomic uint64_t begun_ns; /* WAITING: start of the wait; 0: unknown */
    _Atomic uint64_t until_ns; /* WAITING: means IN after this time; 0: never */
};

struct rk_board_head {
    uint64_t magic, nonce;
    uint32_t slots, slot_bytes;
} RK_ALIGNED_LINE;

RK_INLINE size_t rk_board_bytes(uint32_t slots)
{
    return sizeof(struct rk_board_head) + slots * sizeof(struct rk_board_slot);
}

/* ------------------------------------------------------------------ rank */

struct rk_board {
    void *map;
    size_t bytes;
    struct rk_board_slot *mine;
    uint64_t written_ns; /* time of the last write */
    const char *inside;  /* public call to which all waits belong now, or NULL */
    uint64_t begun_ns;   /* start of the next wait to report */
    uint64_t called;     /* callbacks begun before the last report of the progress thread */
    uint64_t until_ns;   /* end of its validity, unless it is reported again; 0: none */
};

/* where: from rk_board_where. NULL if there is no such page or it cannot be mapped. */
struct rk_board *rk_board_open(const char *where);
/* Count a program of this rank; returns the number of earlier ones. */
uint32_t rk_board_join(struct rk_board *board);
/* No-op if NULL. */
void rk_board_close(struct rk_board *board);
/* Write the own slot. what: for WAITING, else NULL. */
void rk_board_write(struct rk_board *board, enum rk_board_state state, uint64_t since_ns,
                    const struct rk_wait_for *what);

/* Count a rejected frame. */
RK_INLINE void rk_board_refused(struct rk_board *board)
{
    atomic_fetch_add_explicit(&board->mine->refused, 1, memory_order_relaxed);
}

/* -------------------------------------------------------------- launcher */

struct rk_board_view {
    enum rk_board_state state;
    uint32_t pid;
    uint64_t since_ns;
    uint64_t refused;
    uint64_t begun_ns;
    struct rk_wait_for what; /* valid if WAITING; text terminated, number of peers checked */
};

/* Format the variable for the rank with this slot. */
void rk_board_where(char *out, size_t len, int pid, int fd, uint64_t nonce, uint32_t slot);
/* Returns false if it changes all the time or is malformed. A wait that is no longer valid is read as IN. */
bool rk_board_read(const struct rk_board_slot *slot, struct rk_board_view *out);

#endif
