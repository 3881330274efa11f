/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_failure.h: end a team's collectives on all ranks once one has failed.
 *
 * A collective can fail on one rank alone: without memory, by a message of another length. That rank reports it to
 * the other members by a frame. Each member ends its schedules of the team and its waits in the team's arena with
 * RANK_ERR_COLLECTIVE, and no further collective of the team begins: rank_team.coll_failed. A member that has not come
 * that far goes on with the earlier collectives, which the failed rank has completed. A death needs no report,
 * as each rank detects it. Rejected arguments need none: the call has not begun, and the rank may repeat it.
 *
 * Reports are stored where a collective fails, which may be within a channel, and sent by the next progress call. A
 * report for a team that its receiver has not created yet is stored until the receiver does.
 */
#ifndef RK_COLLECTIVES_COLL_FAILURE_H
#define RK_COLLECTIVES_COLL_FAILURE_H

#include "collectives/call_text.h"

/* rank_team.coll_failed. LOST: a collective ended by a death that is not detected yet. */
enum { RK_COLL_FAILED = 1, RK_COLL_LOST };
enum { RK_FAILURE_REPORTS = 64, RK_FAILURE_EARLY = 64, RK_FAILURE_CAUSES = 16 };

/* Payload of RK_KIND_COLL_FAILED. */
struct rk_failure_frame {
    uint64_t team;
    uint64_t number; /* of the collective that has failed, from 1; 0: none has begun */
    uint32_t src;    /* rank of the sender in the team */
    int32_t status;  /* there */
    struct rk_call_diff diff; /* what differs between the ranks' calls, or RK_ARG_NONE */
};
_Static_assert(sizeof(struct rk_failure_frame) == 56, "the frame's payload has no padding");

struct rk_failures {
    int nreports, nearly;  /* reports that are not sent; ring position of the next early one */
    struct rk_failure_report {
        struct rank_team *team;
        uint64_t number;
        rank_status_t status;
        struct rk_call_diff diff;
    } report[RK_FAILURE_REPORTS];
    struct rk_failure_early {
        struct rk_failure_frame frame;
        int peer; /* number of the sender + 1; 0: unused */
    } early[RK_FAILURE_EARLY];
    uint64_t bad_frames;
    int ncauses; /* ever stored; the array is a ring */
    struct rk_failure_cause {
        uint64_t team; /* id; UINT64_MAX: none */
        bool own;      /* found by this rank, which has printed it; not reported by another */
        char text[384];
    } cause[RK_FAILURE_CAUSES];
};

/* Decode a frame. Returns false if it is malformed. */
bool rk_failure_decode(const void *payload, uint32_t len, struct rk_failure_frame *out);

/* Handle a report: rk_handler_fn. */
void rk_failure_arrived(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                        const struct rk_rndv *rndv);
/* The team has just been created: apply an earlier report. */
void rk_failure_recall(struct rank_team *team);

/* Send the stored reports; returns their number. Not within a channel. */
int rk_failures_send(struct rk_ctx *ctx);

/* End the team's collectives on this rank, and store a report. diff may be NULL. */
void rk_coll_fail_team(struct rank_team *team, uint64_t number, rank_status_t status, const struct rk_call_diff *diff);
/* The ranks have made different calls of that number: the same, and log what differs. */
RK_COLD void rk_coll_differs(struct rank_team *team, uint64_t number, const struct rk_call_diff *diff);
/* The same without a report: each member finds the failure. Collectives with a lower number go on. */
void rk_coll_end_team(struct rank_team *team, uint64_t number);
/*
 * The team's collectives fail with st: make the line, print it if prints, and keep it as the cause for later calls unless
 * there is an earlier one. prints: this rank has found the cause. Returns st.
 */
RK_COLD rank_status_t rk_coll_cause(const struct rank_team *team, bool prints, rank_status_t st, const char *fmt, ...)
    RK_PRINTF(4, 5);
/* A call on the team returns st: let rank_status_reason return the team's cause, if there is one. Returns st. */
RK_COLD rank_status_t rk_coll_explain(const struct rk_ctx *ctx, uint64_t team, rank_status_t st);
void rk_coll_explain_request(const struct rank_request *req);
/* The same for a blocking call, with RANK_ERRORS=abort. */
RK_COLD rank_status_t rk_coll_returns(const struct rk_coll_call *c, rank_status_t st);
/* Of a team with coll_over: is the latest collective among those that end? */
RK_COLD bool rk_coll_is_over(const struct rank_team *team);
/* A checked call cannot begin: log it, end the team's collectives, report at once. Returns status. */
RK_COLD rank_status_t rk_coll_failed_alone(const struct rk_coll_call *c, rank_status_t status);
/* rk_scheds.failed */
void rk_coll_sched_failed(struct rank_team *team, const struct rk_sched *s, rank_status_t status);

/* Of a team with coll_over: RANK_ERR_PEER_DEAD or RANK_ERR_COLLECTIVE; RANK_OK if the next collective still begins. */
RK_COLD rank_status_t rk_coll_why_over(const struct rank_team *team);

#endif
