/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx.h: the channel over UCX: what its files share.
 *
 * A link is all that this process knows of one peer on this channel. It is
 * made when either side speaks first and stays until the channel closes, so
 * that its index is a name that the peer may put in its packets. Its endpoint
 * exists between connect and disconnect only.
 *
 * An op is something under way that is longer than a packet: a message that
 * was announced here, one of ours that the peer has not fetched, a transfer
 * in UCP's hands, a one-sided call. Ops have names for the wire.
 *
 * UCP calls us back only inside ucp_worker_progress (and inside calls of our
 * own). Nothing here waits, sends or tears an endpoint down in there.
 */
#ifndef RK_CHANNEL_UCX_UCX_H
#define RK_CHANNEL_UCX_UCX_H

#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/engine.h"
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/reorder.h"

#include <ucp/api/ucp.h>

enum {
    RK_UCX_AM = 17,           /* the id of our active message */
    RK_UCX_FRAME_MAX = 16384, /* payload of one frame */
    RK_UCX_PACKET_MAX = 7936, /* data of frames that travel together: one segment of UCX's tcp */
    RK_UCX_SHARE_MAX = 2048,  /* a longer frame travels alone */
    RK_UCX_SMALL = 512,       /* bytes of a small buffer, head and data */
    RK_UCX_PIECES_MAX = 16,   /* of a view that UCP sends from where they lie, */
    RK_UCX_PIECE_MIN = 16384, /* if they are of so many bytes on average */
    RK_UCX_UNSENT_MAX = 128,  /* packets of a link that UCP has not taken yet */
    RK_UCX_ANNOUNCED_MAX = 64 /* messages of a link that UCP announces and that nobody fetches */
};

/* A packet being written or sent. Heads and data stay until UCP is done with both. */
struct rk_ucx_buf {
    struct rk_ucx_buf *next_free;
    struct rk_ucx_link *to;
    uint32_t cap;  /* bytes of data that fit */
    uint32_t used; /* of data, not padded */
    unsigned char head[RK_UCX_HEAD_MAX];
    unsigned char data[] __attribute__((aligned(8)));
};

enum rk_ucx_op_type {
    RK_UCX_OP_FREE,
    RK_UCX_OP_HERE,      /* announced by UCP's own rendezvous, its data not yet asked for */
    RK_UCX_OP_OFFERED,   /* I announced it, the peer is to pull */
    RK_UCX_OP_SENDING,   /* pulled, and waits for room */
    RK_UCX_OP_PULLING,   /* I pulled, data is to come */
    RK_UCX_OP_UCP,       /* in UCP's hands: its callback will come */
    RK_UCX_OP_ORPHAN     /* as UCP, but its request was completed by a death */
};

/* Of a call that is waited for; on the waiter's stack, for the op is UCP's and may end, and be another's, before he looks. */
struct rk_ucx_outcome {
    bool done;
    rank_status_t status;
};

struct rk_ucx_op {
    struct rk_link link; /* in ucx_link->ops or ->sending; free ones are chained by next_free */
    struct rk_ucx_op *next_free;
    struct rk_id id;
    uint8_t type;        /* enum rk_ucx_op_type */
    bool wanted;         /* a receive that starts when UCP has returned */
    bool unwanted;       /* a drop of the same sort */
    bool announced;      /* counts in of->announced */
    struct rk_ucx_outcome *told; /* one-sided, waited for: where its end is written */
    struct rk_ucx *ucx;
    struct rk_ucx_link *of;
    struct rk_link todo; /* in ucx->todo */
    struct rank_request *req;
    void *desc;          /* UCP's, of an announced message */
    uint64_t total;      /* bytes of the message */
    uint64_t want;       /* PULLING, SENDING: bytes asked for */
    struct rk_id theirs; /* PULLING: the sender's name; SENDING: the receiver's */
    struct rk_view view;
    ucp_dt_iov_t pieces[RK_UCX_PIECES_MAX]; /* of the view, for UCP */
    unsigned char head[RK_UCX_HEAD_MAX];
};

