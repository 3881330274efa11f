/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.h: match messages with receives.
 *
 * Two tables, posted receives and unexpected messages, hashed by (team, source, tag); both grow with their load.
 * Receives with a wildcard have a table of their own, hashed by what they want. An arriving message searches each
 * of the three kinds present; the order of posting decides. Unexpected messages are also listed by arrival. Once a
 * receive with one wildcard has scanned many, they are indexed by (team, tag) and by (team, source), too.
 *
 * Independent of channels and peers: has its own unit test.
 */
#ifndef RK_P2P_MATCH_H
#define RK_P2P_MATCH_H

#include "lib/core/request.h"

enum { RK_UNEXPECTED_INLINE = 64 };

struct rk_early;

#define RK_MESSAGE_MAGIC 0x6d657373u

/* An unexpected message. */
struct rk_unexpected {
    struct rk_link bucket, order; /* order: also links p2p's list of probed messages */
    struct rk_link tag_link, src_link; /* while rk_match.indexed */
    uint32_t magic;     /* RK_MESSAGE_MAGIC while it is a user's rank_message_t */
    uint32_t held;      /* bytes that the channel of a connection holds for it */
    uint64_t team, tag;
    uint32_t src;
    uint8_t kind;       /* RK_KIND_MSG, _SMSG, _RNDV or _AHEAD */
    bool credited;      /* its credit has been returned */
    uint64_t bytes;     /* of payload */
    struct rk_peer *peer;
    struct rk_id sync;  /* SMSG: the sender's id, for the reply */
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
        struct rk_early *ahead; /* RK_KIND_EARLY */
    } u;
};

struct rk_match {
    struct rk_link *posted, *waiting; /* buckets */
    uint32_t posted_mask, waiting_mask;
    uint32_t nposted, nwaiting; /* entries of each */
    struct {
        uint64_t team, tag;
        uint32_t src;
        struct rk_link *bucket; /* of posted */
    } last;                     /* last key posted or arrived: the next is often equal */
    struct rk_link *wild;       /* receives with a wildcard: buckets */
    uint32_t wild_mask, nwild;
    uint32_t nwild_of[4];       /* by kind: any source, any tag, both: 1 to 3 */
    uint64_t seq;               /* order of posting */
    struct rk_link arrived;     /* messages by arrival */
    struct rk_link *by_tag, *by_src; /* and by key for receives with one wildcard: buckets */
    uint32_t by_tag_mask, by_src_mask;
    bool indexed;
};

rank_status_t rk_match_init(struct rk_match *m);
/* The caller frees the entries. */
void rk_match_destroy(struct rk_match *m);

void rk_match_post_else(struct rk_match *m, struct rank_request *req);
struct rank_request *rk_match_arrive_else(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag);

/* Is it the cached key? Then it has no wildcards. */
RK_INLINE bool rk_match_is_last(const struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    return m->last.tag == tag && m->last.src == src && m->last.team == team;
}

/*
 * Post a receive that found no message; the key is req->team, src, tag. Equal receives form a queue, of which only
 * the ends are touched.
 */
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

/* As arrive, if the receive is the first of the cached queue; NULL: it may be anywhere. */
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

/* Take the receive for an arrived message; NULL if none waits. */
RK_INLINE struct rank_request *rk_match_arrive(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rank_request *req = rk_match_head(m, team, src, tag);

    return rk_likely(req != NULL) ? req : rk_match_arrive_else(m, team, src, tag);
}

/* Add an unexpected message. */
void rk_match_add_unexpected(struct rk_match *m, struct rk_unexpected *u);
/* First message for a receive (with wildcards), left in place; NULL if none. */
struct rk_unexpected *rk_match_find(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag);
void rk_match_drop(struct rk_match *m, struct rk_unexpected *u);

/* Call fn for every posted receive; fn may unpost its argument. */
void rk_match_each_posted(struct rk_match *m, void (*fn)(struct rank_request *, void *), void *arg);

#endif
