/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal.c: implement put_signal, and waits for words that peers write.
 *
 * A signal to mapped memory is a store after the data, and a doorbell if the peer sleeps. Elsewhere it is a frame
 * that the owner executes, with the data inside if there is room. Longer data goes first, and is flushed if it
 * takes another path than frames.
 */
#include "lib/core/procs.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"

/* A word of the own memory that is waited for. */
struct word {
    struct rk_wait wait; /* its peer is the writer; NULL: any */
    struct rank_mem *mem;
    const uint64_t *at;
    uint64_t value, seen;
    rank_cmp_t cmp;
    bool dead;                  /* all possible writers are dead */
    bool over;
};

/* Up to this size CMA's system call costs more than two copies. */
enum { BY_CMA_MIN = 4096 };

RK_INLINE rank_status_t check_word(const char *call, const struct rank_mem *mem, int64_t offset)
{
    if (offset < 0 || mem->bytes < 8 || (uint64_t)offset > mem->bytes - 8)
        return rk_arg_error(RANK_ERR_BOUNDS, call, "a word at offset %lld leaves the memory of %zu bytes", (long long)offset,
                            mem->bytes);
    if (offset % 8)
        return rk_arg_error(RANK_ERR_ARG, call, "offset %lld of a word is not a multiple of 8", (long long)offset);
    return RANK_OK;
}

/* Is the peer's process the same? */
RK_INLINE bool same_peer(const struct rank_mem *a, const struct rank_mem *b, int peer)
{
    return a->team == b->team ||
           (peer < b->team->size &&
            rk_team_world_rank(a->team, peer) == rk_team_world_rank(b->team, peer));
}

static rank_status_t signal_mapped(struct rank_mem *mem, int peer, size_t offset, uint64_t value,
                                   rank_signal_op_t op)
{
    uint64_t *at = (uint64_t *)(void *)(mem->part[peer] + offset);
    struct rk_peer *p;

    if (op == RANK_SIGNAL_SET)
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
    if (rk_unlikely(peer == mem->team->rank)) {
        if (mem->ctx->engine->threads) { /* another thread may wait for it: it is woken on leaving */
            RK_ENTER(mem->ctx);
            rk_threads_notify_user(mem->ctx);
        }
        return RANK_OK;
    }
    RK_ENTER(mem->ctx);
    p = rk_team_peer(mem->team, peer);
    if (rk_likely(p && p->node))
        rk_node_wake(p->node, p->slot);
    return RANK_OK;
}

/* Signal by a frame; data goes inside, or has gone before. */
static rank_status_t signal_remote(const void *src, size_t bytes, int peer, struct rank_mem *mem,
                                   size_t offset, struct rank_mem *signal_mem, size_t signal_offset,
                                   uint64_t value, rank_signal_op_t op)
{
    RK_ENTER(signal_mem->ctx);
    struct rk_rma_signal sig = {.offset = signal_offset + signal_mem->shift, .value = value};
    const struct rk_path *path, *sig_path;
    struct rk_origin_op request;
    struct rk_peer *p;
    size_t room;
    rank_status_t st = rk_path_reach(signal_mem, peer, RK_NO_WRITES, &p, &sig_path);

    if (st)
        return st;
    if (rk_unlikely((sig_path->base + signal_offset) & 7))
        return rk_mem_word_is_unaligned((int64_t)signal_offset, 8);
    if (bytes && mem->part[peer]) {
        rk_mapped_put(mem->part[peer] + offset, src, bytes);
        bytes = 0;
    }
    path = sig_path;
    if (bytes && (st = rk_path_reach(mem, peer, RK_NO_WRITES, &p, &path)) != RANK_OK)
        return st;
    room = rk_origin_frame_max(p) - sizeof(struct rk_rma_request_head) - sizeof(sig);
    if (path->kind == RK_PATH_CMA && room > BY_CMA_MIN)
        room = BY_CMA_MIN;
    if (bytes > room) {
        st = rk_move_remote(true, (void *)(uintptr_t)src, bytes, peer, mem, offset, NULL);
        if (!st)
            st = rk_path_flush(mem, peer);
        if (st)
            return st;
        bytes = 0;
    }
    sig.mem = sig_path->id;
    rk_origin_init(&request, p, RK_RMA_SIGNAL, path->id);
    request.head.amo = (uint8_t)op;
    rk_origin_add(&request, &sig, sizeof(sig));
    if (bytes)
        rk_origin_move(&request, (void *)(uintptr_t)src, bytes, offset + mem->shift);
    st = rk_origin_run(&request, RK_REQ_SIGNAL);
    if (!st && p->channel->fd)
        rk_progress(p->ctx); /* a small frame is coalesced until then, and the caller may compute for long */
    return st;
}

