/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind.h: describe memory that the CPU may not touch, such as a device's.
 *
 * The one kind besides host memory comes from a module. Payload in its memory moves by its copy only. It is
 * registered before the first team is created, and for the life of the process: teams and memories created then
 * take the paths that check each buffer's kind.
 */
#ifndef RK_MEM_KIND_H
#define RK_MEM_KIND_H

#include "lib/base/compiler.h"
#include "lib/mem/device_stream.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation, or one of the mappings in a row that a buffer spans. */
struct rk_kind_block {
    void *base;
    size_t bytes;
    uint64_t id; /* no other allocation of this process has it, unlike the address */
};

/* A copy under way. */
struct rk_kind_copy {
    struct rk_kind_copy *next;
    const struct rk_kind *kind;
};

/* NULL stands for host memory. */
struct rk_kind {
    const char *name;
    rank_mem_kind_t id;
    /* Once, before the first query. On error why gets the reason, and the kind is not used. NULL: nothing to do. */
    rank_status_t (*open)(bool required, char *why, size_t room);
    /* At rank_finalize: release what copies use. A later copy gets it again. NULL: nothing to do. */
    void (*close)(void);
    /* One line about driver and devices, for rankinfo; or NULL. */
    void (*describe)(char *text, size_t room);
    /* One line about messages from its memory between ranks of a host, found by trial; or NULL. */
    void (*describe_paths)(char *text, size_t room);
    /* Does the range begin in memory of this kind? */
    bool (*query)(const void *ptr, size_t bytes);
    /* Ordinal of the device that holds memory of this kind. NULL: there is one device. */
    int (*device)(const void *ptr);
    /* Number of that device, the same in all processes of the node. 0: not known. NULL: there is one device. */
    uint64_t (*device_id)(const void *ptr);
    rank_status_t (*alloc)(size_t bytes, void **out); /* zeroed */
    void (*free)(void *ptr);                          /* of alloc or import */
    /*
     * Copy, and return when to is complete. At least one side is of this kind; the other may be host memory.
     * RANK_ERR_DEVICE: to is undefined; the kind has logged the failing call.
     */
    rank_status_t (*copy)(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes);
    /* Below: NULL if the kind cannot. */
    /*
     * Begin such a copy between its memory and host memory, and return at once if that is pinned. *out gets the copy
     * under way, or NULL: it is complete. Both sides stay until over returns true, which frees it; st gets its result.
     */
    rank_status_t (*begin)(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes,
                           struct rk_kind_copy **out);
    bool (*over)(struct rk_kind_copy *copy, rank_status_t *st);
    /* Lock pages of host memory for its devices. Returns false if that fails, and copies still work. */
    bool (*pin)(void *ptr, size_t bytes);
    void (*unpin)(void *ptr);
    /*
     * Describe the allocation that holds ptr. settle: make the program's copies to it complete first, since another
     * process accesses it next. RANK_ERR_NOT_SUPPORTED: ptr is in none.
     */
    rank_status_t (*block)(const void *ptr, bool settle, struct rk_kind_block *out);
    /*
     * A handle of an allocation that other processes of the node map by import; its length, or 0. It is valid until
     * export_end, or until this process ends.
     */
    size_t (*export)(const void *base, size_t bytes, void *handle, size_t room);
    void (*export_end)(const void *handle, size_t len);
    /* May alloc's memory be freed while others map it? They keep it then. */
    bool (*outlives)(const void *base);
    /*
     * Map it, for the device of near. near NULL: for a device that the program uses already. Later free it.
     * RANK_ERR_NOT_SUPPORTED: it cannot be mapped here. RANK_ERR_NO_MEMORY, RANK_ERR_DEVICE: the driver fails.
     */
    rank_status_t (*import)(const void *handle, size_t len, const void *near, void **out);
    /* Prepare the range for access by the network. */
    bool (*reg)(void *ptr, size_t bytes);
    /* Start operations in the order of its streams (rank_start_on). */
    const struct rk_stream_ops *streams;
    /*
     * dst = src[0] op ... op src[k - 1] of n elements, from left to right, and return when dst is complete. k is 1 to
     * RK_KIND_OPERANDS. op is predefined, and defined for dtype. RANK_AVG sums, and divides by by unless that is 0. A sum
     * of 16-bit floats is taken in F32 and rounded once. dst may be a source. All are of this kind, at any alignment.
     * RANK_ERR_NOT_SUPPORTED: no kernel, or memory of several devices; dst is unchanged. With n = 0 it only checks.
     */
    rank_status_t (*reduce)(void *dst, const void *const *src, int k, size_t n, rank_dtype_t dtype, rank_op_t op, int by);
};

enum { RK_KIND_OPERANDS = 8, RK_KIND_HANDLE_MAX = 216 /* bytes */ };
/* Bytes. Shorter copies are complete at once, as a copy under way has a cost of its own. */
enum { RK_KIND_BEGIN_MIN = 4096 };

/* The kind of this process besides host memory, or NULL. */
extern const struct rk_kind *rk_device_kind;

/* Open and register the kind. No-op if it is registered. required: the user has set it. On error why gets the reason. */
rank_status_t rk_kind_register(const struct rk_kind *kind, bool required, char *why, size_t room);

/* Close the kind, which stays registered. */
void rk_kind_close(void);

/* The kind with that id, or NULL. */
RK_INLINE const struct rk_kind *rk_kind_with_id(rank_mem_kind_t id)
{
    return rk_device_kind && rk_device_kind->id == id ? rk_device_kind : NULL;
}

/* Kind of the range; NULL: host memory. */
RK_INLINE const struct rk_kind *rk_kind_of(const void *ptr, size_t bytes)
{
    return rk_unlikely(rk_device_kind != NULL) && bytes && rk_device_kind->query(ptr, bytes) ? rk_device_kind : NULL;
}

/*
 * Begin to copy between host memory and memory of kind, which to is if in. A copy under way is added to *list. On error
 * those of the list still go on.
 */
RK_CHECKED RK_INLINE rank_status_t rk_kind_begin(bool in, void *to, const void *from, const struct rk_kind *kind, size_t bytes,
                                                 struct rk_kind_copy **list)
{
    struct rk_kind_copy *copy = NULL;
    rank_status_t st;

    if (!kind->begin || bytes < RK_KIND_BEGIN_MIN)
        return bytes ? kind->copy(to, in ? kind : NULL, from, in ? NULL : kind, bytes) : RANK_OK;
    st = kind->begin(to, in ? kind : NULL, from, in ? NULL : kind, bytes, &copy);
    if (!st && copy) {
        copy->kind = kind;
        copy->next = *list;
        *list = copy;
    }
    return st;
}

/* Are all copies of the list complete? Those that are leave it. An error of one of them is stored in *st. */
RK_INLINE bool rk_kind_over(struct rk_kind_copy **list, rank_status_t *st)
{
    while (*list) {
        struct rk_kind_copy *next = (*list)->next;
        rank_status_t end = RANK_OK;

        if (!(*list)->kind->over(*list, &end))
            return false;
        *list = next;
        if (end && !*st)
            *st = end;
    }
    return true;
}

/* Copy between memory of the kind, host memory, or both. RANK_ERR_DEVICE: to is undefined. */
RK_CHECKED rank_status_t rk_kind_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes);

#endif