/* A frame of our own that found no room. */
struct rk_ucx_control {
    struct rk_link link; /* in ucx_link->control */
    struct rk_ucx_control *next_free;
    struct rk_hdr hdr;
    unsigned char payload[48];
};

struct rk_ucx_link {
    struct rk_ucx *ucx;
    struct rk_peer *peer;
    ucp_ep_h ep;         /* NULL: not connected, or dropped */
    struct rk_id id;     /* my name for it, which the peer puts into its packets */
    struct rk_id theirs; /* the peer's for me; index RK_UCX_NOBODY: not told yet */
    bool confirmed;      /* it has used my name: no more hellos are needed */
    bool by_peer_mode;   /* the endpoint tells of errors and can be closed by force */
    bool failed;         /* UCP gave up on the endpoint */
    bool dropped;        /* disconnected: nothing goes or comes any more */
    bool bye;            /* the peer has left in peace */
    bool unanswered;     /* a connection to its host has been given up, and nothing has come from it since */
    uint64_t lost_ns;    /* when it was lost in the last meeting, where it may have left in peace; or 0 */
    uint32_t turn;       /* of the next packet to it */
    uint32_t unsent;     /* packets that UCP has not taken yet */
    uint32_t announced;  /* by UCP's rendezvous, not yet fetched or dropped */
    uint64_t last_tick;  /* when a packet was last sent */
    struct rk_order in;
    uint64_t held_bytes;
    struct rk_ucx_buf *open;   /* frames that wait for company */
    struct rk_link on_open;    /* in ucx->open */
    struct rk_link ops;
    struct rk_link sending;    /* those of type SENDING */
    struct rk_link control;
    struct rk_link on_busy;    /* in ucx->busy: control or sending wait for room */
    struct rk_link on_failed;  /* in ucx->failed */
    void *flushing;            /* UCP's request, for drained */
    uint64_t flushed_at;       /* ucx->sent when the flush began */
    uint32_t due_seen;         /* tcp_watch.c: in.due at its last look, */
    uint32_t silent;           /* and for how many looks nothing has come */
    struct rk_ucx_door *doors; /* of the peer, as far as they are surely nobody else's */
    uint32_t ndoors;
};

/* A blocking receive that is the first in line. */
struct rk_ucx_taking {
    struct rk_ucx_link *from;
    uint64_t team, tag;
    void *buf;
    size_t cap;
    struct rk_took *out;
    uint32_t src;
    enum rk_taken found;
};

/* What listens in this process. */
struct rk_ucx_doors {
    struct rk_ucx_door *at;
    uint32_t n, cap;
    bool incomplete; /* out of memory */
};

struct rk_ucx {
    struct rk_ctx *ctx;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;
    ucp_datatype_t view_type;  /* for payload that is not simply a piece of memory */
    ucp_datatype_t packet_type; /* for packets that UCP is to copy: see send.c */
    bool has_view_type, has_packet_type;
    bool shm_transports;       /* UCX may use shared memory inside a node */
    bool rma;                  /* UCX was asked for puts and gets */
    bool log_taken;
    uint64_t job;
    uint32_t me;               /* my rank in that job */
    uint32_t gen;              /* of the links' names */
    int fd;

    bool inside;               /* in ucp_worker_progress */
    bool leaving;              /* the rooms above are gone: nothing is handed up any more */
    uint64_t tick;             /* progress calls */
    uint64_t sent;             /* packets and transfers begun */
    int handled;               /* by this progress call */
    struct rk_ucx_taking *taking; /* a receive that looks for its message here (ucx_recv_fast.c), or NULL */

    struct rk_ucx_link **links; /* by index */
    uint32_t nlinks, links_cap;
    struct rk_ucx_link **by_number; /* of the peer */
    int by_number_cap;
    struct rk_link open, busy, failed, todo;

    struct rk_ucx_buf *free_small, *free_big;
    struct rk_ucx_slab *slabs;  /* that they are cut from */
    struct rk_ucx_op **ops;    /* by index */
    uint32_t nops, ops_cap;
    struct rk_ucx_op *free_ops;
    struct rk_ucx_control *free_control;

