/* SPDX-License-Identifier: BSD-3-Clause */
/* kind.c: register the kind of memory besides the host's, and copy. */
#include "lib/mem/kind.h"

#include <string.h>

const struct rk_kind *rk_device_kind;

rank_status_t rk_kind_register(const struct rk_kind *kind, bool required, char *why, size_t room)
{
    rank_status_t st = rk_device_kind == kind || !kind->open ? RANK_OK : kind->open(required, why, room);

    if (!st)
        rk_device_kind = kind;
    return st;
}

void rk_kind_close(void)
{
    if (rk_device_kind && rk_device_kind->close)
        rk_device_kind->close();
}

rank_status_t rk_kind_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    if (bytes == 0)
        return RANK_OK;
    if (to_kind || from_kind)
        return (to_kind ? to_kind : from_kind)->copy(to, to_kind, from, from_kind, bytes);
    memcpy(to, from, bytes);
    return RANK_OK;
}
