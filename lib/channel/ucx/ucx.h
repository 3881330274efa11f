/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx.h: share declarations between the files of the ucx channel.
 *
 * A link holds the state of one peer on this channel. Either side's first packet creates it. It stays until the
 * channel closes, or until the peer's job gives its numbers back, so that the peer can put its id into packets. Its
 * endpoint exists from connect to disconnect. A forgotten link has no id; UCP may hold it a little longer.
 *
 * An op is an operation longer than a packet: a message announced to this rank, a transfer in UCP, a one-sided call.
 *
 * UCP calls back only within ucp_worker_progress and within calls of this channel. Callbacks never wait, send or
 * close an endpoint.
 */
#ifndef RK_CHANNEL_UCX_UCX_H
#define RK_CHANNEL_UCX_UCX_H

#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/secret_id.h"
#include "lib/base/slab.h"
#include "lib/boot/boot.h"
#include "lib/core/engine.h"
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/reorder.h"

#include <ucp/api/ucp.h>

enum {
    RK_UCX_AM = 17,           /* id of the active message */
    RK_UCX_FRAME_MAX = 16384, /* payload of one frame */
    RK_UCX_PACKET_MAX = 7936, /* data of coalesced frames: one segment of UCX's tcp */
    RK_UCX_SHARE_MAX = 2048,  /* longer frames are not coalesced */
    RK_UCX_SMALL = 512,       /* bytes of a small buffer: head and data */
    RK_UCX_PIECES_MAX = 16,   /* of a view that UCP sends in place, */
    RK_UCX_PIECE_MIN = 16384, /* if their average size is at least this */
    RK_UCX_UNSENT_MAX = 128   /* packets of a link that UCP has queued */
};

/* A packet being filled or sent. Head and data stay until UCP releases them. */
struct rk_ucx_buf {
    struct rk_ucx_link *to; /* and the slab's link in a free one */
    uint32_t cap;  /* capacity for data */
    uint32_t used; /* data bytes, unpadded */
    unsigned char head[RK_UCX_HEAD_MAX];
    unsigned char data[] __attribute__((aligned(8)));
};

enum rk_ucx_op_type {
    RK_UCX_OP_HERE,  /* announced by UCP's rendezvous, data not yet fetched */
    RK_UCX_OP_UCP,   /* in UCP: its callback will run */
    RK_UCX_OP_ORPHAN /* as UCP, but its request was completed by a death */
};

struct rk_ucx_op {
    struct rk_link link; /* in ucx_link->ops */
    struct rk_id id;
    uint8_t type;        /* enum rk_ucx_op_type */
    bool wanted;         /* a receive that starts when UCP has returned */
    bool unwanted;       /* a drop that starts then */
    bool announced;      /* a message of this rank */
    bool with_status;    /* behind the payload */
    struct rk_ucx *ucx;
    struct rk_ucx_link *of;
    struct rk_link todo; /* in ucx->todo */
    struct rank_request *req;
    void *desc;          /* UCP's descriptor of an announced message */
    uint64_t total;      /* bytes of the payload */
    struct rk_view view;
    rank_status_t copied; /* error of a copy from or to the view */
    int32_t status;       /* that of the sender, as on the wire */
    ucp_dt_iov_t pieces[RK_UCX_PIECES_MAX]; /* of the view, for UCP */
    unsigned char head[RK_UCX_HEAD_MAX];
};

