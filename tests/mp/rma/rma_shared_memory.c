/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_shared_memory.c: register shared memory of the program's own.
 * Peers of the node map it, where they can. All calls reach it as they reach other memory, where they cannot.
 *
 *   --mapped     fail where a rank that is reached by shm does not map what it could
 */
#include "tests/mp/mp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FILE_AT = 2 * PAGE, MAP = 512 * PAGE, BEGIN = 3 * PAGE + 40, BYTES = MAP - BEGIN - 2 * PAGE };

/* How the memory came to be. */
enum how { MEMFD, SHM, SHM_CLOSED, GONE, PRIVATE, SEALED, READ_ONLY };
static const struct {
    const char *name;
    bool maps;      /* peers of the same user can */
    bool may_map;   /* with privileges they may, too */
} sorts[] = {
    [MEMFD] = {"a memfd", true, true},
    [SHM] = {"shm_open, its descriptor open", true, true},
    [SHM_CLOSED] = {"shm_open, its descriptor closed", true, true},
    [GONE] = {"a file that is open nowhere and has no name", false, true},
    [PRIVATE] = {"a private mapping of a file", false, false},
    [SEALED] = {"a memfd that takes no further writers", false, false},
    [READ_ONLY] = {"a memfd of which this mapping may only be read", false, false},
};
enum { SORTS = sizeof(sorts) / sizeof(sorts[0]) };

struct block {
    char *map, *mine; /* mine: what is registered of it */
    int fd;
    char name[64];
};

