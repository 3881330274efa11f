/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c: match receives and messages. */
#include "lib/p2p/match.h"
#include "lib/base/log.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 64, LOAD = 2 };
/* A receive with one wildcard scans this many messages before an index pays. */
enum { FEW = 32 };

static struct rk_link *buckets_new(uint32_t n)
{
    struct rk_link *b = malloc(n * sizeof(*b));

    for (uint32_t i = 0; b && i < n; i++)
        rk_list_init(&b[i]);
    return b;
}

RK_INLINE uint32_t hash(uint64_t team, uint32_t src, uint64_t tag)
{
    /* A multiplication moves bits upwards only: fold high bits of the tag down first. */
    uint64_t key = src * 0xc4ceb9fe1a85ec53ull ^ team * 0x9e3779b97f4a7c15ull;
    uint64_t h = (tag ^ tag >> 31 ^ key) * 0xff51afd7ed558ccdull;

    return (uint32_t)(h >> 32);
}

rank_status_t rk_match_init(struct rk_match *m)
{
    *m = (struct rk_match){.posted_mask = FIRST_BUCKETS - 1, .waiting_mask = FIRST_BUCKETS - 1};
    m->wild_mask = FIRST_BUCKETS - 1;
    rk_list_init(&m->arrived);
    m->posted = buckets_new(FIRST_BUCKETS);
    m->waiting = buckets_new(FIRST_BUCKETS);
    m->wild = buckets_new(FIRST_BUCKETS);
    if (m->posted)
        m->last.bucket = &m->posted[hash(0, 0, 0) & m->posted_mask];
    return m->posted && m->waiting && m->wild ? RANK_OK : RANK_ERR_NO_MEMORY;
}

void rk_match_destroy(struct rk_match *m)
{
    free(m->posted);
    free(m->waiting);
    free(m->wild);
    free(m->by_tag);
    free(m->by_src);
    m->posted = m->waiting = m->wild = m->by_tag = m->by_src = NULL;
}

enum { ANY_SRC = 1, ANY_TAG = 2 };

/* 0: no wildcard. */
RK_INLINE int wildcards(uint32_t src, uint64_t tag)
{
    return (src == RK_SRC_ANY ? ANY_SRC : 0) | (tag == RK_TAG_ANY ? ANY_TAG : 0);
}

RK_INLINE struct rank_request *posted_of(struct rk_link *l)
{
    return rk_list_entry(l, struct rank_request, link);
}

/*
 * Double the buckets. Moves chains in order, so that equal keys keep theirs. Without memory the table stays as it
 * is, only slower.
 */
static RK_COLD void match_grow(struct rk_link **buckets, uint32_t *mask, uint32_t (*hash_of)(struct rk_link *))
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

static uint32_t hash_tag(struct rk_link *l)
{
    struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, tag_link);
    return hash(u->team, RK_SRC_ANY, u->tag);
}

static uint32_t hash_src(struct rk_link *l)
{
    struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, src_link);
    return hash(u->team, u->src, RK_TAG_ANY);
}

/* ------------------------------------------------------------------ receives */

RK_INLINE struct rk_link *posted_bucket(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    if (!rk_match_is_last(m, team, src, tag)) {
        m->last.team = team;
        m->last.tag = tag;
        m->last.src = src;
        m->last.bucket = &m->posted[hash(team, src, tag) & m->posted_mask];
    }
    return m->last.bucket;
}

static RK_COLD void grow_posted(struct rk_match *m)
{
    match_grow(&m->posted, &m->posted_mask, hash_posted);
    m->last.bucket = &m->posted[hash(m->last.team, m->last.src, m->last.tag) & m->posted_mask];
}

void rk_match_post_else(struct rk_match *m, struct rank_request *req)
{
    int wild = wildcards(req->src, req->tag);

    req->post_seq = m->seq++;
    req->flags |= RK_REQ_POSTED;
    if (wild) {
        if (rk_unlikely(m->nwild > LOAD * m->wild_mask))
            match_grow(&m->wild, &m->wild_mask, hash_posted);
        rk_list_append(&m->wild[hash(req->team, req->src, req->tag) & m->wild_mask], &req->link);
        m->nwild++;
        m->nwild_of[wild]++;
        return;
    }
    if (rk_unlikely(m->nposted > LOAD * m->posted_mask))
        grow_posted(m);
    rk_list_append(posted_bucket(m, req->team, req->src, req->tag), &req->link);
    m->nposted++;
}

RK_INLINE void take_out(struct rank_request *req)
{
    rk_list_remove(&req->link);
    req->flags &= (uint8_t)~RK_REQ_POSTED;
}

void rk_match_unpost(struct rk_match *m, struct rank_request *req)
{
    int wild = wildcards(req->src, req->tag);

    take_out(req);
    if (wild) {
        m->nwild--;
        m->nwild_of[wild]--;
    } else {
        m->nposted--;
    }
}

/* First in its bucket that wants exactly this. */
RK_INLINE struct rank_request *first_posted(struct rk_link *head, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rk_link *l;

    rk_list_for_each(l, head)
    {
        struct rank_request *req = posted_of(l);
        if (req->tag == tag && req->src == src && req->team == team)
            return req;
    }
    return NULL;
}

