/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_past_2gib.c: run collectives of more than 2^31 elements and 2^32 bytes.
 *
 * Two ranks with elements of a byte. A buffer is one block of memory that is mapped again and again, with memory of its
 * own in windows: around each multiple of 2 GiB, and at the ends of each block. What lies in windows is checked. The
 * library gets little memory, so that a call with scratch memory for a whole buffer fails.
 *   --only NAME   this collective only
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define GIB2 (INT64_C(1) << 31)
enum { BLOCK = 4 << 20, WINDOW = 128 << 10 /* on each side of an edge */, CHECKED = 64 << 10 /* there the input has a window, too */,
       ROOM = 512 << 20 /* of memory for the library */, ODD = 12345, GAP = 77, EDGES = 12 };

struct big {
    unsigned char *at;
    int64_t bytes, edge[EDGES]; /* offsets */
    int nedges;
};

struct scene {
    struct mp mp;
    int rank;
    int64_t n;        /* elements of a block */
    struct big in, out;
    rank_request_t req;
    bool nonblocking;
};

/* -------------------------------------------------------------------------- memory */

/* The page-aligned window around an edge, within the buffer. */
static unsigned char *window_of(const struct big *b, int i, int64_t *first, int64_t *end)
{
    *first = b->edge[i] < WINDOW ? 0 : (b->edge[i] - WINDOW) & ~INT64_C(4095);
    *end = b->edge[i] + WINDOW < b->bytes ? b->edge[i] + WINDOW : b->bytes;
    return b->at + *first;
}