/* mem is checked, and src may be of any kind. */
RK_INLINE rank_status_t put_signal_check(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                         rank_mem_t signal_mem, int64_t signal_offset, rank_signal_op_t op)
{
    rank_status_t st = rk_mem_check_range("rank_put_signal", mem, src, bytes, peer, offset);

    if (!st)
        st = rk_mem_check("rank_put_signal", signal_mem);
    if (!st)
        st = check_word("rank_put_signal", signal_mem, signal_offset);
    if (rk_unlikely(st))
        return st;
    if (rk_unlikely((unsigned)op > RANK_SIGNAL_ADD))
        return rk_arg_error(RANK_ERR_ARG, "rank_put_signal", "op %d is not defined", (int)op);
    if (rk_unlikely(!same_peer(mem, signal_mem, peer)))
        return rk_arg_error(RANK_ERR_ARG, "rank_put_signal", "peer %d is not the same rank in both memories", peer);
    return rk_mem_lies_on(mem, src, bytes, peer, offset) ? rk_mem_overlaps("rank_put_signal") : RANK_OK;
}

/* All is checked, and src is host memory. */
RK_INLINE rank_status_t rma_put_signal(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                       rank_mem_t signal_mem, int64_t signal_offset, uint64_t value, rank_signal_op_t op)
{
    rank_status_t st;

    if (rk_unlikely(!signal_mem->part[peer]))
        return signal_remote(src, (size_t)bytes, peer, mem, (size_t)offset, signal_mem,
                             (size_t)signal_offset, value, op);
    /* registered memory may have any alignment */
    if (rk_unlikely((uintptr_t)(signal_mem->part[peer] + signal_offset) & 7))
        return rk_mem_word_is_unaligned(signal_offset, 8);
    if (rk_likely(mem->part[peer] != NULL)) {
        if (bytes)
            rk_mapped_put(mem->part[peer] + offset, src, (size_t)bytes);
    } else if (bytes) {
        st = rk_move_remote(true, (void *)(uintptr_t)src, (size_t)bytes, peer, mem, (size_t)offset, NULL);
        if (!st)
            st = rk_flush_remote(mem, peer);
        if (st)
            return rk_call_returns("rank_put_signal", st);
    }
    return signal_mapped(signal_mem, peer, (size_t)signal_offset, value, op);
}

static RK_COLD rank_status_t put_signal_any(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                            rank_mem_t signal_mem, int64_t signal_offset, uint64_t value, rank_signal_op_t op)
{
    rank_status_t st = rk_mem_check_any("rank_put_signal", mem);
    const struct rk_kind *kind;
    char small[BY_CMA_MIN];

    if (!st)
        st = put_signal_check(src, bytes, peer, mem, offset, signal_mem, signal_offset, op);
    if (st)
        return rk_peer_null_ok(st);
    kind = rk_kind_of(src, (size_t)bytes);
    if (kind && !mem->kind && bytes <= (int64_t)sizeof(small)) {
        st = rk_kind_copy(small, NULL, src, kind, (size_t)bytes);
        if (st)
            return st;
        src = small;
    } else if (kind || (mem->kind && bytes)) { /* the data goes first */
        st = rk_stage_move("rank_put_signal", true, (void *)(uintptr_t)src, bytes, peer, mem, offset);
        if (!st && !mem->part[peer])
            st = rk_flush_remote(mem, peer);
        if (st)
            return st;
        bytes = 0;
    }
    return rma_put_signal(src, bytes, peer, mem, offset, signal_mem, signal_offset, value, op);
}

