/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_of_origin.c: kill a rank in the middle of its put.
 *
 * Its target's memory holds what was put or what was there, byte for byte, and nothing besides. The target and all others
 * go on, and so do their puts and flushes to the same memory, during it and after it. The last rank dies.
 *
 *   --within S    seconds in which all get it
 *   --seed N      decides the moment
 *   --alloc       the memory is of rank_alloc
 *   --shared      it is registered shared memory; else registered private memory
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of the target's memory: the victim's share, and a page's worth for each of the others, all with gaps between them. */
enum { AT = 100001, LEN = 700000, OTHERS = 900000, EACH = 5000, GAP = 6000, BYTES = 1000000, RANKS = 16, PIECES = 64 };

/* Reported within a second; slow builds get more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WITHIN_S = 4 };
#else
enum { WITHIN_S = 1 };
#endif

struct scene {
    struct mp mp;
    int victim;
    double when, within;
    rank_team_t living;
    char *mine;
    int fd;
    rank_mem_t own, to; /* to: the target's, rank 0's */
};

static unsigned char *pattern; /* what the victim puts at AT; the same each time */

static void make(struct scene *s, bool alloc, bool shared)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    int64_t n;
    void *p;

    s->fd = -1;
    if (alloc) {
        MP_OK(rank_alloc(s->mp.world, RANK_MEM_HOST, BYTES, &p, &s->own));
        s->mine = p;
        s->to = s->own;
        return;
    }
    if (shared) {
        s->fd = memfd_create("death_of_origin", MFD_CLOEXEC);
        MP_CHECK(s->fd >= 0 && ftruncate(s->fd, BYTES) == 0);
        s->mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        MP_CHECK(s->mine != MAP_FAILED);
    } else {
        s->mine = mp_alloc(BYTES);
        memset(s->mine, 0, BYTES);
    }
    MP_OK(rank_reg(s->mine, BYTES, &s->own));
    MP_OK(rank_rkey_pack(s->own, key, &len));
    n = (int64_t)len;
    MP_OK(rank_bcast(&n, 1, RANK_INT64, 0, s->mp.world));
    MP_OK(rank_bcast(key, n, RANK_BYTE, 0, s->mp.world));
    MP_OK(rank_rkey_open(s->mp.world, 0, key, (size_t)n, &s->to));
}

/* -------------------------------------------------------------------- the victim */

static void put(struct scene *s)
{
    MP_OK(rank_put(pattern, LEN, 0, s->to, AT));
}

static void iput(struct scene *s)
{
    rank_request_t req[PIECES];

    for (int i = 0; i < PIECES; i++)
        MP_OK(rank_iput(pattern + i * (LEN / PIECES), LEN / PIECES, 0, s->to, AT + i * (LEN / PIECES), &req[i]));
    MP_OK(rank_waitall(PIECES, req, NULL));
}

static void vector(struct scene *s)
{
    rank_piece_t p[PIECES];

    for (int i = 0; i < PIECES; i++) {
        int at = (PIECES - 1 - i) * (LEN / PIECES);
        p[i] = (rank_piece_t){pattern + at, i & 1 ? 600 : 9000, AT + at};
    }
    MP_OK(rank_putv(p, PIECES, 0, s->to));
}

static void strided(struct scene *s)
{
    MP_OK(rank_put_strided(pattern, 300, 100, LEN / 300, 0, s->to, AT, 300));
}

/* The signal's word is in front of the share, 8 bytes that are checked by themselves. */
static void give_signal(struct scene *s)
{
    MP_OK(rank_put_signal(pattern, 30000, 0, s->to, AT, s->to, 16, 1, RANK_SIGNAL_ADD));
}

static void one_round(struct scene *s)
{
    put(s);
    iput(s);
    vector(s);
    strided(s);
    give_signal(s);
    MP_OK(rank_flush(s->to, 0));
}

/* -------------------------------------------------------------------- the others */

static unsigned char byte_of(int rank, uint64_t turn, int64_t i)
{
    return (unsigned char)((uint64_t)rank * 31 + turn * 7 + (uint64_t)i);
}