static void big_open(struct big *b, int64_t bytes, const int64_t *edge, int nedges)
{
    int64_t room = (bytes + 2 * BLOCK) / BLOCK * BLOCK;
    int fd = memfd_create("big", MFD_CLOEXEC);
    void *p = mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    MP_CHECK(fd >= 0 && ftruncate(fd, BLOCK) == 0 && p != MAP_FAILED);
    *b = (struct big){.at = p, .bytes = bytes};
    for (int64_t at = 0; at < room; at += BLOCK)
        MP_CHECK(mmap(b->at + at, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    for (int64_t at = 0; at < bytes; at += GIB2)
        b->edge[b->nedges++] = at;
    for (int i = 0; i < nedges; i++)
        b->edge[b->nedges++] = edge[i];
    b->edge[b->nedges++] = bytes;
    MP_CHECK(b->nedges <= EDGES);
    for (int i = 0; i < b->nedges; i++) {
        int64_t first, end;
        unsigned char *w = window_of(b, i, &first, &end);

        MP_CHECK(mmap(w, (size_t)(end - first), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == w);
    }
}

static void big_close(struct big *b)
{
    munmap(b->at, (size_t)((b->bytes + 2 * BLOCK) / BLOCK * BLOCK));
}

/* Byte i of the block that a rank contributes for rank to. */
static unsigned char value(int from, int to, int64_t i)
{
    return (unsigned char)(i * 131 + (i >> 16) * 7 + (i >> 30) * 29 + from * 53 + to * 101);
}

/* Write, or check, what lies in windows of n bytes from offset at on. */
static void each_byte(const struct scene *s, struct big *b, int64_t at, int64_t n, int from, int to, int ranks, bool check)
{
    for (int w = 0; w < b->nedges; w++) {
        int64_t first, end;

        window_of(b, w, &first, &end);
        if (check) {
            first = b->edge[w] - CHECKED > first ? b->edge[w] - CHECKED : first;
            end = b->edge[w] + CHECKED < end ? b->edge[w] + CHECKED : end;
        }
        for (int64_t i = first < at ? at : first; i < end && i < at + n; i++) {
            unsigned char v = value(from, to, i - at);

            for (int r = from + 1; r < from + ranks; r++)
                v ^= value(r, to, i - at);
            if (!check)
                b->at[i] = v;
            else if (b->at[i] != v)
                mp_fail(__FILE__, __LINE__, "%s%s: byte %lld of the buffer is wrong", s->nonblocking ? "i" : "", s->mp.name,
                        (long long)i);
        }
    }
}

static void fill(struct scene *s, struct big *b, int64_t at, int64_t n, int to)
{
    each_byte(s, b, at, n, s->rank, to, 1, false);
}

static void expect(struct scene *s, int64_t at, int64_t n, int from, int to)
{
    each_byte(s, &s->out, at, n, from, to, 1, true);
}

/* The result is that of ranks first to first + ranks - 1. */
static void expect_reduced(struct scene *s, int ranks, int to)
{
    each_byte(s, &s->out, 0, s->n, 0, to, ranks, true);
}

/* -------------------------------------------------------------------------- calls */

#define MAKE(s, call, ...)                                                                         \
    do {                                                                                           \
        if ((s)->nonblocking) {                                                                    \
            MP_OK(rank_i##call(__VA_ARGS__, &(s)->req));                                           \
            MP_OK(rank_wait(&(s)->req, NULL));                                                     \
        } else {                                                                                   \
            MP_OK(rank_##call(__VA_ARGS__));                                                       \
        }                                                                                          \
    } while (0)

static void bcast(struct scene *s)
{
    if (s->rank == 1)
        each_byte(s, &s->out, 0, s->n, 1, 0, 1, false);
    MAKE(s, bcast, s->out.at, s->n, RANK_BYTE, 1, s->mp.world);
    expect(s, 0, s->n, 1, 0);
}

static void reduce(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, reduce, s->in.at, s->out.at, s->n, RANK_BYTE, RANK_BXOR, 0, s->mp.world);
    if (s->rank == 0)
        expect_reduced(s, 2, 0);
}

static void allreduce(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, allreduce, s->in.at, s->out.at, s->n, RANK_BYTE, RANK_BXOR, s->mp.world);
    expect_reduced(s, 2, 0);
}

static void scan(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, scan, s->in.at, s->out.at, s->n, RANK_BYTE, RANK_BXOR, s->mp.world);
    expect_reduced(s, s->rank + 1, 0);
}

static void exscan(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, exscan, s->in.at, s->out.at, s->n, RANK_BYTE, RANK_BXOR, s->mp.world);
    if (s->rank == 1)
        expect_reduced(s, 1, 0);
}

static void reduce_scatter(struct scene *s)
{
    for (int r = 0; r < 2; r++)
        fill(s, &s->in, r * s->n, s->n, r);
    MAKE(s, reduce_scatter, s->in.at, s->out.at, s->n, RANK_BYTE, RANK_BXOR, s->mp.world);
    expect_reduced(s, 2, s->rank);
}

static void gather(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, gather, s->in.at, s->out.at, s->n, RANK_BYTE, 0, s->mp.world);
    for (int r = 0; s->rank == 0 && r < 2; r++)
        expect(s, r * s->n, s->n, r, 0);
}

static void allgather(struct scene *s)
{
    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, allgather, s->in.at, s->out.at, s->n, RANK_BYTE, s->mp.world);
    for (int r = 0; r < 2; r++)
        expect(s, r * s->n, s->n, r, 0);
}

static void scatter(struct scene *s)
{
    for (int r = 0; r < 2; r++)
        fill(s, &s->in, r * s->n, s->n, r);
    MAKE(s, scatter, s->in.at, s->out.at, s->n, RANK_BYTE, 0, s->mp.world);
    expect(s, 0, s->n, 0, s->rank);
}

static void alltoall(struct scene *s)
{
    for (int r = 0; r < 2; r++)
        fill(s, &s->in, r * s->n, s->n, r);
    MAKE(s, alltoall, s->in.at, s->out.at, s->n, RANK_BYTE, s->mp.world);
    for (int r = 0; r < 2; r++)
        expect(s, r * s->n, s->n, r, s->rank);
}

static void alltoall_in_place(struct scene *s)
{
    for (int r = 0; r < 2; r++)
        each_byte(s, &s->out, r * s->n, s->n, s->rank, r, 1, false);
    MAKE(s, alltoall, RANK_IN_PLACE, s->out.at, s->n, RANK_BYTE, s->mp.world);
    for (int r = 0; r < 2; r++)
        expect(s, r * s->n, s->n, r, s->rank);
}

