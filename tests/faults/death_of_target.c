/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_of_target.c: kill the target of puts, gets and atomics.
 *
 * Or of opens of its keys, or of waits for its signals. The others get a status in time, and go on. Options: those of one_death.h,
 * where --in is a name of the table, and
 *   --alloc       the memory is of rank_alloc, not registered
 *   --every MS    how long the others compute between two such calls
 *   --asleep      the victim is in no call of the library when it dies
 */
#include "tests/faults/one_death.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 300000, PIECES = 50 };

struct scene {
    struct mp mp;
    struct one_death death;
    struct timespec every;
    char *mine, *buf;
    rank_mem_t own;     /* my memory, registered */
    rank_mem_t at[64];  /* keys to that of every rank */
    bool alloc;         /* they all are one, of rank_alloc */
    char key[RANK_RKEY_MAX]; /* of the victim's */
    size_t key_len;
};

static rank_status_t put(struct scene *s, rank_mem_t mem)
{
    rank_status_t st = rank_put(s->buf, 5000, s->death.victim, mem, 64);

    return st ? st : rank_flush(mem, s->death.victim);
}

static rank_status_t get(struct scene *s, rank_mem_t mem)
{
    return rank_get(s->buf, BYTES, s->death.victim, mem, 0);
}

static rank_status_t add(struct scene *s, rank_mem_t mem)
{
    int64_t one = 1;
    rank_status_t st = rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, s->death.victim, mem, 0, NULL);

    return st ? st : rank_flush(mem, s->death.victim);
}

static rank_status_t fetch_add(struct scene *s, rank_mem_t mem)
{
    int64_t one = 1, was;

    return rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, s->death.victim, mem, 0, &was);
}

static rank_status_t many(struct scene *s, rank_mem_t mem)
{
    rank_request_t req[PIECES];
    rank_status_t st = RANK_OK;
    int n = 0;

    for (; n < PIECES && !st; n++) {
        req[n] = RANK_REQUEST_NULL;
        st = n & 1 ? rank_iput(s->buf, 20000, s->death.victim, mem, 64, &req[n])
                   : rank_iget(s->buf + 20000 + 1000 * n, 1000, s->death.victim, mem, 64 * n, &req[n]);
    }
    if (!st)
        return rank_waitall(n, req, NULL);
    rank_waitall(n, req, NULL);
    return st;
}

static rank_status_t vector(struct scene *s, rank_mem_t mem)
{
    rank_piece_t p[PIECES];
    rank_status_t st;

    for (int i = 0; i < PIECES; i++)
        p[i] = (rank_piece_t){s->buf + 1000 * i, 600, 1000 * i};
    st = rank_putv(p, PIECES, s->death.victim, mem);
    if (!st)
        st = rank_getv(p, PIECES, s->death.victim, mem);
    return st ? st : rank_flush(mem, s->death.victim);
}

static rank_status_t give_signal(struct scene *s, rank_mem_t mem)
{
    rank_status_t st =
        rank_put_signal(s->buf, 8000, s->death.victim, mem, 64, mem, 0, 1, RANK_SIGNAL_ADD);

    return st ? st : rank_flush(mem, s->death.victim);
}

static rank_status_t open_key(struct scene *s, rank_mem_t mem)
{
    rank_mem_t again;
    rank_status_t st = rank_rkey_open(s->mp.world, s->death.victim, s->key, s->key_len, &again);

    (void)mem;
    return st ? st : rank_rkey_close(&again);
}

static rank_status_t wait_signal(struct scene *s, rank_mem_t mem)
{
    (void)mem;
    return rank_signal_wait(s->own, 8, RANK_CMP_EQ, 77, s->death.victim, NULL);
}

static rank_status_t wait_any_signal(struct scene *s, rank_mem_t mem)
{
    (void)mem;
    return rank_signal_wait(s->own, 8, RANK_CMP_EQ, 77, RANK_ANY_SOURCE, NULL);
}

