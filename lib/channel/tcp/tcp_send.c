/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_send.c: send frames and chunks of data. */
#include "lib/base/clock.h"
#include "lib/channel/tcp/tcp_channel.h"
#include "lib/core/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    OUT_MAX = 2 * (RK_TCP_FRAME_MAX + 64), /* bytes of frames that wait in a link */
    SHARE_MAX = 2048,                      /* longer frames do not wait for others */
    SHARED_MAX = 16384,                    /* so many bytes do not wait for more */
    FRAMES_PER_CHECK = 4,                  /* that wait, for one read of the clock */
    ROUND_MAX = 1 << 20                    /* bytes that one call sends */
};

/* May bytes be sent? */
static bool takes_bytes(const struct rk_tcp_link *l)
{
    return !l->failed && !l->broken;
}

/* Returns bytes sent; 0: no room, or the peer takes none. */
static size_t tcp_write(struct rk_tcp_link *l, struct iovec *iov, int n)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    ssize_t sent;

    do
        sent = sendmsg(l->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent > 0) {
        l->tcp->handled++;
        l->counts->sent += (uint64_t)sent;
        l->counts->sent_ns = rk_clock_coarse_ns();
    } else if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        l->broken = true;
        rk_list_remove(&l->on_pending);
        rk_tcp_rewatch(l->tcp, &l->source, EPOLLIN | EPOLLRDHUP);
        l->tcp->due = true;
    } else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        rk_tcp_link_failed(l, strerror(errno));
    }
    return sent > 0 ? (size_t)sent : 0;
}

static void watch_room(struct rk_tcp_link *l, bool wants)
{
    if (l->failed || l->broken || l->wants_room == wants)
        return;
    l->wants_room = wants;
    rk_tcp_rewatch(l->tcp, &l->source, EPOLLIN | EPOLLRDHUP | (wants ? EPOLLOUT : 0));
}

/* ----------------------------------------------------------------------- chunks */

/* The first job whose next chunk can be sent; NULL: none yet. */
static struct rk_tcp_op *next_job(struct rk_tcp_link *l)
{
    struct rk_link *at;

    rk_list_for_each(at, &l->jobs)
    {
        struct rk_tcp_op *op = rk_list_entry(at, struct rk_tcp_op, link);
        if (rk_likely(!rk_tcp_stages(&op->view)) || rk_tcp_stage_is_ready(l, op))
            return op;
    }
    return NULL;
}

/* Begin a chunk of the job, which moves to the end. */
static void begin_chunk(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    uint64_t left = op->bytes - op->done;
    uint32_t len = left < RK_TCP_CHUNK_MAX ? (uint32_t)left : RK_TCP_CHUNK_MAX;
    rank_status_t st = RANK_OK;

    rk_list_remove(&op->link);
    rk_list_append(&l->jobs, &op->link);
    l->chunk_at = 0;
    l->sending = op;
    if (op->type != RK_TCP_SENDING) {
        rk_tcp_stream_chunk(l, op);
        return;
    }
    l->chunk = (struct rk_hdr){.kind = RK_TCP_DATA, .epoch = l->peer->epoch, .len = len, .tag = rk_id_pack(op->theirs)};
    if (rk_tcp_stages(&op->view)) {
        rk_tcp_stage_send(l, op);
        st = l->sends.wire ? RANK_OK : op->copied;
    } else if (op->view.ops) {
        if (!l->packed)
            l->packed = malloc(RK_TCP_CHUNK_MAX);
        st = l->packed ? rk_copy_out(l->packed, &op->view, op->done, len) : RANK_ERR_NO_MEMORY;
    }
    if (rk_unlikely(st)) {
        l->chunk.flags = RK_TCP_UNREAD;
        l->chunk.len = 0;
        op->copied = st;
    }
}

/* Returns false without room. */
static bool send_chunk(struct rk_tcp_link *l)
{
    static const char fill[8];
    struct rk_tcp_op *op = l->sending;
    const char *from = l->chunk.len == 0             ? ""
                       : op->type == RK_TCP_SERVING ? rk_tcp_serve_from(l, op)
                       : l->sends.wire            ? l->sends.wire->data
                       : op->view.ops             ? (const char *)l->packed
                                                  : (const char *)op->view.base + op->done;
    size_t parts[3] = {sizeof(l->chunk), l->chunk.len, rk_tcp_length(l->chunk.len) - sizeof(l->chunk) - l->chunk.len};
    const char *bases[3] = {(const char *)&l->chunk, from, fill};
    size_t all = rk_tcp_length(l->chunk.len), skip = l->chunk_at;
    struct iovec iov[3];
    int n = 0;

    if (rk_unlikely(!from)) {
        rk_tcp_link_failed(l, "out of memory");
        return false;
    }
    for (int i = 0; i < 3; i++) {
        size_t gone = skip < parts[i] ? skip : parts[i];
        skip -= gone;
        if (parts[i] > gone)
            iov[n++] = (struct iovec){(void *)(uintptr_t)(bases[i] + gone), parts[i] - gone};
    }
    l->chunk_at += tcp_write(l, iov, n);
    if (l->chunk_at < all)
        return false;
    if (rk_unlikely(l->sends.wire != NULL))
        rk_tcp_stage_sent(l);
    l->sending = NULL;
    if (op->type != RK_TCP_SENDING) {
        rk_tcp_stream_sent(l, op);
        return true;
    }
    op->done += l->chunk.len;
    if (l->chunk.flags & RK_TCP_UNREAD || op->done == op->bytes)
        rk_tcp_op_end(op, op->copied);
    return true;
}

/* ----------------------------------------------------------------------- frames */