static void make(const struct mp *mp, struct block *b, enum how how)
{
    int flags = how == PRIVATE ? MAP_PRIVATE : MAP_SHARED;

    memset(b, 0, sizeof(*b));
    if (how == SHM || how == SHM_CLOSED || how == GONE) {
        snprintf(b->name, sizeof(b->name), "/rank-test-%d-%d", (int)getpid(), mp->rank);
        b->fd = shm_open(b->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    } else {
        b->fd = memfd_create("rank-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    MP_CHECK(b->fd >= 0);
    MP_CHECK(ftruncate(b->fd, FILE_AT + MAP) == 0);
    b->map = mmap(NULL, MAP, PROT_READ | PROT_WRITE, flags, b->fd, FILE_AT);
    MP_CHECK(b->map != MAP_FAILED);
    if (how == SEALED)
        MP_CHECK(fcntl(b->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 || errno == EINVAL);
    if (how == SHM || how == GONE) {
        shm_unlink(b->name);
        b->name[0] = '\0';
    }
    if (how == SHM_CLOSED || how == GONE) {
        close(b->fd);
        b->fd = -1;
    }
    memset(b->map, 0x55, MAP);
    b->mine = b->map + BEGIN;
    memset(b->mine, 0, BYTES);
    if (how == READ_ONLY)
        MP_CHECK(mprotect(b->map, MAP, PROT_READ) == 0);
}

/* Nothing outside what is registered has been written. */
static void destroy(struct block *b)
{
    for (int i = 0; i < BEGIN; i++)
        MP_CHECK_EQ(b->map[i], 0x55);
    for (int i = BEGIN + BYTES; i < MAP; i++)
        MP_CHECK_EQ(b->map[i], 0x55);
    munmap(b->map, MAP);
    if (b->fd >= 0)
        close(b->fd);
    if (b->name[0])
        shm_unlink(b->name);
}

static rank_mem_t open_of(struct mp *mp, rank_mem_t own, int to, int from)
{
    char key[RANK_RKEY_MAX], got[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    rank_envelope_t env;
    rank_mem_t mem;

    MP_OK(rank_rkey_pack(own, key, &len));
    MP_OK(rank_sendrecv(key, (int64_t)len, RANK_BYTE, to, 1, got, sizeof(got), RANK_BYTE, from, 1, mp->world, &env));
    MP_OK(rank_rkey_open(mp->world, from, got, (size_t)env.bytes, &mem));
    return mem;
}

static bool by_shm(struct mp *mp, int peer)
{
    const char *name = rank_channel_name(mp->world, peer);

    return name && strcmp(name, "shm") == 0;
}

/* Puts, gets, pieces and strides to the memory of from, which in turn reads its own. */
static void move(struct mp *mp, const struct block *b, rank_mem_t theirs, int to, int from)
{
    static char out[200000], in[200000];
    static const int64_t sizes[] = {1, 4, 8, 13, 4096, 70000, 200000};
    rank_piece_t p[20];
    rank_request_t req;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t at = (int64_t)i * 210000 + (sizes[i] == 8 ? 8 : 5);
        mp_fill(out, (size_t)sizes[i], i + (uint64_t)mp->rank * 100);
        if (i & 1) {
            MP_OK(rank_put(out, sizes[i], from, theirs, at));
        } else {
            MP_OK(rank_iput(out, sizes[i], from, theirs, at, &req));
            MP_OK(rank_wait(&req, NULL));
        }
        MP_OK(rank_flush(theirs, from));
        memset(in, 0, (size_t)sizes[i]);
        MP_OK(rank_get(in, sizes[i], from, theirs, at));
        MP_CHECK(memcmp(in, out, (size_t)sizes[i]) == 0);
        mp_barrier(mp->world);
        MP_CHECK_EQ(mp_verify(b->mine + at, (size_t)sizes[i], i + (uint64_t)to * 100), -1);
        mp_barrier(mp->world);
    }
    mp_fill(out, sizeof(out), (uint64_t)mp->rank + 7);
    for (int i = 0; i < 20; i++)
        p[i] = (rank_piece_t){out + 10000 * i, 9000, (int64_t)(19 - i) * 10001};
    MP_OK(rank_putv(p, 20, from, theirs));
    MP_OK(rank_flush(theirs, from));
    for (int i = 0; i < 20; i++)
        p[i].local = in + 10000 * i;
    MP_OK(rank_getv(p, 20, from, theirs));
    for (int i = 0; i < 20; i++)
        MP_CHECK(memcmp(in + 10000 * i, out + 10000 * i, 9000) == 0);
    MP_OK(rank_put_strided(out, 100, 64, 50, from, theirs, 999, 128));
    MP_OK(rank_flush(theirs, from));
    MP_OK(rank_get_strided(in, 64, 64, 50, from, theirs, 999, 128));
    for (int i = 0; i < 50; i++)
        MP_CHECK(memcmp(in + 64 * i, out + 100 * i, 64) == 0);
    MP_STATUS(rank_put(out, 8, from, theirs, BYTES - 7), RANK_ERR_BOUNDS);
    MP_STATUS(rank_get(in, 1, from, theirs, -1), RANK_ERR_BOUNDS);
    mp_barrier(mp->world);
}

/* A word that two ranks and its owner add to at once, swaps, signals and plain puts that its owner waits for. */
static void words(struct mp *mp, const struct block *b, rank_mem_t own, rank_mem_t theirs, int to, int from)
{
    enum { TIMES = 500 };
    uint64_t *word = (uint64_t *)(void *)b->mine;
    int64_t one = 1, is, was;
    char data[3000];

    mp_barrier(mp->world);
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    __atomic_store_n(word + 1, 0, __ATOMIC_RELEASE);
    __atomic_store_n(word + 2, 0, __ATOMIC_RELEASE);
    mp_barrier(mp->world);
    for (int i = 0; i < TIMES; i++) {
        if (i & 1)
            MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, from, theirs, 0, &was));
        else
            MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, from, theirs, 0, NULL));
        __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
    }
    MP_OK(rank_flush(theirs, from));
    mp_barrier(mp->world);
    MP_CHECK_EQ(*word, 2 * TIMES);
    mp_barrier(mp->world);
    is = 2 * TIMES;
    one = 3;
    MP_OK(rank_atomic_cas(RANK_INT64, &is, &one, from, theirs, 0, &was));
    MP_CHECK_EQ(was, 2 * TIMES);
    MP_OK(rank_atomic_cas(RANK_INT64, &is, &one, from, theirs, 0, &was));
    MP_CHECK_EQ(was, 3);
    for (uint64_t i = 1; i <= 20; i++) {
        mp_fill(data, sizeof(data), i + (uint64_t)mp->rank);
        MP_OK(rank_put_signal(data, sizeof(data), from, theirs, 64, theirs, 8, i, RANK_SIGNAL_SET));
        MP_OK(rank_signal_wait(own, 8, RANK_CMP_GE, i, to, NULL));
        MP_CHECK_EQ(mp_verify(b->mine + 64, sizeof(data), i + (uint64_t)to), -1);
        mp_barrier(mp->world);
        MP_OK(rank_put(&i, 8, from, theirs, 16));
        MP_OK(rank_flush(theirs, from));
        MP_OK(rank_wait_until(own, 16, RANK_CMP_GE, i));
        mp_barrier(mp->world);
    }
}

