/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.h: which receive gets which message.
 *
 * Two tables, receives that wait for messages and messages that wait for
 * receives, hashed by (team, source, tag), which both grow with their load.
 * Receives with a wildcard have a table of their own, hashed by what they want,
 * wildcards and all: an arriving message looks for each of the three kinds that
 * there are, and the order of posting decides. A message that waits stands in a
 * list by arrival too. Once a receive with one wildcard has gone through many of
 * it, those that wait are also hashed by (team, tag) and by (team, source).
 *
 * Nothing here knows channels or peers: it is tested by itself.
 */
#ifndef RK_P2P_MATCH_H
#define RK_P2P_MATCH_H

#include "lib/core/request.h"

enum { RK_UNEXPECTED_INLINE = 64 };

struct rk_ahead;

#define RK_MESSAGE_MAGIC 0x6d657373u

/* A message that nobody has asked for yet. */
struct rk_unexpected {
    struct rk_link bucket, order; /* order: also in p2p's list of those taken out by a probe */
    struct rk_link tag_link, src_link; /* while rk_match.indexed */
    uint32_t magic;     /* RK_MESSAGE_MAGIC while a user holds it as a rank_message_t */
    uint64_t team, tag;
    uint32_t src;
    uint8_t kind;       /* RK_KIND_MSG, _SMSG, _RNDV or _AHEAD */
    bool credited;      /* its sender has the room for it back already */
    uint64_t bytes;     /* of payload */
    struct rk_peer *peer;
    struct rk_id sync;  /* SMSG: whom to tell */
    union {
        unsigned char inl[RK_UNEXPECTED_INLINE];
        void *heap;          /* longer payload */
        struct {
            struct rk_rndv rndv;
            struct { /* rndv_early.c */
                struct rk_link link;
                uint64_t since;
            } announced;
        };
        struct rk_ahead *ahead; /* RK_KIND_AHEAD */
    } u;
};

struct rk_match {
    struct rk_link *posted, *waiting; /* buckets */
    uint32_t posted_mask, waiting_mask;
    uint32_t nposted, nwaiting; /* in the buckets */
    struct {
        uint64_t team, tag;
        uint32_t src;
        struct rk_link *bucket; /* of posted */
    } last;                     /* what was posted or came last: the next is often the same */
    struct rk_link *wild;       /* receives with a wildcard: buckets */
    uint32_t wild_mask, nwild;
    uint32_t nwild_of[4];       /* of any source, of any tag, of both: 1 to 3 */
    uint64_t seq;               /* of posting */
    struct rk_link arrived;     /* messages, by arrival */
    struct rk_link *by_tag, *by_src; /* and for receives with one wildcard: buckets */
    uint32_t by_tag_mask, by_src_mask;
    bool indexed;
};

rank_status_t rk_match_init(struct rk_match *m);
/* The entries are the caller's business. */
void rk_match_destroy(struct rk_match *m);

void rk_match_post_else(struct rk_match *m, struct rank_request *req);
struct rank_request *rk_match_arrive_else(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag);

/* What was posted or came last? Then there are no wildcards in it. */
RK_INLINE bool rk_match_is_last(const struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    return m->last.tag == tag && m->last.src == src && m->last.team == team;
}

/* A receive that found no message: req->team, src, tag say what it wants. A stream of equal ones is a queue, whose
 * ends are all that is looked at. */
RK_INLINE void rk_match_post(struct rk_match *m, struct rank_request *req)
{
    if (rk_unlikely(!rk_match_is_last(m, req->team, req->src, req->tag))) {
        rk_match_post_else(m, req);
        return;
    }
    req->post_seq = m->seq++;
    req->flags |= RK_REQ_POSTED;
    rk_list_append(m->last.bucket, &req->link);
    m->nposted++;
}

/* Take back. */
void rk_match_unpost(struct rk_match *m, struct rank_request *req);

/* As arrive, where the receive is the first in that queue; NULL: it may be anywhere. */
RK_INLINE struct rank_request *rk_match_head(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rank_request *req = rk_list_entry(m->last.bucket->next, struct rank_request, link);

    if (rk_unlikely(m->nwild || !rk_match_is_last(m, team, src, tag) || rk_list_empty(m->last.bucket) ||
                    req->tag != tag || req->src != src || req->team != team))
        return NULL;
    rk_list_remove(&req->link);
    req->flags &= (uint8_t)~RK_REQ_POSTED;
    m->nposted--;
    return req;
}

/* The receive for a message that has come, taken out; NULL if none waits. */
RK_INLINE struct rank_request *rk_match_arrive(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rank_request *req = rk_match_head(m, team, src, tag);

    return rk_likely(req != NULL) ? req : rk_match_arrive_else(m, team, src, tag);
}

/* Keep a message that found no receive. */
void rk_match_keep(struct rk_match *m, struct rk_unexpected *u);
/* The first message for a receive (with wildcards), left in place; NULL if none. */
struct rk_unexpected *rk_match_find(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag);
void rk_match_drop(struct rk_match *m, struct rk_unexpected *u);

/* Call fn for every posted receive; fn may unpost the one it is given. */
void rk_match_each_posted(struct rk_match *m, void (*fn)(struct rank_request *, void *), void *arg);

#endif
