/* SPDX-License-Identifier: BSD-3-Clause */
/* kind.c: list the kinds of memory of this process, and copy between them. */
#include "lib/mem/kind.h"

#include <stdio.h>
#include <string.h>

const struct rk_kind *rk_kinds[RK_KINDS_MAX];
int rk_nkinds;

rank_status_t rk_kind_register(const struct rk_kind *kind, bool required, char *why, size_t room)
{
    rank_status_t st;

    for (int i = 0; i < rk_nkinds; i++) {
        if (rk_kinds[i] == kind)
            return RANK_OK;
    }
    snprintf(why, room, "there are %d kinds already", RK_KINDS_MAX);
    if (rk_nkinds == RK_KINDS_MAX)
        return RANK_ERR_NO_MEMORY;
    st = kind->open ? kind->open(required, why, room) : RANK_OK;
    if (st)
        return st;
    rk_kinds[rk_nkinds++] = kind;
    return RANK_OK;
}

void rk_kinds_close(void)
{
    for (int i = 0; i < rk_nkinds; i++) {
        if (rk_kinds[i]->close)
            rk_kinds[i]->close();
    }
}

const struct rk_kind *rk_kind_with_id(rank_mem_kind_t id)
{
    for (int i = 0; i < rk_nkinds; i++) {
        if (rk_kinds[i]->id == id)
            return rk_kinds[i];
    }
    return NULL;
}

int rk_kind_index(const void *ptr, size_t bytes)
{
    for (int i = 0; bytes && i < rk_nkinds; i++) {
        if (rk_kinds[i]->query(ptr, bytes))
            return i;
    }
    return -1;
}

rank_status_t rk_kind_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    rank_status_t st = RANK_OK;
    char buf[8192];

    if (bytes == 0)
        return RANK_OK;
    if (!to_kind && !from_kind) {
        memcpy(to, from, bytes);
    } else if (!to_kind || !from_kind || to_kind == from_kind) {
        st = (to_kind ? to_kind : from_kind)->copy(to, to_kind, from, from_kind, bytes);
    } else {
        for (size_t at = 0, n; at < bytes && !st; at += n) {
            n = bytes - at < sizeof(buf) ? bytes - at : sizeof(buf);
            st = from_kind->copy(buf, NULL, (const char *)from + at, from_kind, n);
            if (!st)
                st = to_kind->copy((char *)to + at, to_kind, buf, NULL, n);
        }
    }
    return st;
}