static void others_turn(struct scene *s, uint64_t turn)
{
    static unsigned char out[EACH], in[EACH];

    for (int64_t i = 0; i < EACH; i++)
        out[i] = byte_of(s->mp.rank, turn, i);
    MP_OK(rank_put(out, EACH, 0, s->to, OTHERS + (s->mp.rank - 1) * GAP));
    MP_OK(rank_flush(s->to, 0));
    MP_OK(rank_get(in, EACH, 0, s->to, OTHERS + (s->mp.rank - 1) * GAP));
    MP_CHECK(memcmp(in, out, EACH) == 0);
}

static void look(const struct scene *s)
{
    const unsigned char *m = (const unsigned char *)s->mine;
    int64_t wrong = 0, there = 0;

    for (int64_t i = 0; i < BYTES; i++) {
        int64_t other = i - OTHERS;
        bool signal = i >= 16 && i < 24;
        if (i >= AT && i < AT + LEN) {
            wrong += m[i] != 0 && m[i] != pattern[i - AT];
            there += m[i] != 0;
        } else if (!signal && (other < 0 || other / GAP >= s->mp.size - 2 || other % GAP >= EACH)) {
            wrong += m[i] != 0;
        }
    }
    MP_CHECK_EQ(wrong, 0);
    MP_CHECK(there > 0);
}

/* Until the death is known here, which is in time; rank 0 makes progress, as frames need it. */
static void go_through(struct scene *s)
{
    rank_request_t dead;
    rank_status_t st;
    uint64_t turn = 0;
    int done = 0;
    char c;

    MP_OK(rank_irecv(&c, 1, RANK_BYTE, s->victim, 77, s->mp.world, &dead));
    for (;;) {
        st = rank_test(&dead, &done, NULL);
        if (done || st)
            break;
        MP_CHECK(mp_now() < s->when + 2 * s->within);
        if (s->mp.rank)
            others_turn(s, ++turn);
    }
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    MP_CHECK(mp_now() >= s->when && mp_now() < s->when + s->within);
    mp_barrier(s->living);
    if (s->mp.rank == 0)
        look(s);
    mp_barrier(s->living);
    for (uint64_t i = 0; s->mp.rank && i < 20; i++)
        others_turn(s, ++turn);
    mp_barrier(s->living);
    if (s->mp.rank == 0)
        look(s);
    mp_barrier(s->living);
}

int main(int argc, char **argv)
{
    static struct scene s; /* the moment has to stay */
    uint64_t seed;
    bool alloc;

    mp_start(&s.mp, &argc, argv);
    alloc = mp_flag(argc, argv, "--alloc");
    MP_CHECK(s.mp.size >= 2 && s.mp.size <= RANKS);
    pattern = mp_alloc(LEN);
    for (int64_t i = 0; i < LEN; i++)
        pattern[i] = (unsigned char)(1 + i % 255); /* never 0 */
    s.within = (double)mp_option(argc, argv, "--within", WITHIN_S);
    s.victim = s.mp.size - 1;
    seed = s.mp.seed;
    MP_OK(rank_team_split(s.mp.world, s.mp.rank == s.victim ? RANK_UNDEFINED : 0, 0, &s.living));
    make(&s, alloc, mp_flag(argc, argv, "--shared"));
    mp_case(&s.mp, "origin");
    if (s.mp.rank == s.victim)
        one_round(&s); /* however early it dies */
    MP_OK(rank_barrier(s.mp.world)); /* no rank dies while another still opens its keys */
    s.when = mp_now() + 0.02 + (double)mp_below(&seed, 60000) * 1e-6;
    MP_OK(rank_bcast(&s.when, 1, RANK_F64, 0, s.mp.world));
    if (s.mp.rank == s.victim)
        mp_die_at(&s.when);
    while (s.mp.rank == s.victim)
        one_round(&s);
    go_through(&s);
    if (alloc) {
        MP_STATUS(rank_free(&s.own), RANK_ERR_PEER_DEAD);
    } else {
        MP_OK(rank_rkey_close(&s.to));
        mp_barrier(s.living);
        MP_OK(rank_dereg(&s.own));
    }
    MP_OK(rank_team_free(&s.living));
    mp_end_survivor(&s.mp);
    if (s.fd >= 0) {
        munmap(s.mine, BYTES);
        close(s.fd);
    } else if (!alloc) {
        free(s.mine);
    }
    free(pattern);
    return 0;
}
