/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * putv_vs_ucx.c: put many small pieces by rank_putv, and by a loop of UCX's puts.
 * Each with its flush.
 *
 *   xrun -n 2 [--host A,B] bench/putv_vs_ucx [ROUNDS [PIECES [BYTES]]]
 *
 * 256 pieces of 1 KiB, together at rank 0 and 2 KiB apart at rank 1, as parts of a matrix are. Both
 * ways take turns in one pair of processes, on one UCX (LD_LIBRARY_PATH names it). Rank 0 writes its buffer before each
 * turn; rank 1 reads all of its after it and finds each word right. Three targets: memory that the library (UCX)
 * has allocated itself, which the processes of a host map, private memory, which they do not, and shared memory of the program's. While UCX puts, rank 1 makes progress of UCX's worker alone, as it needs that between hosts_bench.py.
 */
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { ROUNDS = 300, ROUNDS_MAX = 10000, PIECES = 256, PIECES_MAX = 65536, BYTES = 1024, GAP = 2, TAG = 1,
       CARD_MAX = 4096 };

/* A target: memory that the library (UCX) has allocated itself, from anywhere, or shared, from anywhere. */
enum sort { OWN, ANY, SHARED };

/* One, and what each side needs to put there. */
struct place {
    char *base;             /* rank 1's */
    int fd;                 /* where it is SHARED */
    rank_mem_t mem, key;    /* registered; opened, or of rank_alloc */
    ucp_mem_h ucp;
    ucp_rkey_h rkey;
    uint64_t remote;
};

static rank_team_t world;
static int me;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static char *src;
static size_t pieces = PIECES, piece = BYTES, room;
static uint64_t *word_src; /* the word that follows UCX's puts */

__attribute__((noreturn)) static void die(const char *call, const char *why)
{
    char text[256];

    snprintf(text, sizeof(text), "pieces: %s: %s", call, why);
    rank_abort(1, text);
    abort();
}

static void putv_vs_ucx_must(rank_status_t st, const char *call)
{
    if (st)
        die(call, rank_status_string(st));
}

