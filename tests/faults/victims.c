/* SPDX-License-Identifier: BSD-3-Clause */
/* victims.c: see victims.h. */
#include "tests/faults/victims.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What UCX's own shared memory owes the dead it may owe for ever. Its worker is left then, until the process ends, and much of
 * that hangs on memory which the leak check does not read: decided before it begins. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((visibility("default"))) int __lsan_is_turned_off(void); /* preempts the sanitizer's */
int __lsan_is_turned_off(void)
{
    const char *channels = getenv("RANK_CHANNELS");

    return channels && strstr(channels, "ucx") && !getenv("UCX_TLS");
}
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWER = 4 };
#else
enum { SLOWER = 1 };
#endif
enum { ROWS_MAX = 64, KEY = 30, TABLE_LIVING = 2, AT_PUT = 64, AT_SIGNAL = 16, PUT_BYTES = 3000 };

struct job {
    struct scene s;
    const struct row *row[ROWS_MAX];
    rank_team_t team[ROWS_MAX];
    int nrows, nliving;
    int seat;   /* of a victim; of the living -1 */
    int index;  /* of the living */
    int victim; /* --victim, or -1 */
    bool asleep, leaves;
    uint64_t seed;
};

rank_status_t after(rank_status_t st, rank_request_t *req)
{
    return st ? st : rank_wait(req, NULL);
}

void check_dead(int line, const char *what, rank_status_t st)
{
    if (st != RANK_ERR_PEER_DEAD)
        mp_fail(__FILE__, line, "%s gave %d (%s), not RANK_ERR_PEER_DEAD", what, (int)st, rank_status_string(st));
}

/* --------------------------------------------------------------------- a row */

/* The victim's memory, registered and opened by the living. */
static void open_registered(struct job *j)
{
    struct scene *s = &j->s;
    rank_envelope_t env;

    MP_OK(rank_reg(s->in, LARGE, &s->own));
    s->key_len = sizeof(s->key);
    if (j->seat >= 0) {
        MP_OK(rank_rkey_pack(s->own, s->key, &s->key_len));
        for (int r = 0; r <= j->nliving; r++) {
            if (r != s->victim)
                MP_OK(rank_ssend(s->key, (int64_t)s->key_len, RANK_BYTE, r, KEY, s->team));
        }
        return;
    }
    MP_OK(rank_recv(s->key, sizeof(s->key), RANK_BYTE, s->victim, KEY, s->team, &env));
    s->key_len = (size_t)env.bytes;
    MP_OK(rank_rkey_open(s->team, s->victim, s->key, s->key_len, &s->mem));
}

/* The first of the living chooses the moment. */
static void agree(struct job *j, const struct row *row)
{
    struct scene *s = &j->s;

    if (j->index == 0) {
        s->when = mp_now() + (row->flags & DUP ? 0.1 : 0.01) + (double)mp_below(&j->seed, 30000) * 1e-6;
        for (int r = 0; r <= j->nliving; r++) {
            if (r != s->first)
                MP_OK(rank_send(&s->when, 1, RANK_F64, r, KEY, s->team));
        }
    } else {
        MP_OK(rank_recv(&s->when, 1, RANK_F64, s->first, KEY, s->team, NULL));
    }
}

static void end_victim(struct job *j, const struct row *row)
{
    struct scene *s = &j->s;
    static double when;

    when = s->when;
    if (j->leaves && j->seat > 0) { /* another is dead */
        while (mp_now() < when)
            MP_OK(rank_progress());
        mp_end_survivor(&s->mp);
        exit(0);
    }
    mp_die_at(&when);
    if (row->flags & DUP)
        MP_OK(rank_team_free(&s->dup));
    if (row->victim)
        row->victim(s);
    while (row->flags & TOGETHER)
        MP_OK(row->call(s));
    while (j->asleep || row->flags & SLEEPS)
        pause();
    for (;;)
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, s->victim, NEVER, s->team, NULL));
}

