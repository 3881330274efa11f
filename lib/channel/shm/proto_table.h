/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto_table.h: select the protocol of a large message, by measured rates.
 *
 * A table has a row for each size class and a rate for each protocol. The built-in table was measured on one
 * machine; `rankinfo --calibrate` measures this one and saves a file, which rank_init loads. The file is text and
 * fully checked: a damaged file, or one of another machine, kernel or version, is ignored with one line of
 * explanation.
 */
#ifndef RK_CHANNEL_SHM_PROTO_TABLE_H
#define RK_CHANNEL_SHM_PROTO_TABLE_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

enum rk_path {
    RK_PATH_MAPPED,   /* rank_alloc memory: one copy from the own mapping */
    RK_PATH_CMA,      /* CMA: the receiver copies through the kernel */
    RK_PATH_BOTH,     /* CMA with assist: the sender copies a share */
    RK_PATH_RING,     /* two overlapping copies through the fifo's byte ring */
    RK_PATH_STREAMED, /* the same, the first copy with nontemporal stores */
    RK_PATH_XPMEM,    /* one copy from attached memory of the sender */
    RK_PATH_XBOTH,    /* XPMEM with assist: the sender copies a share to attached memory */
    RK_PATH_MBOTH,    /* mapped with assist: the sender copies a share, to mapped memory or by CMA */
    RK_PATHS
};

enum {
    RK_PATH_CLASSES = 11,
    RK_PATH_LEAST_LOG = 12, /* class 0: 4 KiB, each class doubles; the last includes all above */
    RK_STREAMED_LEAST = 512, /* smallest payload written with nontemporal stores */
    RK_PATH_TEXT_MAX = 4096,
    RK_PATH_MACHINE_MAX = 512
};

struct rk_paths {
    uint32_t rate[RK_PATH_CLASSES][RK_PATHS]; /* MB/s; 0: not possible here */
    uint32_t meet;                            /* cost in ns of a shared copy beyond its rate */
    unsigned char mapped[RK_PATH_CLASSES];    /* mapped memory: copied by the receiver, or by both */
    /* Private memory, [1] if the peer's can be attached: */
    unsigned char best[2][RK_PATH_CLASSES];   /* sender waits */
    unsigned char alone[2][RK_PATH_CLASSES];  /* sender may be in its own code: a protocol without it */
    unsigned char ring[RK_PATH_CLASSES];      /* which ring protocol to use where CMA is refused */
    bool measured;                            /* here, not built in */
};

extern const char *const rk_path_names[RK_PATHS];

/* Does it need both sides at the same time? */
RK_INLINE bool rk_path_needs_both(enum rk_path path)
{
    return path != RK_PATH_MAPPED && path != RK_PATH_CMA && path != RK_PATH_XPMEM;
}

/* Does it need XPMEM? */
RK_INLINE bool rk_path_attaches(enum rk_path path)
{
    return path == RK_PATH_XPMEM || path == RK_PATH_XBOTH;
}

RK_INLINE uint64_t rk_path_bytes(int class)
{
    return 1ull << (RK_PATH_LEAST_LOG + class);
}

RK_INLINE int rk_path_class(uint64_t bytes)
{
    int log = 63 - __builtin_clzll(bytes | 1);

    return log < RK_PATH_LEAST_LOG                         ? 0
           : log >= RK_PATH_LEAST_LOG + RK_PATH_CLASSES ? RK_PATH_CLASSES - 1
                                                           : log - RK_PATH_LEAST_LOG;
}

/* Size from which the ring is written with nontemporal stores; UINT32_MAX: never. */
uint32_t rk_paths_streamed_from(const struct rk_paths *paths);

void rk_paths_built_in(struct rk_paths *paths);
/* Choose again after a change of rates. */
void rk_paths_choose(struct rk_paths *paths);

enum rk_paths_parsed { RK_PATHS_OK, RK_PATHS_DAMAGED, RK_PATHS_FOREIGN, RK_PATHS_OLD /* OLD: of another format */ };

/* Format the table; machine has no line break. Returns the length, below RK_PATH_TEXT_MAX. */
size_t rk_paths_format(const struct rk_paths *paths, const char *machine, char *text);
/* Append a checksum of the len bytes; needs space for 24 more. Returns the new length. */
size_t rk_paths_seal(char *text, size_t len);
/* Changes *paths only on RK_PATHS_OK. */
enum rk_paths_parsed rk_paths_parse(const char *text, size_t len, const char *machine,
                                    struct rk_paths *paths);

/* proto_file.c */

/* What a table is valid for: processor, kernel, library version. */
void rk_paths_machine(char machine[RK_PATH_MACHINE_MAX]);
/* Path of the file. Caller frees. NULL: none (RANK_PATHS=none, or no home), or out of memory. */
char *rk_paths_file(const char *machine);
/*
 * Fill the table, from the file if there is one. say: report an unusable file. Returns the path of the file used,
 * which the caller frees, or NULL: built in.
 */
char *rk_paths_load(struct rk_paths *paths, bool say);
/* Create the directory if needed and replace the file atomically; reports errors. */
rank_status_t rk_paths_save(const struct rk_paths *paths, const char *machine, const char *file);

#endif
