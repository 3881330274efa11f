/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_in_coll.c: kill ranks in the middle of collectives, one after the other.
 *
 * Each round has one victim. The ranks make random collective calls on a team until the victim kills itself at a random
 * step: a copy, a yield, a system call or an operand of its operation; or after a random time. The others return
 * RANK_ERR_PEER_DEAD within a second and are left alone by the library: buffers keep what is written to them then. A
 * collective that runs on the team of the survivors meanwhile has the right result. Options:
 *   --first N   kind of collective that the first round prefers
 *   --seed N    decides the calls and the steps
 *   --within N  seconds until the others return; with several hosts they have more
 */
#include "tests/coll/any_coll.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WITHIN_S = 4, BY_TIME = 3, TIME_US = 10000 }; /* only operands are steps there */
#else
enum { WITHIN_S = 1, BY_TIME = 1, TIME_US = 3000 };
#endif
static double within = WITHIN_S;
static bool several_hosts; /* the failure of a call may arrive before the death that is its cause */
enum { AT_ONCE = 3, CALLS_MAX = 300, ROUND_TAG = 9, RANKS_MAX = 32 };

/* ------------------------------------------------------------------- dying at a step */

static _Thread_local long dies_in = -1; /* steps until the death; -1: not the victim */

static bool step_is_last(void)
{
    return dies_in >= 0 && dies_in-- == 0;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* An operation of the program: the victim dies when it has reduced half. */
static void add(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg)
{
    bool last = step_is_last();

    (void)dtype, (void)arg;
    for (int64_t i = 0; i < count; i++) {
        if (last && i == count / 2)
            die();
        ((uint64_t *)inout)[i] += ((const uint64_t *)in)[i];
    }
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int __sched_yield(void);

#pragma GCC visibility push(default)
void *memcpy(void *to, const void *from, size_t n);
int sched_yield(void);
#pragma GCC visibility pop

/* The victim dies when it has copied half. */
void *memcpy(void *to, const void *from, size_t n)
{
    if (dies_in >= 0 && step_is_last()) {
        memmove(to, from, n / 2);
        die();
    }
    return memmove(to, from, n);
}

int sched_yield(void)
{
    if (step_is_last())
        die();
    return __sched_yield();
}
#endif

/* ------------------------------------------------------------------------- rounds */

struct scene {
    struct mp mp;
    rank_team_t team, living; /* of a round: all, and all but the victim */
    rank_op_t add;
    uint64_t seed;            /* equal on all ranks of a round */
    int n;
    struct any_coll calls[AT_ONCE]; /* that are under way at once */
};

/* Elements of a block: of any magnitude up to 512 KiB. */
static int64_t draw_count(uint64_t *seed)
{
    return (int64_t)mp_below(seed, UINT64_C(1) << mp_below(seed, 17));
}

static void close_calls(struct scene *s)
{
    for (int i = 0; i < s->n; i++)
        any_coll_close(&s->calls[i]);
}

static void draw_calls(struct scene *s, enum any_kind kind)
{
    s->n = 1 + (int)mp_below(&s->seed, AT_ONCE);
    for (int i = 0; i < s->n; i++) {
        enum any_kind any = mp_below(&s->seed, 3) ? kind : (enum any_kind)mp_below(&s->seed, ANY_KINDS);
        rank_op_t op = mp_below(&s->seed, 3) ? RANK_SUM : s->add;

        any_coll_open(&s->calls[i], s->team, any, draw_count(&s->seed), RANK_UINT64, op, &s->seed);
    }
}

static void check_time(const struct any_coll *c, double begun)
{
    if (mp_now() - begun > within)
        mp_fail(__FILE__, __LINE__, "%s, form %d, took %.3f s", any_coll_name(c->kind), (int)c->form, mp_now() - begun);
}

/* The status of the first call that failed. */
static rank_status_t run_calls(struct scene *s)
{
    rank_status_t st[AT_ONCE], failed = RANK_OK;
    double begun = mp_now();

    for (int i = 0; i < s->n; i++) {
        st[i] = any_coll_start(&s->calls[i]);
        if (s->calls[i].form == ANY_BLOCKING)
            check_time(&s->calls[i], begun);
    }
    for (int i = 0; i < s->n; i++) {
        struct any_coll *c = &s->calls[i];

        st[i] = st[i] ? st[i] : any_coll_finish(c);
        check_time(c, begun);
        failed = failed ? failed : st[i];
        if (st[i])
            any_coll_check_guards(c);
        else
            any_coll_check(c);
    }
    return failed;
}

static void play_victim(struct scene *s, enum any_kind kind)
{
    uint64_t own = s->mp.seed + (uint64_t)s->mp.rank * 7919;
    bool by_time = mp_below(&own, 4) < BY_TIME;
    double when;

    for (int r = 0; r < rank_team_size(s->team); r++) { /* all have left the round before */
        if (r != rank_team_rank(s->team))
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, r, ROUND_TAG, s->team, NULL));
    }
    when = mp_now() + (double)mp_below(&own, TIME_US) * 1e-6;
    if (by_time)
        mp_die_at(&when);
    else
        dies_in = (long)mp_below(&own, UINT64_C(1) << mp_below(&own, 12));
    for (int i = 0; i < CALLS_MAX; i++) {
        draw_calls(s, kind);
        run_calls(s);
        close_calls(s);
    }
    die();
}

