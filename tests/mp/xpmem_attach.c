/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xpmem_attach.c: attach memory of peers by XPMEM, and lose it under a copy.
 * The stand-in that is preloaded (xpmem_standin.c) shows what is kept attached, and how much.
 *
 *   --die   the owner is killed in the midst, by a message and by a get
 */
#include "tests/mp/mp.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TAG = 3, BIG = 24 << 20, RANGES = 32, GRAIN = 4 << 20 };

static void (*cut)(int);
static int (*attached)(void);
static int (*had)(void);

/* From rank 1 to rank 0, which gets all of it. */
static void send_over(struct mp *mp, char *buf, size_t n, uint64_t key)
{
    if (mp->rank == 1) {
        mp_fill(buf, n, key);
        MP_OK(rank_send(buf, (int64_t)n, RANK_BYTE, 0, TAG, mp->world));
    } else {
        memset(buf, 0, n);
        MP_OK(rank_recv(buf, (int64_t)n, RANK_BYTE, 1, TAG, mp->world, NULL));
        MP_CHECK_EQ(mp_verify(buf, n, key), -1);
    }
}

/* One buffer again and again, and one that was freed and is another now: attached once. */
static void again(struct mp *mp)
{
    char *buf = mp_alloc(1 << 20);
    int before;

    send_over(mp, buf, 1 << 20, 1);
    before = had();
    for (int i = 0; i < 20; i++) {
        send_over(mp, buf, 1 << 20, (uint64_t)i);
        free(buf);
        buf = mp_alloc(1 << 20);
    }
    MP_CHECK(mp->rank == 1 || before > 0);
    MP_CHECK_EQ(had(), before);
    free(buf);
}

/* More places than ranges are kept: the oldest go. */
static void many(struct mp *mp)
{
    enum { N = 3 * RANGES };
    char *buf[N], *in = mp_alloc(65536);

    for (int i = 0; i < N; i++)
        buf[i] = mp_alloc(GRAIN);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N; i++) {
            send_over(mp, mp->rank ? buf[i] : in, 65536, (uint64_t)(i + turn));
            MP_CHECK(attached() <= RANGES);
        }
    }
    MP_CHECK(mp->rank == 1 || attached() > RANGES / 2);
    for (int i = 0; i < N; i++)
        free(buf[i]);
    free(in);
}

/* The pages go and the owner lives: what came is not believed, and comes by another path. */
static void goes_away(struct mp *mp)
{
    char *buf = mp_alloc(BIG);

    for (int i = 0; i < 3; i++) {
        if (mp->rank == 0)
            cut(2);
        send_over(mp, buf, BIG, (uint64_t)(7 + i));
        if (mp->rank == 1) { /* another place, not attached yet */
            char *next = mp_alloc(BIG);
            free(buf);
            buf = next;
        }
    }
    free(buf);
}

/* Of what is no heap the stand-in has nothing. */
static void elsewhere(struct mp *mp)
{
    static char still[200000];

    send_over(mp, still, sizeof(still), 11);
}

static volatile sig_atomic_t signalled;

static void on_bus(int sig)
{
    signalled = sig;
}

/* A handler of the program's own is left alone: nothing is attached as long as it stands. */
static void own_handler(struct mp *mp)
{
    struct sigaction ours = {.sa_handler = on_bus}, before, now;
    char *buf = mp_alloc(1 << 20);
    int until;

    MP_CHECK_EQ(sigaction(SIGBUS, &ours, &before), 0);
    until = had();
    for (int i = 0; i < 3; i++) {
        send_over(mp, buf, 1 << 20, (uint64_t)i);
        free(buf);
        buf = mp_alloc((size_t)(2 + i) << 23);
    }
    MP_CHECK_EQ(had(), until);
    MP_CHECK_EQ(sigaction(SIGBUS, &before, &now), 0);
    MP_CHECK(now.sa_handler == on_bus && !signalled);
    free(buf);
}

