/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_random.c: run random one-sided calls against a sequential model.
 *
 * One list of steps follows from the seed; every rank walks all of it, does its own steps with the library and
 * all of them in its model of every rank's memory. So that the model is the truth, a step touches only what
 * doc/rma.md settles. A byte is one rank's from its first touch until the next barrier (or until a signal
 * hands it to the owner of the memory). That rank puts a fence or a flush where order is needed, and only
 * there. Words at the end of each memory are added to by all. What calls bring is compared at once, one's own memory after
 * a signal's wait and at each barrier.
 *
 *   --rounds N --steps N (per round and rank) --seed N --delay N (see mp_delay)
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMS = 6, REGISTERED = 4 /* and those behind it */, SHARED = 5, SHARED_WORDS = 8, PIECES = 12, PENDING = 32 };
static const int64_t sizes[MEMS] = {300, 5000, 70000, 1100000, 20000, 30000};

static int shared_fd;

/* What the bytes of a rank's that it has touched wait for. */
enum dirt { CLEAN, BY_PUT, BY_AMO, BY_GET, FENCED };

struct memory {
    rank_mem_t to[64];        /* the handle to use for a rank: one and the same, or that of its key */
    rank_mem_t own;
    char *mine;
    unsigned char **model;    /* [size] */
    unsigned char **owner;    /* [size] 0: free, else a rank and 1 */
    unsigned char **dirt;     /* [size] */
};

struct pending {
    rank_request_t req;
    char *buf, *want; /* want: of a get */
    int64_t bytes;
};

struct program {
    struct mp mp;
    struct memory mem[MEMS];
    uint64_t plan, own;
    uint64_t *signals; /* [size x size] given so far, by source and target */
    struct pending pending[PENDING];
    int npending;
    int64_t step;
};

/* One step's bytes of one rank's memory. */
struct range {
    int mem, target;
    int n;
    rank_piece_t piece[PIECES]; /* local: set by the rank of the step */
    int64_t bytes, stride;      /* stride: they are equal blocks, so far apart */
};

static int64_t free_bytes(int m)
{
    return (sizes[m] & ~7ll) - 8 * SHARED_WORDS;
}

static uint64_t below(struct program *p, uint64_t n)
{
    return mp_below(&p->plan, n);
}

static void idle(struct program *p)
{
    mp_delay(&p->mp, &p->own);
    switch (mp_below(&p->own, 40)) {
    case 0:
        usleep((useconds_t)mp_below(&p->own, 300));
        break;
    case 1:
    case 2:
        sched_yield();
        break;
    case 3:
        rank_progress();
        break;
    default:
        break;
    }
}

/* ------------------------------------------------------------------------ making and ending */

static unsigned char **make_map(int n, int64_t bytes)
{
    unsigned char **map = calloc((size_t)n, sizeof(*map));

    MP_CHECK(map != NULL);
    for (int r = 0; r < n; r++) {
        map[r] = mp_alloc((size_t)bytes);
        memset(map[r], 0, (size_t)bytes);
    }
    return map;
}

static void free_map(unsigned char **map, int n)
{
    for (int r = 0; r < n; r++)
        free(map[r]);
    free(map);
}

