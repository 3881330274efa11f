/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_pieces.c: send device memory between hosts, in pieces.
 *
 * No option: random messages with sizes around multiples of a piece; device, host memory and lists of both on each side;
 * persistent ones; long puts.
 *   --rounds N    batches of these (25)
 *   --default     a copy within the device, which returns early, writes to what rank 0 sends next
 *   --threads     threads send, receive, put and get at the same time
 *   --one-way     rank 0 sends, rank 1 receives, both in device memory
 *   --fails       one call of the driver fails at rank 0 in the middle of a message that it sends or receives;
 *                 --room N: receivers have room for so many bytes; --puts: puts and gets of both ranks
 *   --slow        rank 1 does not call the library while rank 0, which sends to it, sends to rank 2
 *   --die VICTIM  a rank is killed while messages move both ways; the other ranks go on
 */
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double limit_s = 3;
enum { PIECE = 512 << 10, MOST = 7 * PIECE, BATCH = 6 };

static struct mp mp;
static const struct rk_kind *kind;

enum { IN_DEVICE, IN_HOST, IN_BOTH, PLACES };

/* The payload is the list's, or the first part alone. */
struct parcel {
    int place;
    int64_t bytes;
    rank_iov_t part[3];
    bool on_device[3];
    char *before; /* what it has held, in host memory */
};

static struct parcel parcel_new(int place, int64_t bytes)
{
    struct parcel p = {.place = place, .bytes = bytes, .before = mp_alloc((size_t)bytes)};

    p.part[0].bytes = place == IN_BOTH ? bytes / 3 : bytes;
    p.part[1].bytes = place == IN_BOTH ? bytes / 4 : 0;
    p.part[2].bytes = bytes - p.part[0].bytes - p.part[1].bytes;
    for (int i = 0; i < 3; i++) {
        size_t n = (size_t)p.part[i].bytes;

        p.on_device[i] = place == IN_BOTH ? i != 1 : place == IN_DEVICE;
        p.part[i].base = p.on_device[i] ? device_memory_alloc(DEVICE_PLAIN, n) : mp_alloc(n);
    }
    return p;
}

static void parcel_free(struct parcel *p)
{
    for (int i = 0; i < 3; i++) {
        if (p->on_device[i])
            kind->free(p->part[i].base);
        else
            free(p->part[i].base);
    }
    free(p->before);
}

/* Copy between the parcel and host memory. */
static void parcel_copy(const struct parcel *p, char *host, bool in)
{
    for (int i = 0; i < 3; host += p->part[i++].bytes) {
        char *at = p->part[i].base;
        size_t n = (size_t)p->part[i].bytes;

        if (p->on_device[i] && n)
            MP_OK(kind->copy(in ? at : host, NULL, in ? host : at, NULL, n));
        else if (n)
            memcpy(in ? at : host, in ? host : at, n);
    }
}

static void parcel_fill(struct parcel *p, uint64_t key)
{
    mp_fill(p->before, (size_t)p->bytes, key);
    parcel_copy(p, p->before, true);
}

/* It holds got bytes of a message, and behind them what it has held. */
static void parcel_verify(const struct parcel *p, int64_t got, uint64_t key)
{
    char *host = mp_alloc((size_t)p->bytes);

    parcel_copy(p, host, false);
    if (mp_verify(host, (size_t)got, key) >= 0)
        mp_fail(__FILE__, __LINE__, "byte %lld of %lld is wrong", (long long)mp_verify(host, (size_t)got, key), (long long)got);
    MP_CHECK(memcmp(host + got, p->before + got, (size_t)(p->bytes - got)) == 0);
    free(host);
}

static rank_status_t parcel_start(const struct parcel *p, bool send, int peer, int tag, rank_request_t *req)
{
    void *at = p->part[0].base;

    if (p->place == IN_BOTH)
        return send ? rank_isendv(p->part, 3, peer, tag, mp.world, req) : rank_irecvv(p->part, 3, peer, tag, mp.world, req);
    return send ? rank_isend(at, p->bytes, RANK_BYTE, peer, tag, mp.world, req) : rank_irecv(at, p->bytes, RANK_BYTE, peer, tag, mp.world, req);
}