static void ucx_must(ucs_status_t st, const char *call)
{
    if (st != UCS_OK)
        die(call, ucs_status_string(st));
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void putv_vs_ucx_send(const void *buf, size_t bytes)
{
    putv_vs_ucx_must(rank_send(buf, (int64_t)bytes, RANK_BYTE, 1 - me, TAG, world), "rank_send");
}

static size_t putv_vs_ucx_recv(void *buf, size_t bytes)
{
    rank_envelope_t e;

    putv_vs_ucx_must(rank_recv(buf, (int64_t)bytes, RANK_BYTE, 1 - me, TAG, world, &e), "rank_recv");
    return (size_t)e.count;
}

/* ------------------------------------------------------------------------------- UCX */

static void putv_vs_ucx_finish(ucs_status_ptr_t req, const char *call)
{
    ucs_status_t st;

    if (!UCS_PTR_IS_PTR(req)) {
        ucx_must(UCS_PTR_STATUS(req), call);
        return;
    }
    while ((st = ucp_request_check_status(req)) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    ucp_request_free(req);
    ucx_must(st, call);
}

static void putv_vs_ucx_open_ucx(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
    ucp_worker_params_t wparams = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_ep_params_t eparams = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    char theirs[CARD_MAX];
    ucp_config_t *config;
    ucp_address_t *mine;
    size_t len;

    ucx_must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    ucx_must(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    ucx_must(ucp_worker_create(context, &wparams, &worker), "ucp_worker_create");
    ucx_must(ucp_worker_get_address(worker, &mine, &len), "ucp_worker_get_address");
    if (me == 0) {
        putv_vs_ucx_send(mine, len);
        putv_vs_ucx_recv(theirs, sizeof(theirs));
    } else {
        putv_vs_ucx_recv(theirs, sizeof(theirs));
        putv_vs_ucx_send(mine, len);
    }
    ucp_worker_release_address(worker, mine);
    eparams.address = (const ucp_address_t *)theirs;
    ucx_must(ucp_ep_create(worker, &eparams, &ep), "ucp_ep_create");
}

/* Both are in it until both have left: UCX's close may need the other one's progress. */
static void close_ucx(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    rank_request_t met;
    ucs_status_ptr_t req = ucp_ep_close_nbx(ep, &none);
    int done = 0;

    putv_vs_ucx_must(rank_ibarrier(world, &met), "rank_ibarrier");
    while (!done) {
        ucp_worker_progress(worker);
        putv_vs_ucx_must(rank_test(&met, &done, NULL), "rank_test");
    }
    if (UCS_PTR_IS_PTR(req))
        ucp_request_free(req);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

/* A byte of the other's, while UCX goes on: its flush needs that. */
static void serve_until_heard(void)
{
    rank_request_t req;
    int done = 0;
    char c;

    putv_vs_ucx_must(rank_irecv(&c, 1, RANK_BYTE, 1 - me, TAG, world, &req), "rank_irecv");
    while (!done) {
        ucp_worker_progress(worker);
        putv_vs_ucx_must(rank_test(&req, &done, NULL), "rank_test");
    }
}

static void loop_of_puts(const struct place *p)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    for (size_t i = 0; i < pieces; i++) {
        ucs_status_ptr_t req = ucp_put_nbx(ep, src + i * piece, piece, p->remote + GAP * i * piece, p->rkey, &none);
        if (UCS_PTR_IS_ERR(req))
            ucx_must(UCS_PTR_STATUS(req), "ucp_put_nbx");
        if (UCS_PTR_IS_PTR(req))
            ucp_request_free(req); /* the flush waits for it */
    }
    putv_vs_ucx_finish(ucp_ep_flush_nbx(ep, &none), "ucp_ep_flush_nbx");
}

/* ---------------------------------------------------------------------------- places */

static void *putv_vs_ucx_make_memory(struct place *p, bool shared)
{
    void *base = MAP_FAILED;

    if (!shared) {
        if (posix_memalign(&base, 4096, room))
            die("posix_memalign", "out of memory");
        return base;
    }
    p->fd = memfd_create("pieces", MFD_CLOEXEC);
    if (p->fd >= 0 && ftruncate(p->fd, (off_t)room) == 0)
        base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (base == MAP_FAILED)
        die("memfd_create", "no shared memory");
    return base;
}

static void make_for_us(struct place *p, enum sort sort)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    void *base = NULL;

    if (sort == OWN) {
        putv_vs_ucx_must(rank_alloc(world, RANK_MEM_HOST, (int64_t)room, &base, &p->key), "rank_alloc");
        p->base = base;
        return;
    }
    if (me == 0) {
        len = putv_vs_ucx_recv(key, sizeof(key));
        putv_vs_ucx_must(rank_rkey_open(world, 1, key, len, &p->key), "rank_rkey_open");
        putv_vs_ucx_send("", 1);
        return;
    }
    p->base = base = putv_vs_ucx_make_memory(p, sort == SHARED);
    putv_vs_ucx_must(rank_reg(base, (int64_t)room, &p->mem), "rank_reg");
    putv_vs_ucx_must(rank_rkey_pack(p->mem, key, &len), "rank_rkey_pack");
    putv_vs_ucx_send(key, len);
    putv_vs_ucx_recv(key, 1);
}

static void make_for_ucx(struct place *p, enum sort sort)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .length = room};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    char key[CARD_MAX];
    void *packed, *base = NULL;
    size_t len;

    if (me == 0) {
        putv_vs_ucx_recv(&p->remote, sizeof(p->remote));
        putv_vs_ucx_recv(key, sizeof(key));
        ucx_must(ucp_ep_rkey_unpack(ep, key, &p->rkey), "ucp_ep_rkey_unpack");
        return;
    }
    if (sort == OWN)
        params.flags = UCP_MEM_MAP_ALLOCATE;
    else
        base = putv_vs_ucx_make_memory(p, sort == SHARED);
    params.address = base;
    ucx_must(ucp_mem_map(context, &params, &p->ucp), "ucp_mem_map");
    ucx_must(ucp_mem_query(p->ucp, &attr), "ucp_mem_query");
    p->base = attr.address;
    p->remote = (uint64_t)(uintptr_t)attr.address;
    ucx_must(ucp_rkey_pack(context, p->ucp, &packed, &len), "ucp_rkey_pack");
    putv_vs_ucx_send(&p->remote, sizeof(p->remote));
    putv_vs_ucx_send(packed, len);
    ucp_rkey_buffer_release(packed);
}

static void putv_vs_ucx_drop(struct place *p, bool ours, enum sort sort)
{
    if (ours && sort == OWN) {
        putv_vs_ucx_must(rank_free(&p->key), "rank_free");
        return;
    }
    if (me == 0 && ours)
        putv_vs_ucx_must(rank_rkey_close(&p->key), "rank_rkey_close");
    if (me == 0 && !ours)
        ucp_rkey_destroy(p->rkey);
    putv_vs_ucx_must(rank_barrier(world), "rank_barrier");
    if (me == 1 && ours)
        putv_vs_ucx_must(rank_dereg(&p->mem), "rank_dereg");
    if (me == 1 && !ours)
        ucp_mem_unmap(context, p->ucp);
    if (me == 1 && sort == ANY)
        free(p->base);
    if (me == 1 && sort == SHARED) {
        munmap(p->base, room);
        close(p->fd);
    }
}

/* ----------------------------------------------------------------------------- turns */

static uint64_t putv_vs_ucx_word_of(uint64_t turn, size_t i)
{
    return (turn << 32) + i;
}

static void putv_vs_ucx_check(const struct place *p, uint64_t turn)
{
    uint64_t bad = 0;

    for (size_t i = 0; i < pieces; i++) {
        const uint64_t *at = (const uint64_t *)(const void *)(p->base + GAP * i * piece);
        for (size_t k = 0; k < piece / 8; k++)
            bad |= at[k] ^ putv_vs_ucx_word_of(turn, i * piece / 8 + k);
    }
    if (bad)
        die("the data", "wrong");
}

