/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks.c: connect ranks of jobs by tcp.
 *
 * Each rank listens and publishes a card: its addresses, its port and a key. At first contact a rank carries out the
 * handshake of connections, with the key of the other rank's card as the secret; its hello names itself. Cards pass through
 * the launcher's store, so only ranks of the job, and of jobs that it is connected to, have the key.
 *
 * If both ranks connect at once, the handshake of the lower process id stays, and the other one is refused.
 */
#include "lib/base/arg_error.h"
#include "lib/base/auth.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/boot/boot.h"
#include "lib/conn/conns.h"
#include "lib/conn/rank_card.h"
#include "lib/core/card.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { BACKLOG = 4096, TRIES = 16, DESCRIPTORS_LEFT = 32 };
#define RETRY_NS 50000000ull      /* after a handshake that a crowded rank has ended */
#define UNKNOWN_NS 60000000000ull /* until the job of a rank that connects is introduced */

static const char both_connect[] = "both ranks connect";

/* Hello of both sides. */
struct rank_name {
    uint64_t job;
    uint32_t rank, reserved;
};

/* First contact of a peer, from this side. */
struct contact {
    struct rk_link link;
    struct rk_peer *peer;
    uint64_t job;               /* of the peer: its number may go to another job */
    struct rk_shaking *shaking; /* NULL: the peer's is expected, or another try */
    struct rk_conn_opts opts;
    struct rk_rank_card card;
    int next, tries;            /* address to try next; tries that the peer has ended */
    struct sockaddr_storage at; /* of the last try */
    uint64_t until;             /* of the try, or of the wait for the peer's */
    uint64_t retry_at;          /* 0: no address is to be tried again */
    bool failed;
    char why[320];
};

struct rk_ranks {
    struct rk_conns *of;
    rank_listener_t listener;
    struct rk_conn_opts opts; /* of the listener */
    struct rk_rank_card mine;
    struct rk_link contacts;
    struct contact **by_number;
    int cap;
};

static const char *ranks_refusal(const struct rk_shaking *s);

static void set_opts(struct rk_conn_opts *o, const unsigned char *key, const struct rk_ctx *ctx)
{
    const struct rank_name me = {.job = ctx->engine->job, .rank = (uint32_t)ctx->boot->rank};

    o->secret.bytes = sizeof(((struct rk_rank_card *)NULL)->key);
    memcpy(o->secret.data, key, o->secret.bytes);
    memcpy(o->hello, &me, sizeof(me));
    o->hello_bytes = sizeof(me);
    o->flags = RANK_CONN_NO_RDMA;
    o->max_conns = INT_MAX;
    o->backlog = BACKLOG;
    o->timeout_ns = RK_HANDSHAKE_NS;
    o->silence_ns = RK_SILENCE_NS;
}

static rank_status_t ranks_listen(struct rk_ranks *r)
{
    const struct rk_address any = {.port = 0};
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    struct addrinfo *found;
    char why[256];
    rank_status_t st;

    st = rk_address_resolve(&any, true, &found, why, sizeof(why));
    if (st)
        return rk_fail(st, "cannot listen for ranks of other hosts: %s", why);
    st = rk_listener_open("rank_init", r->of, "a port for ranks of other hosts", found, &r->opts, &r->listener);
    freeaddrinfo(found);
    if (st)
        return st;
    r->listener->refusal = ranks_refusal;
    if (getsockname(r->listener->source.fd, (struct sockaddr *)&a, &len) < 0)
        return rk_fail(RANK_ERR_SYSTEM, "cannot read the port of a socket: %m");
    /* Both families have the port in the same place. */
    r->mine.port = ntohs(((const struct sockaddr_in *)(const void *)&a)->sin_port);
    return RANK_OK;
}