/* -------------------------------------------------------------------------- random */

/* Often a byte off a number of pieces, or off what one frame carries. */
static int64_t size_around_pieces(uint64_t *seed)
{
    int64_t n = (int64_t)mp_below(seed, 3) - 1;

    switch (mp_below(seed, 4)) {
    case 0: return n + (16 << 10);
    case 1: return (int64_t)mp_below(seed, MOST) + 1;
    default: return n + PIECE * (int64_t)(1 + mp_below(seed, 6));
    }
}

/* Room for a message of n bytes: often all, sometimes as little as a frame holds. */
static int64_t room_for(int64_t n, uint64_t *seed)
{
    switch (mp_below(seed, 6)) {
    case 0: return (int64_t)mp_below(seed, (uint64_t)(n < 20000 ? n : 20000)) + 1;
    case 1: return n - (int64_t)mp_below(seed, (uint64_t)n);
    default: return n + (int64_t)mp_below(seed, 3);
    }
}

/* Messages of a batch, rank by rank known to all. Some are received into less, some sends are freed at once. */
static void parcels_batch(uint64_t *seed)
{
    struct {
        struct parcel p;
        int from, to;
        int64_t sent, room;
        uint64_t key;
        bool late, freed;
        rank_request_t req;
    } m[BATCH];

    for (int i = 0; i < BATCH; i++) {
        int places[2] = {(int)mp_below(seed, PLACES), (int)mp_below(seed, PLACES)};

        m[i].from = (int)mp_below(seed, (uint64_t)mp.size);
        m[i].to = (m[i].from + 1 + (int)mp_below(seed, (uint64_t)mp.size - 1)) % mp.size;
        m[i].sent = size_around_pieces(seed);
        m[i].room = room_for(m[i].sent, seed);
        m[i].key = mp_random(seed);
        m[i].late = mp_below(seed, 3) == 0;
        m[i].freed = mp_below(seed, 4) == 0;
        m[i].req = RANK_REQUEST_NULL;
        if (m[i].from == mp.rank)
            m[i].p = parcel_new(places[0], m[i].sent);
        else if (m[i].to == mp.rank)
            m[i].p = parcel_new(places[1], m[i].room);
        if (m[i].from == mp.rank || m[i].to == mp.rank)
            parcel_fill(&m[i].p, m[i].from == mp.rank ? m[i].key : ~m[i].key);
    }
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < BATCH; i++) {
            if (m[i].from == mp.rank && !late)
                MP_OK(parcel_start(&m[i].p, true, m[i].to, i, &m[i].req));
            else if (m[i].to == mp.rank && m[i].late == late)
                MP_OK(parcel_start(&m[i].p, false, m[i].from, i, &m[i].req));
            if (m[i].from == mp.rank && m[i].freed && m[i].req)
                MP_OK(rank_request_free(&m[i].req));
        }
    }
    for (int i = 0; i < BATCH; i++) {
        bool cut = m[i].to == mp.rank && m[i].room < m[i].sent;

        MP_STATUS(rank_wait(&m[i].req, NULL), cut ? RANK_ERR_TRUNCATED : RANK_OK);
        if (m[i].to == mp.rank)
            parcel_verify(&m[i].p, cut ? m[i].room : m[i].sent, m[i].key);
    }
    mp_barrier(mp.world); /* sends of freed requests are complete */
    for (int i = 0; i < BATCH; i++) {
        if (m[i].from == mp.rank || m[i].to == mp.rank)
            parcel_free(&m[i].p);
    }
}

