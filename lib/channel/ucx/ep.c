/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ep.c: connect to a peer, and disconnect.
 *
 * Endpoints use UCP's peer error handling, which reports a broken connection and allows forced closing. UCX's
 * shared-memory transports do not support it: where the user enables them, an endpoint to a rank of this node does
 * without. The death of such a peer is known from the node's segment; its endpoint stays until the worker is
 * destroyed.
 */
#include "lib/base/clock.h"
#include "lib/base/timing.h"
#include "lib/channel/module.h"
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

/*
 * Time for disconnecting, and for doing so by force. Both time and passes must be over, since this process may
 * have been stopped meanwhile.
 */
enum { FORCE_PASSES = 256 };

struct rk_ucx_link *rk_ucx_link_alloc(struct rk_ucx *ucx)
{
    struct rk_ucx_link *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->ucx = ucx;
    l->self = (struct rk_procid){ucx->job, ucx->me};
    l->theirs.index = RK_UCX_NO_LINK;
    l->last_tick = UINT64_MAX;
    rk_list_init(&l->on_open);
    rk_list_init(&l->ops);
    rk_list_init(&l->on_failed);
    rk_list_init(&l->on_closing);
    rk_list_init(&l->on_prepared);
    return l;
}

/* Room for a link of this number: of present peers and some other jobs. */
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

bool rk_ucx_link_bind(struct rk_ucx_link *l, struct rk_peer *peer)
{
    struct rk_ucx *ucx = l->ucx;

    if (!may_name(ucx, peer->number) || !rk_secret_id_put(&ucx->links, &l->by_id, &l->id))
        return false;
    l->peer = peer;
    ucx->by_number[peer->number] = l;
    return true;
}

struct rk_ucx_link *rk_ucx_link_of(struct rk_ucx *ucx, struct rk_peer *peer)
{
    struct rk_ucx_link *l = NULL;

    if (peer->number < ucx->by_number_cap)
        l = ucx->by_number[peer->number];
    if (l || ucx->ctx->ucx_for_conns)
        return l;
    l = rk_ucx_link_alloc(ucx);
    if (l && rk_ucx_link_bind(l, peer))
        return l;
    free(l);
    rk_fail(RANK_ERR_NO_MEMORY, "out of memory for the link to rank %u", peer->id.rank);
    return NULL;
}

void rk_ucx_link_broken(struct rk_ucx_link *l)
{
    if (l->failed || l->dropped)
        return;
    l->failed = true;
    rk_list_append(&l->ucx->failed, &l->on_failed);
}

/* Did the connection end, as opposed to a local error? The tcp of UCX 1.13 reports every end as a timeout. */
static bool is_end(ucs_status_t why)
{
    return rk_ucx_status(why) == RANK_ERR_PEER_DEAD;
}

/*
 * A connection of the last barrier has ended. A rank that is done closes its connections, and sends BYE on those
 * that it opened itself. Other peers see only a broken connection: it counts as a death only if the barrier does
 * not end, or if the launcher reports it. Data and BYE may still arrive on another connection. The socket of a
 * connection reports whether its peer has left.
 */
void rk_ucx_link_ended(struct rk_ucx_link *l, ucs_status_t why)
{
    if (l->failed || l->dropped)
        return;
    if (l->remote || (l->ucx->ctx->engine->draining && !l->bye && is_end(why)))
        l->lost_ns = rk_clock_ns();
    if (l->peer)
        rk_ucx_link_broken(l);
    else
        l->failed = true;
}

/* Called by UCP within ucp_worker_progress. */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct rk_ucx_link *l = arg;

    (void)ep;
    if (!l->failed && !l->dropped)
        rk_info("UCX lost rank %u: %s", l->peer ? l->peer->id.rank : 0, ucs_status_string(status));
    rk_ucx_link_ended(l, status);
}