/* Private, or such as peers of the node can map. */
static char *own_memory(int i)
{
    int fd = i == SHARED ? memfd_create("rma_random", MFD_CLOEXEC) : -1;
    char *mine;

    if (i != SHARED) {
        mine = mp_alloc((size_t)sizes[i]);
        memset(mine, 0, (size_t)sizes[i]);
        return mine;
    }
    MP_CHECK(fd >= 0 && ftruncate(fd, sizes[i]) == 0);
    mine = mmap(NULL, (size_t)sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MP_CHECK(mine != MAP_FAILED);
    shared_fd = fd;
    return mine;
}

static void register_mine(struct program *p, struct memory *m, int i)
{
    char key[RANK_RKEY_MAX], *keys = mp_alloc((size_t)p->mp.size * RANK_RKEY_MAX);
    size_t len = sizeof(key);

    memset(key, 0, sizeof(key));
    m->mine = own_memory(i);
    MP_OK(rank_reg(m->mine, sizes[i], &m->own));
    MP_OK(rank_rkey_pack(m->own, key, &len));
    MP_OK(rank_allgather(key, keys, RANK_RKEY_MAX, RANK_BYTE, p->mp.world));
    for (int r = 0; r < p->mp.size; r++) {
        size_t n = 0;
        int64_t mine = (int64_t)len;
        MP_OK(rank_bcast(&mine, 1, RANK_INT64, r, p->mp.world));
        n = (size_t)mine;
        MP_OK(rank_rkey_open(p->mp.world, r, keys + (size_t)r * RANK_RKEY_MAX, n, &m->to[r]));
    }
    free(keys);
}

static void make(struct program *p)
{
    for (int i = 0; i < MEMS; i++) {
        struct memory *m = &p->mem[i];
        if (i >= REGISTERED) {
            register_mine(p, m, i);
        } else {
            MP_OK(rank_alloc(p->mp.world, RANK_MEM_HOST, sizes[i], (void **)&m->mine, &m->own));
            for (int r = 0; r < p->mp.size; r++)
                m->to[r] = m->own;
        }
        m->model = make_map(p->mp.size, sizes[i]);
        m->owner = make_map(p->mp.size, sizes[i]);
        m->dirt = make_map(p->mp.size, sizes[i]);
    }
    p->signals = calloc((size_t)(p->mp.size * p->mp.size), sizeof(*p->signals));
    MP_CHECK(p->signals != NULL);
}

static void destroy(struct program *p)
{
    for (int i = 0; i < MEMS; i++) {
        struct memory *m = &p->mem[i];
        if (i >= REGISTERED) {
            for (int r = 0; r < p->mp.size; r++)
                MP_OK(rank_rkey_close(&m->to[r]));
            mp_barrier(p->mp.world);
            MP_OK(rank_dereg(&m->own));
            if (i == SHARED) {
                munmap(m->mine, (size_t)sizes[i]);
                close(shared_fd);
            } else {
                free(m->mine);
            }
        } else {
            MP_OK(rank_free(&m->own));
        }
        free_map(m->model, p->mp.size);
        free_map(m->owner, p->mp.size);
        free_map(m->dirt, p->mp.size);
    }
    free(p->signals);
}

/* ------------------------------------------------------------------------ what may be touched */

/* Signals of others lie in the first words of mem 1. */
static int64_t first_free(const struct program *p, int m)
{
    return m == 1 ? 8 * p->mp.size : 0;
}

/* A random range, whole words of width if that is not 0. */
static void choose(struct program *p, struct range *r, int npieces, int64_t width)
{
    int64_t at, end, most;

    memset(r, 0, sizeof(*r));
    r->mem = (int)below(p, MEMS);
    r->target = (int)below(p, (uint64_t)p->mp.size);
    at = first_free(p, r->mem);
    end = free_bytes(r->mem);
    if (width) {
        at += (int64_t)below(p, (uint64_t)((end - at) / width)) * width;
        r->piece[0] = (rank_piece_t){NULL, width, at};
        r->n = 1;
        r->bytes = width;
        return;
    }
    at += (int64_t)below(p, (uint64_t)(end - at));
    most = below(p, 10) == 0 ? 1 << 18 : below(p, 3) == 0 ? 9000 : 64;
    for (; r->n < npieces && at < end; r->n++) {
        int64_t n = (int64_t)below(p, (uint64_t)(most / npieces) + 2);
        if (n > end - at)
            n = end - at;
        r->piece[r->n] = (rank_piece_t){NULL, n, at};
        r->bytes += n;
        at += n + (int64_t)below(p, 50);
    }
}

/* The same, of equal blocks. */
static void choose_strided(struct program *p, struct range *r)
{
    choose(p, r, 1, 0);
    if (r->n == 0)
        return;
    r->piece[0].bytes = (int64_t)below(p, 200);
    r->stride = r->piece[0].bytes + (int64_t)below(p, 100);
    r->bytes = 0;
    for (r->n = 0; r->n < PIECES; r->n++) {
        rank_piece_t q = {NULL, r->piece[0].bytes, r->piece[0].offset + r->n * r->stride};
        if (q.offset + q.bytes > free_bytes(r->mem))
            break;
        r->piece[r->n] = q;
        r->bytes += q.bytes;
    }
}

/* Take the range for this rank if all of it is its own or free. */
static bool claim(struct program *p, const struct range *r, int actor)
{
    unsigned char *owner = p->mem[r->mem].owner[r->target];

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < r->n; i++) {
            for (int64_t k = r->piece[i].offset; k < r->piece[i].offset + r->piece[i].bytes; k++) {
                if (pass)
                    owner[k] = (unsigned char)(actor + 1);
                else if (owner[k] && owner[k] != actor + 1)
                    return false;
            }
        }
    }
    return true;
}

