/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ep.c: first contact with a peer, and parting with it.
 *
 * An endpoint is made with UCP's error handling, which tells at once when a
 * connection breaks and lets us close by force. UCX's transports through
 * shared memory cannot do that: where the user lets them in, an endpoint to a
 * rank of this node does without. Its death is known from the node's segment;
 * the endpoint is then left alone until the worker goes.
 */
#include "lib/base/clock.h"
#include "lib/channel/module.h"
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

/* How long parting may take when all goes well, and when it does not: both the time and the passes have to be over,
 * for this process may have stood still meanwhile. */
enum { CLOSE_NS = 500 * 1000 * 1000, FORCE_NS = 200 * 1000 * 1000, FORCE_PASSES = 256 };
#define SETTLE_NS 5000000000ull /* and who connects may have to wait for a core: its worker is not given up before that */
#define PEACE_NS 3000000000ull /* in the last meeting: so long after one has gone all others are through, too */

static struct rk_ucx_link *link_new(struct rk_ucx *ucx, struct rk_peer *peer)
{
    struct rk_ucx_link *l;

    if (ucx->nlinks == ucx->links_cap) {
        uint32_t cap = ucx->links_cap ? ucx->links_cap * 2 : 16;
        struct rk_ucx_link **links = realloc(ucx->links, cap * sizeof(struct rk_ucx_link *));
        if (!links)
            return NULL;
        ucx->links = links;
        ucx->links_cap = cap;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->ucx = ucx;
    l->peer = peer;
    l->id = (struct rk_id){ucx->nlinks, ucx->gen};
    l->theirs.index = RK_UCX_NOBODY;
    l->last_tick = UINT64_MAX;
    rk_list_init(&l->on_open);
    rk_list_init(&l->ops);
    rk_list_init(&l->sending);
    rk_list_init(&l->control);
    rk_list_init(&l->on_busy);
    rk_list_init(&l->on_failed);
    ucx->links[ucx->nlinks++] = l;
    return l;
}

/* Room for a link of this number: all peers that there are now, and other jobs may come. */
static bool may_name(struct rk_ucx *ucx, int number)
{
    struct rk_ucx_link **table;
    int cap = ucx->ctx->engine->npeers;

    if (number < ucx->by_number_cap)
        return true;
    table = realloc(ucx->by_number, (size_t)cap * sizeof(struct rk_ucx_link *));
    if (!table)
        return false;
    memset(table + ucx->by_number_cap, 0,
           (size_t)(cap - ucx->by_number_cap) * sizeof(struct rk_ucx_link *));
    ucx->by_number = table;
    ucx->by_number_cap = cap;
    return true;
}

struct rk_ucx_link *rk_ucx_link_of(struct rk_ucx *ucx, struct rk_peer *peer)
{
    struct rk_ucx_link *l = NULL;

    if (peer->number < ucx->by_number_cap)
        l = ucx->by_number[peer->number];
    if (l)
        return l;
    if (may_name(ucx, peer->number))
        l = ucx->by_number[peer->number] = link_new(ucx, peer);
    if (!l)
        rk_error("out of memory for the link to rank %u", peer->id.rank);
    return l;
}

void rk_ucx_link_broken(struct rk_ucx_link *l)
{
    if (l->failed || l->dropped)
        return;
    l->failed = true;
    rk_list_append(&l->ucx->failed, &l->on_failed);
}

/* That the connection has come to an end, and not a want of ours. UCX 1.13's tcp calls every end a timeout. */
static bool is_end(ucs_status_t why)
{
    return rk_ucx_status(why) == RANK_ERR_PEER_DEAD;
}

/*
 * In the last meeting who is through closes its connections, and says so to those to whom it had one itself. Others, who
 * have spoken to it and have not been answered, hear no more than that theirs is broken. For them it has died only if
 * the meeting does not come to its end; launchers that tell of deaths do so sooner. What it sent over another connection
 * may still come, its goodbye, too. A host that does not answer any more has not let anybody leave in peace.
 */
void rk_ucx_link_ended(struct rk_ucx_link *l, ucs_status_t why)
{
    if (l->failed || l->dropped)
        return;
    if (l->ucx->ctx->engine->parting && !l->bye && !l->unanswered && is_end(why))
        l->lost_ns = rk_clock_ns();
    rk_ucx_link_broken(l);
}

/* UCP's, from within ucp_worker_progress. */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct rk_ucx_link *l = arg;

