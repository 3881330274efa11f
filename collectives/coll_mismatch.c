/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_mismatch.c: find and report ranks that make different collective calls. */
#include "collectives/coll_mismatch.h"
#include "collectives/pattern.h"
#include "lib/base/clock.h"

#include <sched.h>
#include <stdio.h>

enum {
    COMPARE_NS = 10 * 1000 * 1000,  /* between comparisons of a late call */
    PUBLISH_NS = 200 * 1000 * 1000, /* time that the others have to publish theirs */
    POLLS = 16,                     /* polls of a late wait that read the clock once */
    RANKS_LISTED = 8
};
#define CHECK_TAG 0xfff000u /* above the builders' message numbers */

/* Arguments by which calls differ, the collective itself first. */
enum { ARG_KIND, ARG_COUNT, ARG_DTYPE, ARG_OP, ARG_ROOT, ARGS };
static const char *const arg_name[ARGS] = {"the collective", "count", "dtype", "op", "root"};

struct arg_values {
    int64_t value[ARGS];
};

static struct arg_values values_of(const struct rk_call_desc *d)
{
    return (struct arg_values){{d->kind, d->count, (int64_t)d->dtype, (int64_t)d->op, d->root}};
}

static const char *arg_text(int arg, int64_t value, char *buf, size_t len)
{
    if (arg == ARG_KIND)
        return value >= 0 && value < RK_COLL_COUNT ? rk_coll_name[value] : "unknown";
    snprintf(buf, len, arg == ARG_DTYPE || arg == ARG_OP ? "%#llx" : "%lld", (long long)value);
    return buf;
}

/* Log one argument that differs between ranks mine and theirs (a list). */
static void report_values(const struct rank_team *team, uint64_t number, int arg, int64_t a, const char *mine, int64_t b,
                          const char *theirs)
{
    char text[2][32];

    rk_coll_cause(team, true, RANK_ERR_COLLECTIVE, "collective %llu of a team of %d ranks: %s is %s on rank %s and %s on rank %s",
                  (unsigned long long)number, team->size, arg_name[arg], arg_text(arg, a, text[0], sizeof(text[0])), mine,
                  arg_text(arg, b, text[1], sizeof(text[1])), theirs);
}

/* ------------------------------------------------------------------- calls in an arena */

static struct rk_call_line *call_line(const struct rk_arena *a, uint64_t number, int r)
{
    return &a->calls[(number % RK_CALL_LINES) * (size_t)a->n + (size_t)r];
}

static uint64_t call_word(const struct rk_arena *a, uint64_t number)
{
    return number << 16 | a->history >> 48;
}

/* Of the call with this number; false if the rank has not published it. */
static bool read_call(const struct rk_arena *a, uint64_t number, int r, struct rk_call_desc *d)
{
    const struct rk_call_line *line = call_line(a, number, r);
    uint64_t word = atomic_load_explicit(&line->described, memory_order_acquire);

    if (word >> 16 != number)
        return false;
    *d = line->desc;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&line->described, memory_order_relaxed) == word;
}

static bool call_differs(const struct rk_arena *a, uint64_t number, int r)
{
    uint64_t word = atomic_load_explicit(&call_line(a, number, r)->call, memory_order_acquire);

    return word >> 16 == number && word != call_word(a, number);
}

/* Has the rank published a later call? */
static bool has_gone_on(const struct rk_arena *a, uint64_t number, int r)
{
    for (uint64_t k = 0; k < RK_CALL_LINES; k++) {
        if (atomic_load_explicit(&call_line(a, k, r)->call, memory_order_acquire) >> 16 > number)
            return true;
    }
    return false;
}

/* This rank has found a difference, or the mark of one that has. */
static void mark_failed(struct rk_arena *a)
{
    bool first = !atomic_exchange(&a->head->failed, 1);

    rk_wake_members(a, 0, a->n);
    if (first)
        rk_coll_fail_team(a->team, rk_coll_number(a->team), RANK_ERR_COLLECTIVE);
    else
        rk_coll_end_team(a->team, 0);
}

