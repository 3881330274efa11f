/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_shm.h: shared memory that the program made itself (memfd_create, shm_open, a
 * file), which other processes of the node can map as well.
 *
 * Its owner's card says which file it is a mapping of, and where in that file it lies.
 * A device and an inode name one file on the whole machine as long as it is open,
 * so whatever way leads to a file of that name leads to the same memory, also if descriptors and
 * process numbers have other owners meanwhile. Who may not open it (a memfd whose descriptors are
 * closed, other privileges, a seal) has no mapping, and does without.
 */
#ifndef RK_MEM_USER_SHM_H
#define RK_MEM_USER_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_shared_card {
    uint64_t inode, at;     /* the file, and the place in it; inode 0: there is none */
    uint64_t start, end;    /* the owner's mapping that holds it */
    uint32_t major, minor;
    int32_t pid, fd;        /* fd: one of the owner's that is open to it, or -1 */
};

/* What some of a range of memory is protected from. */
enum { RK_NO_READS = 1, RK_NO_WRITES = 2 };

/* What [p, p + bytes) is protected from, as far as it is mapped. Is all of it one shared mapping of a file, to read and to write?
 * Fills in the card, its inode 0 if not. card may be NULL. */
unsigned rk_shared_find(const void *p, size_t bytes, struct rk_shared_card *card);

struct rk_shared_map {
    char *base;       /* the first byte of the memory; NULL: not mapped */
    void *map;        /* and what holds it */
    size_t map_bytes;
};

/* Map what a card of a process of this node and this user names. False: this process cannot (said at debug level only). */
bool rk_shared_map(const struct rk_shared_card *card, size_t bytes, struct rk_shared_map *out);
/* What is not mapped is fine. */
void rk_shared_unmap(struct rk_shared_map *map);

#endif