struct rk_ucx_link {
    struct rk_ucx *ucx;
    struct rk_peer *peer;
    ucp_ep_h ep;         /* NULL: not connected, or disconnected */
    ucp_ep_h shut;       /* of a connection: the endpoint until the peer has adopted its link */
    struct rk_procid self; /* this process, as the peer identifies it */
    uint64_t remote;     /* of a connection: id of the context to which it leads; 0: a launcher has introduced the peer */
    struct rk_link on_prepared; /* in ucx->prepared, until it has a peer */
    struct rk_id id;     /* own id of the link, which the peer puts into its packets; */
    struct rk_hash_node by_id; /* in ucx->links */
    struct rk_id theirs; /* the peer's id; index RK_UCX_NO_LINK: unknown yet */
    bool confirmed;      /* the peer has used the own id: no more hello needed, except on a connection */
    bool by_peer_mode;   /* the endpoint reports errors and can be closed by force */
    bool failed;         /* UCP gave up on the endpoint */
    bool dropped;        /* disconnected: no more traffic */
    bool forgotten;      /* without peer and id: to be freed once UCP has released it */
    bool bye;            /* the peer has left in an orderly way */
    uint64_t lost_ns;    /* time of its loss in the last barrier, perhaps an orderly exit; or 0 */
    uint32_t turn;       /* of the next packet to the peer */
    uint32_t unsent;     /* packets that UCP has queued */
    uint64_t last_tick;  /* time of the last packet sent */
    struct rk_order in;
    uint64_t held_bytes;
    struct rk_ucx_buf *open;   /* coalesced frames, not yet sent */
    struct rk_link on_open;    /* in ucx->open */
    struct rk_link ops;
    struct rk_link on_failed;          /* in ucx->failed */
    struct rk_link on_closing;         /* in ucx->closing: forgotten, or */
    void *closing;                     /* UCP request that closes the endpoint */
    void *flushing;                    /* UCP request of a flush, for drained */
    uint64_t flushed_at;               /* ucx->sent at the start of the flush */
};

/* A blocking receive that is first in line. */
struct rk_ucx_fast_recv {
    struct rk_ucx_link *from;
    uint64_t team, tag;
    void *buf;
    size_t cap;
    struct rk_took *out;
    uint32_t src;
    enum rk_taken found;
};

struct rk_ucx {
    struct rk_ctx *ctx;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;
    ucp_datatype_t view_type;  /* for noncontiguous payload */
    ucp_datatype_t packet_type; /* for packets that UCP copies: see ucx_send.c */
    bool has_view_type, has_packet_type;
    bool shm_transports;       /* UCX may use shared memory within a node */
    bool rma;                  /* puts and gets are enabled in UCX */
    bool cuda;                 /* UCX gets pointers to device memory */
    bool log_taken;
    uint64_t job;
    uint32_t me;               /* own rank in that job */
    int fd;

    bool inside;               /* within ucp_worker_progress */
    bool leaving;              /* the rooms above are closed: nothing is delivered any more */
    uint64_t tick;             /* progress calls */
    uint64_t sent;             /* packets and transfers started */
    int handled;               /* by this progress call */
    struct rk_ucx_fast_recv *fast_recv; /* fast receive in progress (ucx_recv_fast.c), or NULL */

    struct rk_secret_ids links; /* a packet may come from any process that reaches the worker */
    struct rk_ucx_link **by_number; /* the same, by number of the peer */
    int by_number_cap;
    struct rk_link open, failed, todo, closing, prepared;

    struct rk_slab small_bufs, big_bufs, ops;
    struct rk_handles op_ids; /* each is found on its link only */

    uint64_t bad_frames, late_frames;
};

extern const struct rk_channel rk_channel_ucx;

/* The library's configuration. */
const struct rk_conf *rk_ucx_conf(void);

/* ucx_setup.c: UCP's context and worker, and the address blob. */
rank_status_t rk_ucx_setup(struct rk_ucx *ucx, void *card, size_t *len);
/* First step of it. kept: set to the configuration, which the caller releases; NULL: not wanted. */
rank_status_t rk_ucx_open_context(struct rk_ucx *ucx, int peers, ucp_config_t **kept);
void rk_ucx_teardown(struct rk_ucx *ucx);
/* Instead of teardown, while UCP is busy with a peer: keep it until the process ends. */
void rk_ucx_abandon(struct rk_ucx *ucx);
/*
 * Is the blob of the same UCX version? If not, text gets the version: mixed versions can wait for each other
 * forever.
 */
bool rk_ucx_card_fits(const struct rk_ucx_card *card, char *text, size_t len);
rank_status_t rk_ucx_status(ucs_status_t status);
/* Create a generic datatype. */
rank_status_t rk_ucx_create_type(const ucp_generic_dt_ops_t *ops, ucp_datatype_t *type, bool *made);