static rank_status_t test_for_signal(struct scene *s, rank_mem_t mem)
{
    rank_status_t st = RANK_OK;
    int flag = 0;

    (void)mem;
    while (!st && !flag)
        st = rank_test_signal(s->own, 8, RANK_CMP_EQ, 77, s->death.victim, &flag, NULL);
    return st;
}

static rank_status_t wait_value(struct scene *s, rank_mem_t mem)
{
    (void)mem;
    return rank_wait_until(s->own, 8, RANK_CMP_EQ, 77);
}

/* As put, of all owners at once. */
static rank_status_t put_all(struct scene *s, rank_mem_t mem)
{
    rank_status_t st = rank_put(s->buf, 5000, s->death.victim, mem, 64);

    return st ? st : rank_flush(mem, RANK_ALL);
}

/* A lock that its dead owner would never give back. */
static rank_status_t compare_swap(struct scene *s, rank_mem_t mem)
{
    int32_t is = 5, becomes = 6, was;

    return rank_atomic_cas(RANK_INT32, &is, &becomes, s->death.victim, mem, 4, &was);
}

static const struct {
    const char *name;
    rank_status_t (*call)(struct scene *, rank_mem_t);
    bool once; /* it waits for the death by itself */
} calls[] = {
    {"put", put, false},         {"get", get, false},       {"add", add, false},
    {"put-all", put_all, false}, {"compare-swap", compare_swap, false},
    {"fetch-add", fetch_add, false}, {"many", many, false}, {"vector", vector, false},
    {"put-signal", give_signal, false}, {"open", open_key, false},
    {"signal", wait_signal, true}, {"any-signal", wait_any_signal, true},
    {"test-signal", test_for_signal, true}, {"value", wait_value, true},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void play(struct scene *s, const char *name, bool asleep)
{
    rank_status_t st = RANK_OK;
    int i = 0;

    if (s->mp.rank == s->death.victim) {
        while (asleep)
            pause();
        for (;;)
            MP_OK(rank_recv(s->buf, 0, RANK_BYTE, s->death.victim, 999, s->mp.world, NULL));
    }
    while (i < CALLS && strcmp(calls[i].name, name) != 0)
        i++;
    if (i == CALLS)
        mp_fail(__FILE__, __LINE__, "--in %s: there is no such scene", name);
    if (calls[i].once) {
        ONE_DEATH_ENDED(&s->death, calls[i].call(s, s->at[s->death.victim]));
        return;
    }
    while (st == RANK_OK) {
        one_death_overdue(__FILE__, __LINE__, &s->death, name);
        nanosleep(&s->every, NULL);
        st = calls[i].call(s, s->at[s->death.victim]);
    }
    one_death_check(__FILE__, __LINE__, &s->death, name, st);
}

/* Keys of all, by all. */
static void set_up(struct scene *s)
{
    s->buf = calloc(1, BYTES);
    if (s->alloc) {
        void *mine;
        MP_OK(rank_alloc(s->mp.world, RANK_MEM_HOST, BYTES, 0, &mine, &s->own));
        s->mine = mine;
        MP_CHECK(s->buf && s->mp.size <= 64);
        for (int r = 0; r < s->mp.size; r++)
            s->at[r] = s->own;
        MP_OK(rank_barrier(s->mp.world));
        return;
    }
    s->mine = calloc(1, BYTES);
    MP_CHECK(s->mine && s->buf && s->mp.size <= 64);
    MP_OK(rank_reg(s->mine, BYTES, &s->own));
    for (int r = 0; r < s->mp.size; r++) {
        char key[RANK_RKEY_MAX];
        uint64_t len = sizeof(key);
        size_t n = sizeof(key);
        if (r == s->mp.rank) {
            MP_OK(rank_rkey_pack(s->own, key, &n));
            len = n;
        }
        MP_OK(rank_bcast(&len, 1, RANK_UINT64, r, s->mp.world));
        MP_OK(rank_bcast(key, (int64_t)len, RANK_BYTE, r, s->mp.world));
        MP_OK(rank_rkey_open(s->mp.world, r, key, len, &s->at[r]));
        if (r == s->death.victim) {
            memcpy(s->key, key, len);
            s->key_len = len;
        }
    }
    MP_OK(rank_barrier(s->mp.world)); /* no rank dies while another still opens its keys */
}

/* The living serve each other; the dead one stays dead; waits can be armed again. */
static void go_on(struct scene *s)
{
    int n = rank_team_size(s->death.living), r = rank_team_rank(s->death.living), to = (r + 1) % n,
        from = (r - 1 + n) % n;
    int64_t one = 1, was;
    rank_request_t req;
    rank_status_t st;
    int reports = 0;

    mp_barrier(s->death.living);
    to += to >= s->death.victim;
    from += from >= s->death.victim;
    for (uint64_t i = 1; i <= 50; i++) {
        mp_fill(s->buf, 3000, i);
        MP_OK(rank_put_signal(s->buf, 3000, to, s->at[to], 64, s->at[to], 16, i, RANK_SIGNAL_SET));
        if (i & 1)
            MP_OK(rank_signal_wait(s->own, 16, RANK_CMP_GE, i, from, NULL));
        else
            while (rank_wait_until(s->own, 16, RANK_CMP_GE, i) == RANK_ERR_PEER_DEAD)
                MP_CHECK(++reports == 1 || n == 1);
        MP_CHECK_EQ(mp_verify(s->mine + 64, 3000, i), -1);
        mp_barrier(s->death.living);
    }
    MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, to, s->at[to], 24, &was));
    MP_OK(rank_flush(s->at[to], to));
    MP_STATUS(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, s->death.victim, s->at[s->death.victim], 24, &was),
              RANK_ERR_PEER_DEAD);
    st = rank_put(s->buf, 8, s->death.victim, s->at[s->death.victim], 0);
    MP_CHECK(st == RANK_ERR_PEER_DEAD || (st == RANK_OK && s->alloc)); /* mapped memory stays */
    MP_STATUS(rank_flush(s->at[s->death.victim], s->death.victim), RANK_ERR_PEER_DEAD);
    for (int p = 0; p < s->mp.size; p++) /* of all: reported once, if it has not been */
        rank_flush(s->at[p], RANK_ALL);
    MP_OK(rank_flush(s->at[to], RANK_ALL));
    MP_STATUS(rank_get(s->buf, 8, s->death.victim, s->at[s->death.victim], 0), RANK_ERR_PEER_DEAD);
    /* That a request cannot be answered may be known before its peer is called dead. */
    st = rank_iget(s->buf, 8, s->death.victim, s->at[s->death.victim], 0, &req);
    MP_STATUS(st ? st : rank_wait(&req, NULL), RANK_ERR_PEER_DEAD);
    if (!s->alloc)
        MP_STATUS(open_key(s, NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_signal_wait(s->own, 8, RANK_CMP_EQ, 77, s->death.victim, NULL), RANK_ERR_PEER_DEAD);
    mp_barrier(s->death.living);
    if (s->alloc) {
        MP_STATUS(rank_free(&s->own), RANK_ERR_PEER_DEAD);
        s->mine = NULL;
        return;
    }
    for (int p = 0; p < s->mp.size; p++)
        rank_rkey_close(&s->at[p]); /* the dead one's returns the death, or success */
    mp_barrier(s->death.living);
    MP_OK(rank_dereg(&s->own));
}

int main(int argc, char **argv)
{
    struct scene s;
    const char *name = one_death_scene(argc, argv, "put");

    memset(&s, 0, sizeof(s));
    mp_start(&s.mp, &argc, argv);
    s.every.tv_nsec = (long)mp_option(argc, argv, "--every", 0) * 1000000;
    s.alloc = mp_flag(argc, argv, "--alloc");
    one_death_init(&s.death, &s.mp, argc, argv);
    set_up(&s);
    mp_case(&s.mp, name);
    one_death_arm(&s.death, &s.mp, 0.05, 100000);
    play(&s, name, mp_flag(argc, argv, "--asleep"));
    go_on(&s);
    one_death_end(&s.death, &s.mp);
    free(s.mine);
    free(s.buf);
    return 0;
}