/* All ranks send more than there are buffers for, before they receive it, the last message first. */
static void test_many_at_once(void)
{
    enum { MANY = 64, BYTES = 2 * PIECE + 1 };
    int to = (mp.rank + 1) % mp.size, from = (mp.rank + mp.size - 1) % mp.size;
    rank_request_t req[2 * MANY];
    struct parcel p[2 * MANY];

    for (int i = 0; i < MANY; i++) {
        p[i] = parcel_new(i % 8 == 7 ? IN_BOTH : IN_DEVICE, BYTES);
        parcel_fill(&p[i], (uint64_t)(1000 * mp.rank + i));
        MP_OK(parcel_start(&p[i], true, to, i, &req[i]));
    }
    for (int i = MANY; i < 2 * MANY; i++) {
        p[i] = parcel_new(i % 4 == 3 ? IN_BOTH : IN_DEVICE, BYTES);
        MP_OK(parcel_start(&p[i], false, from, 2 * MANY - 1 - i, &req[i]));
    }
    MP_OK(rank_waitall(2 * MANY, req, NULL));
    for (int i = 0; i < 2 * MANY; i++) {
        if (i >= MANY)
            parcel_verify(&p[i], BYTES, (uint64_t)(1000 * from + 2 * MANY - 1 - i));
        parcel_free(&p[i]);
    }
}

static void test_persistent_pieces(void)
{
    struct parcel p[2] = {parcel_new(IN_DEVICE, MOST), parcel_new(IN_DEVICE, MOST)};
    int to = (mp.rank + 1) % mp.size, from = (mp.rank + mp.size - 1) % mp.size;
    rank_request_t req[2];

    MP_OK(rank_send_init(p[0].part[0].base, MOST, RANK_BYTE, to, 1, mp.world, &req[0]));
    MP_OK(rank_recv_init(p[1].part[0].base, MOST, RANK_BYTE, from, 1, mp.world, &req[1]));
    for (uint64_t k = 0; k < 4; k++) {
        parcel_fill(&p[0], k + (uint64_t)mp.rank);
        MP_OK(rank_startall(2, req));
        MP_OK(rank_waitall(2, req, NULL));
        parcel_verify(&p[1], MOST, k + (uint64_t)from);
    }
    for (int i = 0; i < 2; i++) {
        MP_OK(rank_request_free(&req[i]));
        parcel_free(&p[i]);
    }
}

/* The parcel holds what was got: cut bytes from its begin, and the rest of n from at on, as key has filled it. */
static void put_verify(const struct parcel *p, uint64_t key, int64_t at, int64_t n, int64_t cut)
{
    char *whole = mp_alloc(MOST), *host = mp_alloc(MOST);

    mp_fill(whole, MOST, key);
    parcel_copy(p, host, false);
    MP_CHECK(memcmp(host + at, whole, (size_t)cut) == 0);
    MP_CHECK(memcmp(host + at + cut, whole + at + cut, (size_t)(n - cut)) == 0);
    free(whole);
    free(host);
}

/* Puts and gets of rank 0, device to device. The owner copies many frames at a time; a get sees all puts before it. */
static void test_long_puts(void)
{
    struct parcel p = parcel_new(IN_DEVICE, MOST);
    long before = device_memory_calls("MemcpyAsync");
    uint64_t seed = mp.seed;
    rank_mem_t mem;
    void *ptr;

    MP_OK(rank_alloc(mp.world, RANK_MEM_CUDA, MOST, &ptr, &mem));
    if (mp.rank == 0) {
        parcel_fill(&p, 7);
        MP_OK(rank_put(p.part[0].base, MOST, 1, mem, 0));
        MP_OK(rank_flush(mem, 1));
    }
    mp_barrier(mp.world);
    if (mp.rank == 1)
        MP_CHECK(device_memory_calls("MemcpyAsync") - before <= 2 * MOST / PIECE);
    for (uint64_t k = 0; k < 8 && mp.rank == 0; k++) {
        int64_t at = (int64_t)mp_below(&seed, MOST - 1), n = 1 + (int64_t)mp_below(&seed, (uint64_t)(MOST - at));
        int64_t cut = (int64_t)mp_below(&seed, (uint64_t)n);
        char *base = p.part[0].base;

        parcel_fill(&p, k);
        MP_OK(rank_put(base + at, n, 1, mem, at)); /* the second one overwrites a part */
        MP_OK(rank_fence(mem));
        MP_OK(rank_put(base, cut, 1, mem, at));
        parcel_fill(&p, ~k);
        MP_OK(rank_get(base + at, n, 1, mem, at));
        put_verify(&p, k, at, n, cut);
    }
    mp_barrier(mp.world);
    MP_OK(rank_free(&mem));
    parcel_free(&p);
}

