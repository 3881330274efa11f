/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind.h: describe memory that the CPU may not touch, such as a device's.
 *
 * A kind other than host memory comes from a module (RANK_KINDS). Payload in its memory moves by its copy only.
 * Kinds are registered before the first team is created, and for the life of the process: teams and memories
 * created then take the paths that check each buffer's kind.
 */
#ifndef RK_MEM_KIND_H
#define RK_MEM_KIND_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

/* NULL stands for host memory. */
struct rk_kind {
    const char *name;
    rank_mem_kind_t id;
    /* Does the range begin in memory of this kind? */
    bool (*query)(const void *ptr, size_t bytes);
    void *(*alloc)(size_t bytes); /* NULL: out of memory */
    void (*free)(void *ptr);
    /* Copy, and return when to is complete. At least one side is of this kind; the other may be host memory. */
    void (*copy)(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes);
    /* Below: NULL if the kind cannot. A handle that another process of the node maps by import; its length, or 0. */
    size_t (*export)(const void *ptr, size_t bytes, void *handle, size_t room);
    void *(*import)(const void *handle, size_t len, size_t bytes);
    /* Prepare the range for access by the network. */
    bool (*reg)(void *ptr, size_t bytes);
};

enum { RK_KINDS_MAX = 4 };

/* Kinds of this process, besides host memory. */
extern const struct rk_kind *rk_kinds[RK_KINDS_MAX];
extern int rk_nkinds;

/* No-op if it is registered. RANK_ERR_NO_MEMORY: there are RK_KINDS_MAX. */
rank_status_t rk_kind_register(const struct rk_kind *kind);

/* Index in rk_kinds of the range's kind; -1: host memory. */
int rk_kind_index(const void *ptr, size_t bytes);

RK_INLINE const struct rk_kind *rk_kind_of(const void *ptr, size_t bytes)
{
    int i = rk_likely(rk_nkinds == 0) ? -1 : rk_kind_index(ptr, bytes);

    return i < 0 ? NULL : rk_kinds[i];
}

/* Copy between memory of any two kinds. */
void rk_kind_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes);

#endif
