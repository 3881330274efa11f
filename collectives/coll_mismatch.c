/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_mismatch.c: find and report ranks that make different collective calls. */
#include "collectives/coll_mismatch.h"
#include "collectives/call_text.h"
#include "lib/base/clock.h"
#include "lib/base/timing.h"

#include <sched.h>
#include <stdio.h>

enum {
    POLLS = 16, /* polls of a late wait that read the clock once */
    RANKS_LISTED = 8
};

/* -------------------------------------------------------------------------- begin of a call */

/* Hash of the counts that are equal on all ranks; 0: the call has no list of them. */
static uint64_t counts_of(const struct rk_coll_call *c)
{
    uint64_t hash = 0;

    if (!rk_coll_has_counts(c->kind) || rk_coll_has_own_counts(c->kind))
        return 0;
    for (int r = 0; r < c->team->size; r++)
        hash = (hash + (uint64_t)c->rcounts[r]) * RK_CALL_FACTOR;
    return hash | 1;
}

void rk_call_begin(const struct rk_coll_call *c, enum rk_call_form form, uint64_t number)
{
    struct rk_coll_team *t = c->team->coll;
    uint64_t *history = t->arena ? &t->arena->history : &t->history;
    uint64_t counts = counts_of(c);
    const struct rk_call_desc desc = rk_call_desc_of(c, form, counts);

    *history = (*history + (rk_call_mix(c, form) ^ counts << 1)) * RK_CALL_FACTOR;
    if (t->arena)
        rk_call_publish(t->arena, number, desc);
    else
        t->notes[number % RK_CALL_NOTES] = (struct rk_call_note){number, *history >> (64 - RK_CALL_BITS), desc};
}

void rk_call_mark(struct rk_sched *s)
{
    const struct rk_coll_team *t = s->team->coll;

    s->print = (t->arena ? t->arena->history : t->history) >> (64 - RK_CALL_BITS);
    if (s->call.form == RK_FORM_PERSISTENT) /* it stays the same */
        return;
    s->call = t->arena ? rk_call_line(t->arena, s->number, t->arena->me)->desc : t->notes[s->number % RK_CALL_NOTES].desc;
}

/* ------------------------------------------------------------------- calls in an arena */

static uint64_t call_word(const struct rk_arena *a, uint64_t number)
{
    return number << 16 | a->history >> 48;
}

bool rk_call_read(const struct rk_arena *a, uint64_t number, int r, struct rk_call_desc *d)
{
    const struct rk_call_line *line = rk_call_line(a, number, r);
    uint64_t word = atomic_load_explicit(&line->described, memory_order_acquire);

    if (word >> 16 != number)
        return false;
    *d = line->desc;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&line->described, memory_order_relaxed) == word;
}

static bool call_differs(const struct rk_arena *a, uint64_t number, int r)
{
    uint64_t word = atomic_load_explicit(&rk_call_line(a, number, r)->call, memory_order_acquire);

    return word >> 16 == number && word != call_word(a, number);
}

/* Has the rank published a later call? */
static bool has_gone_on(const struct rk_arena *a, uint64_t number, int r)
{
    for (uint64_t k = 0; k < RK_CALL_LINES; k++) {
        if (atomic_load_explicit(&rk_call_line(a, k, r)->call, memory_order_acquire) >> 16 > number)
            return true;
    }
    return false;
}

/* This rank has found a difference, in this call or an earlier one, or the mark of a rank that has. */
static void mark_failed(struct rk_arena *a)
{
    uint64_t number = rk_coll_number(a->team);
    bool first = !atomic_exchange(&a->head->failed, 1);

    rk_wake_members(a, 0, a->n);
    if (first)
        rk_coll_fail_team(a->team, number, RANK_ERR_COLLECTIVE, NULL);
    else
        rk_coll_end_team(a->team, number);
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
    w->next_ns = now + RK_CALL_COMPARE_NS;
    number = rk_coll_number(a->team);
    atomic_store_explicit(&rk_call_line(a, number, a->me)->call, call_word(a, number), memory_order_relaxed);
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
        rk_coll_end_team(a->team, rk_coll_number(a->team));
    return rk_coll_why_over(a->team);
}

