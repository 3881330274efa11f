/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rights_model.c: see rights_model.h.
 *
 * Both sides draw the memories of both from the same random numbers. Only the other side writes to a memory, so it has a
 * model of the contents. Calls without the right, or out of bounds, must fail and change nothing.
 */
#include "tests/conn/rights_model.h"
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND 1000000000ll
enum { AREAS = 7, SIZE_MAX_BYTES = 9000, CALLS = 60, TAG = 77, PAGE = 4096 };

/* Memory of: malloc; rank_ctx_alloc; a memfd; pages that are read-only. */
enum sort { PRIVATE, ALLOCATED, SHARED, PROTECTED, SORTS };

struct area {
    enum sort sort;
    size_t bytes;
    unsigned access; /* what is permitted */
    unsigned char *at;
    int fd; /* SHARED: -1: closed */
    rank_mem_t mem;
};

struct rights {
    rank_ctx_t ctx;
    rank_team_t team;
    int other;
    uint64_t common, own;      /* random numbers: the same on both sides, and not */
    struct area mine[AREAS], theirs[AREAS]; /* theirs: at is the model, mem the opened key */
    char *list, *their_list;
    size_t len, their_len;
    unsigned char local[SIZE_MAX_BYTES + 64];
};

/* Both sides have come here; each makes progress until then. */
static void meet(struct rights *r)
{
    char out = 1, in = 0;

    MP_OK(rank_sendrecv(&out, 1, RANK_BYTE, r->other, TAG, &in, 1, RANK_BYTE, r->other, TAG, r->team, NULL));
    MP_CHECK(in == 1);
}

/* ------------------------------------------------------------------------ memories */

static void draw_areas(struct rights *r, struct area *areas)
{
    for (int i = 0; i < AREAS; i++) {
        areas[i].sort = (enum sort)mp_below(&r->common, SORTS);
        areas[i].bytes = mp_below(&r->common, 8) ? 16 + mp_below(&r->common, SIZE_MAX_BYTES - 16) : 0;
        areas[i].access = 1 + (unsigned)mp_below(&r->common, 3);
    }
}

static unsigned char content(int side, int i, size_t k)
{
    return (unsigned char)(side * 101 + i * 13 + (int)(k * 7 + (k >> 8)));
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE) & ~(size_t)(PAGE - 1);
}

static void make_area(struct rights *r, struct area *a, int side, int i)
{
    size_t room = pages(a->bytes);
    void *at = NULL;
    int fd = -1;

    a->fd = -1;
    if (a->sort == ALLOCATED) {
        MP_OK(rank_ctx_alloc(r->ctx, (int64_t)a->bytes, a->access, &at, &a->mem));
        for (size_t k = 0; k < a->bytes; k++)
            MP_CHECK(((char *)at)[k] == 0);
    } else {
        if (a->sort == SHARED) {
            fd = memfd_create("rights", MFD_CLOEXEC);
            MP_CHECK(fd >= 0 && ftruncate(fd, (off_t)room) == 0);
        }
        at = mmap(NULL, room, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
        MP_CHECK(at != MAP_FAILED);
        if (fd >= 0 && mp_below(&r->own, 2))
            close(fd);
        else
            a->fd = fd;
    }
    a->at = at;
    for (size_t k = 0; k < a->bytes; k++)
        a->at[k] = content(side, i, k);
    if (a->sort == PROTECTED)
        MP_CHECK(mprotect(at, room, PROT_READ) == 0);
    if (a->sort != ALLOCATED)
        MP_OK(rank_ctx_reg(r->ctx, at, (int64_t)a->bytes, a->access, &a->mem));
}

/* What a peer may do. */
static unsigned rights_of(const struct area *a)
{
    return a->sort == PROTECTED && a->bytes ? a->access & ~(unsigned)RANK_ACCESS_WRITE : a->access;
}

/* --------------------------------------------------------------------------- lists */

static void pack(struct rights *r, size_t n)
{
    rank_mem_t mems[AREAS];
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        mems[i] = r->mine[i].mem;
    MP_OK(rank_rkeys_pack((int64_t)n, mems, NULL, &r->len));
    r->list = malloc(r->len);
    MP_CHECK(r->list);
    len = r->len - 1;
    MP_STATUS(rank_rkeys_pack((int64_t)n, mems, r->list, &len), RANK_ERR_TRUNCATED);
    MP_CHECK(len == r->len);
    MP_OK(rank_rkeys_pack((int64_t)n, mems, r->list, &len));
    MP_CHECK(len == r->len);
}

static void exchange(struct rights *r)
{
    int64_t out = (int64_t)r->len, in = 0;

    MP_OK(rank_sendrecv(&out, 1, RANK_INT64, r->other, TAG, &in, 1, RANK_INT64, r->other, TAG, r->team, NULL));
    r->their_len = (size_t)in;
    r->their_list = malloc(r->their_len);
    MP_CHECK(r->their_list);
    MP_OK(rank_sendrecv(r->list, out, RANK_BYTE, r->other, TAG, r->their_list, in, RANK_BYTE, r->other, TAG, r->team, NULL));
}

/* Nothing opens but the whole list. */
static void open_bad(struct rights *r)
{
    rank_mem_t mems[AREAS] = {NULL};
    int64_t n = AREAS - 1;
    size_t at = mp_below(&r->own, r->their_len);
    char bit = (char)(1 << mp_below(&r->own, 8));

    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, mems), RANK_ERR_TRUNCATED);
    MP_CHECK(n == AREAS);
    r->their_list[at] = (char)(r->their_list[at] ^ bit);
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, mems), RANK_ERR_HANDLE);
    r->their_list[at] = (char)(r->their_list[at] ^ bit);
    n = AREAS;
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, mp_below(&r->own, r->their_len), &n, mems), RANK_ERR_HANDLE);
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->list, r->len, &n, mems), RANK_ERR_HANDLE); /* of this side */
    for (int i = 0; i < AREAS; i++)
        MP_CHECK(!mems[i]);
    n = -1;
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, mems), RANK_ERR_COUNT);
    n = AREAS;
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_rkeys_open(r->team, 99, r->their_list, r->their_len, &n, mems), RANK_ERR_RANK);
    MP_STATUS(rank_rkeys_open(r->team, r->other, NULL, 9, &n, mems), RANK_ERR_ARG);
    MP_STATUS(rank_rkeys_pack(-1, mems, NULL, &at), RANK_ERR_COUNT);
    MP_STATUS(rank_rkeys_pack(1, mems, NULL, &at), RANK_ERR_HANDLE);
    MP_STATUS(rank_rkeys_pack(1, NULL, NULL, &at), RANK_ERR_ARG);
}