/* Blocks with a gap between them. */
static void gatherv(struct scene *s)
{
    const int64_t counts[] = {s->n, s->n - 1}, displs[] = {0, s->n + GAP};

    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, gatherv, s->in.at, counts[s->rank], s->out.at, counts, displs, RANK_BYTE, 0, s->mp.world);
    for (int r = 0; s->rank == 0 && r < 2; r++)
        expect(s, displs[r], counts[r], r, 0);
}

static void allgatherv(struct scene *s)
{
    const int64_t counts[] = {s->n, s->n - 1}, displs[] = {0, s->n + GAP};

    fill(s, &s->in, 0, s->n, 0);
    MAKE(s, allgatherv, s->in.at, counts[s->rank], s->out.at, counts, displs, RANK_BYTE, s->mp.world);
    for (int r = 0; r < 2; r++)
        expect(s, displs[r], counts[r], r, 0);
}

static void alltoallv(struct scene *s)
{
    const int64_t counts[] = {s->n, s->n}, displs[] = {s->n + GAP, 0};

    for (int r = 0; r < 2; r++)
        fill(s, &s->in, displs[r], s->n, r);
    MAKE(s, alltoallv, s->in.at, counts, displs, s->out.at, counts, displs, RANK_BYTE, s->mp.world);
    for (int r = 0; r < 2; r++)
        expect(s, displs[r], s->n, r, s->rank);
}

static void reduce_scatterv(struct scene *s)
{
    const int64_t counts[] = {s->n, s->n};

    for (int r = 0; r < 2; r++)
        fill(s, &s->in, r * s->n, s->n, r);
    MAKE(s, reduce_scatterv, s->in.at, s->out.at, counts, RANK_BYTE, RANK_BXOR, s->mp.world);
    expect_reduced(s, 2, s->rank);
}

static const struct {
    const char *name;
    void (*call)(struct scene *s);
} calls[] = {
    {"bcast", bcast},           {"reduce", reduce},         {"allreduce", allreduce},   {"scan", scan},
    {"exscan", exscan},         {"reduce_scatter", reduce_scatter},                     {"gather", gather},
    {"allgather", allgather},   {"scatter", scatter},       {"alltoall", alltoall},     {"alltoall in place", alltoall_in_place},
    {"gatherv", gatherv},       {"allgatherv", allgatherv}, {"alltoallv", alltoallv},   {"reduce_scatterv", reduce_scatterv},
};

/* Clear windows, so that no result remains from the call before. */
static void clear(struct big *b)
{
    for (int i = 0; i < b->nedges; i++) {
        int64_t first, end;
        unsigned char *w = window_of(b, i, &first, &end);

        memset(w, 0, (size_t)(end - first));
    }
}

int main(int argc, char **argv)
{
    struct scene s = {.n = GIB2 + ODD, .req = RANK_REQUEST_NULL};
    const char *only = NULL;
    struct rlimit limit;

    mp_start(&s.mp, &argc, argv);
    for (int i = 1; i + 1 < argc; i++)
        only = strcmp(argv[i], "--only") == 0 ? argv[i + 1] : only;
    MP_CHECK_EQ(s.mp.size, 2);
    s.rank = s.mp.rank;
    {
        const int64_t edge[] = {s.n, s.n + GAP, s.n + GIB2};

        big_open(&s.in, 2 * s.n + GAP, edge, 3);
        big_open(&s.out, 2 * s.n + GAP, edge, 3);
    }
    limit.rlim_cur = limit.rlim_max = (rlim_t)mp_status_kb("VmSize") * 1024 + ROOM;
    MP_CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (only && strcmp(only, calls[i].name) != 0)
            continue;
        mp_case(&s.mp, calls[i].name);
        for (int form = 0; form < 2; form++) {
            double begun = mp_now();

            s.nonblocking = form == 1;
            clear(&s.out);
            calls[i].call(&s);
            if (s.rank == 0)
                printf("%s%s: %.1f s\n", form ? "i" : "", calls[i].name, mp_now() - begun);
        }
    }
    big_close(&s.in);
    big_close(&s.out);
    mp_end(&s.mp);
    return 0;
}
