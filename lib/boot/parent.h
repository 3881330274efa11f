/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parent.h: what rank_spawn tells the processes that it starts, in a variable of their environment.
 *
 * It says how the spawned job is called on wires, and who spawned it and how that one is reached:
 * enough for the job's first rank to call. All else is said by messages. Pure: text in, struct out.
 */
#ifndef RK_BOOT_PARENT_H
#define RK_BOOT_PARENT_H

#include "lib/boot/boot.h"

#define RK_PARENT_VARIABLE "LIBRANK_PARENT"

struct rk_boot_parent {
    uint64_t job;            /* the spawned one's id */
    uint64_t pair, both;     /* ids of teams: root and first child; parents and children */
    uint64_t root_job;       /* the one who spawned: his job's id, its size and name; his rank in it */
    int root_rank, root_size;
    char root_space[RK_SPACE_MAX];
    char server[RK_SPACE_MAX]; /* the launcher's name among PMIx's servers; "": none */
    size_t card_len;         /* of his ucx card */
    unsigned char card[RK_CARD_MAX];
};

/* The text for the variable, to be freed; NULL when out of memory, or a name has a comma. */
char *rk_parent_text(const struct rk_boot_parent *parent);
/* Read one back. False: it is not one. */
bool rk_parent_parse(const char *text, struct rk_boot_parent *out);

#endif
