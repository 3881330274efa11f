/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symmetric_heap.c: make many symmetric allocations of every size at once.
 * None overlaps another, all begin with zeros, all calls reach all of them. Freed memory, in any order, goes back to the system. The
 * memory is there from the start, near its owner, and in huge pages where the kernel has them.
 *
 *   --pieces N --rounds N --seed N
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct piece {
    rank_mem_t mem;
    char *mine;
    int64_t bytes;
    uint64_t key; /* of what lies in it; 0: zeros */
};

/* Segments of the library's that are mapped here, and how much of them is in memory (UCX has some of its own). */
static int count_segments(int64_t *kb)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[1024];
    int n = 0;
    bool ours = false;
    long long rss;

    MP_CHECK(f != NULL);
    *kb = 0;
    while (fgets(line, sizeof(line), f)) {
        if (strstr(line, "-") && strstr(line, ":") && strchr("0123456789abcdef", line[0])) {
            ours = strstr(line, "memfd:librank") != NULL;
            n += ours;
        } else if (ours && sscanf(line, "Rss: %lld kB", &rss) == 1) {
            *kb += rss;
        }
    }
    fclose(f);
    return n;
}

static int64_t random_bytes(uint64_t *plan, int size)
{
    uint64_t kind = mp_below(plan, 100);
    uint64_t top = kind < 50 ? 256 : kind < 70 ? 5000 : kind < 90 ? 100000 : kind < 98 ? 700000 : 3000000;

    return (int64_t)mp_below(plan, (size > 4 && top > 5000 ? top / 4 : top) + 1);
}

static void take(struct mp *mp, struct piece *p, int64_t bytes)
{
    *p = (struct piece){.bytes = bytes};
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, bytes, (void **)&p->mine, &p->mem));
    MP_CHECK_EQ((uintptr_t)p->mine % (bytes >= 4096 ? 4096 : 128), 0);
    for (int64_t i = 0; i < bytes; i++) {
        if (p->mine[i])
            mp_fail(__FILE__, __LINE__, "byte %lld of a new piece of %lld is %d", (long long)i, (long long)bytes, p->mine[i]);
    }
}

static uint64_t key_at(const struct piece *p, int owner)
{
    return p->key * 1000 + (uint64_t)owner;
}

/* Each rank writes all of the part of the next, by one of the calls. */
static void write_next(struct mp *mp, struct piece *p, uint64_t key)
{
    int to = (mp->rank + 1) % mp->size;
    char *buf = mp_alloc((size_t)p->bytes);
    rank_piece_t v[2] = {{buf, p->bytes / 3, 0}, {buf + p->bytes / 3, p->bytes - p->bytes / 3, p->bytes / 3}};
    rank_request_t req;

    p->key = key;
    mp_fill(buf, (size_t)p->bytes, key_at(p, to));
    switch (key % 4) {
    case 0:
        MP_OK(rank_put(buf, p->bytes, to, p->mem, 0));
        break;
    case 1:
        MP_OK(rank_iput(buf, p->bytes, to, p->mem, 0, &req));
        MP_OK(rank_wait(&req, NULL));
        break;
    case 2:
        MP_OK(rank_putv(v, 2, to, p->mem));
        break;
    default: /* the first word is written last, as a signal */
        if (p->bytes < 16) {
            MP_OK(rank_put(buf, p->bytes, to, p->mem, 0));
        } else {
            uint64_t first;
            memcpy(&first, buf, 8);
            MP_OK(rank_put_signal(buf + 8, p->bytes - 8, to, p->mem, 8, p->mem, 0, first, RANK_SIGNAL_SET));
        }
    }
    MP_OK(rank_flush(p->mem, to));
    free(buf);
}

