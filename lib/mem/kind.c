/* SPDX-License-Identifier: BSD-3-Clause */
/* kind.c: list the kinds of memory of this process, and copy between them. */
#include "lib/mem/kind.h"

#include <string.h>

const struct rk_kind *rk_kinds[RK_KINDS_MAX];
int rk_nkinds;

rank_status_t rk_kind_register(const struct rk_kind *kind)
{
    for (int i = 0; i < rk_nkinds; i++) {
        if (rk_kinds[i] == kind)
            return RANK_OK;
    }
    if (rk_nkinds == RK_KINDS_MAX)
        return RANK_ERR_NO_MEMORY;
    rk_kinds[rk_nkinds++] = kind;
    return RANK_OK;
}

int rk_kind_index(const void *ptr, size_t bytes)
{
    for (int i = 0; bytes && i < rk_nkinds; i++) {
        if (rk_kinds[i]->query(ptr, bytes))
            return i;
    }
    return -1;
}

void rk_kind_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    char buf[8192];

    if (bytes == 0)
        return;
    if (!to_kind && !from_kind) {
        memcpy(to, from, bytes);
    } else if (!to_kind || !from_kind || to_kind == from_kind) {
        (to_kind ? to_kind : from_kind)->copy(to, to_kind, from, from_kind, bytes);
    } else {
        for (size_t at = 0, n; at < bytes; at += n) {
            n = bytes - at < sizeof(buf) ? bytes - at : sizeof(buf);
            from_kind->copy(buf, NULL, (const char *)from + at, from_kind, n);
            to_kind->copy((char *)to + at, to_kind, buf, NULL, n);
        }
    }
}