    void **closing;            /* UCP's requests of endpoints that are being closed */
    uint32_t nclosing, closing_cap;
    uint64_t bad_frames, late_frames;

    uint64_t next_look;        /* tcp_watch.c */
    struct rk_ucx_door doors[RK_UCX_DOORS_MAX];
    uint32_t ndoors;
};

extern const struct rk_channel rk_channel_ucx;

/* The library's table. */
const struct rk_conf *rk_ucx_conf(void);

/* ucx_setup.c: UCP's context and worker, and the card. */
rank_status_t rk_ucx_setup(struct rk_ucx *ucx, void *card, size_t *len);
/* Its first step. kept: gets the configuration, to be released; NULL: not wanted. */
rank_status_t rk_ucx_open_context(struct rk_ucx *ucx, int peers, ucp_config_t **kept);
void rk_ucx_teardown(struct rk_ucx *ucx);
/* In place of it, where UCP still has something to do for a peer: connections end, and the rest stays until the process ends. */
void rk_ucx_abandon(struct rk_ucx *ucx);
/* Is a card of the same UCX? Else text says which: versions do not always understand each other, and
 * then wait for ever. */
bool rk_ucx_card_fits(const struct rk_ucx_card *card, char *text, size_t len);
rank_status_t rk_ucx_status(ucs_status_t status);

/* rails.c: see struct rk_channel. */
rank_status_t rk_ucx_rails(FILE *out);
/* Which sorts of transports (devices.h) this context has opened. False: out of memory. */
bool rk_ucx_transports(struct rk_ucx *ucx, unsigned *found);

/* tcp_watch.c: called before and after UCX's worker is made; the second frees what the first has found. */
void rk_ucx_doors_before(struct rk_ucx_doors *old);
void rk_ucx_doors_after(struct rk_ucx *ucx, struct rk_ucx_doors *old);
/* Those of a peer, too. */
void rk_ucx_doors_of(struct rk_ucx_link *l, const struct rk_ucx_card *card);
/* Give up connections that nobody answers; looks once a second. */
void rk_ucx_watch(struct rk_ucx *ucx);
/* Close all doors and end all connections, without UCX's knowledge. */
void rk_ucx_hang_up(struct rk_ucx *ucx);

/* ep.c */
struct rk_ucx_link *rk_ucx_link_of(struct rk_ucx *ucx, struct rk_peer *peer);
rank_status_t rk_ucx_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer);
void rk_ucx_disconnect(void *state, struct rk_peer *peer);
/* Part with a peer after a fault that cannot be mended; deferred, callable anywhere. */
void rk_ucx_link_broken(struct rk_ucx_link *l);
/* The same, where it was UCX that said why. */
void rk_ucx_link_ended(struct rk_ucx_link *l, ucs_status_t why);
void rk_ucx_links_failed(struct rk_ucx *ucx);
/* Has a peer that was lost in the last meeting died? Looked at now and then. */
void rk_ucx_look_at_lost(struct rk_ucx_link *l, uint64_t now);
/* False: UCP still has something to do, and its worker cannot go. */
bool rk_ucx_links_close(struct rk_ucx *ucx);
void rk_ucx_links_destroy(struct rk_ucx *ucx);

/* ucx_op.c */
struct rk_ucx_op *rk_ucx_op_new(struct rk_ucx_link *l, enum rk_ucx_op_type type);
void rk_ucx_op_free(struct rk_ucx_op *op);
/* NULL: stale, bogus, or not of this link and type. */
struct rk_ucx_op *rk_ucx_op_find(struct rk_ucx_link *l, struct rk_id id, enum rk_ucx_op_type type);
void rk_ucx_ops_destroy(struct rk_ucx *ucx);

/* send.c */
/* One frame; first and then second, or first and then bytes of view at offset 0. */
rank_status_t rk_ucx_put(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *first,
                         size_t first_len, const void *second, const struct rk_view *view);