rank_status_t rank_put_signal(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                              int64_t offset, rank_mem_t signal_mem, int64_t signal_offset,
                              uint64_t value, rank_signal_op_t op)
{
    if (rk_likely(rk_mem_is_plain(mem) && rk_mem_is_plain(signal_mem))) {
        rank_status_t st = put_signal_check(src, bytes, peer, mem, offset, signal_mem, signal_offset, op);
        return rk_unlikely(st) ? rk_peer_null_ok(st)
                               : rma_put_signal(src, bytes, peer, mem, offset, signal_mem, signal_offset, value, op);
    }
    return put_signal_any(src, bytes, peer, mem, offset, signal_mem, signal_offset, value, op);
}

/* ------------------------------------------------------------------------ waiting */

RK_INLINE bool signal_matches(struct word *w)
{
    uint64_t v = w->seen = __atomic_load_n(w->at, __ATOMIC_ACQUIRE);

    switch (w->cmp) {
    case RANK_CMP_EQ:
        return v == w->value;
    case RANK_CMP_NE:
        return v != w->value;
    case RANK_CMP_GT:
        return v > w->value;
    case RANK_CMP_GE:
        return v >= w->value;
    case RANK_CMP_LT:
        return v < w->value;
    default:
        return v <= w->value;
    }
}

/*
 * Dead processes that could have written it: team memory is accessible to the team only, registered memory to
 * ranks of connected jobs, too.
 */
RK_INLINE int dead_writers(const struct rank_mem *mem)
{
    return mem->sort == RK_MEM_REGISTERED ? mem->ctx->rma->deaths : mem->team->ndead;
}

static RK_COLD bool signal_all_dead(const struct rank_mem *mem)
{
    return mem->sort == RK_MEM_REGISTERED ? rk_procs_all_dead(mem->ctx) : mem->team->ndead >= mem->team->size - 1;
}

/* Has one of them died without a report, or is the context closing? */
RK_INLINE bool writers_died(const struct word *w)
{
    int ndead;

    if (rk_unlikely(w->mem->ctx->closing))
        return true;
    if (w->wait.peer)
        return w->wait.peer->state == RK_PEER_DEAD;
    ndead = dead_writers(w->mem);
    return ndead != w->mem->deaths_reported || (rk_unlikely(ndead) && signal_all_dead(w->mem));
}

static bool word_is_so(struct word *w)
{
    /* Another thread may have seen a value that is gone. */
    if (rk_unlikely(w->over) || signal_matches(w))
        return w->over = true;
    if (rk_likely(!writers_died(w)))
        return false;
    w->over = true;
    w->dead = !signal_matches(w); /* its last write may have come between the two checks */
    return true;
}

static rank_status_t signal_prepare(const char *call, struct word *w, struct rank_mem *mem, int64_t offset,
                             rank_cmp_t cmp, uint64_t value)
{
    rank_status_t st = rk_mem_check(call, mem);
    char *mine;

    if (!st)
        st = check_word(call, mem, offset);
    if (st)
        return st;
    mine = mem->sort == RK_MEM_OPENED ? NULL : mem->part[mem->team->rank];
    if (rk_unlikely(!mine))
        return rk_arg_error(RANK_ERR_ARG, call, "the memory has no part of this rank");
    if (rk_unlikely((unsigned)cmp > RANK_CMP_LE))
        return rk_arg_error(RANK_ERR_ARG, call, "cmp %d is not defined", (int)cmp);
    if (rk_unlikely((uintptr_t)(mine + offset) & 7))
        return rk_arg_error(RANK_ERR_ARG, call, "the word at offset %lld has an address that is not a multiple of 8",
                            (long long)offset);
    w->wait.peer = NULL; /* rk_wait_on sets the rest */
    w->wait.deadline = 0;
    w->mem = mem;
    w->at = (const uint64_t *)(const void *)(mine + offset);
    w->value = value;
    w->cmp = cmp;
    w->dead = w->over = false;
    return RANK_OK;
}