static void live(struct scene *s, const struct row *row)
{
    rank_status_t st;
    double late;

    while ((st = row->call(s)) == RANK_OK) {
        if (!(row->flags & (LATER | TOGETHER)))
            mp_fail(__FILE__, __LINE__, "%s succeeded", row->name);
        if (mp_now() > s->when + 2 * s->within)
            mp_fail(__FILE__, __LINE__, "%s still succeeds %g s after the death", row->name, 2 * s->within);
    }
    check_dead(__LINE__, row->name, st);
    late = mp_now() - s->when;
    if (late < 0 || late > s->within)
        mp_fail(__FILE__, __LINE__, "%s: reported after %.3f s", row->name, late);
    if (!(row->flags & ONCE))
        check_dead(__LINE__, "the same once more", row->call(s));
}

/* The rank of the world of one of the living. */
static int world_rank(const struct job *j, int index)
{
    return index + (j->victim >= 0 && index >= j->victim);
}

/* The living serve each other in memory that a dead rank has, too. */
static void put_among_living(struct job *j, const char *mine, rank_mem_t mem)
{
    struct scene *s = &j->s;
    int prev = (j->index + j->nliving - 1) % j->nliving;

    MP_OK(rank_put_signal(s->out, PUT_BYTES, s->to, mem, AT_PUT, mem, AT_SIGNAL, 1, RANK_SIGNAL_SET));
    MP_OK(rank_signal_wait(mem, AT_SIGNAL, RANK_CMP_GE, 1, s->from, NULL));
    MP_OK(rank_flush(mem, s->to));
    mp_barrier(s->living);
    MP_CHECK_EQ(mp_verify(mine + AT_PUT, PUT_BYTES, (uint64_t)world_rank(j, prev)), -1);
}

/* What the living sent each other lies about; then they are as before. */
static void sweep(struct scene *s)
{
    char c[SMALL] = {0};
    int found = 1;

    MP_OK(rank_sendrecv(c, 1, RANK_BYTE, s->to, NEVER, c + 1, 1, RANK_BYTE, s->from, NEVER, s->team, NULL));
    for (;;) {
        MP_OK(rank_iprobe(s->from, DATA, s->team, &found, NULL));
        if (!found)
            break;
        MP_OK(rank_recv(c, SMALL, RANK_BYTE, s->from, DATA, s->team, NULL));
    }
    if (s->again != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(&s->again));
    mp_barrier(s->living); /* none leaves while another still checks */
}

static void play(struct job *j, int i)
{
    const struct row *row = j->row[i];
    struct scene *s = &j->s;
    bool all_first = row->flags & REMOTE && (s->mp.seed + (uint64_t)i) % 2; /* the death comes while others access it */
    rank_mem_t all = RANK_MEM_NULL, registered = RANK_MEM_NULL, opened;
    void *mine = NULL;
    int source;

    s->bytes = row->bytes;
    s->victim = row->flags & VICTIM_0 ? 0 : row->flags & VICTIM_1 && j->nliving > 1 ? 1 : j->nliving;
    s->first = s->victim == 0;
    s->to = (j->index + 1) % j->nliving;
    s->from = (j->index + j->nliving - 1) % j->nliving;
    s->to += s->to >= s->victim;
    s->from += s->from >= s->victim;
    memset(s->in, 0, SMALL);
    if (row->flags & (REMOTE | REGISTERED)) {
        open_registered(j);
        mp_barrier(s->team); /* the victim does not die while another still opens its key */
        registered = s->own;
        s->source = j->victim >= 0 ? j->victim : j->nliving + i;
    }
    if (row->flags & (REMOTE | ALLOCATED))
        MP_OK(rank_alloc(s->team, RANK_MEM_HOST, LARGE, &mine, &all));
    if (row->flags & ALLOCATED) {
        s->mem = s->own = all;
        s->source = s->victim;
    }
    if (row->flags & DUP)
        MP_OK(rank_team_dup(s->team, &s->dup));
    opened = s->mem;
    source = s->source;
    if (all_first) {
        s->mem = s->own = all;
        s->source = s->victim;
    }
    agree(j, row);
    if (j->seat >= 0)
        end_victim(j, row);
    live(s, row);
    if (row->flags & REMOTE) {
        s->mem = all_first ? opened : all;
        s->own = all_first ? registered : all;
        s->source = all_first ? source : s->victim;
        live(s, row);
        mp_barrier(s->living);
        put_among_living(j, mine, all);
        s->mem = opened;
        IS_DEAD(rank_free(&all));
    }
    if (row->flags & ALLOCATED && s->mem != RANK_MEM_NULL)
        IS_DEAD(rank_free(&s->mem));
    sweep(s);
    if (registered != RANK_MEM_NULL) {
        rank_status_t st = rank_rkey_close(&s->mem); /* it may return what the flush has returned */

        MP_CHECK(!st || st == RANK_ERR_PEER_DEAD);
        mp_barrier(s->living);
        MP_OK(rank_dereg(&registered));
    }
    s->mem = s->own = RANK_MEM_NULL;
}