static void test_one_way(void)
{
    struct parcel p = parcel_new(IN_DEVICE, MOST);

    for (uint64_t k = 0; k < 6; k++) {
        parcel_fill(&p, mp.rank ? ~k : k);
        if (mp.rank == 0)
            MP_OK(rank_send(p.part[0].base, MOST, RANK_BYTE, 1, 1, mp.world));
        else if (mp.rank == 1)
            MP_OK(rank_recv(p.part[0].base, MOST, RANK_BYTE, 0, 1, mp.world, NULL));
        if (mp.rank == 1)
            parcel_verify(&p, MOST, k);
    }
    parcel_free(&p);
}

/*
 * A copy within the device returns early, and the first message of an allocation waits for it. So does the next message,
 * which is short and takes another path, while the first one is under way.
 */
static void test_default_stream(void)
{
    enum { SHORT = 8000, WORK = 40 };
    struct parcel p = parcel_new(IN_DEVICE, MOST), from = parcel_new(IN_DEVICE, MOST), to = parcel_new(IN_DEVICE, MOST);
    char *host = mp_alloc(SHORT), *whole = mp_alloc(MOST);
    long before = device_memory_calls("MemcpyAsync");
    rank_request_t req;
    int found;

    mp_fill(whole, MOST, 1);
    parcel_fill(&p, 2);
    parcel_fill(&from, 1);
    mp_barrier(mp.world);
    if (mp.rank == 0) {
        for (int i = 0; i <= WORK; i++)
            MP_OK(kind->copy(i < WORK ? to.part[0].base : p.part[0].base, kind, from.part[0].base, kind, MOST));
        MP_OK(rank_isend(p.part[0].base, MOST - SHORT, RANK_BYTE, 1, 1, mp.world, &req));
        while (device_memory_calls("MemcpyAsync") == before)
            MP_OK(rank_iprobe(1, 999, mp.world, &found, NULL));
        MP_OK(rank_send((char *)p.part[0].base + MOST - SHORT, SHORT, RANK_BYTE, 1, 2, mp.world));
        MP_OK(rank_wait(&req, NULL));
    } else if (mp.rank == 1) {
        MP_OK(rank_irecv(p.part[0].base, MOST - SHORT, RANK_BYTE, 0, 1, mp.world, &req));
        MP_OK(rank_recv(host, SHORT, RANK_BYTE, 0, 2, mp.world, NULL));
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK(memcmp(host, whole + MOST - SHORT, SHORT) == 0);
    }
    free(host);
    free(whole);
    parcel_free(&p);
    parcel_free(&from);
    parcel_free(&to);
}

/* ------------------------------------------------------------------------- threads */

enum { THREADS = 6 };

/* One message each way, and a put that is read again: of the other rank's memory, a part for each thread. */
static struct work {
    struct parcel send, receive, put, got;
    pthread_t thread;
    rank_mem_t mem;
} works[THREADS];

static void *work_run(void *arg)
{
    struct work *w = arg;
    int k = (int)(w - works), other = 1 - mp.rank;
    int64_t at = (int64_t)k * MOST;
    rank_request_t req[2];

    for (int i = 0; i < 4; i++) {
        MP_OK(parcel_start(&w->receive, false, other, k, &req[0]));
        MP_OK(parcel_start(&w->send, true, other, k, &req[1]));
        if (k % 2) {
            MP_OK(rank_put(w->put.part[0].base, MOST, other, w->mem, at));
            MP_OK(rank_flush(w->mem, other));
            MP_OK(rank_get(w->got.part[0].base, MOST, other, w->mem, at));
        }
        MP_OK(rank_waitall(2, req, NULL));
    }
    return NULL;
}