static bool has_dirt(const struct program *p, const struct range *r, enum dirt dirt)
{
    for (int i = 0; i < r->n; i++) {
        if (r->piece[i].bytes && memchr(p->mem[r->mem].dirt[r->target] + r->piece[i].offset, dirt, (size_t)r->piece[i].bytes))
            return true;
    }
    return false;
}

static void set_dirt(struct program *p, const struct range *r, enum dirt dirt)
{
    for (int i = 0; i < r->n; i++)
        memset(p->mem[r->mem].dirt[r->target] + r->piece[i].offset, dirt, (size_t)r->piece[i].bytes);
}

static void clean(struct program *p, int m, int target, int actor, bool fence)
{
    struct memory *mem = &p->mem[m];

    for (int64_t k = 0; k < sizes[m]; k++) {
        if (mem->owner[target][k] == actor + 1 && mem->dirt[target][k] && !(fence && mem->dirt[target][k] == BY_GET))
            mem->dirt[target][k] = fence ? FENCED : CLEAN;
    }
}

static void flush(struct program *p, int m, int target, int actor)
{
    clean(p, m, target, actor, false);
    if (actor == p->mp.rank)
        MP_OK(rank_flush(p->mem[m].to[target], target));
}

static void fence(struct program *p, int m, int target, int actor)
{
    for (int t = 0; t < p->mp.size; t++) {
        if (m < REGISTERED || t == target)
            clean(p, m, t, actor, true);
    }
    if (actor == p->mp.rank)
        MP_OK(rank_fence(p->mem[m].to[target]));
}

/* Order before a write of this sort, if what is there needs it. */
static void before_write(struct program *p, const struct range *r, int actor, enum dirt sort)
{
    bool needed = has_dirt(p, r, BY_PUT) || (sort == BY_PUT && has_dirt(p, r, BY_AMO));

    if (has_dirt(p, r, BY_GET)) /* gets are ordered by a flush only */
        flush(p, r->mem, r->target, actor);
    else if (needed && below(p, 3))
        fence(p, r->mem, r->target, actor);
    else if (needed)
        flush(p, r->mem, r->target, actor);
}

static void before_read(struct program *p, const struct range *r, int actor)
{
    if (has_dirt(p, r, BY_PUT) || has_dirt(p, r, BY_AMO) || has_dirt(p, r, FENCED))
        flush(p, r->mem, r->target, actor);
}

/* ------------------------------------------------------------------------ steps */

static void check_bytes(const struct program *p, const char *got, const void *want, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        if (got[i] != ((const char *)want)[i])
            mp_fail(__FILE__, __LINE__, "step %lld, %s: byte %lld of %lld is %d, not %d (--seed %llu)",
                    (long long)p->step, what, (long long)i, (long long)n, got[i], ((const char *)want)[i],
                    (unsigned long long)p->mp.seed);
    }
}