/* ------------------------------------------------------------------ afterwards */

/* All calls on a team with a dead rank. */
static void refused(struct scene *s)
{
    rank_team_t dup = RANK_TEAM_NULL;
    rank_mem_t mem = RANK_MEM_NULL;
    rank_request_t req;
    void *p = NULL;

    IS_DEAD(rank_barrier(s->team));
    IS_DEAD(rank_bcast(s->in, SMALL, RANK_BYTE, s->first, s->team));
    IS_DEAD(rank_bcast(s->in, SMALL, RANK_BYTE, s->victim, s->team));
    IS_DEAD(rank_reduce(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->victim, s->team));
    IS_DEAD(rank_allreduce(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_allreduce(s->out, s->in, LARGE / 8, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_gather(s->out, s->in, SMALL, RANK_BYTE, s->victim, s->team));
    IS_DEAD(rank_allgather(s->out, s->in, SMALL, RANK_BYTE, s->team));
    IS_DEAD(rank_scatter(s->out, s->in, SMALL, RANK_BYTE, s->first, s->team));
    IS_DEAD(rank_reduce_scatter(s->out, s->in, 1, RANK_INT64, RANK_SUM, s->team));
    IS_DEAD(rank_alltoall(s->out, s->in, SMALL, RANK_BYTE, s->team));
    IS_DEAD(after(rank_ibarrier(s->team, &req), &req));
    IS_DEAD(rank_team_dup(s->team, &dup));
    IS_DEAD(rank_alloc(s->team, RANK_MEM_HOST, LARGE, &p, &mem));
    MP_CHECK(dup == RANK_TEAM_NULL && mem == RANK_MEM_NULL && !p);
    IS_DEAD(rank_recv(s->in, 1, RANK_BYTE, s->victim, DATA, s->team, NULL));
    IS_DEAD(rank_send(s->out, 1, RANK_BYTE, s->victim, DATA, s->team));
    IS_DEAD(after(rank_isend(s->out, LARGE, RANK_BYTE, s->victim, DATA, s->team, &req), &req));
    IS_DEAD(rank_ssend(s->out, 1, RANK_BYTE, s->victim, DATA, s->team));
    IS_DEAD(rank_probe(s->victim, RANK_ANY_TAG, s->team, NULL));
}

/* The living, on the world and on a team of their own. */
static void go_on(struct job *j)
{
    struct scene *s = &j->s;
    int next = (j->index + 1) % j->nliving, prev = (j->index + j->nliving - 1) % j->nliving, reports = 0;
    int to = world_rank(j, next), from = world_rank(j, prev);
    int64_t one = 1, sum = 0;
    rank_request_t req;
    rank_status_t st;
    int32_t in, out;

    mp_barrier(s->living); /* all have learned of it */
    for (int32_t i = 0; i < 200; i++) {
        out = i * 100 + s->mp.rank;
        MP_OK(rank_sendrecv(&out, 1, RANK_INT32, to, 50, &in, 1, RANK_INT32, from, 50, s->mp.world, NULL));
        MP_CHECK_EQ(in, i * 100 + from);
    }
    MP_OK(rank_sendrecv(s->out, HUGE, RANK_BYTE, next, 51, s->in, HUGE, RANK_BYTE, prev, 51, s->living, NULL));
    MP_CHECK_EQ(mp_verify(s->in, HUGE, (uint64_t)from), -1);
    MP_OK(rank_allreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, s->living));
    MP_CHECK_EQ(sum, j->nliving);
    MP_OK(rank_barrier(s->living));
    IS_DEAD(rank_barrier(s->mp.world));
    /* Wildcard receives report each death once, at most; after that they serve the living. */
    out = 7;
    MP_OK(rank_isend(&out, 1, RANK_INT32, s->mp.rank, 61, s->mp.world, &req));
    while ((st = rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 61, s->mp.world, NULL)) == RANK_ERR_PEER_DEAD)
        MP_CHECK(++reports <= j->nrows);
    MP_OK(st);
    MP_CHECK_EQ(in, 7);
    MP_OK(rank_wait(&req, NULL));
    mp_barrier(s->living);
}