/* My part, and all others as far as they can be read. */
static void look(struct mp *mp, struct piece *p)
{
    char *buf = mp_alloc((size_t)p->bytes);
    void *ptr;

    for (int r = 0; r < mp->size; r++) {
        int64_t half = p->bytes / 2;
        rank_piece_t v[2] = {{buf, half, 0}, {buf + half, p->bytes - half, half}};
        memset(buf, 0, (size_t)p->bytes);
        if (p->key & 1)
            MP_OK(rank_get(buf, p->bytes, r, p->mem, 0));
        else
            MP_OK(rank_getv(v, 2, r, p->mem));
        if (p->key)
            MP_CHECK_EQ(mp_verify(buf, (size_t)p->bytes, key_at(p, r)), -1);
        MP_OK(rank_ptr(p->mem, r, &ptr));
        if (ptr && p->bytes)
            MP_CHECK_EQ(memcmp(ptr, buf, (size_t)p->bytes), 0);
        if (r == mp->rank)
            MP_CHECK(ptr == p->mine);
    }
    free(buf);
}

static void give(struct piece *p)
{
    MP_OK(rank_free(&p->mem));
}

/* Pieces come and go, and those that stay keep what they hold. */
static void many(struct mp *mp, int n, int rounds)
{
    struct piece *p = calloc((size_t)n, sizeof(*p));
    uint64_t plan = mp->seed, key = 1;

    MP_CHECK(p != NULL);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) {
            if (!p[i].mem)
                take(mp, &p[i], random_bytes(&plan, mp->size));
        }
        mp_barrier(mp->world);
        for (int i = 0; i < n; i++)
            write_next(mp, &p[i], key++);
        mp_barrier(mp->world);
        for (int i = 0; i < n; i++)
            look(mp, &p[i]);
        mp_barrier(mp->world);
        for (int k = 0; k < n; k++) {
            int i = (int)mp_below(&plan, (uint64_t)n);
            if (p[i].mem)
                give(&p[i]);
        }
        for (int i = 0; i < n; i++) {
            if (p[i].mem)
                look(mp, &p[i]);
        }
    }
    for (int i = n; i-- > 0;) {
        if (p[i].mem)
            give(&p[i]);
    }
    free(p);
}

/* Words of many pieces, counted up by all. */
static void atomics(struct mp *mp)
{
    enum { N = 60, PER = 1000 };
    struct piece p[N];
    int64_t one = 1, was;

    for (int i = 0; i < N; i++)
        take(mp, &p[i], 8 * (1 + i * i));
    mp_barrier(mp->world);
    for (int k = 0; k < PER; k++) {
        int i = k % N, to = (mp->rank + k) % mp->size;
        MP_OK(rank_atomic(k & 1 ? RANK_AMO_ADD : RANK_AMO_FETCH_ADD, RANK_INT64, &one, to, p[i].mem,
                          8 * (int64_t)i * i, &was));
    }
    for (int i = 0; i < N; i++)
        MP_OK(rank_flush(p[i].mem, RANK_ALL));
    MP_OK(rank_barrier(mp->world));
    for (int i = 0; i < N; i++) {
        int64_t want = 0;
        for (int r = 0; r < mp->size; r++) {
            for (int k = i; k < PER; k += N)
                want += (r + k) % mp->size == mp->rank;
        }
        MP_CHECK_EQ(((int64_t *)(void *)p[i].mine)[i * i], want);
    }
    for (int i = 0; i < N; i++)
        give(&p[i]);
}

/* The same bytes on each, or none on any. */
static void sizes_differ(struct mp *mp)
{
    rank_mem_t mem = RANK_MEM_NULL;
    void *p = NULL;

    if (mp->size > 1)
        MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, 64 + 64 * (mp->rank == 1), &p, &mem), RANK_ERR_ARG);
    MP_CHECK(p == NULL && mem == RANK_MEM_NULL);
}

/* What cannot be had takes nothing from what there is. */
static void too_much(struct mp *mp)
{
    struct piece p[3];
    rank_mem_t mem = RANK_MEM_NULL;
    void *none = NULL;
    int before;
    int64_t kb;

    take(mp, &p[0], 1000);
    take(mp, &p[1], 60000);
    mp_barrier(mp->world);
    write_next(mp, &p[0], 77);
    write_next(mp, &p[1], 78);
    mp_barrier(mp->world);
    before = count_segments(&kb);
    for (int i = 0; i < 20; i++)
        MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, 1ll << (46 + i % 3), &none, &mem), RANK_ERR_NO_MEMORY);
    MP_CHECK(none == NULL && mem == RANK_MEM_NULL);
    MP_CHECK_EQ(count_segments(&kb), before);
    look(mp, &p[0]);
    look(mp, &p[1]);
    take(mp, &p[2], 100000);
    mp_barrier(mp->world);
    for (int i = 0; i < 3; i++)
        give(&p[i]);
}

