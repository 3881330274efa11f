/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto_table.h: how a large message goes from one rank of a node to another, and how fast that is here.
 *
 * A table has a row for each size class and a rate for each path. What is built in was measured on one machine;
 * `rankinfo --calibrate` measures this one and leaves the table in a file, which rank_init reads. It is
 * text, of which nothing is believed: a file that is damaged, or of another machine, kernel
 * or version, is left alone, and one line says so.
 */
#ifndef RK_CHANNEL_SHM_PROTO_TABLE_H
#define RK_CHANNEL_SHM_PROTO_TABLE_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

enum rk_path {
    RK_PATH_MAPPED,   /* rank_alloc memory: one copy from the own mapping */
    RK_PATH_CMA,      /* the receiver copies through the kernel */
    RK_PATH_BOTH,     /* and the sender a share of it */
    RK_PATH_RING,     /* two copies that overlap, through the box's ring */
    RK_PATH_STREAMED, /* and the first one past the caches */
    RK_PATH_XPMEM,    /* one copy from memory that the receiver has attached */
    RK_PATH_XBOTH,    /* and the sender a share of it, into memory that it has attached */
    RK_PATH_MBOTH,    /* as mapped, and the sender a share of it, into memory that it has mapped, or through the kernel */
    RK_PATHS
};

enum {
    RK_PATH_CLASSES = 11,
    RK_PATH_LEAST_LOG = 12, /* class 0: 4 KiB, each one twice the one before; the last holds all above */
    RK_STREAMED_LEAST = 512, /* what is written past the caches if all is to be */
    RK_PATH_TEXT_MAX = 4096,
    RK_PATH_MACHINE_MAX = 512
};

struct rk_paths {
    uint32_t rate[RK_PATH_CLASSES][RK_PATHS]; /* MB/s; 0: cannot be done here */
    uint32_t meet;                            /* ns that sharing a copy is taken to cost more than its rate says */
    unsigned char mapped[RK_PATH_CLASSES];    /* of mapped memory: by the receiver, or both */
    /* Of private memory, [1] where the other's can be attached: */
    unsigned char best[2][RK_PATH_CLASSES];   /* from a sender that waits, */
    unsigned char alone[2][RK_PATH_CLASSES];  /* and from one that may be in its own code: a path that needs none */
    unsigned char ring[RK_PATH_CLASSES];      /* which of the two where CMA is refused */
    bool measured;                            /* here: not built in */
};

extern const char *const rk_path_names[RK_PATHS];

/* Do both sides have to come to it? */
RK_INLINE bool rk_path_meets(enum rk_path path)
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

/* From how many bytes on the ring is to be written past the caches; UINT32_MAX: never. */
uint32_t rk_paths_streamed_from(const struct rk_paths *paths);

void rk_paths_built_in(struct rk_paths *paths);
/* Choose again, after rates have changed. */
void rk_paths_choose(struct rk_paths *paths);

enum rk_paths_parsed { RK_PATHS_OK, RK_PATHS_DAMAGED, RK_PATHS_FOREIGN, RK_PATHS_OLD /* or new: of another form */ };

/* The table as text; machine has no line break. Returns its length, below RK_PATH_TEXT_MAX. */
size_t rk_paths_format(const struct rk_paths *paths, const char *machine, char *text);
/* Its last line: the sum of the len bytes before it; there is room for 24 more. The new length. */
size_t rk_paths_seal(char *text, size_t len);
/* Leaves *paths alone but for RK_PATHS_OK. */
enum rk_paths_parsed rk_paths_parse(const char *text, size_t len, const char *machine,
                                    struct rk_paths *paths);

/* proto_file.c */

/* What a table is valid for: processor, kernel, version of the library. */
void rk_paths_machine(char machine[RK_PATH_MACHINE_MAX]);
/* The file's name, to be freed. NULL: there is to be none (RANK_PATHS=none, or no home), or out of memory. */
char *rk_paths_file(const char *machine);
/* Fills the table, from the file if there is one. say: a line about a file that is no good.
 * Returns the file that it is from, to be freed, or NULL: built in. */
char *rk_paths_load(struct rk_paths *paths, bool say);
/* Makes the folder if need be, and puts the file there whole or not at all; says what failed. */
rank_status_t rk_paths_save(const struct rk_paths *paths, const char *machine, const char *file);

#endif