static void open_list(struct rights *r, int side)
{
    rank_mem_t mems[AREAS] = {NULL};
    int64_t n = AREAS;

    MP_OK(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, mems));
    MP_CHECK(n == AREAS);
    for (int i = 0; i < AREAS; i++) {
        struct area *a = &r->theirs[i];

        a->mem = mems[i];
        a->at = malloc(a->bytes + 1);
        MP_CHECK(a->at);
        for (size_t k = 0; k < a->bytes; k++)
            a->at[k] = content(side, i, k);
    }
}

/* --------------------------------------------------------------------------- calls */

enum call { PUT, GET, IPUT, IGET, PUTV, GETV, WRITE_LIST, READ_LIST, ADD, FETCH_ADD, CAS, SIGNAL, MAPPED, NCALLS };

static bool reads(enum call call)
{
    return call == GET || call == IGET || call == GETV || call == READ_LIST || call == FETCH_ADD || call == CAS;
}

static bool writes(enum call call)
{
    return !reads(call) || call == FETCH_ADD || call == CAS;
}

static rank_status_t with_request(rank_status_t st, rank_request_t *req)
{
    return st ? st : rank_wait(req, NULL);
}

/* Call, and do the same to the model if it should work. offset: a multiple of 8; bytes: for words 8. */
static rank_status_t call_both(struct rights *r, struct area *a, enum call call, size_t offset, size_t bytes, bool works)
{
    rank_piece_t two[2] = {{r->local, (int64_t)bytes / 2, (int64_t)offset},
                           {r->local + bytes / 2, (int64_t)(bytes - bytes / 2), (int64_t)(offset + bytes / 2)}};
    rank_block_t blocks[2] = {{two[0].local, two[0].bytes, a->mem, two[0].offset}, {two[1].local, two[1].bytes, a->mem, two[1].offset}};
    uint64_t value = mp_random(&r->own), was = 0, got = 0, *model = &was;
    rank_request_t req = RANK_REQUEST_NULL;
    int64_t at = (int64_t)offset;
    rank_status_t st;

    for (size_t k = 0; k < bytes; k++)
        r->local[k] = (unsigned char)(value + k * 3);
    if (works && bytes == 8)
        memcpy(model, a->at + offset, 8);
    switch (call) {
    case PUT:
        st = rank_put(r->local, (int64_t)bytes, r->other, a->mem, at);
        break;
    case GET:
        st = rank_get(r->local, (int64_t)bytes, r->other, a->mem, at);
        break;
    case IPUT:
        st = with_request(rank_iput(r->local, (int64_t)bytes, r->other, a->mem, at, &req), &req);
        break;
    case IGET:
        st = with_request(rank_iget(r->local, (int64_t)bytes, r->other, a->mem, at, &req), &req);
        break;
    case PUTV:
        st = rank_putv(two, 2, r->other, a->mem);
        break;
    case GETV:
        st = rank_getv(two, 2, r->other, a->mem);
        break;
    case WRITE_LIST:
    case READ_LIST:
        st = with_request(rank_xfer(call == WRITE_LIST ? RANK_XFER_WRITE : RANK_XFER_READ, blocks, 2, r->other, r->team, NULL, &req), &req);
        break;
    case ADD:
        st = rank_atomic(RANK_AMO_ADD, RANK_UINT64, &value, r->other, a->mem, at, NULL);
        break;
    case FETCH_ADD:
        st = rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &value, r->other, a->mem, at, &got);
        break;
    case CAS:
        st = rank_atomic_cas(RANK_UINT64, &was, &value, r->other, a->mem, at, &got);
        break;
    default:
        st = rank_put_signal(r->local, (int64_t)bytes - 8, r->other, a->mem, at, a->mem, (int64_t)(offset + bytes - 8), value,
                             RANK_SIGNAL_SET);
    }
    if (st || !works)
        return st;
    if (reads(call) && !writes(call)) {
        MP_CHECK(memcmp(r->local, a->at + offset, bytes) == 0);
        return st;
    }
    MP_CHECK(!reads(call) || got == was);
    if (call == ADD || call == FETCH_ADD)
        value += was;
    else if (call != CAS && call != SIGNAL)
        memcpy(a->at + offset, r->local, bytes);
    if (call == SIGNAL)
        memcpy(a->at + offset, r->local, bytes - 8);
    if (call == ADD || call == FETCH_ADD || call == CAS || call == SIGNAL)
        memcpy(a->at + offset + bytes - 8, &value, 8);
    return rank_flush(a->mem, r->other);
}

