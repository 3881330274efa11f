/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_channel.h: carry frames over a socket for each peer.
 *
 * Room: the channel between hosts without RDMA, and of connections: streams, rendezvous, one set of descriptors.
 * Callers: lib/conn.
 * Never: opens a connection; believes an address that a peer names.
 * Tests: tests/conn, tests/unit/tcp_wire_test.c, tests/fuzz/fuzz_tcp.c.
 *
 * lib/conn opens the sockets and proves the peer; then it attaches each to the number of its peer. The
 * channel owns the socket from then on. Its end is the peer's end: it is reported as a death, or as a close if the peer
 * has announced it. A rank of a job announces it with its last frame when it finalizes: that is no death.
 *
 * Frames leave at once, in one system call. What finds no room in the socket waits in the link's buffer; what finds none
 * there waits with the engine. The first frame between two progress calls leaves at once, later ones leave together.
 * Data of large messages goes from and to the user's memory, in chunks that take turns.
 */
#ifndef RK_CHANNEL_TCP_TCP_H
#define RK_CHANNEL_TCP_TCP_H

#include "lib/base/handle.h"
#include "lib/base/slab.h"
#include "lib/channel/tcp/tcp_wire.h"
#include "lib/core/engine.h"
#include "lib/mem/bounce.h"

#include <sys/epoll.h>

_Static_assert((int)RK_BOUNCE_BYTES >= (int)RK_TCP_CHUNK_MAX, "a chunk fits a bounce buffer");

/* A descriptor in the channel's set. ready may close it and free the source. */
struct rk_tcp_source {
    int fd;
    bool quiet; /* rk_tcp_set_quiet */
    void (*ready)(struct rk_tcp_source *source, uint32_t events);
};

enum rk_tcp_op_type {
    RK_TCP_OFFERED,   /* announced here, not yet pulled */
    RK_TCP_SENDING,   /* pulled: chunks are being sent */
    RK_TCP_RECEIVING, /* pulled from here: chunks come */
    RK_TCP_READING,   /* the peer's memory is read: chunks come */
    RK_TCP_WRITING,   /* the peer's memory is written: chunks are being sent, then the answer is awaited */
    RK_TCP_SERVING,   /* the peer reads memory of this side: chunks are being sent */
    RK_TCP_ANSWERING  /* the peer has written memory of this side: the answer waits for room */
};

struct rk_tcp_op {
    struct rk_link link; /* in rk_tcp_link.ops or jobs */
    struct rk_id id;
    uint8_t type; /* enum rk_tcp_op_type */
    struct rk_tcp_link *of;
    struct rank_request *req; /* SERVING, ANSWERING: NULL */
    struct rk_view view;
    uint64_t bytes, done; /* to be moved, and moved */
    struct rk_id theirs;  /* SENDING, SERVING: id of the receiver */
    struct rk_id mem;     /* WRITING, SERVING: the memory, */
    uint64_t offset;      /* from this offset on */
    struct rk_tcp_written answer; /* ANSWERING */
    rank_status_t copied; /* RECEIVING, SENDING: error of a copy; WRITING, SERVING: it ends with this error */
};

/* Buffers of one direction for chunks of device memory (tcp_stage.c). */
struct rk_tcp_stage {
    struct rk_bounce *wire;    /* of the chunk that is being sent or received */
    struct rk_bounce *copying; /* of the next, or the last one; */
    struct rk_tcp_op *op;      /* its op */
};

/* Where a chunk of a WRITE goes. */
struct rk_tcp_sink {
    bool on;
    bool last; /* chunk of the WRITE */
    struct rk_id mem, writer;
    uint64_t offset; /* of the next byte */
    rank_status_t status;
};

/*
 * Pending reads and writes of a link: RK_AGAIN beyond. SERVED: reads of the peer, and answers to it that wait for room. A
 * correct peer has fewer: up to an answer for each chunk of its writes, of 1 MiB each.
 */
enum { RK_TCP_STREAMS_MAX = 1024, RK_TCP_SERVED_MAX = 8192 };

/* Bytes on the wire, messages, and times of the last byte. */
struct rk_tcp_counts {
    uint64_t sent, received;
    uint64_t messages_sent, messages_received;
    uint64_t refused; /* frames */
    uint64_t sent_ns, received_ns; /* rk_clock_coarse_ns; 0: none */
};

/* What lib/conn does for the channel. */
struct rk_tcp_hooks {
    /* First contact of a rank: begin it, or continue. RK_AGAIN: under way. RANK_OK: the peer has a link now. */
    rank_status_t (*contact)(void *arg, struct rk_peer *peer);
    /* Handshakes are over (rk_tcp.settled). */
    void (*settle)(void *arg);
    /* About every 125 ms. */
    void (*idle)(void *arg, uint64_t now);
};

/* Does a frame of this kind begin a message? Announcements stand for RK_KIND_RNDV. */
RK_INLINE bool rk_tcp_is_message(uint8_t kind)
{
    return kind == RK_TCP_ANNOUNCE || rk_frame_is_message(kind);
}