static void end_oldest(struct program *p)
{
    struct pending *o = &p->pending[0];

    MP_OK(rank_wait(&o->req, NULL));
    if (o->want)
        check_bytes(p, o->buf, o->want, o->bytes, "iget");
    free(o->buf);
    free(o->want);
    p->npending--;
    memmove(p->pending, p->pending + 1, (size_t)p->npending * sizeof(*o));
}

static struct pending *new_pending(struct program *p, int64_t bytes)
{
    if (p->npending == PENDING)
        end_oldest(p);
    p->pending[p->npending] = (struct pending){.buf = mp_alloc((size_t)bytes), .bytes = bytes};
    return &p->pending[p->npending++];
}

/* The bytes of a range in the model, to or from one buffer. */
static void model_copy(struct program *p, const struct range *r, char *buf, bool write)
{
    for (int i = 0; i < r->n; i++) {
        char *at = (char *)p->mem[r->mem].model[r->target] + r->piece[i].offset;
        memcpy(write ? at : buf, write ? buf : at, (size_t)r->piece[i].bytes);
        buf += r->piece[i].bytes;
    }
}

static void set_locals(struct range *r, char *buf)
{
    for (int i = 0; i < r->n; i++) {
        r->piece[i].local = buf;
        buf += r->piece[i].bytes;
    }
}

static void do_put(struct program *p, struct range *r, char *buf, int form)
{
    rank_mem_t to = p->mem[r->mem].to[r->target];
    struct pending *o;

    switch (form) {
    case 0:
        MP_OK(rank_put(buf, r->bytes, r->target, to, r->piece[0].offset));
        break;
    case 1:
        o = new_pending(p, r->bytes);
        memcpy(o->buf, buf, (size_t)r->bytes);
        MP_OK(rank_iput(o->buf, r->bytes, r->target, to, r->piece[0].offset, &o->req));
        break;
    case 2:
        set_locals(r, buf);
        MP_OK(rank_putv(r->piece, r->n, r->target, to));
        break;
    default:
        MP_OK(rank_put_strided(buf, r->piece[0].bytes, r->piece[0].bytes, r->n, r->target, to, r->piece[0].offset, r->stride));
    }
    if (form != 1)
        memset(buf, 0x5a, (size_t)r->bytes); /* locally complete: it is ours again */
}

static void choose_form(struct program *p, struct range *r, int form)
{
    if (form == 3)
        choose_strided(p, r);
    else
        choose(p, r, form == 2 ? 1 + (int)below(p, PIECES) : 1, 0);
}

static void step_put(struct program *p, int actor)
{
    int form = (int)below(p, 4);
    struct range r;
    char *buf;

    choose_form(p, &r, form);
    if (r.n == 0 || !claim(p, &r, actor))
        return;
    before_write(p, &r, actor, BY_PUT);
    buf = mp_alloc((size_t)r.bytes);
    mp_fill(buf, (size_t)r.bytes, (uint64_t)p->step);
    model_copy(p, &r, buf, true);
    set_dirt(p, &r, BY_PUT);
    if (actor == p->mp.rank)
        do_put(p, &r, buf, form);
    free(buf);
}

static void do_get(struct program *p, struct range *r, int form)
{
    rank_mem_t to = p->mem[r->mem].to[r->target];
    char *buf = mp_alloc((size_t)r->bytes), *want = mp_alloc((size_t)r->bytes);
    struct pending *o;

    model_copy(p, r, want, false);
    switch (form) {
    case 0:
        MP_OK(rank_get(buf, r->bytes, r->target, to, r->piece[0].offset));
        break;
    case 1:
        o = new_pending(p, r->bytes);
        o->want = want;
        MP_OK(rank_iget(o->buf, r->bytes, r->target, to, r->piece[0].offset, &o->req));
        free(buf);
        return;
    case 2:
        set_locals(r, buf);
        MP_OK(rank_getv(r->piece, r->n, r->target, to));
        break;
    default:
        MP_OK(rank_get_strided(buf, r->piece[0].bytes, r->piece[0].bytes, r->n, r->target, to, r->piece[0].offset, r->stride));
    }
    check_bytes(p, buf, want, r->bytes, "get");
    free(buf);
    free(want);
}

