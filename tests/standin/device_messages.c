/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_messages.c: send device memory to ranks of the same host, by one copy.
 *
 * No option: count the copies; send at random, from buffers that are freed and allocated anew; wait until idle
 * mappings are closed.
 *   --staged       nothing can be mapped: the same without counts
 *   --refuse ST    rank 1's first import fails: its receive returns ST, the second one succeeds
 *   --die SENDER   the sender (1) or the receiver (0) of announced messages is killed
 */
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double limit_s = 2;
enum { MOST = 5 << 20, EAGER_MAX = 16 << 10 };

static struct mp mp;
static const struct rk_kind *kind;

/* Memory of the host if on_device is false. */
struct place {
    bool on_device;
    char *at;
};

static struct place place_new(bool on_device, enum device_memory_sort sort, size_t bytes)
{
    return (struct place){on_device, on_device ? device_memory_alloc(sort, bytes) : mp_alloc(bytes)};
}

static void place_free(struct place *p)
{
    if (p->on_device)
        kind->free(p->at);
    else
        free(p->at);
    p->at = NULL;
}

static void place_fill(const struct place *p, size_t at, size_t bytes, uint64_t key)
{
    char *host = mp_alloc(bytes);

    mp_fill(host, bytes, key);
    if (p->on_device)
        MP_OK(kind->copy(p->at + at, kind, host, NULL, bytes));
    else
        memcpy(p->at + at, host, bytes);
    free(host);
}

static void place_verify(const struct place *p, size_t at, size_t bytes, uint64_t key)
{
    char *host = mp_alloc(bytes);

    if (p->on_device)
        MP_OK(kind->copy(host, NULL, p->at + at, kind, bytes));
    else
        memcpy(host, p->at + at, bytes);
    if (mp_verify(host, bytes, key) >= 0)
        mp_fail(__FILE__, __LINE__, "byte %lld of %zu is wrong", (long long)mp_verify(host, bytes, key), bytes);
    free(host);
}

/* -------------------------------------------------------------------------- copies */

static long copies_of_all(void)
{
    long mine = device_memory_calls("MemcpyAsync"), all = 0;

    MP_OK(rank_allreduce(&mine, &all, 1, RANK_INT64, RANK_SUM, mp.world));
    return all;
}

/* Messages of rank 0 to rank 1. Each is one copy of one of them for each mapping that the other has made. */
static void count_copies(bool from_device, bool to_device, enum device_memory_sort sort, size_t bytes, bool staged)
{
    struct place s = place_new(from_device, sort, MOST), r = place_new(to_device, sort, MOST);
    long before, mappings = sort == DEVICE_SHAREABLE && device_memory_calls("MemMap") ? ((long)bytes + (2 << 20) - 1) / (2 << 20) : 1;

    for (uint64_t k = 0; k < 6; k++) {
        size_t at = k * 8;
        rank_request_t req = RANK_REQUEST_NULL;

        place_fill(&s, at, bytes, k);
        place_fill(&r, at, bytes, ~k);
        before = copies_of_all();
        if (mp.rank == 1 && k % 2)
            MP_OK(rank_irecv(r.at + at, (int64_t)bytes, RANK_BYTE, 0, 1, mp.world, &req));
        mp_barrier(mp.world);
        if (mp.rank == 0)
            MP_OK((k % 3 ? rank_send : rank_ssend)(s.at + at, (int64_t)bytes, RANK_BYTE, 1, 1, mp.world));
        else if (mp.rank == 1 && k % 2)
            MP_OK(rank_wait(&req, NULL));
        else if (mp.rank == 1)
            MP_OK(rank_recv(r.at + at, (int64_t)bytes, RANK_BYTE, 0, 1, mp.world, NULL));
        if (!staged && device_memory_counts())
            MP_CHECK_EQ(copies_of_all() - before, mappings);
        if (mp.rank == 1)
            place_verify(&r, at, bytes, k);
        mp_barrier(mp.world);
    }
    place_free(&s);
    place_free(&r);
}

/* Memory of rank_alloc, which messages map a second time: that ends with it, too. */
static void test_symmetric(void)
{
    double begun = mp_now();
    long open, before = device_memory_mapped();
    rank_mem_t mem;
    void *ptr;

    MP_OK(rank_alloc(mp.world, RANK_MEM_CUDA, 300000, &ptr, &mem));
    if (mp.rank == 0)
        MP_OK(rank_send(ptr, 300000, RANK_BYTE, 1, 1, mp.world));
    else if (mp.rank == 1)
        MP_OK(rank_recv(ptr, 300000, RANK_BYTE, 0, 1, mp.world, NULL));
    MP_OK(rank_free(&mem));
    do {
        mp_barrier(mp.world);
        open = device_memory_mapped() - before > 0;
        MP_OK(rank_allreduce(RANK_IN_PLACE, &open, 1, RANK_INT64, RANK_MAX, mp.world));
        if (mp_now() - begun > limit_s)
            mp_fail(__FILE__, __LINE__, "the mapping is still open");
    } while (open);
}