/* The time of one; 0 at rank 1. */
static double turn_of(struct place *p, const rank_piece_t *list, bool ours, uint64_t turn)
{
    volatile uint64_t *word = (volatile uint64_t *)(void *)(p->base + room - 8);
    char c = 0;
    double t;

    if (me == 0) {
        ucp_request_param_t none = {.op_attr_mask = 0};

        for (size_t i = 0; i < pieces * piece / 8; i++)
            ((uint64_t *)(void *)src)[i] = putv_vs_ucx_word_of(turn, i);
        putv_vs_ucx_recv(&c, 1);
        t = now_us();
        if (ours) {
            putv_vs_ucx_must(rank_putv(list, (int64_t)pieces, 1, p->key), "rank_putv");
            putv_vs_ucx_must(rank_flush(p->key, 1), "rank_flush");
        } else {
            loop_of_puts(p);
        }
        t = now_us() - t;
        if (!ours) {
            *word_src = turn;
            putv_vs_ucx_finish(ucp_put_nbx(ep, word_src, 8, p->remote + room - 8, p->rkey, &none), "ucp_put_nbx");
            putv_vs_ucx_finish(ucp_ep_flush_nbx(ep, &none), "ucp_ep_flush_nbx");
        }
        putv_vs_ucx_send(&c, 1);
        return t;
    }
    putv_vs_ucx_send(&c, 1);
    if (!ours) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != turn)
            ucp_worker_progress(worker);
        serve_until_heard();
    } else {
        putv_vs_ucx_recv(&c, 1);
    }
    putv_vs_ucx_check(p, turn);
    return 0;
}

static int putv_vs_ucx_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const char *name, const char *by, double us, const char *what)
{
    char full[64];

    snprintf(full, sizeof(full), "pieces_%s_%s", name, by);
    printf("%-24s %9.4g %-5s %s\n", full, us, "us", what);
}

static void putv_vs_ucx_compare(const char *name, enum sort sort, int rounds)
{
    static double v[2][ROUNDS_MAX];
    static uint64_t turn;
    rank_piece_t *list = calloc(pieces, sizeof(*list));
    struct place ours = {0}, theirs = {0};

    if (!list)
        die("calloc", "out of memory");
    for (size_t i = 0; i < pieces; i++)
        list[i] = (rank_piece_t){src + i * piece, (int64_t)piece, (int64_t)(GAP * i * piece)};
    make_for_us(&ours, sort);
    make_for_ucx(&theirs, sort);
    for (int i = -rounds / 10 - 1; i < rounds; i++) {
        int at = i < 0 ? 0 : i;
        v[0][at] = turn_of(&ours, list, true, ++turn);
        v[1][at] = turn_of(&theirs, list, false, ++turn);
    }
    if (me == 0) {
        qsort(v[0], (size_t)rounds, sizeof(double), putv_vs_ucx_ascending);
        qsort(v[1], (size_t)rounds, sizeof(double), putv_vs_ucx_ascending);
        print(name, "putv", v[0][rounds / 2], "rank_putv and rank_flush");
        print(name, "ucx", v[1][rounds / 2], "ucp_put_nbx for each, and ucp_ep_flush_nbx");
        fflush(stdout);
    }
    putv_vs_ucx_drop(&ours, true, sort);
    putv_vs_ucx_drop(&theirs, false, sort);
    free(list);
}

static size_t putv_vs_ucx_number(const char *text, size_t dflt, size_t most)
{
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : dflt;

    if (text && (*end || n < 1 || n > most)) {
        fprintf(stderr, "pieces: %s is not a number from 1 to %zu\n", text, most);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    int rounds = (int)putv_vs_ucx_number(argc > 1 ? argv[1] : NULL, ROUNDS, ROUNDS_MAX);
    unsigned major, minor, patch;

    pieces = putv_vs_ucx_number(argc > 2 ? argv[2] : NULL, PIECES, PIECES_MAX);
    piece = (putv_vs_ucx_number(argc > 3 ? argv[3] : NULL, BYTES, 1 << 20) + 7) / 8 * 8;
    room = GAP * pieces * piece + 4096;
    putv_vs_ucx_must(rank_init(NULL), "rank_init");
    world = rank_world();
    me = rank_team_rank(world);
    if (rank_team_size(world) != 2)
        die("ranks", "it takes two: xrun -n 2");
    if (posix_memalign((void **)&src, 4096, pieces * piece) || posix_memalign((void **)&word_src, 64, 64))
        die("posix_memalign", "out of memory");
    putv_vs_ucx_open_ucx();
    ucp_get_version(&major, &minor, &patch);
    if (me == 0)
        printf("# %zu pieces of %zu bytes, UCX %u.%u.%u, %s\n", pieces, piece, major, minor, patch,
               rank_channel_name(world, 1));
    putv_vs_ucx_compare("own", OWN, rounds);
    putv_vs_ucx_compare("any", ANY, rounds);
    putv_vs_ucx_compare("shared", SHARED, rounds);
    close_ucx();
    putv_vs_ucx_must(rank_finalize(), "rank_finalize");
    free(src);
    free(word_src);
    return 0;
}