static bool word_wait_over(struct rk_wait *w)
{
    return word_is_so((struct word *)w) || w->late;
}

RK_INLINE void wait_for_word(struct word *w, bool no_doorbell)
{
    if (word_is_so(w))
        return;
    w->wait.describe = rk_word_describe;
    w->wait.kind = RK_FOR_RMA;
    w->wait.no_doorbell = no_doorbell;
    w->wait.background = false;
    rk_wait_on(w->mem->team->ctx, &w->wait, word_wait_over);
}

static rank_status_t outcome(struct word *w)
{
    if (rk_likely(!w->dead))
        return RANK_OK;
    if (w->mem->ctx->closing)
        return RANK_ERR_CLOSED;
    if (!w->wait.peer)
        w->mem->deaths_reported = dead_writers(w->mem);
    return RANK_ERR_PEER_DEAD;
}

/* Set the sender of the awaited signal. wait: may the call wait for a connection? */
RK_INLINE rank_status_t set_writer(const char *call, struct word *w, const struct rank_mem *mem, int peer, bool wait)
{
    rank_status_t st = RANK_OK;
    struct rk_peer *p;

    if (peer == RANK_ANY_SOURCE)
        return RANK_OK;
    if ((unsigned)peer >= (unsigned)mem->team->size)
        return rk_mem_peer_else(call, peer, mem);
    p = rk_team_peer(mem->team, peer);
    if (!p)
        return RANK_ERR_NO_MEMORY;
    w->wait.peer = p;
    /* Without death reports a broken connection reveals it. */
    if (p->local < 0)
        st = wait ? rk_peer_connect(p) : rk_peer_try_connect(p);
    return rk_is_lost(st) || st == RK_AGAIN ? RANK_OK : st;
}

/* timeout_ns 0: test once; negative: for ever. stores: other writes than signals end the wait, too. */
RK_INLINE rank_status_t signal_wait(const char *call, rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value, int peer,
                                    int64_t timeout_ns, bool stores, uint64_t *seen)
{
    struct word w;
    rank_status_t st = signal_prepare(call, &w, mem, offset, cmp, value);

    if (rk_unlikely(st))
        return st;
    RK_ENTER(mem->ctx);
    if (rk_unlikely(mem->ctx->closing))
        return RANK_ERR_CLOSED;
    st = set_writer(call, &w, mem, peer, timeout_ns < 0);
    if (rk_unlikely(st))
        return rk_call_end(call, rk_peer_null_ok(st));
    if (timeout_ns) {
        w.wait.deadline = rk_wait_deadline(timeout_ns);
        wait_for_word(&w, stores);
    } else if (!word_is_so(&w)) {
        rk_progress_once(mem->ctx);
    }
    if (timeout_ns >= 0 && !word_is_so(&w))
        return RANK_ERR_TIMED_OUT;
    st = outcome(&w);
    if (!st && seen)
        *seen = w.seen;
    return st;
}

rank_status_t rank_wait_until(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value)
{
    return signal_wait(__func__, mem, offset, cmp, value, RANK_ANY_SOURCE, -1, true, NULL);
}

rank_status_t rank_signal_wait(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value,
                               int peer, uint64_t *seen)
{
    return signal_wait(__func__, mem, offset, cmp, value, peer, -1, false, seen);
}

rank_status_t rank_signal_wait_timed(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value, int peer,
                                     int64_t timeout_ns, uint64_t *seen)
{
    return signal_wait(__func__, mem, offset, cmp, value, peer, timeout_ns, false, seen);
}

rank_status_t rank_test_signal(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value, int peer, int *flag,
                               uint64_t *seen)
{
    rank_status_t st = flag ? signal_wait(__func__, mem, offset, cmp, value, peer, 0, false, seen) : rk_arg_null(__func__, "flag");

    if (st && st != RANK_ERR_TIMED_OUT)
        return st;
    *flag = !st;
    return RANK_OK;
}

RK_PUBLIC(rank_put_signal); RK_PUBLIC(rank_wait_until); RK_PUBLIC(rank_signal_wait);
RK_PUBLIC(rank_signal_wait_timed); RK_PUBLIC(rank_test_signal);
