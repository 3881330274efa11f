/* SPDX-License-Identifier: BSD-3-Clause */
/* api_check.h: check arguments of the public calls that name a message. */
#ifndef RK_P2P_API_CHECK_H
#define RK_P2P_API_CHECK_H

#include "lib/data/dtype.h"
#include "lib/p2p/team.h"

/* Each check takes the public function's name for its report (lib/base/arg_error.h). */
RK_INLINE rank_status_t rk_check_peer_bad(const char *call, int peer, int size)
{
    return rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", peer, size);
}

RK_INLINE rank_status_t rk_check_tag_bad(const char *call, int64_t tag)
{
    return rk_arg_error(RANK_ERR_TAG, call, "tag %lld is negative", (long long)tag);
}

/* For builds with RK_CHECK_OVERLAP. */
RK_INLINE rank_status_t rk_check_overlaps(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffer overlaps one that is written by the same or another call");
}

/* Checks common to all calls with a message; *bytes is the span of the buffer. */
RK_INLINE rank_status_t rk_check_message(const char *call, const void *buf, int64_t count, rank_dtype_t dtype,
                                         const struct rank_team *team, size_t *bytes)
{
    rank_status_t st = rk_team_check(call, team);

    if (rk_unlikely(st))
        return st;
    st = rk_dtype_span(call, dtype, count, bytes);
    if (rk_unlikely(st))
        return st;
    return rk_likely(buf || *bytes == 0) ? RANK_OK : rk_arg_null(call, "the buffer");
}

RK_INLINE rank_status_t rk_check_dest(const char *call, const struct rank_team *team, int peer, int64_t tag)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)team->size))
        return rk_check_peer_bad(call, peer, team->size);
    return rk_likely(tag >= 0) ? RANK_OK : rk_check_tag_bad(call, tag);
}

RK_INLINE rank_status_t rk_check_source(const char *call, const struct rank_team *team, int peer, int64_t tag)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)team->size && peer != RANK_ANY_SOURCE))
        return rk_check_peer_bad(call, peer, team->size);
    return rk_likely(tag >= 0 || tag == RANK_ANY_TAG) ? RANK_OK : rk_check_tag_bad(call, tag);
}

RK_INLINE uint64_t rk_match_tag(int64_t tag)
{
    return (uint64_t)tag; /* RANK_ANY_TAG becomes RK_TAG_ANY */
}

#endif