static void test_copies(bool staged)
{
    mp_case(&mp, "copies");
    for (int to = 0; to < 2; to++) {
        count_copies(true, to, DEVICE_PLAIN, 8, staged);
        count_copies(true, to, DEVICE_PLAIN, 300000, staged);
        count_copies(true, to, DEVICE_PLAIN, MOST - 64, staged);
        count_copies(true, to, DEVICE_SHAREABLE, 4096, staged);
    }
    count_copies(false, true, DEVICE_PLAIN, EAGER_MAX + 8, staged);
    count_copies(false, true, DEVICE_PLAIN, MOST - 64, staged);
    count_copies(true, false, DEVICE_SHAREABLE, MOST - 64, staged);
    count_copies(false, true, DEVICE_SHAREABLE, MOST - 64, staged);
    count_copies(true, true, DEVICE_SHAREABLE, MOST - 64, staged);
}

/* -------------------------------------------------------------------------- random */

enum { BUFS = 96, BUF = 3 << 19, BATCH = 12 };

static const enum device_memory_sort sorts[] = {DEVICE_PLAIN, DEVICE_PLAIN, DEVICE_PLAIN, DEVICE_SHAREABLE, DEVICE_PRIVATE};

struct sent {
    int from, to, buf[2];
    size_t at[2], bytes;
    uint64_t key;
    rank_request_t req;
};

/* A buffer of this rank: sometimes freed and allocated anew, often at the same address. */
static struct place *renewed(struct place *bufs, int i, uint64_t *own)
{
    struct place *p = &bufs[i];

    if (p->at && mp_below(own, 3))
        return p;
    if (p->at)
        place_free(p);
    *p = place_new(mp_below(own, 4) > 0, sorts[mp_below(own, 5)], BUF);
    return p;
}

static size_t random_size(uint64_t *seed)
{
    return (size_t)mp_below(seed, mp_below(seed, 3) ? 1 + mp_below(seed, 30000) : BUF / 2);
}

/* Messages between random ranks, each from and into a buffer of its own; rank by rank known to all. */
static void random_batch(struct place *bufs, uint64_t *seed, uint64_t *own)
{
    struct sent m[BATCH];
    int first = (int)mp_below(seed, BUFS);

    for (int i = 0; i < BATCH; i++) {
        m[i] = (struct sent){.from = (int)mp_below(seed, (uint64_t)mp.size), .bytes = random_size(seed), .key = mp_random(seed)};
        m[i].to = (m[i].from + 1 + (int)mp_below(seed, (uint64_t)mp.size - 1)) % mp.size;
        for (int k = 0; k < 2; k++) {
            m[i].buf[k] = (first + 2 * i + k) % BUFS;
            m[i].at[k] = (size_t)mp_below(seed, BUF / 2);
        }
        if (m[i].from == mp.rank)
            place_fill(renewed(bufs, m[i].buf[0], own), m[i].at[0], m[i].bytes, m[i].key);
        if (m[i].to == mp.rank)
            renewed(bufs, m[i].buf[1], own);
    }
    for (int i = 0; i < BATCH; i++) {
        m[i].req = RANK_REQUEST_NULL;
        if (m[i].from == mp.rank)
            MP_OK(rank_isend(bufs[m[i].buf[0]].at + m[i].at[0], (int64_t)m[i].bytes, RANK_BYTE, m[i].to, i, mp.world, &m[i].req));
        else if (m[i].to == mp.rank)
            MP_OK(rank_irecv(bufs[m[i].buf[1]].at + m[i].at[1], (int64_t)m[i].bytes, RANK_BYTE, m[i].from, i, mp.world, &m[i].req));
    }
    for (int i = 0; i < BATCH; i++)
        MP_OK(rank_wait(&m[i].req, NULL));
    for (int i = 0; i < BATCH; i++) {
        if (m[i].to == mp.rank)
            place_verify(&bufs[m[i].buf[1]], m[i].at[1], m[i].bytes, m[i].key);
    }
}

/* All mappings of peers' memory are closed while the rank only waits. */
static void test_idle(void)
{
    long mine = 0, all = 1;
    double begun = mp_now();

    mp_case(&mp, "idle");
    while (all) {
        mp_barrier(mp.world);
        mine = device_memory_mapped();
        MP_OK(rank_allreduce(&mine, &all, 1, RANK_INT64, RANK_SUM, mp.world));
        if (mp_now() - begun > 5)
            mp_fail(__FILE__, __LINE__, "%ld mappings are open after 5 s", mine);
    }
}

static void test_random(bool staged)
{
    struct place bufs[BUFS] = {{false, NULL}};
    uint64_t seed = mp.seed, own = mp.seed + (uint64_t)mp.rank;

    mp_case(&mp, "random");
    for (int64_t n = mp_rounds(60); n > 0; n--)
        random_batch(bufs, &seed, &own);
    for (int i = 0; i < BUFS; i++) {
        if (bufs[i].at)
            place_free(&bufs[i]);
    }
    mp_barrier(mp.world);
    if (!staged)
        test_idle();
}