/* The earliest posted of best and the fitting receives with wildcards. */
static struct rank_request *or_wild(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag,
                                    struct rank_request *best)
{
    for (int wild = ANY_SRC; wild <= (ANY_SRC | ANY_TAG); wild++) {
        uint32_t from = wild & ANY_SRC ? RK_SRC_ANY : src;
        uint64_t what = wild & ANY_TAG ? RK_TAG_ANY : tag;
        struct rank_request *req;

        if (!m->nwild_of[wild])
            continue;
        req = first_posted(&m->wild[hash(team, from, what) & m->wild_mask], team, from, what);
        if (req && (!best || req->post_seq < best->post_seq))
            best = req;
    }
    return best;
}

struct rank_request *rk_match_arrive_else(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rank_request *best;

    /* No valid sender uses such a value, and the cached key must not have wildcards. */
    if (rk_unlikely(wildcards(src, tag)))
        return NULL;
    best = first_posted(posted_bucket(m, team, src, tag), team, src, tag);
    if (rk_unlikely(m->nwild)) {
        best = or_wild(m, team, src, tag, best);
        if (best)
            rk_match_unpost(m, best);
    } else if (rk_likely(best != NULL)) {
        take_out(best);
        m->nposted--;
    }
    return best;
}

static void match_each_in(struct rk_link *buckets, uint32_t mask, void (*fn)(struct rank_request *, void *), void *arg)
{
    struct rk_link *l, *next;

    for (uint32_t i = 0; i <= mask; i++) {
        rk_list_for_each_safe(l, next, &buckets[i]) fn(posted_of(l), arg);
    }
}

void rk_match_each_posted(struct rk_match *m, void (*fn)(struct rank_request *, void *), void *arg)
{
    match_each_in(m->wild, m->wild_mask, fn, arg);
    match_each_in(m->posted, m->posted_mask, fn, arg);
}

/* ------------------------------------------------------------------ messages */

static void index_one(struct rk_match *m, struct rk_unexpected *u)
{
    if (rk_unlikely(m->nwaiting > LOAD * m->by_tag_mask))
        match_grow(&m->by_tag, &m->by_tag_mask, hash_tag);
    if (rk_unlikely(m->nwaiting > LOAD * m->by_src_mask))
        match_grow(&m->by_src, &m->by_src_mask, hash_src);
    rk_list_append(&m->by_tag[hash(u->team, RK_SRC_ANY, u->tag) & m->by_tag_mask], &u->tag_link);
    rk_list_append(&m->by_src[hash(u->team, u->src, RK_TAG_ANY) & m->by_src_mask], &u->src_link);
}

/*
 * Index waiting messages for receives with one wildcard; returns false if out of memory. Stays until no message
 * waits, so that programs without such receives do not pay.
 */
static RK_COLD bool index_all(struct rk_match *m)
{
    struct rk_link *l;

    if (!m->by_tag && (m->by_tag = buckets_new(FIRST_BUCKETS)))
        m->by_tag_mask = FIRST_BUCKETS - 1;
    if (!m->by_src && (m->by_src = buckets_new(FIRST_BUCKETS)))
        m->by_src_mask = FIRST_BUCKETS - 1;
    if (!m->by_tag || !m->by_src)
        return false;
    rk_list_for_each(l, &m->arrived) index_one(m, rk_list_entry(l, struct rk_unexpected, order));
    m->indexed = true;
    return true;
}

void rk_match_add_unexpected(struct rk_match *m, struct rk_unexpected *u)
{
    if (rk_unlikely(m->nwaiting > LOAD * m->waiting_mask))
        match_grow(&m->waiting, &m->waiting_mask, hash_waiting);
    rk_list_append(&m->waiting[hash(u->team, u->src, u->tag) & m->waiting_mask], &u->bucket);
    rk_list_append(&m->arrived, &u->order);
    m->nwaiting++;
    if (rk_unlikely(m->indexed))
        index_one(m, u);
}

/* First of a list that fits; link: place of the list's link in a message. */
RK_INLINE struct rk_unexpected *find_in(struct rk_link *head, size_t link, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rk_link *l;

    rk_list_for_each(l, head)
    {
        struct rk_unexpected *u = (void *)((char *)l - link);
        if (u->team == team && (src == RK_SRC_ANY || u->src == src) && (tag == RK_TAG_ANY || u->tag == tag))
            return u;
    }
    return NULL;
}

static struct rk_unexpected *find_wild(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag, int wild)
{
    bool one = wild != (ANY_SRC | ANY_TAG);
    struct rk_link *l;
    int checked = 0;

    if (one && m->indexed && wild == ANY_SRC)
        return find_in(&m->by_tag[hash(team, src, tag) & m->by_tag_mask], offsetof(struct rk_unexpected, tag_link), team, src, tag);
    if (one && m->indexed)
        return find_in(&m->by_src[hash(team, src, tag) & m->by_src_mask], offsetof(struct rk_unexpected, src_link), team, src, tag);
    rk_list_for_each(l, &m->arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if (u->team == team && (src == RK_SRC_ANY || u->src == src) &&
            (tag == RK_TAG_ANY || u->tag == tag))
            return u;
        if (one && ++checked == FEW && index_all(m))
            return find_wild(m, team, src, tag, wild);
    }
    return NULL;
}

struct rk_unexpected *rk_match_find(struct rk_match *m, uint64_t team, uint32_t src, uint64_t tag)
{
    struct rk_link *l;
    int wild;

    if (rk_likely(m->nwaiting == 0))
        return NULL;
    wild = wildcards(src, tag);
    if (wild)
        return find_wild(m, team, src, tag, wild);
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
    if (rk_unlikely(m->indexed)) {
        rk_list_remove(&u->tag_link);
        rk_list_remove(&u->src_link);
    }
    if (--m->nwaiting == 0)
        m->indexed = false;
}