static void step_get(struct program *p, int actor)
{
    int form = (int)below(p, 4);
    struct range r;

    choose_form(p, &r, form);
    if (r.n == 0 || !claim(p, &r, actor))
        return;
    before_read(p, &r, actor);
    if (actor == p->mp.rank)
        do_get(p, &r, form);
    if (form == 1)
        set_dirt(p, &r, BY_GET);
}

/* What the update leaves, and whether it is one that has a result. */
static uint64_t updated(int amo, uint64_t old, uint64_t v)
{
    switch (amo) {
    case RANK_AMO_ADD:
    case RANK_AMO_FETCH_ADD:
        return old + v;
    case RANK_AMO_SWAP:
        return v;
    case RANK_AMO_AND:
    case RANK_AMO_FETCH_AND:
        return old & v;
    case RANK_AMO_OR:
    case RANK_AMO_FETCH_OR:
        return old | v;
    default:
        return old ^ v;
    }
}

static void step_amo(struct program *p, int actor)
{
    bool wide = below(p, 2), swap = below(p, 6) == 0;
    int amo = (int)below(p, RANK_AMO_FETCH_XOR + 1);
    uint64_t v = mp_random(&p->plan), old = 0, now = 0, got = 0, compare;
    struct range r;
    size_t w = wide ? 8 : 4;
    rank_dtype_t dtype = wide ? RANK_UINT64 : RANK_UINT32;
    bool hit = below(p, 2), result;
    unsigned char *at;

    choose(p, &r, 1, (int64_t)w);
    if (!claim(p, &r, actor))
        return;
    before_write(p, &r, actor, BY_AMO);
    at = p->mem[r.mem].model[r.target] + r.piece[0].offset;
    memcpy(&old, at, w);
    compare = hit ? old : v;
    now = swap ? (compare << (64 - 8 * w) == old << (64 - 8 * w) ? v : old) : updated(amo, old, v);
    memcpy(at, &now, w);
    set_dirt(p, &r, BY_AMO);
    if (actor != p->mp.rank)
        return;
    result = swap || amo == RANK_AMO_FETCH_ADD || amo == RANK_AMO_SWAP || amo == RANK_AMO_FETCH_AND ||
             amo == RANK_AMO_FETCH_OR || amo == RANK_AMO_FETCH_XOR;
    if (swap)
        MP_OK(rank_atomic_cas(dtype, &compare, &v, r.target, p->mem[r.mem].to[r.target], r.piece[0].offset, &got));
    else
        MP_OK(rank_atomic((rank_amo_t)amo, dtype, &v, r.target, p->mem[r.mem].to[r.target], r.piece[0].offset, result ? &got : NULL));
    if (result)
        check_bytes(p, (char *)&got, &old, (int64_t)w, "atomic");
}

/* All add to these; what comes of it shows at the barrier. */
static void step_add(struct program *p, int actor)
{
    int m = (int)below(p, MEMS), target = (int)below(p, (uint64_t)p->mp.size);
    int64_t at = free_bytes(m) + 8 * (int64_t)below(p, SHARED_WORDS);
    uint64_t v = mp_random(&p->plan), sum, was;

    memcpy(&sum, p->mem[m].model[target] + at, 8);
    sum += v;
    memcpy(p->mem[m].model[target] + at, &sum, 8);
    if (actor == p->mp.rank)
        MP_OK(rank_atomic(v & 1 ? RANK_AMO_ADD : RANK_AMO_FETCH_ADD, RANK_UINT64, &v, target, p->mem[m].to[target], at, &was));
}

