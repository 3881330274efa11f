/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_paths.c: read the protocol table, and write what was accepted the same. */
#include "lib/channel/shm/proto_table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char machine[] = "m";

static void check(const struct rk_proto_table *p)
{
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        if (p->ring[i] != &rk_shm_proto_ring && p->ring[i] != &rk_shm_proto_ring_nt)
            abort();
        if (p->mapped[i] != &rk_shm_proto_mapped && (p->mapped[i] != &rk_shm_proto_mapped2 || p->rate[i][RK_PROTO_MAPPED2] == 0))
            abort();
        if (p->rate[i][p->best[i]->id] == 0 || p->alone[i]->needs & RK_NEEDS_RING ||
            (p->best[i]->needs | p->alone[i]->needs) & RK_NEEDS_MAPPING)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[RK_PROTO_TEXT_MAX];
    struct rk_proto_table p, q;
    size_t n;

    if (rk_proto_table_parse((const char *)data, len, machine, &p) == RK_PROTO_TABLE_OK) {
        check(&p);
        n = rk_proto_table_format(&p, machine, text);
        if (rk_proto_table_parse(text, n, machine, &q) != RK_PROTO_TABLE_OK || memcmp(p.rate, q.rate, sizeof(p.rate)) != 0)
            abort();
    }
    /* Its sum made good, so that one gets past that. */
    if (len + 24 < sizeof(text)) {
        memcpy(text, data, len);
        n = rk_proto_table_seal(text, len);
        if (rk_proto_table_parse(text, n, machine, &p) == RK_PROTO_TABLE_OK)
            check(&p);
    }
    return 0;
}
