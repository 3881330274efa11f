/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list_model.h: run random transfers of lists, and compare memory with a model.
 *
 * Two processes move lists of each other's memory, on connections and on teams of a world. Both sides draw the same
 * random numbers. A failed check prints its place and aborts.
 */
#ifndef TESTS_CONN_LIST_MODEL_H
#define TESTS_CONN_LIST_MODEL_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>

enum { LIST_MEMS = 8 };

struct list_memory {
    unsigned char *mine;
    int64_t bytes;
    rank_mem_t remote;       /* memory of the other side */
    rank_mem_t own;          /* registered here, or RANK_MEM_NULL */
    bool allocated;          /* mine, by list_open */
    unsigned char *model[2]; /* what the memories of both sides have */
};

struct list_saved; /* a persistent list */

struct list_model {
    rank_ctx_t ctx;
    rank_team_t team;
    int me, other; /* this side, 0 or 1; rank of the other one */
    uint64_t random;
    int nmems;
    struct list_memory mem[LIST_MEMS]; /* the last one is of persistent lists only */
    struct list_saved *saved[2][2];    /* by side and op */
    int64_t moved, notices;            /* blocks and notices of both sides */
};

/* Registers n bytes here; the caller gives the memory and what registers it. */
typedef rank_status_t (*list_reg_fn)(void *arg, void *ptr, int64_t bytes, rank_mem_t *mem);

/* Register memories and exchange their keys. Both sides call each of these. */
void list_open(struct list_model *m, rank_ctx_t ctx, rank_team_t team, int other, int me, uint64_t seed, list_reg_fn reg, void *arg);
/* Add memory that both sides have allocated. Before the first step. */
void list_add(struct list_model *m, void *mine, int64_t bytes, rank_mem_t mem);
void list_step(struct list_model *m);
/* Arguments that are refused. Nothing moves. */
void list_wrong(struct list_model *m);
void list_close(struct list_model *m);
/* Free its memory only, in place of list_close. */
void list_free(struct list_model *m);
/* Start a list of so many bytes in all, 1 MiB at a time, to the largest memory. */
rank_status_t list_start_long(struct list_model *m, rank_xfer_op_t op, int64_t bytes, rank_request_t *req);

#endif
