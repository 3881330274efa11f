/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_p2p.c: see fake_p2p.h. */
#include "tests/coll/fake_p2p.h"

#include <stdlib.h>
#include <string.h>

static struct fake_world *the_world; /* the calls of p2p.h name a team only */

void fake_open(struct fake_world *w, int size, bool synchronous, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->size = size;
    w->synchronous = synchronous;
    w->seed = seed;
    rk_scheds_init(&w->scheds, &w->ctx);
    for (int r = 0; r < size; r++) {
        rk_list_init(&w->sends[r]);
        rk_list_init(&w->recvs[r]);
        w->team[r].magic = RK_TEAM_MAGIC;
        w->team[r].rank = r;
        w->team[r].size = size;
        w->team[r].ctx = &w->ctx;
        w->team[r].id = 77;
    }
    the_world = w;
}

void fake_close(struct fake_world *w)
{
    rk_scheds_destroy(&w->scheds);
}

/* There are no peers: the sender is in src, the receiver in priv[1], of sends and receives. */
void rk_p2p_isend(struct rank_team *team, const void *buf, size_t bytes, int dest, uint64_t tag,
                  uint64_t space, struct rank_request *req)
{
    struct fake_world *w = the_world;

    req->type = RK_REQ_SEND;
    req->peer = NULL;
    req->done = false;
    req->status = RANK_OK;
    req->src = (uint32_t)team->rank;
    req->priv[1] = (uint32_t)dest;
    req->tag = tag;
    req->team = team->id | space;
    req->got = req->sent = 0;
    req->priv[0] = 0;
    req->view = (struct rk_view){(void *)(uintptr_t)buf, bytes, NULL};
    rk_list_init(&req->link);
    if (!w->synchronous) { /* a copy travels, the request is done */
        struct rank_request *copy = calloc(1, sizeof(*copy));
        *copy = *req;
        copy->on_done = NULL;
        copy->priv[0] = 1;
        copy->view.base = malloc(bytes + 1);
        if (bytes)
            memcpy(copy->view.base, buf, bytes);
        rk_list_append(&w->sends[dest], &copy->link);
        w->nsends++;
        rk_req_complete(req, RANK_OK);
        return;
    }
    rk_list_append(&w->sends[dest], &req->link);
    w->nsends++;
}

void rk_p2p_irecv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                  uint64_t space, struct rank_request *req)
{
    struct fake_world *w = the_world;

    req->type = RK_REQ_RECV;
    req->peer = NULL;
    req->done = false;
    req->status = RANK_OK;
    req->flags |= RK_REQ_POSTED;
    req->src = (uint32_t)source;
    req->priv[1] = (uint32_t)team->rank;
    req->tag = tag;
    req->team = team->id | space;
    req->got = req->sent = 0;
    req->view = (struct rk_view){buf, bytes, NULL};
    rk_list_append(&w->recvs[team->rank], &req->link);
    w->recvs_of[team->rank]++;
    w->nrecvs++;
}

bool rk_p2p_cancel_recv(struct rank_request *req, rank_status_t status)
{
    if (!(req->flags & RK_REQ_POSTED))
        return false;
    req->flags &= (uint8_t)~RK_REQ_POSTED;
    rk_list_remove(&req->link);
    the_world->recvs_of[req->priv[1]]--;
    the_world->nrecvs--;
    rk_req_complete(req, status);
    return true;
}

static struct rank_request *request_of(struct rk_link *l)
{
    return rk_list_entry(l, struct rank_request, link);
}

/* The first send that the receive matches: order is kept for equal tags. */
static struct rank_request *send_for(struct fake_world *w, const struct rank_request *recv)
{
    struct rk_link *l;

    rk_list_for_each(l, &w->sends[recv->priv[1]])
    {
        struct rank_request *s = request_of(l);
        if (s->src == recv->src && s->tag == recv->tag && s->team == recv->team)
            return s;
    }
    return NULL;
}

/* Nor may a later receive overtake an equal one. */
static bool first_of_its_kind(struct fake_world *w, const struct rank_request *recv)
{
    struct rk_link *l;

    rk_list_for_each(l, &w->recvs[recv->priv[1]])
    {
        const struct rank_request *r = request_of(l);
        if (r->src == recv->src && r->tag == recv->tag)
            return r == recv;
    }
    return true;
}

static void meet(struct fake_world *w, struct rank_request *send, struct rank_request *recv)
{
    bool copy = send->priv[0] == 1;

    rk_list_remove(&send->link);
    rk_list_remove(&recv->link);
    w->nsends--;
    w->nrecvs--;
    w->recvs_of[recv->priv[1]]--;
    w->delivered++;
    recv->flags &= (uint8_t)~RK_REQ_POSTED;
    recv->sent = send->view.bytes;
    recv->got = recv->sent < recv->view.bytes ? recv->sent : recv->view.bytes;
    if (recv->got)
        memcpy(recv->view.base, send->view.base, recv->got);
    if (copy) {
        free(send->view.base);
        free(send);
        rk_req_complete(recv, RANK_OK);
    } else if (w->seed & 1) { /* either may come first */
        rk_req_complete(recv, RANK_OK);
        rk_req_complete(send, RANK_OK);
    } else {
        rk_req_complete(send, RANK_OK);
        rk_req_complete(recv, RANK_OK);
    }
}

/* To one rank: from a random receive on, once round. */
static bool deliver_to(struct fake_world *w, int dest, int skip)
{
    struct rk_link *head = &w->recvs[dest], *l = head->next;

    for (int i = 0; i < skip; i++)
        l = l->next;
    for (int i = 0; i < w->recvs_of[dest]; i++, l = l->next) {
        struct rank_request *recv, *send;
        if (l == head)
            l = l->next;
        recv = request_of(l);
        send = send_for(w, recv);
        if (send && first_of_its_kind(w, recv)) {
            meet(w, send, recv);
            return true;
        }
    }
    return false;
}

bool fake_deliver(struct fake_world *w)
{
    int first;

    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    first = (int)((w->seed >> 33) % (uint64_t)w->size);
    for (int i = 0; i < w->size && w->nrecvs; i++) {
        int dest = (first + i) % w->size, n = w->recvs_of[dest];
        if (n && deliver_to(w, dest, (int)((w->seed >> 17) % (uint64_t)n)))
            return true;
    }
    return false;
}

void fake_run(struct fake_world *w)
{
    do {
        while (fake_deliver(w))
            ;
    } while (rk_scheds_busy(&w->scheds) && rk_scheds_progress(&w->scheds) > 0);
}

/* For frames, of which there are none. */
struct rank_team *rk_team_find(const struct rk_ctx *ctx, uint64_t id)
{
    (void)ctx;
    (void)id;
    return NULL;
}

rank_status_t rk_team_lost(const struct rank_team *team)
{
    (void)team;
    return RANK_ERR_PEER_DEAD;
}
