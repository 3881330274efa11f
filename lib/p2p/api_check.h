/* api_check.h: what the calls of rank.h that name a message check of their arguments. */
#ifndef RK_P2P_API_CHECK_H
#define RK_P2P_API_CHECK_H

#include "lib/data/dtype.h"
#include "lib/p2p/team.h"

/* What every call with a message checks; *bytes is the span of the buffer. */
RK_INLINE rank_status_t rk_check_message(const void *buf, int64_t count, rank_dtype_t dtype,
                                      const struct rank_team *team, size_t *bytes)
{
    rank_status_t st = rk_team_check(team);

    if (rk_unlikely(st))
        return st;
    st = rk_dtype_span(dtype, count, bytes);
    if (rk_unlikely(st))
        return st;
    return rk_likely(buf || *bytes == 0) ? RANK_OK : RANK_ERR_ARG;
}

RK_INLINE rank_status_t rk_check_dest(const struct rank_team *team, int peer, int64_t tag)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)team->size))
        return RANK_ERR_RANK;
    return rk_likely(tag >= 0) ? RANK_OK : RANK_ERR_TAG;
}

RK_INLINE rank_status_t rk_check_source(const struct rank_team *team, int peer, int64_t tag)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)team->size && peer != RANK_ANY_SOURCE))
        return RANK_ERR_RANK;
    return rk_likely(tag >= 0 || tag == RANK_ANY_TAG) ? RANK_OK : RANK_ERR_TAG;
}

RK_INLINE uint64_t rk_match_tag(int64_t tag)
{
    return (uint64_t)tag; /* RANK_ANY_TAG becomes RK_TAG_ANY */
}
_Static_assert((uint64_t)RANK_ANY_TAG == RK_TAG_ANY, "a wildcard is a wildcard");

#endif