/* The library may not touch the buffers of calls that have failed. */
static void mark_buffers(struct scene *s, bool check)
{
    for (int i = 0; i < s->n; i++) {
        struct any_coll *c = &s->calls[i];

        for (int64_t k = 0; k < c->elements; k++) {
            uint64_t *at = (uint64_t *)(void *)c->out + k;

            MP_CHECK(!check || *at == (uint64_t)k);
            *at = (uint64_t)k;
        }
    }
}

static void play_survivor(struct scene *s, enum any_kind kind, int victim)
{
    struct any_coll other;
    uint64_t seed = s->seed + 1;
    rank_status_t st;
    double begun;

    MP_OK(rank_send(NULL, 0, RANK_BYTE, victim, ROUND_TAG, s->team));
    any_coll_open(&other, s->living, (enum any_kind)mp_below(&seed, ANY_KINDS), draw_count(&seed), RANK_UINT64, RANK_SUM, &seed);
    other.form = other.form == ANY_BLOCKING ? ANY_NONBLOCKING : other.form;
    MP_OK(any_coll_start(&other));
    for (;;) {
        draw_calls(s, kind);
        st = run_calls(s);
        if (st) {
            MP_CHECK(st == RANK_ERR_PEER_DEAD || (several_hosts && st == RANK_ERR_COLLECTIVE));
            break;
        }
        close_calls(s);
    }
    mark_buffers(s, false);
    begun = mp_now();
    st = rank_barrier(s->team);
    MP_CHECK(st == RANK_ERR_PEER_DEAD || (several_hosts && st == RANK_ERR_COLLECTIVE));
    MP_OK(any_coll_finish(&other));
    any_coll_check(&other);
    any_coll_close(&other);
    mp_barrier(s->living);
    check_time(&other, begun);
    mark_buffers(s, true);
    close_calls(s);
}

int main(int argc, char **argv)
{
    struct scene s = {.n = 0};
    rank_team_t teams[RANKS_MAX + 1];
    int victim[RANKS_MAX], first, n;
    uint64_t seed;

    mp_start(&s.mp, &argc, argv);
    first = (int)mp_option(argc, argv, "--first", 0);
    within = (double)mp_option(argc, argv, "--within", WITHIN_S);
    several_hosts = within > WITHIN_S;
    seed = s.mp.seed;
    n = s.mp.size;
    MP_CHECK(n <= RANKS_MAX);
    for (int i = 0; i < n; i++)
        victim[i] = i;
    for (int i = n; i > 1; i--) { /* in random order */
        int k = (int)mp_below(&seed, (uint64_t)i), last = victim[i - 1];

        victim[i - 1] = victim[k];
        victim[k] = last;
    }
    teams[0] = s.mp.world;
    for (int i = 1; i < n; i++) { /* without the first i victims */
        bool alive = true;

        for (int k = 0; k < i; k++)
            alive = alive && victim[k] != s.mp.rank;
        MP_OK(rank_team_split(s.mp.world, alive ? 0 : RANK_UNDEFINED, 0, &teams[i]));
    }
    MP_OK(rank_op_create(add, NULL, RANK_OP_COMMUTATIVE, &s.add));
    mp_case(&s.mp, "deaths");
    for (int i = 0; i < n - 1; i++) {
        enum any_kind kind = (enum any_kind)((first + i) % ANY_KINDS);
        int place = victim[i]; /* in the round's team */

        for (int k = 0; k < i; k++)
            place -= victim[k] < victim[i];

        s.team = teams[i];
        s.living = teams[i + 1];
        s.seed = seed + (uint64_t)i * 1000003;
        if (rank_team_rank(s.team) == 0) {
            printf("%s: rank %d of %d dies\n", any_coll_name(kind), victim[i], n - i);
            fflush(stdout);
        }
        if (s.mp.rank == victim[i])
            play_victim(&s, kind);
        play_survivor(&s, kind, place);
    }
    MP_OK(rank_op_free(&s.add));
    for (int i = 1; i < n; i++)
        MP_OK(rank_team_free(&teams[i]));
    mp_end_survivor(&s.mp);
    return 0;
}