/* ------------------------------------------------------------------------ jobs */

static void choose_rows(struct job *j, const char *names, const struct row *rows, int nrows, int first)
{
    for (int i = first; i < nrows && !names && j->nrows < j->s.mp.size - TABLE_LIVING; i++)
        j->row[j->nrows++] = &rows[i];
    while (names && *names) {
        size_t n = strcspn(names, ",");
        int i = 0;

        while (i < nrows && (strlen(rows[i].name) != n || strncmp(rows[i].name, names, n) != 0))
            i++;
        if (i == nrows || j->nrows == ROWS_MAX)
            mp_fail(__FILE__, __LINE__, "--in %s: there is no such row", names);
        j->row[j->nrows++] = &rows[i];
        names += n + (names[n] == ',');
    }
}

static void place_ranks(struct job *j)
{
    const struct mp *mp = &j->s.mp;

    j->nliving = mp->size - j->nrows;
    MP_CHECK(j->nrows > 0 && j->nliving > 0 && j->nliving < 64 && (j->victim < 0 || j->nrows == 1));
    if (j->victim < 0)
        j->seat = mp->rank - j->nliving;
    else
        j->seat = mp->rank == j->victim ? 0 : -1;
    j->index = j->seat >= 0 ? -1 : mp->rank - (j->victim >= 0 && mp->rank > j->victim);
    j->seat = j->seat < 0 ? -1 : j->seat;
}

static void make_teams(struct job *j)
{
    MP_OK(rank_team_split(j->s.mp.world, j->seat >= 0 ? RANK_UNDEFINED : 0, 0, &j->s.living));
    for (int i = 0; i < j->nrows; i++) {
        int flags = j->row[i]->flags, key = flags & VICTIM_0 ? -1 : flags & VICTIM_1 ? 1 : 2 * j->nliving;

        MP_OK(rank_team_split(j->s.mp.world, j->seat < 0 || j->seat == i ? 0 : RANK_UNDEFINED, j->seat < 0 ? 2 * j->index : key,
                              &j->team[i]));
    }
}

int victims_main(int argc, char **argv, const struct row *rows, int nrows)
{
    static struct job j;
    struct scene *s = &j.s;
    rank_mem_t mapped = RANK_MEM_NULL;
    const char *names = NULL;
    void *p;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--in") == 0)
            names = argv[i + 1];
    }
    mp_start(&s->mp, &argc, argv);
    j.seed = s->mp.seed;
    j.victim = (int)mp_option(argc, argv, "--victim", -1);
    j.asleep = mp_flag(argc, argv, "--asleep");
    j.leaves = mp_flag(argc, argv, "--leave");
    s->within = (double)mp_option(argc, argv, "--within", SLOWER * (names ? j.leaves ? 3 : 1 : 5));
    choose_rows(&j, names, rows, nrows, (int)mp_option(argc, argv, "--first", 0));
    place_ranks(&j);
    make_teams(&j);
    if (mp_flag(argc, argv, "--mapped")) {
        MP_OK(rank_alloc(s->mp.world, RANK_MEM_HOST, 2 * (int64_t)HUGE, &p, &mapped));
        s->out = p;
        s->in = s->out + HUGE;
    } else {
        s->out = mp_alloc(HUGE);
        s->in = mp_alloc(HUGE);
    }
    mp_fill(s->out, HUGE, (uint64_t)s->mp.rank);
    for (int i = 0; i < 64; i++)
        s->counts[i] = SMALL, s->displs[i] = (int64_t)i * SMALL;
    mp_case(&s->mp, "victims");
    for (int i = 0; i < j.nrows; i++) {
        if (j.seat >= 0 && j.seat != i)
            continue;
        s->team = j.team[i];
        if (j.index == 0) {
            printf("%.3f %s\n", mp_now(), j.row[i]->name);
            fflush(stdout);
        }
        play(&j, i);
        refused(s);
        MP_OK(rank_team_free(&s->team));
    }
    go_on(&j);
    MP_OK(rank_team_free(&s->living));
    mp_end_survivor(&s->mp);
    if (mapped == RANK_MEM_NULL) {
        free(s->out);
        free(s->in);
    }
    return 0;
}