struct rk_tcp_link {
    struct rk_tcp_source source;
    struct rk_tcp *tcp;
    struct rk_peer *peer;
    struct rk_link on_links;
    bool lifeline;   /* frames take another channel: the socket only shows the end of the peer */
    bool failed;     /* the socket is at its end: reported */
    bool broken;     /* the peer takes no more bytes: what it has sent is read, to the end */
    bool bye;        /* the peer has sent its last frame */
    bool bye_sent;   /* this side has sent its own */
    bool wants_room; /* the set watches for room in the socket */
    struct rk_link on_pending; /* in rk_tcp.pending: frames wait for the next progress call */

    unsigned char *in;   /* received and not parsed: [in_at, in_end) */
    size_t in_at, in_end;
    struct rk_tcp_op *into; /* of the chunk that is being received; NULL with into_left: it is dropped */
    uint64_t into_left, into_fill; /* of the payload, and of the filling behind it */
    struct rk_tcp_sink sink;       /* on: the chunk goes there */

    unsigned char *out;  /* to be sent: [out_at, out_end) */
    size_t out_at, out_end;
    struct rk_link ops;  /* those that wait for the peer */
    struct rk_link jobs; /* sending, the next first */
    int nstreams, nserved; /* ops that read and write; that serve and answer */
    struct rk_hdr chunk; /* header of the chunk that is being sent */
    size_t chunk_at;     /* bytes of the header and payload sent so far */
    struct rk_tcp_op *sending; /* the op of that chunk; NULL: none is under way */
    unsigned char *packed;     /* its payload, if the view is no plain memory, or the memory has gone */
    struct rk_tcp_stage sends, receives;
    uint64_t tick;       /* of the last frame */
    uint32_t kept;       /* frames that have waited for others */
    struct rk_tcp_counts *counts, own; /* own: of a rank */
    uint64_t silence_ns, next_check;   /* the peer's host must answer in that time */
    uint64_t unanswered_since;         /* 0: nothing waits for an answer */
};

struct rk_tcp {
    struct rk_ctx *ctx;
    int set; /* the epoll set */
    struct epoll_event events[16];
    int nevents;
    struct rk_tcp_link **by_number;     /* by number of the peer */
    int by_number_cap;
    struct rk_link links, pending;
    struct rk_tcp_link *last; /* from which something came; NULL: it is closed */
    struct rk_slab ops;
    struct rk_handles op_ids;
    struct rk_bounce_pool bounces;
    uint64_t pieces, overlapped; /* through them; while others of the message moved */
    uint64_t rounds; /* progress calls */
    uint64_t tick;   /* of their begins and ends: the first frame behind each leaves at once */
    int handled;   /* by this progress call */
    int watched, quiet; /* descriptors in the set; those of them where little happens: listeners and lifelines */
    bool ended;    /* a lifeline has ended: to be closed once its peer is dead */
    bool due;      /* look at the set in the next progress call, even if all are quiet */
    bool leaving;  /* the rooms above are closed: nothing is delivered any more */
    uint64_t bad_frames;
    bool settled;  /* handshakes are over: call hooks->settle */
    const struct rk_tcp_hooks *hooks; /* of lib/conn */
    void *hooks_arg;
};

extern const struct rk_channel rk_channel_tcp;

/* Watch a descriptor; RANK_ERR_SYSTEM: it cannot be watched. */
rank_status_t rk_tcp_watch(struct rk_tcp *tcp, struct rk_tcp_source *source, uint32_t events);
/* Little happens there: a watched listener. */
void rk_tcp_set_quiet(struct rk_tcp *tcp, struct rk_tcp_source *source);
void rk_tcp_rewatch(struct rk_tcp *tcp, struct rk_tcp_source *source, uint32_t events);
/* Before the descriptor is closed. A source of this round is not called any more. */
void rk_tcp_unwatch(struct rk_tcp *tcp, struct rk_tcp_source *source);

/*
 * The socket leads to the peer: connect it. Takes the socket, unless it fails. counts outlive the link; NULL: its own. The
 * peer's host must answer within silence_ns. lifeline: another channel connects it.
 */
rank_status_t rk_tcp_attach(struct rk_tcp *tcp, int fd, struct rk_peer *peer, struct rk_tcp_counts *counts, uint64_t silence_ns,
                            bool lifeline);
/* The link of a peer; NULL: it has none any more. */
struct rk_tcp_link *rk_tcp_link_of(const struct rk_tcp *tcp, const struct rk_peer *peer);
/* Of a lifeline: announce that frames on the other channel are received. */
void rk_tcp_send_ready(struct rk_tcp_link *l);
/* Send the last frame. The socket takes no more frames; the peer's are still received. */
void rk_tcp_send_bye(struct rk_tcp_link *l);
/* The peer has sent its last frame, with these flags. */
void rk_tcp_bye_came(struct rk_tcp_link *l, uint8_t flags);
/* Check whether the hosts of silent peers answer. */
void rk_tcp_check_silence(struct rk_tcp *tcp, uint64_t now);
/* Is all sent, and has the peer sent all? Or has the connection ended? */
bool rk_tcp_is_over(const struct rk_tcp_link *l);