/* --------------------------------------------------------------------------- faults */

static void test_refused(rank_status_t want)
{
    struct place p = place_new(true, DEVICE_PLAIN, MOST);
    double begun = mp_now();

    place_fill(&p, 0, MOST, 1);
    for (int k = 0; k < 2; k++) {
        if (mp.rank == 0)
            MP_OK(rank_send(p.at, MOST, RANK_BYTE, 1, 1, mp.world));
        else if (mp.rank == 1)
            MP_STATUS(rank_recv(p.at, MOST, RANK_BYTE, 0, 1, mp.world, NULL), k && want == RANK_ERR_NO_MEMORY ? RANK_OK : want);
        mp_barrier(mp.world);
    }
    MP_CHECK(mp_now() - begun < limit_s);
    if (mp.rank != 1 || want == RANK_ERR_NO_MEMORY) /* else its device is of no use any more */
        place_free(&p);
}

/* Rank 0 and rank 1 have mapped memory of each other; messages both ways are announced; one of them dies. */
static void test_death(int victim)
{
    struct place p[5], host = place_new(false, DEVICE_PLAIN, MOST);
    rank_request_t req[3];
    rank_status_t st;
    double begun;

    for (int i = 0; i < 5; i++) {
        p[i] = place_new(true, DEVICE_PLAIN, MOST);
        place_fill(&p[i], 0, MOST, 1);
    }
    if (mp.rank < 2) {
        MP_OK(rank_sendrecv(p[0].at, MOST, RANK_BYTE, 1 - mp.rank, 1, p[1].at, MOST, RANK_BYTE, 1 - mp.rank, 1, mp.world, NULL));
        MP_OK(rank_isend(p[2].at, MOST, RANK_BYTE, 1 - mp.rank, 2, mp.world, &req[0]));
        MP_OK(rank_irecv(p[4].at, MOST, RANK_BYTE, 1 - mp.rank, 4, mp.world, &req[1]));
        MP_OK(rank_isend(host.at, MOST, RANK_BYTE, 1 - mp.rank, 4, mp.world, &req[2])); /* the victim copies, or not */
    }
    mp_barrier(mp.world);
    if (mp.rank == victim)
        raise(SIGKILL);
    begun = mp_now();
    if (mp.rank < 2) {
        st = rank_recv(p[3].at, MOST, RANK_BYTE, 1 - mp.rank, 2, mp.world, NULL); /* announced before the death, perhaps */
        if (st)
            MP_STATUS(st, RANK_ERR_PEER_DEAD);
        else
            place_verify(&p[3], 0, MOST, 1);
        MP_STATUS(rank_wait(&req[0], NULL), RANK_ERR_PEER_DEAD);
        for (int i = 1; i < 3; i++) {
            st = rank_wait(&req[i], NULL);
            if (st)
                MP_STATUS(st, RANK_ERR_PEER_DEAD);
        }
        MP_STATUS(rank_recv(p[3].at, MOST, RANK_BYTE, 1 - mp.rank, 3, mp.world, NULL), RANK_ERR_PEER_DEAD);
        MP_CHECK(mp_now() - begun < limit_s);
    }
    for (int i = 0; i < 5; i++)
        place_free(&p[i]);
    place_free(&host);
    device_memory_end();
    mp_end_survivor(&mp);
    exit(0);
}

/* This program looks as if the CUDA runtime were linked to it statically, on a machine with a device: RANK_CUDA=auto. */
static const char kernels[] __attribute__((section(".nv_fatbin"), used)) = "none";
__attribute__((visibility("default"))) int access(const char *path, int mode)
{
    return strcmp(path, "/dev/nvidiactl") == 0 ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}

int main(int argc, char **argv)
{
    rank_status_t refused = (rank_status_t)mp_option(argc, argv, "--refuse", 0);
    int victim = (int)mp_option(argc, argv, "--die", -1);
    bool staged = mp_flag(argc, argv, "--staged");
    const char *rank = getenv("PMIX_RANK"), *rule = getenv("BREAK_RANK_1");

    if (rule && rank && strcmp(rank, "1") == 0) /* the stand-in reads it at the first call */
        setenv("STANDIN_FAIL", rule, 1);
    mp_start(&mp, &argc, argv);
    kind = device_memory(mp.rank);
    if (victim >= 0) {
        test_death(victim);
    } else if (refused) {
        test_refused(refused);
        if (mp.rank == 1 && refused == RANK_ERR_DEVICE) { /* the device memory is left */
            mp_end_survivor(&mp);
            return 0;
        }
    } else {
        test_copies(staged);
        test_symmetric();
        test_random(staged);
    }
    device_memory_end();
    mp_end(&mp);
    return 0;
}