/* Large messages from there, to a rank that has its key and may have mapped it. */
static void messages(struct mp *mp, const struct block *b, int to, int from)
{
    char *in = mp_alloc(BYTES), *there = b->mine + BYTES / 2;

    for (int64_t n = 100000; n <= BYTES - 9; n += 900000) {
        rank_request_t req[2];
        mp_fill(b->mine + 9, (size_t)n, (uint64_t)(n + mp->rank));
        MP_OK(rank_irecv(in, n, RANK_BYTE, from, 5, mp->world, &req[0]));
        MP_OK(rank_isend(b->mine + 9, n, RANK_BYTE, to, 5, mp->world, &req[1]));
        MP_OK(rank_waitall(2, req, NULL));
        MP_CHECK_EQ(mp_verify(in, (size_t)n, (uint64_t)(n + from)), -1);
        /* Blocking ones are announced in another way. */
        if (mp->size > 1 && mp->rank % 2 == 0 && mp->rank + 1 < mp->size) {
            MP_OK(rank_send(b->mine + 9, n, RANK_BYTE, mp->rank + 1, 6, mp->world));
        } else if (mp->rank % 2) {
            MP_OK(rank_recv(in, n, RANK_BYTE, mp->rank - 1, 6, mp->world, NULL));
            MP_CHECK_EQ(mp_verify(in, (size_t)n, (uint64_t)(n + mp->rank - 1)), -1);
        }
        if (mp->size < 2 || n >= BYTES / 2 - 9)
            continue;
        /* And into there, from a rank that waits and may copy a share. */
        MP_OK(rank_irecv(there, n, RANK_BYTE, from, 7, mp->world, &req[0]));
        if (mp->rank % 2 == 0)
            MP_OK(rank_send(b->mine + 9, n, RANK_BYTE, to, 7, mp->world));
        MP_OK(rank_wait(&req[0], NULL));
        if (mp->rank % 2)
            MP_OK(rank_send(b->mine + 9, n, RANK_BYTE, to, 7, mp->world));
        MP_CHECK_EQ(mp_verify(there, (size_t)n, (uint64_t)(n + from)), -1);
    }
    free(in);
}

/* Mappings of the test's own files that this process has. */
static int count_maps(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];
    int n = 0;

    MP_CHECK(f != NULL);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, "rank-test") != NULL;
    fclose(f);
    return n;
}