/* tcp_link.c */
void rk_tcp_link_ready(struct rk_tcp_source *source, uint32_t events);
/* The socket has ended: report the peer. Deferred, callable anywhere. */
void rk_tcp_link_failed(struct rk_tcp_link *l, const char *why);
void rk_tcp_link_close(struct rk_tcp_link *l);

/* tcp_send.c */
rank_status_t rk_tcp_put(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *first, size_t first_len,
                         const void *second, const struct rk_view *view);
/* Send what waits in the next progress call. */
void rk_tcp_flush_later(struct rk_tcp_link *l);
/* Send what waits, as far as there is room, 1 MiB at most. */
void rk_tcp_flush(struct rk_tcp_link *l);
/* Does anything wait for room in the socket? */
RK_INLINE bool rk_tcp_waits(const struct rk_tcp_link *l)
{
    return !l->broken && (l->out_at < l->out_end || l->sending || !rk_list_empty(&l->jobs));
}

/* tcp_recv.c: receive and deliver what is there, 1 MiB at most. */
void rk_tcp_receive(struct rk_tcp_link *l);

/* tcp_rndv.c */
/* Make an op in ops; NULL: out of memory. */
struct rk_tcp_op *rk_tcp_op_new(struct rk_tcp_link *l, enum rk_tcp_op_type type, struct rank_request *req);
/* Free it without completing its request. */
void rk_tcp_op_free(struct rk_tcp_op *op);
/* Give memory of ops that were freed back. */
void rk_tcp_ops_trim(struct rk_tcp *tcp);
/* NULL: stale, invalid, or of another link or type. */
struct rk_tcp_op *rk_tcp_op_find(struct rk_tcp_link *l, struct rk_id id, enum rk_tcp_op_type type);
rank_status_t rk_tcp_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view,
                               struct rank_request *req);
void rk_tcp_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req);
void rk_tcp_rndv_drop(const struct rk_rndv *rndv);
/* A frame of the channel's own kinds, except DATA and BYE. Returns false if it is invalid. */
bool rk_tcp_rndv_frame(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *payload);
/* The op into which a chunk goes, NULL: dropped. Returns false if the chunk is invalid. */
bool rk_tcp_chunk_begins(struct rk_tcp_link *l, const struct rk_hdr *hdr, struct rk_tcp_op **into);
/* Bytes of the chunk have been copied to the view. */
void rk_tcp_chunk_moved(struct rk_tcp_op *op, uint64_t bytes);
/* The op has sent all its bytes, or cannot. */
void rk_tcp_op_end(struct rk_tcp_op *op, rank_status_t st);
/* Complete all operations of the link with this status. */
void rk_tcp_fail_ops(struct rk_tcp_link *l, rank_status_t st);

/* tcp_stage.c */
/* Does the payload pass through bounce buffers? */
RK_INLINE bool rk_tcp_stages(const struct rk_view *view)
{
    return rk_unlikely(view->ops != NULL) && view->ops->begin;
}
/* Is the next chunk of the op in host memory, or has its copy failed? Begins the copy. */
bool rk_tcp_stage_is_ready(struct rk_tcp_link *l, struct rk_tcp_op *op);
/* It is: its buffer is with the socket now, unless the copy has failed. */
void rk_tcp_stage_send(struct rk_tcp_link *l, struct rk_tcp_op *op);
void rk_tcp_stage_sent(struct rk_tcp_link *l);
/* Where the next bytes of the chunk for the op go; NULL: no buffer. */
char *rk_tcp_stage_at(struct rk_tcp_link *l, struct rk_tcp_op *op);
/* So many bytes have arrived there. last: of the chunk. */
void rk_tcp_stage_received(struct rk_tcp_link *l, struct rk_tcp_op *op, size_t bytes, bool last);
/* The op ends: wait for its copies, release its buffers. */
void rk_tcp_stage_end(struct rk_tcp_op *op);

/* tcp_stream.c */
rank_status_t rk_tcp_stream(struct rk_peer *peer, bool put, void *local, size_t bytes, struct rk_id mem, uint64_t offset,
                            struct rank_request *req);
/* A frame READ or WRITTEN. Returns false if it is invalid. */
bool rk_tcp_stream_frame(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *payload);
/* Set the header of the next chunk of an op of another type than SENDING. */
void rk_tcp_stream_chunk(struct rk_tcp_link *l, struct rk_tcp_op *op);
/* Where the payload of a chunk of a SERVING op lies now; NULL: it cannot be sent. */
const char *rk_tcp_serve_from(struct rk_tcp_link *l, struct rk_tcp_op *op);
/* A chunk of the op has been sent. It may be freed. */
void rk_tcp_stream_sent(struct rk_tcp_link *l, struct rk_tcp_op *op);
/* A chunk for memory of this side begins. */
void rk_tcp_write_begins(struct rk_tcp_link *l, const struct rk_hdr *hdr);
/* Where its next bytes go; NULL: they are dropped. */
char *rk_tcp_sink_at(struct rk_tcp_link *l);
/* The chunk has been received. */
void rk_tcp_write_ends(struct rk_tcp_link *l);

#endif