/* Wait until all members have published this call, or have had the time to. */
static void await_calls(const struct rk_arena *a, uint64_t number)
{
    uint64_t end = rk_clock_ns() + RK_CALL_PUBLISH_NS;
    struct rk_call_desc d;
    int missing;

    do {
        missing = 0;
        for (int r = 0; r < a->n; r++)
            missing += !rk_call_read(a, number, r, &d);
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
        if (rk_call_read(a, number, (a->me + i) % a->n, &d))
            return (a->me + i) % a->n;
    }
    return -1;
}

/* Report the first argument by which ranks differ in this call; false if none does. */
static bool report_call(const struct rk_arena *a, uint64_t number)
{
    int reference = reference_rank(a, number);
    struct rk_call_desc one, other;
    struct rk_call_diff diff, first = {.arg = RK_ARG_NONE};
    char rank[16], ranks[128] = "", text[RK_CALL_TEXT];
    int n = 0;

    if (reference < 0 || !rk_call_read(a, number, reference, &one))
        return false;
    for (int pass = 0; pass < 2; pass++) { /* which argument, and then the ranks with that value */
        for (int r = 0; r < a->n; r++) {
            if (!rk_call_read(a, number, r, &other) || !rk_call_compare(&one, reference, &other, r, &diff))
                continue;
            if (pass == 0 && (first.arg == RK_ARG_NONE || diff.arg < first.arg))
                first = diff;
            else if (pass == 1 && diff.arg == first.arg && diff.value[1] == first.value[1])
                list_rank(ranks, sizeof(ranks), n++, r);
        }
    }
    if (first.arg == RK_ARG_NONE)
        return false;
    snprintf(rank, sizeof(rank), "%d", reference);
    rk_call_diff_text(a->team, number, &first, rank, ranks, text, sizeof(text));
    rk_coll_cause(a->team, true, RANK_ERR_COLLECTIVE, "%s", text);
    return true;
}

RK_COLD rank_status_t rk_call_failed(struct rk_arena *a, const struct rk_coll_call *c, rank_status_t st)
{
    uint64_t number = rk_coll_number(a->team);
    char ranks[128] = "", text[RK_CALL_TEXT];
    struct rk_call_desc d;
    int n = 0;

    if (st != RANK_ERR_COLLECTIVE || !atomic_load(&a->head->failed))
        return st;
    rk_call_publish(a, number, rk_call_desc_of(c, RK_FORM_BLOCKING, counts_of(c)));
    rk_failures_send(a->team->ctx);
    await_calls(a, number);
    for (uint64_t back = 0; back < RK_CALL_LINES && back < number; back++) {
        if (report_call(a, number - back))
            return st;
    }
    for (int r = 0; r < a->n; r++) {
        if (!rk_call_read(a, number, r, &d))
            list_rank(ranks, sizeof(ranks), n++, r);
    }
    rk_call_text(a->team, c->kind, number, text, sizeof(text));
    return rk_coll_cause(a->team, true, st, "%s: %s%s", text,
                         n ? "another call was made by rank " : "an earlier call differed between ranks", ranks);
}

RK_COLD void rk_call_report_past(const struct rk_arena *a)
{
    uint64_t number = rk_coll_number(a->team) + 1, end = rk_clock_ns() + RK_CALL_PUBLISH_NS; /* this call may be the one */

    while (atomic_load(&a->head->failed) && rk_clock_ns() < end) { /* the others publish that call */
        for (uint64_t back = 0; back < RK_CALL_LINES && back < number; back++) {
            if (report_call(a, number - back))
                return;
        }
        rk_progress(a->team->ctx);
        sched_yield();
    }
}