/* The owner has left, and other memory lies where the registered one was: what still comes does not come there. */
static void stale(struct mp *mp, struct block *b, rank_mem_t *own, rank_mem_t theirs, int from, bool mapped)
{
    char *other, bytes[100];

    MP_OK(rank_dereg(own));
    for (int i = 0; i < BEGIN; i++)
        MP_CHECK_EQ(b->map[i], 0x55);
    other = mmap(b->map, MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MP_CHECK(other == b->map);
    mp_barrier(mp->world);
    memset(bytes, 0x77, sizeof(bytes));
    if (mapped)
        MP_OK(rank_put(bytes, sizeof(bytes), from, theirs, 4000));
    mp_barrier(mp->world);
    for (int i = 0; i < MAP; i++)
        MP_CHECK_EQ(other[i], 0);
    memset(b->map, 0x55, MAP); /* as destroy finds others */
}

static void of_sort(struct mp *mp, enum how how, bool must_map)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    bool other = from != mp->rank, mapped;
    rank_mem_t own, theirs, again;
    struct block b;
    char word[8];
    void *p, *q;

    make(mp, &b, how);
    MP_OK(rank_reg(b.mine, BYTES, &own));
    theirs = open_of(mp, own, to, from);
    again = open_of(mp, own, to, from);
    MP_OK(rank_ptr(theirs, from, &p));
    MP_OK(rank_ptr(again, from, &q));
    MP_CHECK(p == q); /* once for all handles */
    mapped = other && p != NULL;
    if (other) {
        MP_CHECK(!mapped || by_shm(mp, from));
        MP_CHECK(!mapped || sorts[how].may_map);
        if (must_map && by_shm(mp, from) && sorts[how].maps && !mapped)
            mp_fail(__FILE__, __LINE__, "%s is not mapped", sorts[how].name);
        if (must_map && mp->rank == 0)
            printf("%s: %s\n", sorts[how].name, mapped ? "mapped" : "not mapped");
    }
    MP_CHECK_EQ(count_maps(), 1 + mapped);
    mp_barrier(mp->world);
    if (how == READ_ONLY) {
        memset(word, 1, sizeof(word));
        MP_OK(rank_get(word, 8, from, theirs, 16));
        MP_CHECK(memcmp(word, "\0\0\0\0\0\0\0", 8) == 0);
    } else {
        move(mp, &b, theirs, to, from);
        words(mp, &b, own, theirs, to, from);
        messages(mp, &b, to, from);
    }
    MP_OK(rank_rkey_close(&again));
    MP_CHECK_EQ(count_maps(), 1 + mapped);
    mp_barrier(mp->world);
    if (how == MEMFD)
        stale(mp, &b, &own, theirs, from, mapped);
    else
        MP_OK(rank_dereg(&own));
    MP_OK(rank_rkey_close(&theirs));
    MP_CHECK_EQ(count_maps(), how != MEMFD);
    mp_barrier(mp->world);
    destroy(&b);
}

/* Memory of rank_alloc may be registered, too, and what is registered twice has two keys. */
static void twice(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_mem_t alloc, own[2], theirs[2];
    uint64_t word = 17 + (uint64_t)mp->rank, got;
    void *base;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 3 << 20, &base, &alloc));
    for (int i = 0; i < 2; i++) {
        MP_OK(rank_reg((char *)base + 8, 1 << 20, &own[i]));
        theirs[i] = open_of(mp, own[i], to, from);
    }
    MP_OK(rank_put(&word, 8, from, theirs[0], 16));
    MP_OK(rank_flush(theirs[0], from));
    MP_OK(rank_get(&got, 8, from, theirs[1], 16));
    MP_CHECK_EQ(got, word);
    MP_OK(rank_get(&got, 8, from, alloc, 24));
    MP_CHECK_EQ(got, word);
    for (int i = 0; i < 2; i++)
        MP_OK(rank_rkey_close(&theirs[i]));
    mp_barrier(mp->world);
    for (int i = 0; i < 2; i++)
        MP_OK(rank_dereg(&own[i]));
    MP_OK(rank_free(&alloc));
}

int main(int argc, char **argv)
{
    bool must_map;
    struct mp mp;

    mp_start(&mp, &argc, argv);
    must_map = mp_flag(argc, argv, "--mapped");
    for (int i = 0; i < SORTS; i++) {
        mp_case(&mp, sorts[i].name);
        of_sort(&mp, (enum how)i, must_map);
    }
    mp_case(&mp, "memory of rank_alloc");
    twice(&mp);
    mp_end(&mp);
    return 0;
}