static void test_threads(void)
{
    rank_mem_t mem;
    void *ptr;

    MP_OK(rank_alloc(mp.world, RANK_MEM_CUDA, THREADS * MOST, &ptr, &mem));
    for (int k = 0; k < THREADS; k++) {
        struct parcel *all[] = {&works[k].send, &works[k].receive, &works[k].put, &works[k].got};

        works[k].mem = mem;
        for (int i = 0; i < 4; i++) {
            *all[i] = parcel_new(i < 2 && k % 3 == 2 ? IN_BOTH : IN_DEVICE, MOST);
            parcel_fill(all[i], (uint64_t)(100 * mp.rank + 10 * k + i));
        }
    }
    mp_barrier(mp.world);
    for (int k = 0; k < THREADS; k++)
        MP_CHECK(pthread_create(&works[k].thread, NULL, work_run, &works[k]) == 0);
    for (int k = 0; k < THREADS; k++)
        MP_CHECK(pthread_join(works[k].thread, NULL) == 0);
    mp_barrier(mp.world);
    for (int k = 0; k < THREADS; k++) {
        struct parcel *all[] = {&works[k].send, &works[k].receive, &works[k].put, &works[k].got};

        parcel_verify(&works[k].receive, MOST, (uint64_t)(100 * (1 - mp.rank) + 10 * k));
        if (k % 2)
            parcel_verify(&works[k].got, MOST, (uint64_t)(100 * mp.rank + 10 * k + 2));
        for (int i = 0; i < 4; i++)
            parcel_free(all[i]);
    }
    MP_OK(rank_free(&mem));
}

/* -------------------------------------------------------------------------- faults */

/*
 * Rank 0 sends, then receives. Exactly one of these fails at rank 0. What it cannot read fails at both ends; what it
 * cannot write fails there alone. Other messages arrive.
 */
static void test_failing(int64_t room)
{
    struct parcel p = parcel_new(IN_DEVICE, MOST);
    int failed = 0;

    for (uint64_t k = 0; k < 4; k++) {
        bool sends = (k % 2 == 0) == (mp.rank == 0);
        double begun = mp_now();
        int64_t theirs = 0, mine;
        rank_status_t st;

        parcel_fill(&p, sends ? k : ~k);
        st = sends ? rank_send(p.part[0].base, MOST, RANK_BYTE, 1 - mp.rank, 1, mp.world)
                   : rank_recv(p.part[0].base, room, RANK_BYTE, 1 - mp.rank, 1, mp.world, NULL);
        st = st == RANK_ERR_TRUNCATED && room < MOST ? RANK_OK : st;
        MP_CHECK(mp_now() - begun < limit_s);
        mine = st;
        MP_OK(rank_sendrecv(&mine, 1, RANK_INT64, 1 - mp.rank, 2, &theirs, 1, RANK_INT64, 1 - mp.rank, 2, mp.world, NULL));
        if (st)
            MP_STATUS(st, RANK_ERR_DEVICE);
        else if (!sends)
            parcel_verify(&p, room, k);
        if (mp.rank == 0) {
            failed += st != RANK_OK;
            MP_CHECK_EQ(theirs, sends ? mine : RANK_OK);
        }
    }
    if (mp.rank == 0)
        MP_CHECK_EQ(failed, 1);
    parcel_free(&p);
}

