/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_table.h: let ranks of a node reach each other's device memory.
 *
 * Each rank has a table in the node's segment with the handles of its exported allocations. A name, which is never
 * used twice, tells an entry of it and one allocation: memory that is freed, or allocated anew at the same address,
 * has another name. A message carries name and offset. The other side maps the allocation and keeps the mapping.
 */
#ifndef RK_CHANNEL_SHM_EXPORT_TABLE_H
#define RK_CHANNEL_SHM_EXPORT_TABLE_H

#include "lib/channel/shm/shm.h"
#include "lib/core/peer_device.h"
#include "lib/mem/kind.h"

enum {
    RK_EXPORTS = 64, /* allocations that a rank exports at a time */
    RK_IMPORTS = 64  /* mappings that it keeps */
};
/* A mapping is closed when it has been idle for that time. */
enum { RK_IMPORT_IDLE_NS = 1000 * 1000 * 1000 };

/* In the segment; written by the owner. */
struct rk_export_entry {
    _Atomic uint64_t name; /* 0: none */
    _Atomic uint64_t next; /* name of the memory that follows in the owner's addresses, if a message needs it */
    uint64_t bytes;
    uint32_t kind, len; /* enum rank_mem_kind; length of the handle */
    unsigned char handle[RK_KIND_HANDLE_MAX];
    uint64_t pad;
};

/* A mapping of a peer's memory, valid until the next call of rk_import. */
struct rk_import {
    const struct rk_kind *kind;
    char *at;
    size_t bytes;
    uint64_t name;
    int local;        /* the peer's slot in the node */
    int device;       /* the device that it is mapped for; -1: of the kind's choice */
    uint64_t used_ns; /* 0: the slot is free */
};

/*
 * Export the memory of a view of one kind: its name, and *offset of the view's begin. 0: it cannot be exported, or too
 * many allocations are in use by messages. The program's copies to it are complete.
 */
uint64_t rk_export_view(struct rk_shm *shm, const struct rk_view *view, uint64_t *offset);
/* The same, and keep the entries until release, or until the memory is freed. */
void rk_export_hold(struct rk_shm *shm, const struct rk_view *view, struct rk_device_export *out);
void rk_export_release(struct rk_shm *shm, const struct rk_device_export *held);
/* Every 500 ms: drop entries of memory that the program has freed. */
void rk_exports_check(struct rk_shm *shm, uint64_t now);
/* Drop those of memory that is about to be freed. */
void rk_exports_drop(struct rk_shm *shm, const void *ptr, size_t bytes);
void rk_exports_close(struct rk_shm *shm);

/* import_cache.c */

/* A byte of a peer's memory: at offset in the exported memory of that name, or in what follows it. */
struct rk_far {
    uint64_t name, offset;
};
/*
 * Map the memory that has that byte, for the device of near, or for one in use if NULL; far then names this memory.
 * RANK_ERR_NOT_SUPPORTED: it cannot be mapped here. Other errors: the device fails.
 */
rank_status_t rk_import(struct rk_shm_ep *ep, struct rk_far *far, const void *near, const struct rk_import **out);
/* Close mappings that are idle, and those of freed memory. */
void rk_imports_check(struct rk_shm *shm, uint64_t now);
/* Close those of a peer. */
void rk_imports_drop(struct rk_shm *shm, int local);

#endif
