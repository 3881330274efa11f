/* SPDX-License-Identifier: BSD-3-Clause */
/* api_check.h: check arguments of the public calls that name a message. */
#ifndef RK_P2P_API_CHECK_H
#define RK_P2P_API_CHECK_H

#include "lib/core/request.h"
#include "lib/data/dtype.h"
#include "lib/p2p/team.h"

/* Each check takes the public function's name for its report (lib/base/arg_error.h). */
RK_INLINE rank_status_t rk_check_tag_bad(const char *call, int64_t tag)
{
    return rk_arg_error(RANK_ERR_TAG, call, "tag %lld is negative", (long long)tag);
}

/* Of a peer that is no rank of the team. */
RK_INLINE rank_status_t rk_check_peer_else(const char *call, int peer, int size, int64_t tag, bool any_tag)
{
    if (peer == RANK_PROC_NULL)
        return tag >= 0 || (any_tag && tag == RANK_ANY_TAG) ? RK_PEER_NULL : rk_check_tag_bad(call, tag);
    return rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", peer, size);
}

/* For builds with RK_CHECK_OVERLAP. */
RK_INLINE rank_status_t rk_check_overlaps(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffer overlaps one that is written by the same or another call");
}

/* null_peer.c: end calls to RANK_PROC_NULL. checked, of the check, may also be an error. */
RK_COLD rank_status_t rk_null_receive(rank_status_t checked, rank_envelope_t *envelope);
RK_COLD rank_status_t rk_null_start(const char *call, struct rk_ctx *ctx, enum rk_req_type type, rank_request_t *out);
/* message NULL: a probe that claims nothing. */
RK_COLD rank_status_t rk_null_probe(rank_status_t checked, rank_team_t team, rank_message_t *message, rank_envelope_t *envelope);
/* Complete a receive; its request is initialized. */
RK_COLD void rk_null_end(struct rank_request *req);

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
        return rk_check_peer_else(call, peer, team->size, tag, false);
    return rk_likely(tag >= 0) ? RANK_OK : rk_check_tag_bad(call, tag);
}

RK_INLINE rank_status_t rk_check_source(const char *call, const struct rank_team *team, int peer, int64_t tag)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)team->size && peer != RANK_ANY_SOURCE))
        return rk_check_peer_else(call, peer, team->size, tag, true);
    if (rk_likely(tag >= 0))
        return RANK_OK;
    __asm__(""); /* else the compiler compares with the wildcard first, for every receive */
    return tag == RANK_ANY_TAG ? RANK_OK : rk_check_tag_bad(call, tag);
}

RK_INLINE uint64_t rk_match_tag(int64_t tag)
{
    return (uint64_t)tag; /* RANK_ANY_TAG becomes RK_TAG_ANY */
}

#endif