static bool send_out(struct rk_tcp_link *l)
{
    struct iovec iov = {l->out + l->out_at, l->out_end - l->out_at};

    l->out_at += tcp_write(l, &iov, 1);
    if (l->out_at < l->out_end)
        return false;
    l->out_at = l->out_end = 0;
    return true;
}

void rk_tcp_flush(struct rk_tcp_link *l)
{
    struct rk_tcp_op *job;
    bool room = true;

    rk_list_remove(&l->on_pending);
    for (size_t sent = 0; room && sent < ROUND_MAX && takes_bytes(l) && rk_tcp_waits(l);) {
        if (l->sending) {
            sent += l->chunk.len;
            room = send_chunk(l);
        } else if (l->out_at < l->out_end) {
            sent += l->out_end - l->out_at;
            room = send_out(l);
        } else if ((job = next_job(l)) != NULL) {
            begin_chunk(l, job);
        } else {
            break;
        }
    }
    watch_room(l, rk_tcp_waits(l));
}

/* A thread that sleeps is woken for it: the program may not call again for long. */
void rk_tcp_flush_later(struct rk_tcp_link *l)
{
    struct rk_threads *threads = l->tcp->ctx->engine->threads;

    if (l->wants_room || !rk_list_empty(&l->on_pending))
        return;
    rk_list_append(&l->tcp->pending, &l->on_pending);
    if (rk_threads_sleeps(threads))
        rk_threads_kick(threads);
    else
        rk_threads_rouse(threads);
}

/* Has the last packet left some milliseconds ago? A program that only sends makes no progress. */
static bool packet_is_old(const struct rk_tcp_link *l)
{
    return rk_clock_coarse_ns() != l->counts->sent_ns;
}

/* Make room for bytes behind what waits. Returns false if there is none. */
static bool out_room(struct rk_tcp_link *l, size_t bytes)
{
    if (!l->out && !(l->out = malloc(OUT_MAX)))
        return false;
    if (l->out_end + bytes > OUT_MAX && l->out_at > 0) {
        memmove(l->out, l->out + l->out_at, l->out_end - l->out_at);
        l->out_end -= l->out_at;
        l->out_at = 0;
    }
    return l->out_end + bytes <= OUT_MAX;
}

/* Copy the parts of a frame behind what waits, without the first bytes. There is room. */
static void keep_frame(struct rk_tcp_link *l, const struct iovec *iov, int n, size_t skip)
{
    for (int i = 0; i < n; i++) {
        size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        skip -= gone;
        memcpy(l->out + l->out_end, (const char *)iov[i].iov_base + gone, iov[i].iov_len - gone);
        l->out_end += iov[i].iov_len - gone;
    }
}

/* Pack a frame behind what waits, and send as much as there is room for. */
static rank_status_t put_packed(struct rk_tcp_link *l, const struct rk_hdr *hdr, const struct rk_view *view)
{
    unsigned char *to;
    rank_status_t st;

    if (!out_room(l, rk_tcp_length(hdr->len)))
        return RK_AGAIN;
    to = l->out + l->out_end;
    memcpy(to, hdr, sizeof(*hdr));
    st = rk_copy_out(to + sizeof(*hdr), view, 0, hdr->len);
    if (st)
        return st;
    l->out_end += rk_tcp_length(hdr->len);
    if (!l->wants_room)
        rk_tcp_flush(l);
    return takes_bytes(l) ? RANK_OK : RANK_ERR_PEER_DEAD;
}

static rank_status_t put_frame(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *first, size_t first_len,
                               const void *second, const struct rk_view *view)
{
    static const char fill[8];
    size_t rest = hdr->len - first_len, all = rk_tcp_length(hdr->len), sent;
    struct iovec iov[4];
    int n = 0;

    if (!takes_bytes(l) || l->bye_sent)
        return RANK_ERR_PEER_DEAD;
    if (view && view->ops)
        return put_packed(l, hdr, view);
    iov[n++] = (struct iovec){(void *)(uintptr_t)hdr, sizeof(*hdr)};
    if (first_len)
        iov[n++] = (struct iovec){(void *)(uintptr_t)first, first_len};
    if (rest)
        iov[n++] = (struct iovec){view ? view->base : (void *)(uintptr_t)second, rest};
    if (all > sizeof(*hdr) + hdr->len)
        iov[n++] = (struct iovec){(void *)(uintptr_t)fill, all - sizeof(*hdr) - hdr->len};
    if (!out_room(l, all)) /* before a part of it is sent */
        return RK_AGAIN;
    if (l->sending || l->out_at < l->out_end || (l->tick == l->tcp->tick && all <= SHARE_MAX && !packet_is_old(l))) {
        keep_frame(l, iov, n, 0);
        if (!l->wants_room && (l->out_end - l->out_at >= SHARED_MAX || (l->kept++ % FRAMES_PER_CHECK == 0 && packet_is_old(l))))
            rk_tcp_flush(l);
        else
            rk_tcp_flush_later(l);
        return takes_bytes(l) ? RANK_OK : RANK_ERR_PEER_DEAD;
    }
    l->tick = l->tcp->tick;
    sent = tcp_write(l, iov, n);
    if (rk_unlikely(!takes_bytes(l)))
        return RANK_ERR_PEER_DEAD;
    if (rk_likely(sent == all))
        return RANK_OK;
    watch_room(l, true);
    if (sent == 0)
        return RK_AGAIN;
    keep_frame(l, iov, n, sent);
    return RANK_OK;
}

rank_status_t rk_tcp_put(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *first, size_t first_len,
                         const void *second, const struct rk_view *view)
{
    rank_status_t st = put_frame(l, hdr, first, first_len, second, view);

    l->counts->messages_sent += !st && rk_tcp_is_message(hdr->kind);
    return st;
}