/* rails.c: see struct rk_channel. */
rank_status_t rk_ucx_rails(FILE *out);
/* Find whether the context has a device that does puts and gets itself. Returns false without memory. */
bool rk_ucx_has_rdma(struct rk_ucx *ucx, bool *found);
/* Find whether the context has one of UCX's network devices nics. Returns false without memory. */
bool rk_ucx_has_nic(struct rk_ucx *ucx, const char *nics, bool *found);
/* Find whether the context has devices of UCX's tcp. Returns false without memory. */
bool rk_ucx_has_tcp(struct rk_ucx *ucx, bool *found);
/* ucx.c: RANK_OK: all data of this link has left this process. RK_AGAIN: not yet. */
rank_status_t rk_ucx_link_drained(struct rk_ucx_link *l);

/* ep.c */
struct rk_ucx_link *rk_ucx_link_of(struct rk_ucx *ucx, struct rk_peer *peer);
/* Visit all links with a peer; i is an int. */
#define rk_ucx_each_link(i, l, ucx)                                                                \
    for ((i) = 0; (i) < (ucx)->by_number_cap; (i)++)                                               \
        if (((l) = (ucx)->by_number[i]) != NULL)
rank_status_t rk_ucx_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer);
void rk_ucx_disconnect(void *state, struct rk_peer *peer);
void rk_ucx_forget(void *state, struct rk_peer *peer, bool disconnected);
/* Disconnect a peer after a permanent error; deferred, callable anywhere. */
void rk_ucx_link_broken(struct rk_ucx_link *l);
/* The same after an error that UCX reported. */
void rk_ucx_link_ended(struct rk_ucx_link *l, ucs_status_t why);
void rk_ucx_links_failed(struct rk_ucx *ucx);
/* Report the peers of connections, and those lost in the last barrier, unless they have left in order. About every 125 ms. */
void rk_ucx_idle(void *state, uint64_t now);
/* Returns false if UCP is still busy: its worker must stay. */
bool rk_ucx_links_close(struct rk_ucx *ucx);
void rk_ucx_links_destroy(struct rk_ucx *ucx);

/* Make the endpoint of a link. RANK_ERR_UNREACHABLE: no device leads to the address. */
rank_status_t rk_ucx_make_endpoint(struct rk_ucx_link *l, const ucp_address_t *address, ucp_ep_h *ep);
/* A link without peer, id and endpoint; NULL: out of memory. */
struct rk_ucx_link *rk_ucx_link_alloc(struct rk_ucx *ucx);
/* Give the link to the peer, which has none. Returns false if out of memory. */
bool rk_ucx_link_bind(struct rk_ucx_link *l, struct rk_peer *peer);
/* End a link without peer. */
void rk_ucx_link_discard(struct rk_ucx_link *l);
/* Does UCP work on operations of the link, except messages that the peer has not fetched? */
bool rk_ucx_is_moving(const struct rk_ucx_link *l);

/* ucx_conn.c: links of connections. */
extern const struct rk_channel_links rk_ucx_conn_links;
/* The peer has adopted its link: frames may leave. No-op for other links. Callable in UCP's callbacks. */
RK_INLINE void rk_ucx_link_admit(struct rk_ucx_link *l)
{
    if (l->shut) {
        l->ep = l->shut;
        l->shut = NULL;
    }
}
/* Status of a send on a link without a working endpoint: RK_AGAIN, RANK_ERR_PEER_DEAD. */
rank_status_t rk_ucx_conn_refusal(const struct rk_ucx_link *l);

/* ucx_op.c */
struct rk_ucx_op *rk_ucx_op_new(struct rk_ucx_link *l, enum rk_ucx_op_type type);
void rk_ucx_op_free(struct rk_ucx_op *op);
/* NULL: stale, invalid, or of another link. */
struct rk_ucx_op *rk_ucx_op_find(struct rk_ucx_link *l, struct rk_id id);
void rk_ucx_ops_init(struct rk_ucx *ucx);
void rk_ucx_ops_destroy(struct rk_ucx *ucx);