/* Ranks 0 and 1 take turns to put to, and get from, the other one's memory. Exactly one of these fails. */
static void test_failing_puts(void)
{
    struct parcel p = parcel_new(IN_DEVICE, MOST);
    struct parcel owned = {.place = IN_DEVICE, .bytes = MOST, .part = {{.bytes = MOST}}, .on_device = {true}};
    int64_t failed = 0, theirs = 0, mine;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp.world, RANK_MEM_CUDA, MOST, &owned.part[0].base, &mem));
    owned.before = mp_alloc(MOST);
    for (uint64_t k = 0; k < 8; k++) {
        bool acts = (k % 2 == 0) == (mp.rank == 1), puts = k % 4 < 2;
        rank_status_t st = RANK_OK;

        parcel_fill(&p, acts && puts ? k : ~k);
        parcel_fill(&owned, puts ? ~k : k);
        mp_barrier(mp.world);
        if (acts)
            st = puts ? rank_put(p.part[0].base, MOST, 1 - mp.rank, mem, 0) : rank_get(p.part[0].base, MOST, 1 - mp.rank, mem, 0);
        if (acts && puts && !st)
            st = rank_flush(mem, 1 - mp.rank);
        if (acts)
            MP_OK(rank_flush(mem, 1 - mp.rank)); /* no error is reported twice */
        MP_CHECK(st == RANK_OK || st == RANK_ERR_DEVICE);
        mine = st;
        MP_OK(rank_sendrecv(&mine, 1, RANK_INT64, 1 - mp.rank, 2, &theirs, 1, RANK_INT64, 1 - mp.rank, 2, mp.world, NULL));
        failed += mine || theirs;
        if (acts && !puts && !mine)
            parcel_verify(&p, MOST, k);
        else if (!acts && puts && !theirs)
            parcel_verify(&owned, MOST, k);
    }
    MP_CHECK_EQ(failed, 1);
    MP_OK(rank_free(&mem));
    free(owned.before);
    parcel_free(&p);
}

static volatile sig_atomic_t woken;

static void wake(int sig)
{
    (void)sig;
    woken = 1;
}

/* Rank 1 stops in the middle of large messages of rank 0, until rank 2 has received another one of it. */
static void test_slow_receiver(void)
{
    enum { LONG = 40 * PIECE, MANY = 6 };
    struct parcel p[MANY] = {{.place = IN_HOST}}, other = parcel_new(IN_DEVICE, MOST);
    rank_request_t req[MANY];
    long before = device_memory_calls("MemcpyAsync");
    int32_t own = getpid(), pid = 0;
    int found;
    double begun;

    signal(SIGUSR1, wake);
    mp_barrier(mp.world); /* later messages need no connection */
    if (mp.rank > 0)
        MP_OK(rank_sendrecv(&own, 1, RANK_INT32, 3 - mp.rank, 100, &pid, 1, RANK_INT32, 3 - mp.rank, 100, mp.world, NULL));
    for (int i = 0; i < MANY && mp.rank < 2; i++) {
        p[i] = parcel_new(IN_DEVICE, LONG);
        parcel_fill(&p[i], (uint64_t)(mp.rank ? 99 : i));
        MP_OK(parcel_start(&p[i], mp.rank == 0, 1 - mp.rank, i, &req[i]));
    }
    parcel_fill(&other, mp.rank ? 99 : 7);
    if (mp.rank == 1) {
        while (device_memory_calls("MemcpyAsync") - before < 12)
            MP_OK(rank_iprobe(1 - mp.rank, 999, mp.world, &found, NULL));
        MP_OK(rank_send(&own, 1, RANK_INT32, 0, 100, mp.world));
        for (begun = mp_now(); !woken; usleep(1000))
            MP_CHECK(mp_now() - begun < 3 * limit_s);
    } else if (mp.rank == 0) {
        MP_OK(rank_recv(&pid, 1, RANK_INT32, 1, 100, mp.world, NULL));
        for (begun = mp_now(); mp_now() - begun < 0.3;)
            MP_OK(rank_iprobe(1 - mp.rank, 999, mp.world, &found, NULL));
        MP_OK(rank_send(other.part[0].base, MOST, RANK_BYTE, 2, 101, mp.world));
    } else {
        MP_OK(rank_recv(other.part[0].base, MOST, RANK_BYTE, 0, 101, mp.world, NULL));
        parcel_verify(&other, MOST, 7);
        MP_CHECK(kill(pid, SIGUSR1) == 0);
    }
    for (int i = 0; i < MANY && mp.rank < 2; i++) {
        MP_OK(rank_wait(&req[i], NULL));
        if (mp.rank == 1)
            parcel_verify(&p[i], LONG, (uint64_t)i);
        parcel_free(&p[i]);
    }
    parcel_free(&other);
}