    (void)ep;
    if (!l->failed && !l->dropped)
        rk_info("UCX lost rank %u: %s", l->peer->id.rank, ucs_status_string(status));
    rk_ucx_link_ended(l, status);
}

static rank_status_t make_endpoint(struct rk_ucx_link *l, const ucp_address_t *address)
{
    struct rk_ucx *ucx = l->ucx;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = l},
    };
    rank_status_t why;
    ucs_status_t st;

    l->by_peer_mode = !(ucx->shm_transports && l->peer->local >= 0);
    if (!l->by_peer_mode)
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    st = ucp_ep_create(ucx->worker, &params, &l->ep);
    if (st == UCS_OK)
        return RANK_OK;
    l->ep = NULL;
    /* On its own host UCX tries at once; who has died a moment ago refuses, and is nothing to complain of. */
    why = rk_engine_why_unreached(l->peer);
    if (why != RANK_ERR_UNREACHABLE) {
        rk_info("UCX does not reach rank %u, which is gone, or may be: %s", l->peer->id.rank, ucs_status_string(st));
        return why;
    }
    rk_error("UCX does not reach rank %u: %s (do both sides have a network device or transport in "
             "common? see UCX_TLS and UCX_NET_DEVICES)",
             l->peer->id.rank, ucs_status_string(st));
    return rk_ucx_status(st);
}

rank_status_t rk_ucx_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    struct rk_ucx *ucx = state;
    unsigned char bytes[RK_CARD_MAX + 64] __attribute__((aligned(8)));
    struct rk_ucx_card card;
    const void *address;
    size_t len = RK_CARD_MAX;
    struct rk_ucx_link *l;
    rank_status_t st;
    char versions[64];

    (void)ctx;
    if (peer->id.rank == ucx->me && peer->id.job == ucx->job)
        return RANK_ERR_UNREACHABLE;
    l = rk_ucx_link_of(ucx, peer);
    if (!l)
        return RANK_ERR_NO_MEMORY;
    if (l->failed || l->dropped)
        return RANK_ERR_PEER_DEAD;
    st = rk_peer_card(peer, RK_UCX_CARD, bytes, &len);
    if (st)
        return st;
    memset(bytes + len, 0, sizeof(bytes) - len);
    if (!rk_ucx_card_decode(bytes, len, &card, &address)) {
        rk_error("the card %s of rank %u is not one; do all ranks use the same librank?",
                 RK_UCX_CARD, peer->id.rank);
        return RANK_ERR_CHANNEL;
    }
    if (!rk_ucx_card_fits(&card, versions, sizeof(versions)) && peer->id.job != ucx->job) {
        rk_error("rank %u of another job uses UCX %s: start both with the same LD_LIBRARY_PATH",
                 peer->id.rank, versions);
        return RANK_ERR_CHANNEL;
    }
    rk_ucx_doors_of(l, &card);
    st = make_endpoint(l, address);
    if (!st)
        peer->ep = l;
    return st;
}

/* --------------------------------------------------------------------- parting */

static void close_quietly(struct rk_ucx *ucx, ucp_ep_h ep, bool force)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    ucs_status_ptr_t p = ucp_ep_close_nbx(ep, &param);

    if (!UCS_PTR_IS_PTR(p))
        return;
    if (ucx->nclosing == ucx->closing_cap) {
        uint32_t cap = ucx->closing_cap ? ucx->closing_cap * 2 : 16;
        void **closing = realloc(ucx->closing, cap * sizeof(void *));
        if (!closing) {
            ucp_request_free(p); /* UCP finishes without us */
            return;
        }
        ucx->closing = closing;
        ucx->closing_cap = cap;
    }
    ucx->closing[ucx->nclosing++] = p;
}