/* The mapping of memory that may be read, if there is one. */
static void look_at_mapping(struct rights *r, const struct area *a)
{
    void *ptr = NULL;

    MP_OK(rank_ptr(a->mem, r->other, &ptr));
    MP_CHECK(!ptr || (rights_of(a) & RANK_ACCESS_READ));
    if (ptr)
        MP_CHECK(memcmp(ptr, a->at, a->bytes) == 0);
}

static void call_once(struct rights *r)
{
    struct area *a = &r->theirs[mp_below(&r->own, AREAS)];
    enum call call = (enum call)mp_below(&r->own, NCALLS);
    bool word = call == ADD || call == FETCH_ADD || call == CAS, beyond = mp_below(&r->own, 10) == 0, may;
    size_t words = a->bytes / 8, offset, bytes;
    rank_status_t want;

    if (words < 2)
        return;
    if (call == MAPPED) {
        look_at_mapping(r, a);
        return;
    }
    offset = 8 * mp_below(&r->own, words - 1);
    bytes = word ? 8 : call == SIGNAL ? 16 : 1 + mp_below(&r->own, a->bytes - offset);
    if (beyond)
        offset = 8 * (a->bytes / 8 + (a->bytes % 8 != 0)) + (word || call == SIGNAL ? 0 : 8);
    may = (!reads(call) || (rights_of(a) & RANK_ACCESS_READ)) && (!writes(call) || (rights_of(a) & RANK_ACCESS_WRITE));
    want = beyond ? RANK_ERR_BOUNDS : may ? RANK_OK : RANK_ERR_ARG;
    if (!may && (call == WRITE_LIST || call == READ_LIST)) /* the memory is checked before the range */
        want = RANK_ERR_ARG;
    MP_STATUS(call_both(r, a, call, offset, bytes, !beyond && may), want);
}

/* The owner's contents are those of the model. */
static void compare(struct rights *r)
{
    for (int i = 0; i < AREAS; i++) {
        struct area *mine = &r->mine[i], *theirs = &r->theirs[i];
        unsigned char *in = malloc(theirs->bytes + 1);

        MP_CHECK(in);
        MP_OK(rank_sendrecv(mine->at, (int64_t)mine->bytes, RANK_BYTE, r->other, TAG, in, (int64_t)theirs->bytes, RANK_BYTE, r->other, TAG,
                            r->team, NULL));
        MP_CHECK(memcmp(in, theirs->at, theirs->bytes) == 0);
        free(in);
    }
}

/* ----------------------------------------------------------------------------- end */