/* Puts, gets and pieces to registered memory: one range, as long as the key is open. */
static void registered(struct mp *mp)
{
    enum { N = 1 << 20, PIECES = 300 };
    unsigned char key[RANK_RKEY_MAX];
    rank_piece_t pieces[PIECES];
    char *part = mp_alloc(N), *mine = mp_alloc(N);
    size_t len = sizeof(key);
    rank_mem_t mem;
    int before = attached(), ever;

    memset(part, 0, N);
    if (mp->rank == 1) {
        MP_OK(rank_reg(part, N, &mem));
        MP_OK(rank_rkey_pack(mem, key, &len));
        MP_OK(rank_send(key, (int64_t)len, RANK_BYTE, 0, TAG, mp->world));
        mp_barrier(mp->world);
        MP_CHECK_EQ(mp_verify(part, N, 21), -1);
        mp_fill(part, N, 22);
        mp_barrier(mp->world);
        mp_barrier(mp->world);
        MP_OK(rank_dereg(&mem));
    } else {
        rank_envelope_t env;
        uint64_t word = 0;

        MP_OK(rank_recv(key, (int64_t)sizeof(key), RANK_BYTE, 1, TAG, mp->world, &env));
        MP_OK(rank_rkey_open(mp->world, 1, key, (size_t)env.bytes, &mem));
        ever = had();
        MP_CHECK_EQ(attached(), before + 1);
        mp_fill(mine, N, 21);
        MP_OK(rank_put(mine, 1000, 1, mem, 0));
        for (int i = 0; i < PIECES; i++)
            pieces[i] = (rank_piece_t){.local = mine + 1000 + i * 3000, .bytes = 3000, .offset = 1000 + i * 3000};
        MP_OK(rank_putv(pieces, PIECES, 1, mem));
        MP_OK(rank_put(mine + 1000 + PIECES * 3000, N - 1000 - PIECES * 3000, 1, mem, 1000 + PIECES * 3000));
        MP_OK(rank_flush(mem, 1));
        mp_barrier(mp->world);
        mp_barrier(mp->world);
        memset(mine, 0, N);
        MP_OK(rank_get(&word, 8, 1, mem, 0));
        MP_OK(rank_get(mine, 1000, 1, mem, 0));
        MP_OK(rank_getv(pieces, PIECES, 1, mem));
        MP_OK(rank_get(mine + 1000 + PIECES * 3000, N - 1000 - PIECES * 3000, 1, mem, 1000 + PIECES * 3000));
        MP_CHECK_EQ(mp_verify(mine, N, 22), -1);
        MP_CHECK_EQ(memcmp(mine, &word, 8), 0);
        MP_CHECK_EQ(had(), ever);
        MP_OK(rank_rkey_close(&mem));
        MP_CHECK_EQ(attached(), before);
        mp_barrier(mp->world);
    }
    free(part);
    free(mine);
}

/* Rank 1 dies while rank 0 copies from it. */
static void dies(struct mp *mp, bool by_get)
{
    char *buf = mp_alloc(BIG);
    unsigned char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    rank_envelope_t env;
    rank_request_t req;
    rank_status_t st;
    rank_mem_t mem;

    send_over(mp, buf, 65536, 1); /* all is found and tried that is on the way */
    if (mp->rank == 1) {
        MP_OK(rank_reg(buf, BIG, &mem));
        MP_OK(rank_rkey_pack(mem, key, &len));
        MP_OK(rank_send(key, (int64_t)len, RANK_BYTE, 0, TAG, mp->world));
        MP_OK(rank_isend(buf, BIG, RANK_BYTE, 0, TAG, mp->world, &req));
        for (;;) /* until it is killed */
            MP_OK(rank_progress());
    }
    MP_OK(rank_recv(key, (int64_t)sizeof(key), RANK_BYTE, 1, TAG, mp->world, &env));
    if (by_get) {
        cut(1); /* what the key is tried on is only attached, and copied later */
        MP_OK(rank_rkey_open(mp->world, 1, key, (size_t)env.bytes, &mem));
        st = rank_get(buf, BIG, 1, mem, 0);
    } else {
        cut(1);
        st = rank_recv(buf, BIG, RANK_BYTE, 1, TAG, mp->world, NULL);
    }
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    if (by_get) { /* it flushes, which reports the death once it is known here: a copy that failed does not see to that */
        char c;
        MP_STATUS(rank_recv(&c, 1, RANK_BYTE, 1, TAG + 1, mp->world, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_rkey_close(&mem), RANK_ERR_PEER_DEAD);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    bool die = mp_flag(argc, argv, "--die"), die_get = mp_flag(argc, argv, "--die-get");
    struct mp mp;

    *(void **)&cut = dlsym(RTLD_DEFAULT, "xpmem_standin_cut");
    *(void **)&attached = dlsym(RTLD_DEFAULT, "xpmem_standin_attached");
    *(void **)&had = dlsym(RTLD_DEFAULT, "xpmem_standin_had");
    MP_CHECK(cut && attached && had);
    mp_start(&mp, &argc, argv);
    if (die || die_get) {
        mp_case(&mp, "dies");
        dies(&mp, die_get);
        mp_end_survivor(&mp);
        return 0;
    }
    mp_case(&mp, "again");
    again(&mp);
    mp_case(&mp, "many");
    many(&mp);
    mp_case(&mp, "goes away");
    goes_away(&mp);
    mp_case(&mp, "elsewhere");
    elsewhere(&mp);
    mp_case(&mp, "own handler");
    own_handler(&mp);
    mp_case(&mp, "registered");
    registered(&mp);
    mp_end(&mp);
    MP_CHECK_EQ(attached(), 0); /* nothing stays */
    return 0;
}