RK_COLD bool rk_turn_is_late(struct rk_turn_wait *w)
{
    struct rk_arena *a = w->arena;
    uint64_t number, now;
    int owner;

    if (++w->polls % POLLS)
        return false;
    now = rk_clock_ns();
    if (now - w->wait.begun < RK_CALL_LATE_NS || now < w->next_ns)
        return false;
    w->next_ns = now + COMPARE_NS;
    number = rk_coll_number(a->team);
    atomic_store_explicit(&call_line(a, number, a->me)->call, call_word(a, number), memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* of two ranks that do this, one sees the other's call */
    for (int r = 0; r < a->n; r++) {
        if (call_differs(a, number, r)) {
            mark_failed(a);
            return true;
        }
    }
    /* A rank writes the turns of a call before it publishes a later one. */
    owner = rk_turn_owner(a, w->turn);
    if (owner >= 0 && has_gone_on(a, number, owner) &&
        (int64_t)((atomic_load_explicit(w->turn, memory_order_acquire) - w->want) << RK_CALL_BITS) < 0) {
        mark_failed(a);
        return true;
    }
    return false;
}

RK_COLD rank_status_t rk_turn_failed(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want)
{
    uint64_t word = atomic_load_explicit(turn, memory_order_acquire);

    if (word != want && (word ^ want) << RK_CALL_BITS == 0)
        mark_failed(a);
    else if (atomic_load(&a->head->failed))
        rk_coll_end_team(a->team, 0);
    return rk_coll_why_over(a->team);
}

/* Wait until all members have published this call, or have had the time to. */
static void await_calls(const struct rk_arena *a, uint64_t number)
{
    uint64_t end = rk_clock_ns() + PUBLISH_NS;
    struct rk_call_desc d;
    int missing;

    do {
        missing = 0;
        for (int r = 0; r < a->n; r++)
            missing += !read_call(a, number, r, &d);
        rk_progress(a->team->ctx);
        sched_yield();
    } while (missing && rk_clock_ns() < end);
}

/* Add a rank to a list of some; the rest is "...". */
static void list_rank(char *list, size_t len, int n, int r)
{
    size_t at = 0;

    while (at < len - 1 && list[at])
        at++;
    if (n <= RANKS_LISTED)
        snprintf(list + at, len - at, n == 0 ? "%d" : n < RANKS_LISTED ? ", %d" : ", ...", r);
}

/* This rank, or else the first that has published the call; -1: none has. */
static int reference_rank(const struct rk_arena *a, uint64_t number)
{
    struct rk_call_desc d;

    for (int i = 0; i < a->n; i++) {
        if (read_call(a, number, (a->me + i) % a->n, &d))
            return (a->me + i) % a->n;
    }
    return -1;
}

/* Report the first argument by which ranks differ in this call; false if none does. */
static bool report_call(const struct rk_arena *a, uint64_t number)
{
    int reference = reference_rank(a, number);
    struct arg_values one, other;
    char rank[16], ranks[128] = "";
    struct rk_call_desc d;

    if (reference < 0 || !read_call(a, number, reference, &d))
        return false;
    one = values_of(&d);
    snprintf(rank, sizeof(rank), "%d", reference);
    for (int arg = 0; arg < ARGS; arg++) {
        int64_t value = 0;
        int n = 0;

        for (int r = 0; r < a->n; r++) {
            if (!read_call(a, number, r, &d))
                continue;
            other = values_of(&d);
            if (other.value[arg] == one.value[arg] || (n && other.value[arg] != value))
                continue;
            value = other.value[arg];
            list_rank(ranks, sizeof(ranks), n++, r);
        }
        if (n) {
            report_values(a->team, number, arg, one.value[arg], rank, value, ranks);
            return true;
        }
    }
    return false;
}

RK_COLD rank_status_t rk_call_failed(struct rk_arena *a, const struct rk_coll_call *c, rank_status_t st)
{
    uint64_t number = rk_coll_number(a->team);
    char ranks[128] = "";
    struct rk_call_desc d;
    int n = 0;

    if (st != RANK_ERR_COLLECTIVE || !atomic_load(&a->head->failed))
        return st;
    rk_call_publish(a, c, number);
    rk_failures_send(a->team->ctx);
    await_calls(a, number);
    for (uint64_t back = 0; back < RK_CALL_LINES && back < number; back++) {
        if (report_call(a, number - back))
            return st;
    }
    for (int r = 0; r < a->n; r++) {
        if (!read_call(a, number, r, &d))
            list_rank(ranks, sizeof(ranks), n++, r);
    }
    return rk_coll_cause(a->team, true, st, "%s, collective %llu of a team of %d ranks: %s%s", c->name, (unsigned long long)number,
                         a->n, n ? "another call was made by rank " : "an earlier call differed between ranks", ranks);
}

RK_COLD void rk_call_report_past(const struct rk_arena *a)
{
    uint64_t number = rk_coll_number(a->team) + 1, end = rk_clock_ns() + PUBLISH_NS; /* this call may be the one */

    while (atomic_load(&a->head->failed) && rk_clock_ns() < end) { /* the others publish that call */
        for (uint64_t back = 0; back < RK_CALL_LINES && back < number; back++) {
            if (report_call(a, number - back))
                return;
        }
        rk_progress(a->team->ctx);
        sched_yield();
    }
}

rank_status_t rk_call_begin_schedule(struct rk_arena *a, const struct rk_coll_call *c, bool blocking)
{
    uint64_t number = rk_coll_number(a->team) + 1;
    int left = (a->me + a->n - 1) % a->n, right = (a->me + 1) % a->n;

    rk_arena_next_call(a, c);
    rk_call_publish(a, c, number);
    if (!blocking && c->bytes < RK_CALL_NEIGHBOUR_BYTES)
        return RANK_OK;
    atomic_thread_fence(memory_order_seq_cst); /* of two neighbours, one sees the other's call */
    if (rk_likely(!call_differs(a, number, left) && !call_differs(a, number, right)))
        return RANK_OK;
    a->team->coll_seq++; /* this call has a number */
    mark_failed(a);
    return rk_call_failed(a, c, RANK_ERR_COLLECTIVE);
}

/* ---------------------------------------------------------------------- RANK_CHECK */

/* Least and greatest value of each argument, and a rank that has it. */
struct arg_range {
    int64_t least[ARGS], most[ARGS];
    int32_t at_least[ARGS], at_most[ARGS];
};

struct check_round {
    struct rk_sched *s;
    struct rank_team *team;
    const struct check_round *before; /* NULL: the first */
    struct arg_range in, known;       /* received, and known after the round */
};

static void merge_ranges(struct arg_range *a, const struct arg_range *b)
{
    for (int i = 0; i < ARGS; i++) {
        if (b->least[i] < a->least[i]) {
            a->least[i] = b->least[i];
            a->at_least[i] = b->at_least[i];
        }
        if (b->most[i] > a->most[i]) {
            a->most[i] = b->most[i];
            a->at_most[i] = b->at_most[i];
        }
    }
}

static rank_status_t end_round(void *arg)
{
    struct check_round *round = arg;

    round->known = round->before->known;
    merge_ranges(&round->known, &round->in);
    return RANK_OK;
}

/* All ranks come to the same result, so that none needs a report. */
static rank_status_t end_check(void *arg)
{
    const struct check_round *last = arg;
    const struct arg_range *k = &last->known;

    for (int i = 0; i < ARGS; i++) {
        char least[16], most[16];

        if (k->least[i] == k->most[i])
            continue;
        snprintf(least, sizeof(least), "%d", k->at_least[i]);
        snprintf(most, sizeof(most), "%d", k->at_most[i]);
        report_values(last->team, last->s->number, i, k->least[i], least, k->most[i], most);
        rk_coll_end_team(last->team, 0);
        return RANK_ERR_COLLECTIVE;
    }
    return RANK_OK;
}

struct rk_step *rk_call_build_check(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct rank_team *team = c->team;
    int rounds = rk_log2_ceil(team->size);
    struct check_round *round = rk_sched_scratch(s, (size_t)(rounds + 1) * sizeof(*round));
    struct rk_step *known = NULL, *end;
    struct rk_call_desc d;
    struct arg_values mine;

    if (s->status)
        return NULL;
    rk_call_desc_set(&d, c);
    mine = values_of(&d);
    round[0] = (struct check_round){.s = s, .team = team};
    for (int i = 0; i < ARGS; i++) {
        round[0].known.least[i] = round[0].known.most[i] = mine.value[i];
        round[0].known.at_least[i] = round[0].known.at_most[i] = team->rank;
    }
    end = rk_sched_call(s, NULL, end_check, &round[rounds]);
    for (int k = 0; k < rounds; k++) {
        struct rk_step *recv, *send;
        int to, from;

        rk_dissemination(team->rank, team->size, k, &to, &from);
        round[k + 1] = (struct check_round){.s = s, .team = team, .before = &round[k]};
        recv = rk_sched_recv(s, NULL, from, CHECK_TAG + (uint32_t)k, &round[k + 1].in, sizeof(round->in));
        send = rk_sched_send(s, known, to, CHECK_TAG + (uint32_t)k, &round[k].known, sizeof(round->known));
        rk_sched_order(send, end); /* a failed schedule cancels its sends */
        known = rk_sched_call(s, known, end_round, &round[k + 1]);
        rk_sched_order(recv, known);
    }
    rk_sched_order(known, end);
    return end;
}