rank_status_t rk_ranks_open(struct rk_conns *c)
{
    struct rk_engine *e = c->ctx->engine;
    struct rk_ranks *r;
    rank_status_t st;

    if (!rk_auth_open())
        return rk_fail(RANK_ERR_NOT_SUPPORTED, "ranks that connect by tcp authenticate each other: " RK_AUTH_MISSING);
    r = c->ranks = calloc(1, sizeof(*r));
    if (!r)
        return RANK_ERR_NO_MEMORY;
    r->of = c;
    rk_list_init(&r->contacts);
    st = rk_rank_card_make(&r->mine, c->host);
    if (st)
        return st;
    set_opts(&r->opts, r->mine.key, c->ctx);
    st = ranks_listen(r);
    if (!st && !rk_card_add(&e->card, &e->card_len, "tcp", &r->mine, sizeof(r->mine)))
        st = RANK_ERR_NO_MEMORY;
    return st;
}

/* ---------------------------------------------------------------------- first contact */

static void end_try(struct contact *k)
{
    if (k->shaking)
        rk_shake_end(k->shaking);
    k->shaking = NULL;
}

static void contact_end(struct rk_ranks *r, struct contact *k)
{
    end_try(k);
    r->by_number[k->peer->number] = NULL;
    rk_list_remove(&k->link);
    rk_secret_clear(&k->opts.secret);
    free(k);
}

static struct contact *contact_of(struct rk_ranks *r, const struct rk_peer *peer)
{
    struct contact *k = peer->number < r->cap ? r->by_number[peer->number] : NULL;

    if (!k || k->job == peer->id.job)
        return k;
    contact_end(r, k);
    return NULL;
}

static struct contact *contact_add(struct rk_ranks *r, struct rk_peer *peer)
{
    struct contact *k = calloc(1, sizeof(*k));
    int cap = r->of->ctx->engine->npeers;

    if (k && peer->number >= r->cap) {
        struct contact **grown = realloc(r->by_number, (size_t)cap * sizeof(struct contact *));
        if (!grown) {
            free(k);
            k = NULL;
        } else {
            memset(grown + r->cap, 0, (size_t)(cap - r->cap) * sizeof(struct contact *));
            r->by_number = grown;
            r->cap = cap;
        }
    }
    if (!k) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for the first contact of rank %u", peer->id.rank);
        return NULL;
    }
    k->peer = peer;
    k->job = peer->id.job;
    r->by_number[peer->number] = k;
    rk_list_append(&r->contacts, &k->link);
    return k;
}

static void add_reason(struct contact *k, const char *why)
{
    size_t len = strlen(k->why);
    char text[RK_ADDRESS_TEXT];

    rk_address_text((const struct sockaddr *)&k->at, text, sizeof(text));
    snprintf(k->why + len, sizeof(k->why) - len, "%s%s: %s", len ? ", " : "", text, why);
}

/* A link takes a descriptor. Raise the limit of the process before it is reached, or else name it. */
static void check_descriptors(int fd)
{
    static _Atomic bool warned;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || (rlim_t)fd + DESCRIPTORS_LEFT < files.rlim_cur)
        return;
    if (files.rlim_cur < files.rlim_max) {
        rk_info("the limit of descriptors (ulimit -n) is raised from %llu to %llu: each rank of another host takes one",
                (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) == 0)
            return;
    }
    if (!atomic_exchange(&warned, true))
        rk_warn("%d of %llu descriptors are in use, and each rank of another host that this one talks to takes one: raise the "
                "hard limit (ulimit -Hn)", fd + 1, (unsigned long long)files.rlim_max);
}

/* Try the next address, if any. */
static void try_next(struct rk_ranks *r, struct contact *k, uint64_t now)
{
    int silence_ms = (int)(RK_SILENCE_NS / 1000000);

    end_try(k);
    k->retry_at = 0;
    while (!k->shaking && rk_rank_card_next(&k->card, &r->mine, &k->next, &k->at)) {
        int fd = rk_address_connect((const struct sockaddr *)&k->at);

        if (fd < 0) {
            add_reason(k, errno == EMFILE ? "no descriptor is left (ulimit -n)" : strerror(errno));
            continue;
        }
        check_descriptors(fd);
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms)); /* until it is attached */
        k->shaking = rk_shake_begin(r->of, fd, NULL, &k->opts);
        k->until = now + RK_CONTACT_NS / (uint64_t)rk_rank_card_tries(&k->card, &r->mine);
    }
    k->failed = !k->shaking;
}