/* Each team has its own. */
static void teams(struct mp *mp)
{
    struct piece a;
    rank_mem_t mem[20];
    rank_team_t t;
    char *p;

    MP_OK(rank_team_split(mp->world, mp->rank & 1, -mp->rank, &t));
    for (int i = 0; i < 20; i++) {
        MP_OK(rank_alloc(t, RANK_MEM_HOST, 3000 + (mp->rank & 1) * 100, (void **)&p, &mem[i]));
        memset(p, 1, 3000);
        if (i == 10)
            take(mp, &a, 5000);
    }
    mp_barrier(mp->world);
    write_next(mp, &a, 5);
    mp_barrier(mp->world);
    for (int i = 0; i < 20; i++)
        MP_OK(rank_free(&mem[i]));
    look(mp, &a);
    mp_barrier(mp->world);
    give(&a);
    MP_OK(rank_team_free(&t));
}

/* Pages of a range that this process has in its own tables: that it has touched. -1: the system does not report it. */
static int64_t pages_here(const char *p, int64_t bytes)
{
    int64_t n = bytes / 4096, here = 0;
    uint64_t *entry = mp_alloc((size_t)n * 8);
    FILE *f = fopen("/proc/self/pagemap", "re");

    if (!f || fseek(f, (long)((uintptr_t)p / 4096 * 8), SEEK_SET) != 0 || fread(entry, 8, (size_t)n, f) != (size_t)n)
        here = -1;
    for (int64_t i = 0; here >= 0 && i < n; i++)
        here += entry[i] >> 63 != 0;
    if (f)
        fclose(f);
    free(entry);
    return here;
}

/* The node of a page; -1: unknown. */
static int node_of(void *p)
{
    int node = -1;

#ifdef SYS_get_mempolicy
    if (syscall(SYS_get_mempolicy, &node, NULL, 0, p, 3 /* MPOL_F_NODE | MPOL_F_ADDR */) != 0)
        node = -1;
#endif
    return node;
}

/* All of a part is in memory before its first use, without help of a peer. */
static void touched(struct mp *mp)
{
    enum { BYTES = 6 << 20, PAGES = BYTES / 4096 };
    unsigned before = 0, after = 0, cpu;
    int64_t near = 0, there = 0, here;
    unsigned char *in = mp_alloc(PAGES);
    rank_mem_t mem;
    void *mine, *p;

    syscall(SYS_getcpu, &cpu, &before, NULL);
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, BYTES, &mine, &mem));
    syscall(SYS_getcpu, &cpu, &after, NULL);
    MP_CHECK(mincore(mine, BYTES, in) == 0);
    for (int i = 0; i < PAGES; i++)
        there += in[i] & 1;
    MP_CHECK_EQ(there, PAGES);
    mp_barrier(mp->world);
    for (int r = 0; r < mp->size; r++) {
        MP_OK(rank_ptr(mem, r, &p));
        here = r != mp->rank && p ? pages_here(p, BYTES) : 0;
        if (here < 0)
            printf("# this system does not report which pages a process has\n");
        else
            MP_CHECK_EQ(here, 0);
    }
    mp_barrier(mp->world);
    for (int i = 0; i < PAGES; i++) {
        ((volatile char *)mine)[i * 4096] = 0; /* what is not mapped has no node */
        near += node_of((char *)mine + i * 4096) == (int)before;
    }
    if (access("/sys/devices/system/node/node1", F_OK) != 0) {
        if (mp->rank == 0)
            printf("# this machine has one NUMA node\n");
    } else if (before == after && near == 0) { /* else it has moved, or its node was full */
        mp_fail(__FILE__, __LINE__, "no page of %d is on node %u, where its owner runs", PAGES, before);
    }
    free(in);
    mp_barrier(mp->world);
    MP_OK(rank_free(&mem));
}