/* Survivors exchange messages, for which there have to be buffers. */
static void exchange_after_death(int victim)
{
    struct parcel p[2] = {parcel_new(IN_DEVICE, MOST), parcel_new(IN_DEVICE, MOST)};
    int other = mp.rank == 2 ? 1 - victim : 2;
    rank_request_t req[2];

    parcel_fill(&p[0], (uint64_t)mp.rank);
    parcel_fill(&p[1], 99);
    for (int i = 0; i < 2; i++)
        MP_OK(parcel_start(&p[i], i == 0, other, 50, &req[i]));
    for (int i = 0; i < 2; i++)
        MP_OK(rank_wait(&req[i], NULL));
    parcel_verify(&p[1], MOST, (uint64_t)other);
    for (int i = 0; i < 2; i++)
        parcel_free(&p[i]);
}

/* Large messages move both ways between ranks 0 and 1 when one of them dies. */
static void test_killed(int victim)
{
    enum { LONG = 40 * PIECE, EACH = 6 };
    static double when;
    struct parcel p[2 * EACH];
    rank_request_t req[2 * EACH];
    uint64_t seed = mp.seed;
    double begun;

    for (int i = 0; i < 2 * EACH; i++) {
        p[i] = parcel_new(i % 3 == 2 ? IN_HOST : IN_DEVICE, LONG);
        parcel_fill(&p[i], 1);
    }
    mp_barrier(mp.world);
    begun = mp_now();
    when = begun + 0.005 + (double)mp_below(&seed, 100) * 0.001;
    if (mp.rank == victim)
        mp_die_at(&when);
    if (mp.rank < 2) {
        rank_status_t st = RANK_OK;

        for (int i = 0; i < 2 * EACH; i++)
            MP_OK(parcel_start(&p[i], i < EACH, 1 - mp.rank, i % EACH, &req[i]));
        for (int i = 0; i < 2 * EACH; i++) {
            rank_status_t one = rank_wait(&req[i], NULL);

            if (one)
                MP_STATUS(one, RANK_ERR_PEER_DEAD);
            st = st ? st : one;
        }
        MP_STATUS(st, RANK_ERR_PEER_DEAD);
        MP_CHECK(mp_now() - begun < limit_s);
    }
    if (mp.size == 3)
        exchange_after_death(victim);
    for (int i = 0; i < 2 * EACH; i++)
        parcel_free(&p[i]);
    device_memory_end();
    mp_end_survivor(&mp);
    exit(0);
}

int main(int argc, char **argv)
{
    int victim = (int)mp_option(argc, argv, "--die", -1);
    const char *rank = getenv("PMIX_RANK"), *rule = getenv("BREAK_RANK_0");
    uint64_t seed;

    if (rule && rank && strcmp(rank, "0") == 0) /* the stand-in reads it at the first call */
        setenv("STANDIN_FAIL", rule, 1);
    mp_start_level(&mp, &argc, argv, mp_flag(argc, argv, "--threads") ? RANK_THREAD_MULTIPLE : RANK_THREAD_SERIALIZED);
    seed = mp.seed;
    kind = device_memory(mp.rank);
    if (victim >= 0)
        test_killed(victim);
    if (mp_flag(argc, argv, "--fails") && mp_flag(argc, argv, "--puts")) {
        test_failing_puts();
    } else if (mp_flag(argc, argv, "--fails")) {
        test_failing(mp_option(argc, argv, "--room", MOST));
    } else if (mp_flag(argc, argv, "--default")) {
        test_default_stream();
    } else if (mp_flag(argc, argv, "--threads")) {
        test_threads();
    } else if (mp_flag(argc, argv, "--slow")) {
        test_slow_receiver();
    } else if (mp_flag(argc, argv, "--one-way")) {
        test_one_way();
    } else {
        mp_case(&mp, "random");
        for (int64_t n = mp_option(argc, argv, "--rounds", mp_rounds(25)); n > 0; n--)
            parcels_batch(&seed);
        mp_case(&mp, "many");
        test_many_at_once();
        mp_case(&mp, "persistent");
        test_persistent_pieces();
        mp_case(&mp, "puts");
        test_long_puts();
    }
    device_memory_end();
    mp_end(&mp);
    return 0;
}