/* Data with a signal behind it; then the target waits for that, and has the data. */
static void step_signal(struct program *p, int actor)
{
    uint64_t *count;
    struct range r;
    char *buf;
    bool add = below(p, 2);

    choose(p, &r, 1, 0);
    if (r.n == 0 || !claim(p, &r, actor))
        return;
    before_write(p, &r, actor, BY_PUT);
    buf = mp_alloc((size_t)r.bytes);
    mp_fill(buf, (size_t)r.bytes, (uint64_t)p->step);
    model_copy(p, &r, buf, true);
    count = &p->signals[actor * p->mp.size + r.target];
    ++*count;
    memcpy(p->mem[1].model[r.target] + 8 * actor, count, 8);
    if (actor == p->mp.rank)
        MP_OK(rank_put_signal(buf, r.bytes, r.target, p->mem[r.mem].to[r.target], r.piece[0].offset, p->mem[1].own,
                              8 * (int64_t)actor, add ? 1 : *count, add ? RANK_SIGNAL_ADD : RANK_SIGNAL_SET));
    free(buf);
    if (r.target == p->mp.rank) {
        MP_OK(rank_signal_wait(p->mem[1].own, 8 * (int64_t)actor, RANK_CMP_GE, *count, actor, NULL));
        check_bytes(p, p->mem[r.mem].mine + r.piece[0].offset,
                    p->mem[r.mem].model[r.target] + r.piece[0].offset, r.bytes, "signal's data");
    }
    set_dirt(p, &r, CLEAN);
    memset(p->mem[r.mem].owner[r.target] + r.piece[0].offset, r.target + 1, (size_t)r.bytes);
}

static void step(struct program *p, int actor)
{
    int m, t;

    switch (below(p, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        step_put(p, actor);
        break;
    case 4:
    case 5:
    case 6:
        step_get(p, actor);
        break;
    case 7:
        step_amo(p, actor);
        break;
    case 8:
        step_add(p, actor);
        break;
    case 9:
        step_signal(p, actor);
        break;
    case 10:
        m = (int)below(p, MEMS);
        t = (int)below(p, (uint64_t)p->mp.size);
        if (below(p, 2))
            flush(p, m, t, actor);
        else
            fence(p, m, t, actor);
        break;
    default:
        m = (int)below(p, MEMS);
        t = (int)below(p, (uint64_t)p->mp.size);
        if (actor == p->mp.rank && mp_below(&p->own, 2))
            MP_OK(rank_flush_local(p->mem[m].to[t], t));
        else if (actor == p->mp.rank && p->npending)
            end_oldest(p);
    }
}

static void settle(struct program *p)
{
    while (p->npending)
        end_oldest(p);
    for (int m = 0; m < MEMS; m++) {
        for (int t = 0; t < p->mp.size; t++)
            MP_OK(rank_flush(p->mem[m].to[t], m >= REGISTERED ? t : RANK_ALL));
    }
    MP_OK(rank_barrier(p->mp.world));
    for (int m = 0; m < MEMS; m++) {
        check_bytes(p, p->mem[m].mine, p->mem[m].model[p->mp.rank], sizes[m], "at the barrier");
        for (int t = 0; t < p->mp.size; t++) {
            memset(p->mem[m].owner[t], 0, (size_t)sizes[m]);
            memset(p->mem[m].dirt[t], CLEAN, (size_t)sizes[m]);
        }
    }
    MP_OK(rank_barrier(p->mp.world)); /* no rank writes while another reads */
}

int main(int argc, char **argv)
{
    struct program p = {0};
    int64_t rounds, steps;

    mp_start(&p.mp, &argc, argv);
    rounds = mp_rounds(mp_option(argc, argv, "--rounds", 8));
    steps = mp_option(argc, argv, "--steps", 60);
    MP_CHECK(p.mp.size <= 64);
    p.plan = p.mp.seed;
    p.own = p.mp.seed ^ (uint64_t)(p.mp.rank + 1) * 7919;
    mp_case(&p.mp, "random");
    make(&p);
    for (int64_t i = 0; i < rounds; i++) {
        for (int64_t k = 0; k < steps * p.mp.size; k++, p.step++) {
            step(&p, (int)below(&p, (uint64_t)p.mp.size));
            idle(&p);
        }
        settle(&p);
    }
    destroy(&p);
    mp_end(&p.mp);
    return 0;
}