static bool is_chosen(const char *file, const char *word)
{
    char text[256] = "", want[64];
    FILE *f = fopen(file, "re");

    if (f && !fgets(text, sizeof(text), f))
        text[0] = '\0';
    if (f)
        fclose(f);
    snprintf(want, sizeof(want), "[%s]", word);
    return strstr(text, want) != NULL;
}

/* For shared memory that requests them. */
static bool kernel_has_huge_pages(void)
{
#define THP "/sys/kernel/mm/transparent_hugepage/"
    static const char *const yes[] = {"always", "within_size", "advise", "force"};
    bool inherits = is_chosen(THP "hugepages-2048kB/shmem_enabled", "inherit") ||
                    access(THP "hugepages-2048kB/shmem_enabled", F_OK) != 0;

    if (is_chosen(THP "shmem_enabled", "deny"))
        return false;
    for (int i = 0; i < 4; i++) {
        if (is_chosen(THP "hugepages-2048kB/shmem_enabled", yes[i]) || (inherits && is_chosen(THP "shmem_enabled", yes[i])))
            return true;
    }
    return false;
}

/* A number of lines "NAME value" or "NAME: value kB"; at: of the mapping that holds it. */
static int64_t number_in(const char *file, const char *name, const void *at)
{
    FILE *f = fopen(file, "re");
    bool right = at == NULL;
    char line[1024];
    int64_t n = -1;
    unsigned long from, to;

    while (f && n < 0 && fgets(line, sizeof(line), f)) {
        if (at && sscanf(line, "%lx-%lx ", &from, &to) == 2)
            right = (uintptr_t)at >= from && (uintptr_t)at < to;
        else if (right && strncmp(line, name, strlen(name)) == 0)
            n = atoll(line + strlen(name) + 1);
    }
    if (f)
        fclose(f);
    return n;
}

static void huge(struct mp *mp)
{
    enum { BYTES = 8 << 20 };
    int64_t before = number_in("/proc/vmstat", "thp_file_fallback", NULL), kb;
    rank_mem_t mem;
    void *mine;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, BYTES, &mine, &mem));
    MP_CHECK_EQ((uintptr_t)mine % 4096, 0);
    kb = number_in("/proc/self/smaps", "ShmemPmdMapped:", mine);
    if (!kernel_has_huge_pages()) {
        if (mp->rank == 0)
            printf("# huge pages: this kernel offers none for shared memory\n");
    } else if (kb < BYTES / 1024 && number_in("/proc/vmstat", "thp_file_fallback", NULL) > before) {
        printf("# huge pages: this machine had none left, and %lld kB came\n", (long long)kb);
    } else {
        MP_CHECK(kb >= BYTES / 1024);
        if (mp->rank == 0)
            printf("# huge pages: %lld kB\n", (long long)kb);
    }
    mp_barrier(mp->world);
    MP_OK(rank_free(&mem));
}

int main(int argc, char **argv)
{
    int pieces, rounds, before;
    int64_t rss, kb;
    struct mp mp;

    mp_start(&mp, &argc, argv);
    pieces = (int)mp_option(argc, argv, "--pieces", 120);
    rounds = (int)mp_option(argc, argv, "--rounds", 3);
    mp_case(&mp, "first");
    many(&mp, 10, 1); /* buffers and endpoints of first use are there now */
    before = count_segments(&rss);
    mp_case(&mp, "many");
    many(&mp, pieces, rounds);
    MP_CHECK_EQ(count_segments(&kb), before);
    MP_CHECK(kb < rss + 1000);
    mp_case(&mp, "atomics");
    atomics(&mp);
    mp_case(&mp, "too much");
    too_much(&mp);
    mp_case(&mp, "sizes differ");
    sizes_differ(&mp);
    mp_case(&mp, "touched");
    touched(&mp);
    mp_case(&mp, "huge");
    huge(&mp);
    mp_case(&mp, "teams");
    teams(&mp);
    MP_CHECK_EQ(count_segments(&kb), before);
    mp_end(&mp);
    return 0;
}