/* No call works on memory that its owner has ended. */
static void call_ended(struct rights *r, const struct area *a)
{
    int64_t n = AREAS;
    rank_mem_t mems[AREAS] = {NULL};
    rank_request_t req = RANK_REQUEST_NULL;
    rank_status_t st;
    void *ptr;

    if (a->bytes && (rights_of(a) & RANK_ACCESS_READ))
        MP_STATUS(rank_get(r->local, 1, r->other, a->mem, 0), RANK_ERR_HANDLE);
    if (a->bytes && (rights_of(a) & RANK_ACCESS_READ))
        MP_STATUS(with_request(rank_xfer(RANK_XFER_READ, &(rank_block_t){r->local, 1, a->mem, 0}, 1, r->other, r->team, NULL, &req), &req),
              RANK_ERR_HANDLE);
    if (a->bytes && (rights_of(a) & RANK_ACCESS_WRITE)) {
        st = rank_put(r->local, 1, r->other, a->mem, 0);
        MP_STATUS(st ? st : rank_flush(a->mem, r->other), RANK_ERR_HANDLE);
    }
    if (rank_ptr(a->mem, r->other, &ptr) == RANK_OK)
        MP_CHECK(!ptr);
    MP_STATUS(rank_rkeys_open(r->team, r->other, r->their_list, r->their_len, &n, mems), RANK_ERR_HANDLE);
    MP_CHECK(!mems[0] && !mems[AREAS - 1]);
}

static void unmap(const struct area *a)
{
    if (a->sort != ALLOCATED)
        munmap(a->at, pages(a->bytes));
    if (a->fd >= 0)
        close(a->fd);
}

/* One side after the other: the owner ends a registration while the other side makes progress. */
static void end_one(struct rights *r, bool owner, int i)
{
    if (owner) {
        MP_OK(rank_dereg_timed(&r->mine[i].mem, 30 * SECOND));
        MP_CHECK(r->mine[i].mem == RANK_MEM_NULL);
        unmap(&r->mine[i]);
    }
    meet(r);
    if (!owner)
        call_ended(r, &r->theirs[i]);
    meet(r);
}

static void round_of(struct rights *r, int side)
{
    int first = (int)mp_below(&r->common, AREAS), second = (int)mp_below(&r->common, AREAS);

    draw_areas(r, side ? r->theirs : r->mine);
    draw_areas(r, side ? r->mine : r->theirs);
    for (int i = 0; i < AREAS; i++)
        make_area(r, &r->mine[i], side, i);
    pack(r, AREAS);
    exchange(r);
    open_bad(r);
    open_list(r, 1 - side);
    for (int i = 0; i < CALLS; i++)
        call_once(r);
    meet(r);
    compare(r);
    end_one(r, side == 0, first);
    end_one(r, side == 1, second);
    for (int i = 0; i < AREAS; i++) {
        MP_OK(rank_rkey_close(&r->theirs[i].mem));
        free(r->theirs[i].at);
    }
    meet(r);
    for (int i = 0; i < AREAS; i++) {
        if (r->mine[i].mem == RANK_MEM_NULL)
            continue;
        MP_OK(rank_dereg(&r->mine[i].mem));
        unmap(&r->mine[i]);
    }
    free(r->list);
    free(r->their_list);
}

void rights_run(rank_ctx_t ctx, rank_team_t team, int other, uint64_t seed, int rounds)
{
    struct rights *r = calloc(1, sizeof(*r));
    int side = rank_team_rank(team) > other;

    MP_CHECK(r);
    r->ctx = ctx;
    r->team = team;
    r->other = other;
    r->common = seed;
    r->own = seed * 2 + (uint64_t)side + 1000;
    for (int i = 0; i < rounds; i++)
        round_of(r, side);
    free(r);
}

void rights_many(rank_ctx_t ctx, rank_team_t team, int other, int n)
{
    struct rights r = {.ctx = ctx, .team = team, .other = other};
    rank_mem_t *mems = calloc((size_t)n, sizeof(rank_mem_t)), *theirs = calloc((size_t)n, sizeof(rank_mem_t));
    int side = rank_team_rank(team) > other;
    int64_t found = n, x;
    int64_t *words = calloc((size_t)n, 64);

    MP_CHECK(mems && theirs && words);
    for (int i = 0; i < n; i++) {
        words[8 * i] = side * n + i;
        MP_OK(rank_ctx_reg(ctx, words + 8 * i, 64, RANK_ACCESS_READ, &mems[i]));
    }
    MP_OK(rank_rkeys_pack(n, mems, NULL, &r.len));
    r.list = malloc(r.len);
    MP_CHECK(r.list);
    MP_OK(rank_rkeys_pack(n, mems, r.list, &r.len));
    exchange(&r);
    MP_OK(rank_rkeys_open(team, other, r.their_list, r.their_len, &found, theirs));
    MP_CHECK(found == n);
    for (int i = 0; i < n; i += 1 + n / 100) {
        MP_OK(rank_get(&x, 8, other, theirs[i], 0));
        MP_CHECK(x == (1 - side) * n + i);
    }
    for (int i = 0; i < n; i++)
        MP_OK(rank_rkey_close(&theirs[i]));
    meet(&r);
    for (int i = 0; i < n; i++)
        MP_OK(rank_dereg(&mems[i]));
    free(words);
    free(mems);
    free(theirs);
    free(r.list);
    free(r.their_list);
}
