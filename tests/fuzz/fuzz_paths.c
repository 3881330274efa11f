/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_paths.c: read the protocol table, and write what was accepted the same. */
#include "lib/channel/shm/proto_table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char machine[] = "m";

static void check(const struct rk_paths *p)
{
    for (int i = 0; i < RK_PATH_CLASSES; i++) {
        if (p->ring[i] != RK_PATH_RING && p->ring[i] != RK_PATH_STREAMED)
            abort();
        if (p->mapped[i] != RK_PATH_MAPPED && (p->mapped[i] != RK_PATH_MBOTH || p->rate[i][RK_PATH_MBOTH] == 0))
            abort();
        for (int x = 0; x < 2; x++) {
            enum rk_path best = p->best[x][i], alone = p->alone[x][i];

            if (best >= RK_PATHS || best == RK_PATH_MAPPED || p->rate[i][best] == 0 || alone >= RK_PATHS ||
                alone == RK_PATH_MAPPED || best == RK_PATH_MBOTH || alone == RK_PATH_MBOTH || alone == RK_PATH_RING || alone == RK_PATH_STREAMED ||
                (!x && (rk_path_attaches(best) || rk_path_attaches(alone))))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[RK_PATH_TEXT_MAX];
    struct rk_paths p, q;
    size_t n;

    if (rk_paths_parse((const char *)data, len, machine, &p) == RK_PATHS_OK) {
        check(&p);
        n = rk_paths_format(&p, machine, text);
        if (rk_paths_parse(text, n, machine, &q) != RK_PATHS_OK || memcmp(p.rate, q.rate, sizeof(p.rate)) != 0)
            abort();
    }
    /* Its sum made good, so that one gets past that. */
    if (len + 24 < sizeof(text)) {
        memcpy(text, data, len);
        n = rk_paths_seal(text, len);
        if (rk_paths_parse(text, n, machine, &p) == RK_PATHS_OK)
            check(&p);
    }
    return 0;
}