/* The number of endpoints that are still being closed. */
static uint32_t reap_closing(struct rk_ucx *ucx)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ucx->nclosing; i++) {
        if (ucp_request_check_status(ucx->closing[i]) == UCS_INPROGRESS)
            ucx->closing[kept++] = ucx->closing[i];
        else
            ucp_request_free(ucx->closing[i]);
    }
    ucx->nclosing = kept;
    return kept;
}

static bool in_ucp_hands(const struct rk_ucx_link *l)
{
    const struct rk_link *pos;

    rk_list_for_each(pos, &l->ops)
    {
        if (rk_list_entry(pos, struct rk_ucx_op, link)->type == RK_UCX_OP_UCP)
            return true;
    }
    return false;
}

static void progress(struct rk_ucx *ucx)
{
    ucx->inside = true;
    ucp_worker_progress(ucx->worker);
    ucx->inside = false;
}

/*
 * The peer is dead, or a fault parts us. Who is told so may use his buffer again at once, so nothing may be written to
 * it any more. Over a connection the data goes from the socket straight there, and some of it may still be in the
 * kernel; the peer need not even be dead. Closing by force makes UCP discard the endpoint's lanes first, with their
 * sockets, and then give back what is in its hands: two passes at most in 1.13 and in 1.22 (death_receive_body looks
 * whether a byte comes later).
 *
 * An endpoint through shared memory cannot be closed so. There the peer is a dead process of this node, which writes
 * nothing, and rk_peer_died has made progress until nothing of what it had written was left in the segment; what
 * UCP still holds then is left to it, for no byte can come any more.
 */
static void ep_part(struct rk_ucx_link *l)
{
    struct rk_ucx *ucx = l->ucx;

    rk_ucx_fail_ops(l, false);
    if (l->ep && l->by_peer_mode) {
        uint64_t until = rk_clock_ns() + FORCE_NS;

        close_quietly(ucx, l->ep, true);
        for (int i = 0; i == 0 || ((in_ucp_hands(l) || l->unsent) && (i < FORCE_PASSES || rk_clock_ns() < until)); i++)
            progress(ucx);
        if (in_ucp_hands(l))
            rk_warn("UCX keeps what it was given for rank %u, which is gone: it may still write to receive buffers",
                    l->peer->id.rank);
        reap_closing(ucx);
    }
    l->ep = NULL;
    rk_ucx_fail_ops(l, true);
    rk_ucx_todo(ucx);
}

static void ep_leave(struct rk_ucx_link *l)
{
    struct rk_hdr bye = {.kind = RK_UCX_BYE,
                         .epoch = l->peer->epoch,
                         .flags = l->ucx->ctx->engine->alone ? RK_UCX_ALONE : 0};

    l->ucx->leaving = true;
    if (l->failed || l->bye) {
        ep_part(l);
        return;
    }
    /* Before messages are dropped that nobody has received: by then their senders know why. If it finds no room the peer
     * hears a reset. */
    rk_ucx_put(l, &bye, NULL, 0, NULL, NULL);
    rk_ucx_flush_open(l);
    rk_ucx_fail_ops(l, true);
    close_quietly(l->ucx, l->ep, false);
    l->ep = NULL;
}

void rk_ucx_disconnect(void *state, struct rk_peer *peer)
{
    struct rk_ucx_link *l = peer->ep;

    (void)state;
    if (!l)
        return;
    if (l->flushing)
        ucp_request_free(l->flushing);
    l->flushing = NULL;
    if (peer->state == RK_PEER_UP && l->ep)
        ep_leave(l);
    else
        ep_part(l);
    l->dropped = true;
    rk_list_remove(&l->on_failed);
    rk_ucx_drop_unsent(l);
    rk_ucx_drop_held(l);
    peer->ep = NULL;
}