/* The try has not led to the peer: retry, or go on with the next address. */
static void try_over(struct rk_ranks *r, struct contact *k, const char *why, bool connected, uint64_t now)
{
    if (connected && k->shaking->status == RANK_ERR_REFUSED && strcmp(k->shaking->why, both_connect) == 0) {
        end_try(k);
        k->until = now + RK_CONTACT_NS;
        return;
    }
    if (connected && k->shaking->status == RANK_ERR_UNREACHABLE && ++k->tries < TRIES) {
        end_try(k);
        k->next--;
        k->retry_at = now + RETRY_NS;
        return;
    }
    add_reason(k, why);
    try_next(r, k, now);
    if (k->failed && k->tries > 0 && !connected) { /* the process listened, and does no more */
        rk_debug("rank %u%s has ended: %s", k->peer->id.rank, rk_peer_job_suffix(k->peer), k->why);
        rk_engine_report_death(r->of->ctx, k->peer->number);
    }
}

/* Both sides have proved themselves: make the link. Ends s. */
static void attach(struct rk_ranks *r, struct rk_shaking *s, struct rk_peer *peer)
{
    static struct rk_pair_counts uncounted;
    struct rk_node *node = s->node;
    int fd = s->source.fd, off = 0;
    rank_status_t st;

    peer->suspect_until = 0; /* it lives */
    st = rk_tcp_attach(r->of->tcp, fd, peer, NULL, RK_SILENCE_NS, node != NULL);
    if (!st) {
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &off, sizeof(off));
        s->source.fd = -1;
        if (node)
            st = rk_pair_connect(node, peer, &uncounted);
        if (!st)
            s->node = NULL;
    }
    rk_shake_end(s);
    if (st)
        rk_engine_report_death(r->of->ctx, peer->number);
}

static void contact_advance(struct rk_ranks *r, struct contact *k, uint64_t now)
{
    struct rk_shaking *s = k->shaking;

    if (k->failed)
        return;
    if (s && s->over && !s->status) {
        k->shaking = NULL;
        attach(r, s, k->peer);
    } else if (s && s->over) {
        try_over(r, k, s->why, s->next != 0, now);
    } else if (s && s->next == 0 && now >= k->until) {
        try_over(r, k, "no answer", false, now);
    } else if (!s && k->retry_at && now >= k->retry_at) {
        try_next(r, k, now);
    }
}

/* Has the peer a link, or has its own try not come? Then the next call begins anew. */
static bool is_over(const struct contact *k, uint64_t now)
{
    return k->peer->state != RK_PEER_NEW || k->job != k->peer->id.job || (!k->failed && !k->shaking && !k->retry_at && now >= k->until);
}

static rank_status_t contact_begin(struct rk_ranks *r, struct rk_peer *peer, struct contact **out)
{
    struct contact *k;
    struct rk_rank_card card;
    size_t len = sizeof(card);
    rank_status_t st = rk_peer_card(peer, "tcp", &card, &len);

    if (st)
        return st;
    if (!rk_rank_card_is_valid(&card, len))
        return rk_fail(RANK_ERR_CHANNEL, "the address of rank %u is malformed; do all ranks use the same librank?", peer->id.rank);
    k = *out = contact_add(r, peer);
    if (!k)
        return RANK_ERR_NO_MEMORY;
    k->card = card;
    rk_debug("first contact of rank %u%s by tcp", peer->id.rank, rk_peer_job_suffix(peer));
    set_opts(&k->opts, card.key, r->of->ctx);
    try_next(r, k, rk_clock_ns());
    return RANK_OK;
}