/* ucx_send.c */
/* Send one frame; payload first and then second, or first and then bytes of view at offset 0. l NULL: the peer is gone. */
rank_status_t rk_ucx_put(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *first,
                         size_t first_len, const void *second, const struct rk_view *view);
/* Send coalesced frames. */
void rk_ucx_flush_open(struct rk_ucx_link *l);
/* Write the head of the next packet to a peer; returns its length. */
size_t rk_ucx_write_head(struct rk_ucx_link *l, unsigned char *head, const struct rk_hdr *hdr);
/* Send the coalesced frames of all links. */
void rk_ucx_send_progress(struct rk_ucx *ucx);
void rk_ucx_drop_unsent(struct rk_ucx_link *l);
rank_status_t rk_ucx_packet_type(struct rk_ucx *ucx);
void rk_ucx_bufs_init(struct rk_ucx *ucx);
void rk_ucx_bufs_destroy(struct rk_ucx *ucx);

/* ucx_recv.c */
rank_status_t rk_ucx_listen(struct rk_ucx *ucx);
void rk_ucx_drop_held(struct rk_ucx_link *l);

/* ucx_recv_fast.c */
enum rk_taken rk_ucx_recv_fast(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                               size_t cap, struct rk_took *out);
/* A packet delivered meanwhile. Returns true if it was the message and has been handled. */
bool rk_ucx_fast_recv_packet(struct rk_ucx_fast_recv *t, const void *head, size_t head_len, const void *data,
                             size_t len);
/* A frame for delivery during a fast receive. Returns true if it was the message. */
bool rk_ucx_fast_recv_frame(struct rk_ucx_fast_recv *t, struct rk_ucx_link *l, const struct rk_hdr *hdr,
                            const void *payload);
/* ucx.c: one round of progress; returns what was handled. Not from within itself. */
int rk_ucx_poll(struct rk_ucx *ucx);

/* ucx_rndv.c */
rank_status_t rk_ucx_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
void rk_ucx_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req);
void rk_ucx_rndv_drop(const struct rk_rndv *rndv);
/* Validate the header. False: the frame has been counted and must be dropped. */
RK_INLINE bool rk_ucx_is_valid(const struct rk_ucx_link *l, const struct rk_hdr *hdr)
{
    struct rk_ctx *ctx = l->ucx->ctx;

    return !ctx->engine->is_valid || ctx->engine->is_valid(ctx, l->peer, hdr);
}

/* Deliver what UCP announced. Returns true if desc is kept. */
bool rk_ucx_announced(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc, uint64_t total);
/* Do what was deferred during a UCP callback. */
int rk_ucx_todo(struct rk_ucx *ucx);
rank_status_t rk_ucx_view_type(struct rk_ucx *ucx);
/* Complete what depends on the peer; operations in UCP only if orphan_ucp. */
void rk_ucx_fail_ops(struct rk_ucx_link *l, bool orphan_ucp);

/* ucx_rma.c */
bool rk_ucx_one_sided(void *state);
rank_status_t rk_ucx_mem_expose(struct rk_ctx *ctx, void *state, void *base, size_t bytes,
                                struct rk_channel_mem **mem, void *key, size_t *keylen);
void rk_ucx_mem_close(void *state, struct rk_channel_mem *mem);
rank_status_t rk_ucx_mem_attach(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base);
rank_status_t rk_ucx_iput_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              const void *src, size_t bytes, size_t offset,
                              struct rank_request *req);
rank_status_t rk_ucx_iget_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              void *dst, size_t bytes, size_t offset, struct rank_request *req);
rank_status_t rk_ucx_flush_mem(struct rk_channel_mem *mem, struct rk_peer *peer);
rank_status_t rk_ucx_iflush(struct rk_peer *peer, struct rank_request *req);

/* Callback of an op, for every UCP call that takes a ucp_send_nbx_callback_t. */
void rk_ucx_ucp_done(void *request, ucs_status_t status, void *arg);

#endif
