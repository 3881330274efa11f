/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parent.h: encode the parent of a spawned job, for a variable of its environment.
 *
 * The variable holds the id of the spawned job on wires, the process that spawned it, and that process's address:
 * enough for the job's first rank to connect. Everything else goes by messages. Pure: text in, struct out.
 */
#ifndef RK_BOOT_PARENT_H
#define RK_BOOT_PARENT_H

#include "lib/boot/boot.h"

#define RK_PARENT_VARIABLE "LIBRANK_PARENT"

struct rk_boot_parent {
    uint64_t job;            /* id of the spawned job */
    uint64_t pair, both;     /* ids of teams: root and first child; parents and children */
    uint64_t root_job;       /* the spawning process: id, size and name of its job; its rank there */
    int root_rank, root_size;
    char root_space[RK_NSPACE_MAX];
    char server[RK_NSPACE_MAX]; /* the launcher's name among PMIx servers; "": none */
    size_t card_len;         /* of its ucx address */
    unsigned char card[RK_CARD_MAX];
};

/* Format the variable. Caller frees; NULL if out of memory or if a name contains a comma. */
char *rk_parent_text(const struct rk_boot_parent *parent);
/* Parse it. Returns false if it is malformed. */
bool rk_parent_parse(const char *text, struct rk_boot_parent *out);

#endif