void rk_ucx_look_at_lost(struct rk_ucx_link *l, uint64_t now)
{
    if (rk_likely(l->lost_ns == 0) || now - l->lost_ns < PEACE_NS)
        return;
    l->lost_ns = 0;
    rk_engine_report_death(l->ucx->ctx, l->peer->number);
}

/* After ucp_worker_progress: what broke meanwhile. */
void rk_ucx_links_failed(struct rk_ucx *ucx)
{
    while (!rk_list_empty(&ucx->failed)) {
        struct rk_ucx_link *l = rk_list_entry(ucx->failed.next, struct rk_ucx_link, on_failed);

        rk_list_remove(&l->on_failed);
        rk_ucx_fail_ops(l, false); /* UCP calls back for what is in its hands */
        if (!l->bye && !l->lost_ns)
            rk_engine_report_death(ucx->ctx, l->peer->number);
        ucx->handled++;
    }
}

/* For closing everything, with what comes of it. */
struct patience {
    uint64_t until;
    int passes;
};

/* One bout of progress more, and true; false: it has taken long enough. */
static bool passes_on(struct rk_ucx *ucx, struct patience *left)
{
    if (left->passes <= 0 && rk_clock_ns() >= left->until)
        return false;
    left->passes -= left->passes > 0;
    progress(ucx);
    return true;
}

/*
 * Who connects is answered by UCP, through an endpoint of its own that we never see; the answer waits until the peer has
 * confirmed the way back. A worker that goes meanwhile takes the process with it, where UCX looks at its assertions, as
 * Debian's 1.13 does; and the peer waits. A flush of the worker has to do with all endpoints. One that has nothing to
 * do, or has ended well, says that no answer waits, until there is progress again; one that fails says nothing. After deaths
 * each one has something to do: UCX 1.13 forgets to count what a dead peer's connection had not sent. False: it is not so
 * in time, for a peer that connects may stand still.
 */
static bool settled(struct rk_ucx *ucx, struct patience *left)
{
    ucp_request_param_t param = {0};
    ucs_status_t ust;

    do {
        ucs_status_ptr_t p = ucp_worker_flush_nbx(ucx->worker, &param);

        if (p == NULL)
            return true;
        if (UCS_PTR_IS_ERR(p))
            continue;
        while ((ust = ucp_request_check_status(p)) == UCS_INPROGRESS && passes_on(ucx, left))
            ;
        ucp_request_free(p);
        if (ust == UCS_OK)
            return true;
    } while (passes_on(ucx, left));
    return false;
}

bool rk_ucx_links_close(struct rk_ucx *ucx)
{
    struct patience left = {rk_clock_ns() + CLOSE_NS, FORCE_PASSES};

    ucx->leaving = true;
    while (ucx->worker && reap_closing(ucx) > 0 && passes_on(ucx, &left))
        ;
    if (ucx->nclosing)
        rk_info("%u UCX endpoints did not close in time", ucx->nclosing);
    for (uint32_t i = 0; i < ucx->nclosing; i++)
        ucp_request_free(ucx->closing[i]);
    free(ucx->closing);
    ucx->closing = NULL;
    ucx->nclosing = ucx->closing_cap = 0;
    left.until += SETTLE_NS - CLOSE_NS;
    return !ucx->worker || settled(ucx, &left);
}

void rk_ucx_links_destroy(struct rk_ucx *ucx)
{
    for (uint32_t i = 0; i < ucx->nlinks; i++) {
        rk_ucx_drop_held(ucx->links[i]);
        free(ucx->links[i]->doors);
        free(ucx->links[i]);
    }
    free(ucx->links);
    free(ucx->by_number);
    ucx->links = ucx->by_number = NULL;
    ucx->by_number_cap = 0;
    ucx->nlinks = ucx->links_cap = 0;
}