rank_status_t rk_ucx_make_endpoint(struct rk_ucx_link *l, const ucp_address_t *address, ucp_ep_h *ep)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = l},
    };
    ucs_status_t st;

    l->by_peer_mode = !(l->ucx->shm_transports && (l->remote || l->peer->local >= 0));
    if (!l->by_peer_mode)
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    st = ucp_ep_create(l->ucx->worker, &params, ep);
    if (st == UCS_OK)
        return RANK_OK;
    *ep = NULL;
    rk_info("UCX cannot reach rank %u, which may be gone: %s", l->peer ? l->peer->id.rank : 0, ucs_status_string(st));
    return rk_ucx_status(st);
}

static rank_status_t make_endpoint(struct rk_ucx_link *l, const ucp_address_t *address)
{
    rank_status_t st = rk_ucx_make_endpoint(l, address, &l->ep), why;

    if (!st)
        return RANK_OK;
    /* On its own host UCX connects at once; a recently dead peer refuses, which is no error. */
    why = rk_engine_why_unreached(l->peer);
    if (why != RANK_ERR_UNREACHABLE)
        return why;
    rk_fail(st, "UCX cannot reach rank %u: do both sides have a network device or transport in common? see UCX_TLS, "
            "UCX_NET_DEVICES and RANK_NICS", l->peer->id.rank);
    return st;
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
        return ucx->ctx->ucx_for_conns ? RANK_ERR_UNREACHABLE : RANK_ERR_NO_MEMORY;
    if (l->remote) {
        peer->ep = l;
        return RANK_OK;
    }
    if (l->failed || l->dropped)
        return RANK_ERR_PEER_DEAD;
    st = rk_peer_card(peer, "ucx", bytes, &len);
    if (st)
        return st;
    memset(bytes + len, 0, sizeof(bytes) - len);
    if (!rk_ucx_card_decode(bytes, len, &card, &address)) {
        return rk_fail(RANK_ERR_CHANNEL, "the UCX address of rank %u is malformed; do all ranks use the same librank?",
                       peer->id.rank);
    }
    if (!rk_ucx_card_fits(&card, versions, sizeof(versions)) && peer->id.job != ucx->job) {
        return rk_fail(RANK_ERR_CHANNEL, "rank %u of another job uses UCX %s: start both with the same LD_LIBRARY_PATH",
                       peer->id.rank, versions);
    }
    st = make_endpoint(l, address);
    if (!st)
        peer->ep = l;
    return st;
}

/* --------------------------------------------------------------------- disconnect */

static void close_quietly(struct rk_ucx_link *l, bool force)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    ucs_status_ptr_t p = ucp_ep_close_nbx(l->ep, &param);

    l->ep = NULL;
    if (!UCS_PTR_IS_PTR(p))
        return;
    l->closing = p;
    rk_list_append(&l->ucx->closing, &l->on_closing);
}

static void link_free(struct rk_ucx_link *l)
{
    rk_list_remove(&l->on_closing);
    rk_ucx_drop_held(l);
    free(l);
}

/* Free forgotten links that UCP has released. Returns the number of endpoints still being closed. */
static uint32_t reap_closing(struct rk_ucx *ucx)
{
    struct rk_link *pos, *next;
    uint32_t kept = 0;

    rk_list_for_each_safe(pos, next, &ucx->closing)
    {
        struct rk_ucx_link *l = rk_list_entry(pos, struct rk_ucx_link, on_closing);

        if (l->closing && ucp_request_check_status(l->closing) == UCS_INPROGRESS) {
            kept++;
            continue;
        }
        if (l->closing)
            ucp_request_free(l->closing);
        l->closing = NULL;
        if (!l->forgotten)
            rk_list_remove(pos);
        else if (!l->unsent && rk_list_empty(&l->ops))
            link_free(l);
    }
    return kept;
}

