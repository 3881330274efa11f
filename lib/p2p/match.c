/* match.c: see match.h. */
#include "lib/p2p/match.h"
#include "lib/base/log.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 64, LOAD = 2 };

static struct rk_link *buckets_new(uint32_t n)
{
    struct rk_link *b = malloc(n * sizeof(*b));

    for (uint32_t i = 0; b && i < n; i++)
        rk_list_init(&b[i]);
    return b;
}

rank_status_t rk_match_init(struct rk_match *m)
{
    *m = (struct rk_match){.posted_mask = FIRST_BUCKETS - 1, .waiting_mask = FIRST_BUCKETS - 1};
    rk_list_init(&m->wild);
    rk_list_init(&m->arrived);
    m->posted = buckets_new(FIRST_BUCKETS);
    m->waiting = buckets_new(FIRST_BUCKETS);
    return m->posted && m->waiting ? RANK_OK : RANK_ERR_NO_MEMORY;
}

void rk_match_destroy(struct rk_match *m)
{
    free(m->posted);
    free(m->waiting);
    m->posted = m->waiting = NULL;
}

RK_INLINE uint32_t hash(uint64_t team, uint32_t src, uint64_t tag)
{
    /* A multiplication moves bits up only: high bits of a tag are folded down before it. */
    uint64_t who = src * 0xc4ceb9fe1a85ec53ull ^ team * 0x9e3779b97f4a7c15ull;
    uint64_t h = (tag ^ tag >> 31 ^ who) * 0xff51afd7ed558ccdull;

    return (uint32_t)(h >> 32);
}

RK_INLINE bool is_wild(const struct rank_request *req)
{
    return req->src == RK_SRC_ANY || req->tag == RK_TAG_ANY;
}

RK_INLINE struct rank_request *posted_of(struct rk_link *l)
{
    return rk_list_entry(l, struct rank_request, link);
}

/* Twice the buckets. Chains are moved in order, so that equal keys keep theirs. Without memory
 * the table stays as it is, only slower. */
static RK_COLD void grow(struct rk_link **buckets, uint32_t *mask, uint32_t (*hash_of)(struct rk_link *))
{
    uint32_t n = (*mask + 1) * 2;
    struct rk_link *more = buckets_new(n);

    if (!more)
        return;
    for (uint32_t i = 0; i <= *mask; i++) {
        while (!rk_list_empty(&(*buckets)[i])) {
            struct rk_link *l = (*buckets)[i].next;
            rk_list_remove(l);
            rk_list_append(&more[hash_of(l) & (n - 1)], l);
        }
    }
    free(*buckets);
    *buckets = more;
    *mask = n - 1;
}

static uint32_t hash_posted(struct rk_link *l)
{
    struct rank_request *req = posted_of(l);
    return hash(req->team, req->src, req->tag);
}

static uint32_t hash_waiting(struct rk_link *l)
{
    struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, bucket);
    return hash(u->team, u->src, u->tag);
}

/* ------------------------------------------------------------------ receives */

void rk_match_post(struct rk_match *m, struct rank_request *req)
{
    req->post_seq = m->seq++;
    req->flags |= RK_REQ_POSTED;
    if (is_wild(req)) {
        rk_list_append(&m->wild, &req->link);
        m->nwild++;
        return;
    }
    if (rk_unlikely(m->nposted > LOAD * m->posted_mask))
        grow(&m->posted, &m->posted_mask, hash_posted);
    rk_list_append(&m->posted[hash(req->team, req->src, req->tag) & m->posted_mask], &req->link);
    m->nposted++;
}

void rk_match_unpost(struct rk_match *m, struct rank_request *req)
{
    rk_list_remove(&req->link);
    req->flags &= (uint8_t)~RK_REQ_POSTED;
    if (is_wild(req))
        m->nwild--;
    else
        m->nposted--;
}

static struct rank_request *first_wild(struct rk_match *m, uint64_t team, uint32_t src,
                                       uint64_t tag)
{
    struct rk_link *l;

    rk_list_for_each(l, &m->wild)
    {
        struct rank_request *req = posted_of(l);
        if (req->team == team && (req->src == src || req->src == RK_SRC_ANY) &&
            (req->tag == tag || req->tag == RK_TAG_ANY))
            return req;
    }
    return NULL;
}

struct rank_request *rk_match_arrive(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rk_link *head = &m->posted[hash(team, src, tag) & m->posted_mask], *l;
    struct rank_request *best = NULL, *wild;

    rk_list_for_each(l, head)
    {
        struct rank_request *req = posted_of(l);
        if (req->tag == tag && req->src == src && req->team == team) {
            best = req;
            break;
        }
    }
    if (rk_unlikely(m->nwild) && (wild = first_wild(m, team, src, tag)) != NULL) {
        if (!best || (int32_t)(wild->post_seq - best->post_seq) < 0)
            best = wild;
    }
    if (best)
        rk_match_unpost(m, best);
    return best;
}

void rk_match_each_posted(struct rk_match *m, void (*fn)(struct rank_request *, void *), void *arg)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &m->wild) fn(posted_of(l), arg);
    for (uint32_t i = 0; i <= m->posted_mask; i++) {
        rk_list_for_each_safe(l, next, &m->posted[i]) fn(posted_of(l), arg);
    }
}

/* ------------------------------------------------------------------ messages */

void rk_match_keep(struct rk_match *m, struct rk_unexpected *u)
{
    if (rk_unlikely(m->nwaiting > LOAD * m->waiting_mask))
        grow(&m->waiting, &m->waiting_mask, hash_waiting);
    rk_list_append(&m->waiting[hash(u->team, u->src, u->tag) & m->waiting_mask], &u->bucket);
    rk_list_append(&m->arrived, &u->order);
    m->nwaiting++;
}

struct rk_unexpected *rk_match_find(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rk_link *l;

    if (rk_likely(m->nwaiting == 0))
        return NULL;
    if (src == RK_SRC_ANY || tag == RK_TAG_ANY) {
        rk_list_for_each(l, &m->arrived)
        {
            struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
            if (u->team == team && (src == RK_SRC_ANY || u->src == src) &&
                (tag == RK_TAG_ANY || u->tag == tag))
                return u;
        }
        return NULL;
    }
    rk_list_for_each(l, &m->waiting[hash(team, src, tag) & m->waiting_mask])
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, bucket);
        if (u->tag == tag && u->src == src && u->team == team)
            return u;
    }
    return NULL;
}

void rk_match_drop(struct rk_match *m, struct rk_unexpected *u)
{
    rk_list_remove(&u->bucket);
    rk_list_remove(&u->order);
    m->nwaiting--;
}
