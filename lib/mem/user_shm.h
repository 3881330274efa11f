/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_shm.h: find and map shared memory that the program made itself.
 *
 * The memory is of memfd_create, shm_open or a file. The owner's card identifies the file and the position in it.
 * Device and inode identify an open file on the whole machine. Any path to such a file leads to the same memory,
 * even if descriptors and pids were reused. A process that cannot open it (closed memfd, privileges, seals) has no
 * mapping, and uses other protocols.
 */
#ifndef RK_MEM_USER_SHM_H
#define RK_MEM_USER_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_user_shm_card {
    uint64_t inode, at;     /* the file, and the position; inode 0: none */
    uint64_t start, end;    /* the owner's mapping that holds it */
    uint32_t major, minor;
    int32_t pid, fd;        /* fd: a descriptor of the owner open to it, or -1 */
    uint32_t denied, pad;   /* to peers: RK_NO_READS, RK_NO_WRITES. Without writes they map it read-only */
};

/* Protection of a range. */
enum { RK_NO_READS = 1, RK_NO_WRITES = 2 };

/*
 * Returns the protection of [p, p + bytes), as far as it is mapped. If all of it is one shared read-write mapping
 * of a file, fills in the card; else sets its inode to 0. card may be NULL.
 * *maps: a descriptor that is kept between calls, -1 at first. rk_user_shm_find_end closes it.
 */
unsigned rk_user_shm_find(int *maps, const void *p, size_t bytes, struct rk_user_shm_card *card);
void rk_user_shm_find_end(int *maps);

struct rk_user_shm_map {
    char *base;       /* first byte of the memory; NULL: not mapped */
    void *map;        /* and the whole mapping */
    size_t map_bytes;
};

/*
 * Map the memory of a card of this node and user. Returns false if that is not possible (logged at debug level
 * only).
 */
bool rk_user_shm_map(const struct rk_user_shm_card *card, size_t bytes, struct rk_user_shm_map *out);
/*
 * Put private memory in its place, so that other threads that copy there do no harm. Returns false if the system
 * refuses it.
 */
bool rk_user_shm_detach(const struct rk_user_shm_map *map);
/* No-op if not mapped. */
void rk_user_shm_unmap(struct rk_user_shm_map *map);

#endif