bool rk_ucx_is_moving(const struct rk_ucx_link *l)
{
    const struct rk_link *pos;

    rk_list_for_each(pos, &l->ops)
    {
        const struct rk_ucx_op *op = rk_list_entry(pos, struct rk_ucx_op, link);
        if (op->type == RK_UCX_OP_UCP && !op->announced)
            return true;
    }
    return false;
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
 * Disconnect a dead or failed peer. The owner of a buffer may reuse it at once: no byte may be written to it any
 * more, even if the socket still holds data. A forced close makes UCP discard the endpoint's lanes with their
 * sockets, then return its requests, within two passes in 1.13 and 1.22 (death_receive_body tests it).
 *
 * A shared-memory endpoint cannot be closed by force. Its peer is a dead process of this node, and rk_peer_died
 * has consumed all that it had written; UCP keeps what it still holds, and no byte can arrive.
 */
static void ep_disconnect(struct rk_ucx_link *l)
{
    struct rk_ucx *ucx = l->ucx;

    rk_ucx_fail_ops(l, false);
    if (l->ep && l->remote && !l->by_peer_mode && l->peer->closed) { /* the peer lives: it ends what is under way */
        uint64_t until = rk_clock_ns() + RK_UCX_FORCE_NS;

        while ((rk_ucx_is_moving(l) || l->unsent) && rk_clock_ns() < until)
            progress(ucx);
        close_quietly(l, false);
    } else if (l->ep && l->by_peer_mode) {
        uint64_t until = rk_clock_ns() + RK_UCX_FORCE_NS;

        close_quietly(l, true);
        for (int i = 0; i == 0 || ((in_ucp_hands(l) || l->unsent) && (i < FORCE_PASSES || rk_clock_ns() < until)); i++)
            progress(ucx);
        if (in_ucp_hands(l))
            rk_warn("UCX still holds requests of rank %u, which is gone, and may write to receive buffers",
                    l->peer->id.rank);
        reap_closing(ucx);
    }
    l->ep = NULL;
    rk_ucx_fail_ops(l, true);
    rk_ucx_todo(ucx);
}

static void ep_send_bye(struct rk_ucx_link *l, uint8_t flags)
{
    struct rk_hdr bye = {.kind = RK_UCX_BYE, .epoch = l->peer->epoch, .flags = flags};

    if (l->failed || l->bye || l->remote) {
        ep_disconnect(l);
        return;
    }
    /*
     * Send before unreceived messages are dropped, so that their senders get the reason first. Without room the
     * peer sees a reset.
     */
    rk_ucx_put(l, &bye, NULL, 0, NULL, NULL);
    rk_ucx_flush_open(l);
    rk_ucx_fail_ops(l, true);
    close_quietly(l, false);
}

static void ep_detach(struct rk_ucx_link *l, uint8_t flags)
{
    rk_ucx_link_admit(l);
    if (l->flushing)
        ucp_request_free(l->flushing);
    l->flushing = NULL;
    if (l->peer->state == RK_PEER_UP && l->ep)
        ep_send_bye(l, flags);
    else
        ep_disconnect(l);
    l->dropped = true;
    rk_list_remove(&l->on_failed);
    rk_ucx_drop_unsent(l);
    rk_ucx_drop_held(l);
    l->peer->ep = NULL;
}

void rk_ucx_disconnect(void *state, struct rk_peer *peer)
{
    struct rk_ucx *ucx = state;
    struct rk_ucx_link *l = peer->ep;

    if (!l)
        return;
    ucx->leaving = ucx->leaving || peer->state == RK_PEER_UP; /* the engine closes */
    ep_detach(l, ucx->ctx->engine->alone ? RK_UCX_ALONE : 0);
}

void rk_ucx_forget(void *state, struct rk_peer *peer, bool disconnected)
{
    struct rk_ucx *ucx = state;
    struct rk_ucx_link *l = peer->number < ucx->by_number_cap ? ucx->by_number[peer->number] : NULL;

    if (l) {
        ucx->by_number[peer->number] = NULL;
        rk_secret_id_drop(&ucx->links, &l->by_id);
        if (!l->dropped)
            ep_detach(l, disconnected ? RK_UCX_DISCONNECTED : 0);
        l->forgotten = true;
        if (rk_list_empty(&l->on_closing))
            rk_list_append(&ucx->closing, &l->on_closing);
    }
    reap_closing(ucx);
}

void rk_ucx_link_discard(struct rk_ucx_link *l)
{
    struct rk_ucx *ucx = l->ucx;

    rk_ucx_link_admit(l);
    rk_list_remove(&l->on_prepared);
    if (l->ep)
        close_quietly(l, l->by_peer_mode);
    l->dropped = l->forgotten = true;
    if (rk_list_empty(&l->on_closing))
        rk_list_append(&ucx->closing, &l->on_closing);
    reap_closing(ucx);
}

void rk_ucx_idle(void *state, uint64_t now)
{
    struct rk_ucx *ucx = state;
    struct rk_ucx_link *l;
    int i;

    rk_ucx_each_link(i, l, ucx)
    {
        if (rk_likely(l->lost_ns == 0) || now - l->lost_ns < (l->remote ? RK_UCX_LIFELINE_NS : RK_UCX_PEACE_NS))
            continue;
        l->lost_ns = 0;
        rk_engine_report_death(ucx->ctx, l->peer->number);
    }
}

/* After ucp_worker_progress: handle links that broke meanwhile. */
void rk_ucx_links_failed(struct rk_ucx *ucx)
{
    while (!rk_list_empty(&ucx->failed)) {
        struct rk_ucx_link *l = rk_list_entry(ucx->failed.next, struct rk_ucx_link, on_failed);

        rk_list_remove(&l->on_failed);
        rk_ucx_fail_ops(l, false); /* UCP calls back for its requests */
        if (!l->bye && !l->lost_ns)
            rk_engine_report_death(ucx->ctx, l->peer->number);
        ucx->handled++;
    }
}

/* Time limit of closing everything. */
struct time_limit {
    uint64_t until;
    int passes;
};

/* Run one more round of progress; returns false when the time is over. */
static bool passes_on(struct rk_ucx *ucx, struct time_limit *left)
{
    if (left->passes <= 0 && rk_clock_ns() >= left->until)
        return false;
    left->passes -= left->passes > 0;
    progress(ucx);
    return true;
}

/*
 * Wait until no connection is half open. UCP answers a connecting peer through an internal endpoint, and its
 * answer waits for the peer's confirmation. Destroying the worker before that aborts the process where UCX checks
 * assertions (Debian's 1.13), and hangs the peer. A worker flush covers all endpoints: one that has nothing to do,
 * or succeeds, shows that no answer waits, until there is progress again; one that fails shows nothing. After
 * deaths each flush has something to do, since UCX 1.13 miscounts unsent data of a dead peer. False: not in time;
 * a connecting peer may be stopped.
 */
static bool settled(struct rk_ucx *ucx, struct time_limit *left)
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
    struct time_limit left = {rk_clock_ns() + RK_UCX_CLOSE_NS, FORCE_PASSES};
    struct rk_link *pos;

    ucx->leaving = true;
    while (!rk_list_empty(&ucx->prepared))
        rk_ucx_link_discard(rk_list_entry(ucx->prepared.next, struct rk_ucx_link, on_prepared));
    while (ucx->worker && reap_closing(ucx) > 0 && passes_on(ucx, &left))
        ;
    if (!rk_list_empty(&ucx->closing))
        rk_info("some UCX endpoints did not close in time");
    rk_list_for_each(pos, &ucx->closing)
    {
        struct rk_ucx_link *l = rk_list_entry(pos, struct rk_ucx_link, on_closing);
        if (l->closing)
            ucp_request_free(l->closing); /* UCP finishes it */
        l->closing = NULL;
    }
    left.until += RK_UCX_SETTLE_NS - RK_UCX_CLOSE_NS;
    return !ucx->worker || settled(ucx, &left);
}

void rk_ucx_links_destroy(struct rk_ucx *ucx)
{
    struct rk_ucx_link *l;
    int i;

    rk_ucx_each_link(i, l, ucx)
        link_free(l);
    while (!rk_list_empty(&ucx->closing)) /* forgotten ones */
        link_free(rk_list_entry(ucx->closing.next, struct rk_ucx_link, on_closing));
    rk_secret_ids_close(&ucx->links);
    free(ucx->by_number);
    ucx->by_number = NULL;
    ucx->by_number_cap = 0;
}
