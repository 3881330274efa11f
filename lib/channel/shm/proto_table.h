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
#include "lib/channel/shm/proto.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    RK_PROTO_CLASSES = 11,
    RK_PROTO_LEAST_LOG = 12, /* class 0: 4 KiB, each class doubles; the last includes all above */
    RK_NT_LEAST = 512,       /* smallest payload written with nontemporal stores */
    RK_PROTO_TEXT_MAX = 4096,
    RK_PROTO_MACHINE_MAX = 512
};

struct rk_proto_table {
    uint32_t rate[RK_PROTO_CLASSES][RK_PROTOS]; /* MB/s; 0: not possible here */
    uint32_t meet;                              /* cost in ns of a shared copy beyond its rate */
    const struct rk_shm_proto *mapped[RK_PROTO_CLASSES]; /* mapped memory: copied by the receiver, or by both */
    const struct rk_shm_proto *best[RK_PROTO_CLASSES];   /* private memory: sender waits */
    const struct rk_shm_proto *alone[RK_PROTO_CLASSES];  /* sender may be in its own code: a protocol without it */
    const struct rk_shm_proto *ring[RK_PROTO_CLASSES];   /* which ring protocol to use where memory is inaccessible */
    bool measured;                                       /* here, not built in */
};

extern const struct rk_shm_proto *const rk_shm_protos[RK_PROTOS];

/* The protocol that RANK_LARGE sets; NULL: auto. */
const struct rk_shm_proto *rk_shm_proto_set(void);

RK_INLINE uint64_t rk_proto_bytes(int class)
{
    return 1ull << (RK_PROTO_LEAST_LOG + class);
}

RK_INLINE int rk_proto_class(uint64_t bytes)
{
    int log = 63 - __builtin_clzll(bytes | 1);

    return log < RK_PROTO_LEAST_LOG                       ? 0
           : log >= RK_PROTO_LEAST_LOG + RK_PROTO_CLASSES ? RK_PROTO_CLASSES - 1
                                                          : log - RK_PROTO_LEAST_LOG;
}

/* Size from which the ring is written with nontemporal stores; UINT32_MAX: never. */
uint32_t rk_proto_table_nt_from(const struct rk_proto_table *table);

void rk_proto_table_built_in(struct rk_proto_table *table);
/* Choose again after a change of rates. */
void rk_proto_table_choose(struct rk_proto_table *table);

enum rk_proto_table_parsed {
    RK_PROTO_TABLE_OK,
    RK_PROTO_TABLE_DAMAGED,
    RK_PROTO_TABLE_FOREIGN,
    RK_PROTO_TABLE_OLD /* of another format */
};

/* Format the table; machine has no line break. Returns the length, below RK_PROTO_TEXT_MAX. */
size_t rk_proto_table_format(const struct rk_proto_table *table, const char *machine, char *text);
/* Append a checksum of the len bytes; needs space for 24 more. Returns the new length. */
size_t rk_proto_table_seal(char *text, size_t len);
/* Changes *table only on RK_PROTO_TABLE_OK. */
enum rk_proto_table_parsed rk_proto_table_parse(const char *text, size_t len, const char *machine,
                                    struct rk_proto_table *table);

/* proto_file.c */

/* What a table is valid for: processor, kernel, library version. */
void rk_proto_table_machine(char machine[RK_PROTO_MACHINE_MAX]);
/* Path of the file. Caller frees. NULL: none (RANK_PATHS=none, or no home), or out of memory. */
char *rk_proto_table_file(const char *machine);
/*
 * Fill the table, from the file if there is one. say: report an unusable file. Returns the path of the file used,
 * which the caller frees, or NULL: built in.
 */
char *rk_proto_table_load(struct rk_proto_table *table, bool say);
/* Create the directory if needed and replace the file atomically; reports errors. */
rank_status_t rk_proto_table_save(const struct rk_proto_table *table, const char *machine, const char *file);

#endif