/* A frame of our own, put now or queued. */
void rk_ucx_control(struct rk_ucx_link *l, uint8_t kind, const void *payload, uint32_t len);
/* Send what waits for company. */
void rk_ucx_flush_open(struct rk_ucx_link *l);
/* Write the head of the next packet to a peer; returns its length. */
size_t rk_ucx_write_head(struct rk_ucx_link *l, unsigned char *head, const struct rk_hdr *hdr);
/* Retry what waits for room; flush what waits for company. Returns what was moved. */
int rk_ucx_send_progress(struct rk_ucx *ucx);
void rk_ucx_mark_busy(struct rk_ucx_link *l);
void rk_ucx_drop_unsent(struct rk_ucx_link *l);
rank_status_t rk_ucx_packet_type(struct rk_ucx *ucx);
void rk_ucx_bufs_destroy(struct rk_ucx *ucx);

/* recv.c */
rank_status_t rk_ucx_listen(struct rk_ucx *ucx);
void rk_ucx_drop_held(struct rk_ucx_link *l);

/* ucx_recv_fast.c */
enum rk_taken rk_ucx_take(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                          size_t cap, struct rk_took *out);
/* A packet that UCP hands us meanwhile. True if it was that, and has been dealt with. */
bool rk_ucx_take_packet(struct rk_ucx_taking *t, const void *head, size_t head_len, const void *data,
                        size_t len);
/* A frame that is to go up, while a receive looks for its message. True if it was that. */
bool rk_ucx_taken(struct rk_ucx_taking *t, struct rk_ucx_link *l, const struct rk_hdr *hdr,
                  const void *payload);
/* ucx.c: one bout of progress; what was handled. Not from within. */
int rk_ucx_pass(struct rk_ucx *ucx);

/* rndv.c */
rank_status_t rk_ucx_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
void rk_ucx_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req);
void rk_ucx_rndv_drop(const struct rk_rndv *rndv);
/* What the peer pulled comes by UCP's rendezvous. True if desc is kept. */
bool rk_ucx_long_arrived(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc,
                         uint64_t total);
/* May it say so? False: the frame has been counted, and is to be dropped. */
RK_INLINE bool rk_ucx_claims_hold(const struct rk_ucx_link *l, const struct rk_hdr *hdr)
{
    struct rk_ctx *ctx = l->ucx->ctx;

    return !ctx->engine->claims_hold || ctx->engine->claims_hold(ctx, l->peer, hdr);
}

/* Hand up what UCP (desc) or a frame of a peer (sender) announced. True if desc is kept. */
bool rk_ucx_announced(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc, uint64_t total,
                      struct rk_id sender);
void rk_ucx_rndv_frame(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *payload);
/* Room again? Send data that was pulled. True if the op is done with. */
bool rk_ucx_send_pulled(struct rk_ucx_op *op);
/* What was put off while UCP was calling us. */
int rk_ucx_todo(struct rk_ucx *ucx);
rank_status_t rk_ucx_view_type(struct rk_ucx *ucx);
/* Complete what depends on the peer; what is in UCP's hands only if orphan_ucp. */
void rk_ucx_fail_ops(struct rk_ucx_link *l, bool orphan_ucp);

/* rma.c */
bool rk_ucx_one_sided(void *state);
rank_status_t rk_ucx_mem_expose(struct rk_ctx *ctx, void *state, void *base, size_t bytes,
                                struct rk_channel_mem **mem, void *key, size_t *keylen);
void rk_ucx_mem_close(void *state, struct rk_channel_mem *mem);
rank_status_t rk_ucx_mem_attach(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base);
rank_status_t rk_ucx_put_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                             const void *src, size_t bytes, size_t offset);
rank_status_t rk_ucx_get_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *dst,
                             size_t bytes, size_t offset);
rank_status_t rk_ucx_iput_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              const void *src, size_t bytes, size_t offset,
                              struct rank_request *req);
rank_status_t rk_ucx_iget_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              void *dst, size_t bytes, size_t offset, struct rank_request *req);
rank_status_t rk_ucx_flush_mem(struct rk_channel_mem *mem, struct rk_peer *peer);

/* An op's callback for every UCP call that takes a ucp_send_nbx_callback_t. */
void rk_ucx_ucp_done(void *request, ucs_status_t status, void *arg);

#endif