rank_status_t rk_ranks_contact(struct rk_ranks *r, struct rk_peer *peer)
{
    const struct rk_ctx *ctx = r->of->ctx;
    struct contact *k = contact_of(r, peer);
    rank_status_t st;

    if (peer->number == ctx->boot->rank)
        return RANK_ERR_UNREACHABLE;
    if (!k && (st = contact_begin(r, peer, &k)) != RANK_OK)
        return st;
    if (!k->failed)
        return RK_AGAIN; /* rk_ranks_settle attaches */
    st = rk_engine_why_unreached(peer);
    if (st != RANK_ERR_UNREACHABLE)
        return st;
    rk_fail(st, "rank %u%s cannot be reached by tcp (%s): does a firewall drop or refuse these ports? RANK_NICS chooses network "
            "devices", peer->id.rank, rk_peer_job_suffix(peer), k->why[0] ? k->why : "it has no address");
    peer->explained = 1;
    contact_end(r, k);
    return st;
}

/* ------------------------------------------------------------------------- the other side */

static struct rk_peer *peer_of(const struct rk_ranks *r, const struct rk_shaking *s)
{
    struct rank_name name;

    memcpy(&name, s->peer.hello, sizeof(name));
    return rk_engine_find_peer(r->of->ctx, (struct rk_procid){name.job, name.rank});
}

/* Has the own contact precedence over that of the peer? */
static bool precedes(const struct rk_ctx *ctx, const struct rk_peer *peer)
{
    if (ctx->engine->job != peer->id.job)
        return ctx->engine->job < peer->id.job;
    return (uint32_t)ctx->boot->rank < peer->id.rank;
}

/* May the rank that has proved itself have a link? Else the reason, for the client. */
static const char *ranks_refusal(const struct rk_shaking *s)
{
    struct rk_ranks *r = s->of->ranks;
    struct rk_peer *peer;
    struct contact *k;

    check_descriptors(s->source.fd);
    if (s->peer.hello_bytes != sizeof(struct rank_name))
        return "its hello names no rank";
    peer = peer_of(r, s);
    if (!peer) /* its job may be introduced later */
        return NULL;
    if (peer->number == r->of->ctx->boot->rank || peer->state != RK_PEER_NEW)
        return "this rank has a link already, or is known to be dead";
    k = contact_of(r, peer);
    if (k && k->shaking && precedes(r->of->ctx, peer))
        return both_connect;
    if (!k && !(k = contact_add(r, peer)))
        return "out of memory";
    end_try(k);
    k->failed = false;
    k->until = rk_clock_ns() + RK_CONTACT_NS;
    return NULL;
}

/* Make a link of a handshake of the listener, once the job of its rank is known. */
static void settle_one(struct rk_ranks *r, struct rk_shaking *s, uint64_t now)
{
    struct rk_peer *peer = peer_of(r, s);

    if (!peer && now - s->begun < UNKNOWN_NS)
        return;
    if (peer && peer->state == RK_PEER_NEW && !rk_tcp_link_of(r->of->tcp, peer))
        attach(r, s, peer);
    else
        rk_shake_end(s);
}

void rk_ranks_settle(struct rk_ranks *r)
{
    uint64_t now = rk_clock_ns();
    struct rk_link *at, *next;

    rk_list_for_each_safe(at, next, &r->listener->ready)
        settle_one(r, rk_list_entry(at, struct rk_shaking, link), now);
    rk_list_for_each_safe(at, next, &r->contacts)
    {
        struct contact *k = rk_list_entry(at, struct contact, link);
        if (!is_over(k, now))
            contact_advance(r, k, now);
        if (is_over(k, now))
            contact_end(r, k);
    }
}

void rk_ranks_close(struct rk_ctx *ctx)
{
    struct rk_ranks *r = ctx->conns ? ctx->conns->ranks : NULL;

    if (!r)
        return;
    ctx->conns->ranks = NULL;
    while (!rk_list_empty(&r->contacts))
        contact_end(r, rk_list_entry(r->contacts.next, struct contact, link));
    if (r->listener)
        rk_listener_end(r->listener);
    rk_secret_clear(&r->opts.secret);
    free(r->by_number);
    free(r);
}
