/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c: see model.h. */
#include "tests/model/model.h"
#include "tests/model/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#endif

enum { THREADS = 4, BUFFER = 24, STACK = 128 << 10, DEPTH = 4096, SEEN = 1 << 22 };

struct pending {
    volatile void *p;
    uint64_t v;
    size_t bytes;
};

struct thread {
    fiber_t at;
    char *stack;
    bool over, blocked;
    bool looks, changed;    /* since model_look */
    volatile void *futex;   /* asleep on it */
    const volatile void *awaits; /* bits of this word */
    uint32_t mask, value;
    uint64_t read;          /* hash of all that it has read since model_here: with the code, where it is */
    struct pending buf[BUFFER];
    int n;
};

static const struct model *model;
static struct thread thread[THREADS];
static fiber_t search;
static int running;
static int switches; /* in this run: a thread that could have gone on did not */
static const char *wrong;

/* The decisions of this run: what was chosen, of how many. */
static struct { unsigned char chosen, of; } path[DEPTH];
static int depth, prefix;

static uint64_t *seen;
static uint64_t states, runs;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

/* ------------------------------------------------------------------ the threads' side */

static void step(void)
{
    fiber_switch(&thread[running].at, &search);
}

static uint64_t get(const volatile void *p, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, (const void *)(uintptr_t)p, bytes);
    return v;
}

static void put(volatile void *p, uint64_t v, size_t bytes)
{
    memcpy((void *)(uintptr_t)p, &v, bytes);
    for (int i = 0; i < model->threads; i++) {
        thread[i].blocked = false;
        thread[i].changed = thread[i].looks;
    }
}

static void drain_one(struct thread *t)
{
    put(t->buf[0].p, t->buf[0].v, t->buf[0].bytes);
    memmove(&t->buf[0], &t->buf[1], (size_t)--t->n * sizeof(t->buf[0]));
}

static void drain(struct thread *t)
{
    while (t->n)
        drain_one(t);
}

uint64_t model_load(const volatile void *p, size_t bytes)
{
    struct thread *t = &thread[running];
    uint64_t v;
    int i;

    step();
    for (i = t->n - 1; i >= 0 && t->buf[i].p != p; i--)
        ;
    v = i >= 0 ? t->buf[i].v : get(p, bytes);
    t->read = mix(t->read, v + 1);
    return v;
}

void model_store(volatile void *p, uint64_t v, size_t bytes)
{
    struct thread *t = &thread[running];

    /* No thread sees it before it leaves the buffer: no decision to take, but where there is no room. */
    if (t->n == BUFFER) {
        step();
        if (t->n == BUFFER)
            drain_one(t);
    }
    t->buf[t->n++] = (struct pending){p, v, bytes};
    t->read = mix(t->read, 2);
}

/* On its way it empties the store buffer; not so one that is weak, unless that holds an older value. */
static void begin_change(struct thread *t, const volatile void *p)
{
    bool own = false;

    for (int i = 0; i < t->n; i++)
        own |= t->buf[i].p == p;
    if (!model->weak || own)
        drain(t);
}

void model_store_now(volatile void *p, uint64_t v, size_t bytes)
{
    if (model->weak)
        model_store(p, v, bytes);
    else
        model_exchange(p, v, bytes);
}

static uint64_t change(volatile void *p, size_t bytes, uint64_t v, int how)
{
    struct thread *t = &thread[running];
    uint64_t before;

    step();
    begin_change(t, p);
    before = get(p, bytes);
    if (model->torn) {
        t->read = mix(t->read, before + 3);
        step();
    }
    put(p, how == 0 ? v : how == 1 ? before + v : how == 2 ? before | v : before & v, bytes);
    t->read = mix(t->read, before + 3);
    return before;
}

/* Into memory that is the thread's own it is seen at once. */
void *model_copy(void *to, const void *from, size_t bytes)
{
    char *t = to;
    const char *f = from;

    if ((uintptr_t)to - (uintptr_t)model->memory >= model->bytes)
        return memmove(to, from, bytes);
    for (size_t n; bytes; t += n, f += n, bytes -= n) {
        n = bytes < 8 ? bytes : 8;
        model_store(t, get(f, n), n);
    }
    return to;
}

uint64_t model_exchange(volatile void *p, uint64_t v, size_t bytes)
{
    return change(p, bytes, v, 0);
}

uint64_t model_add(volatile void *p, uint64_t v, size_t bytes)
{
    return change(p, bytes, v, 1);
}

uint64_t model_or(volatile void *p, uint64_t v, size_t bytes)
{
    return change(p, bytes, v, 2);
}

uint64_t model_and(volatile void *p, uint64_t v, size_t bytes)
{
    return change(p, bytes, v, 3);
}

bool model_cas(volatile void *p, void *expected, uint64_t v, size_t bytes)
{
    struct thread *t = &thread[running];
    uint64_t before;
    bool same;

    step();
    begin_change(t, p);
    before = get(p, bytes);
    same = before == get(expected, bytes);
    t->read = mix(t->read, before + 3);
    if (same && model->torn)
        step();
    if (same)
        put(p, v, bytes);
    else
        memcpy(expected, &before, bytes);
    return same;
}

void model_fence(void)
{
    step();
    drain(&thread[running]);
    thread[running].read = mix(thread[running].read, 4);
}

void model_membarrier(void)
{
    step();
    for (int i = 0; i < model->threads; i++)
        drain(&thread[i]);
    thread[running].read = mix(thread[running].read, 5);
}

void model_here(uint64_t a, uint64_t b, uint64_t c)
{
    thread[running].read = mix(mix(mix(9, a), b), c);
}

void model_note(uint64_t v)
{
    thread[running].read = mix(thread[running].read, v + 10);
}

int model_me(void)
{
    return running;
}

/* A decision as the thread that goes on: the next on the path. */
unsigned model_choose(unsigned n)
{
    depth++;
    if (depth >= prefix) {
        path[depth].chosen = 0;
        path[depth].of = (unsigned char)n;
    }
    model_note(path[depth].chosen);
    return path[depth].chosen;
}

void model_await(const volatile void *p, uint32_t mask, uint32_t value)
{
    struct thread *t = &thread[running];

    t->awaits = p;
    t->mask = mask;
    t->value = value;
    step();
    t->awaits = NULL;
    t->read = mix(t->read, 11);
}

void model_take(volatile void *p)
{
    model_await(p, UINT32_MAX, 0);
    drain(&thread[running]);
    put(p, 1, 4);
}

/* No step: a thread that waits for it cannot come before, and to all others it is the same whether they do. */
void model_give(volatile void *p)
{
    drain(&thread[running]);
    put(p, 0, 4);
}

void model_look(void)
{
    thread[running].looks = true;
    thread[running].changed = false;
}

void model_block(void)
{
    struct thread *t = &thread[running];

    t->blocked = !t->changed;
    t->looks = t->changed = false;
    step();
}

void model_futex_wait(volatile void *p, uint32_t v)
{
    struct thread *t = &thread[running];

    step();
    drain(t); /* the kernel's lock */
    t->read = mix(t->read, get(p, 4) + 6);
    if ((uint32_t)get(p, 4) != v)
        return;
    t->futex = p;
    step();
}

void model_futex_wake(volatile void *p)
{
    step();
    drain(&thread[running]);
    for (int i = 0; i < model->threads; i++) {
        if (thread[i].futex == p)
            thread[i].futex = NULL;
    }
    thread[running].read = mix(thread[running].read, 7);
}

void model_expect(bool holds, const char *text)
{
    if (!holds && !wrong)
        wrong = text;
}

/* ---------------------------------------------------------------------- the search */

static void run_thread(void)
{
    int me = running;

    model->thread(me);
    thread[me].over = true; /* what is in its buffer reaches memory at any time later */
    step();                 /* for good */
}

static uint64_t state(void)
{
    uint64_t h = 1;
    size_t i;

    for (i = 0; i + 8 <= model->bytes; i += 8)
        h = mix(h, get((char *)model->memory + i, 8));
    for (int t = 0; t < model->threads; t++) {
        const struct thread *c = &thread[t];
        h = mix(mix(h, c->read), (uint64_t)(c->over | c->blocked << 1 | (c->futex != NULL) << 2 | c->looks << 3 |
                                           c->changed << 4 | (c->awaits != NULL) << 5) + 8);
        for (int k = 0; k < c->n; k++)
            h = mix(mix(h, (uint64_t)((volatile char *)c->buf[k].p - (char *)model->memory)), c->buf[k].v);
    }
    if (model->more)
        h = mix(h, model->more());
    if (model->switches)
        h = mix(mix(h, (uint64_t)running), (uint64_t)switches);
    return h ? h : 1;
}

/* True if the state was met before. */
static bool met(uint64_t h)
{
    uint64_t i = h & (SEEN - 1);

    while (seen[i] && seen[i] != h)
        i = (i + 1) & (SEEN - 1);
    if (seen[i])
        return true;
    if (++states > SEEN / 2) {
        wrong = "too many states for the table";
        return true;
    }
    seen[i] = h;
    return false;
}

static bool can_run(const struct thread *t)
{
    return !t->over && !t->blocked && !t->futex && (!t->awaits || ((uint32_t)get(t->awaits, 4) & t->mask) == t->value);
}

static void go_on(int t)
{
    running = t;
    thread[t].read = mix(thread[t].read, 1); /* it has got further, whatever it finds */
    fiber_switch(&search, &thread[t].at);
}

/* From the beginning to an end, a known state, or a fault. */
static void run_once(void)
{
    model->begin();
    for (int t = 0; t < model->threads; t++) {
        char *stack = thread[t].stack;
        thread[t] = (struct thread){.stack = stack};
        ASAN_UNPOISON_MEMORY_REGION(stack, STACK); /* it may have been left in the middle of a function */
        fiber_make(&thread[t].at, stack, STACK, run_thread);
    }
    runs++;
    running = -1; /* any thread begins */
    switches = 0;
    for (depth = 0;; depth++) {
        int options[2 * THREADS], n = 0, over = 0, choice;
        bool stays = model->switches && running >= 0 && can_run(&thread[running]);
        bool any = !stays || switches < model->switches;

        for (int t = 0; t < model->threads; t++) {
            if (can_run(&thread[t]) && (any || t == running))
                options[n++] = t;
            if (thread[t].n)
                options[n++] = THREADS + t;
            over += thread[t].over;
        }
        if (wrong)
            return;
        if (n == 0) {
            if (over < model->threads)
                wrong = "all that are left wait for ever";
            return;
        }
        if (depth >= DEPTH - 64) { /* and what is chosen within a step */
            wrong = "no end";
            return;
        }
        if (depth >= prefix) {
            if (met(state()))
                return;
            path[depth].chosen = 0;
            path[depth].of = (unsigned char)n;
        }
        choice = options[path[depth].chosen];
        if (choice >= THREADS) {
            drain_one(&thread[choice - THREADS]);
        } else {
            switches += stays && choice != running;
            go_on(choice);
        }
    }
}

/* The next path: another decision as late as possible. */
static bool another(void)
{
    while (depth > 0) {
        depth--;
        if (path[depth].chosen + 1 < path[depth].of) {
            path[depth].chosen++;
            prefix = depth + 1;
            return true;
        }
    }
    return false;
}

int model_check(const struct model *m, bool broken)
{
    model = m;
    wrong = NULL;
    states = runs = 0;
    prefix = 0;
    seen = calloc(SEEN, sizeof(*seen));
    for (int t = 0; t < m->threads; t++)
        thread[t].stack = aligned_alloc(64, STACK);
    do
        run_once();
    while (!wrong && another());
    if (broken) {
        printf("%s - %s is found out%s%s\n", wrong ? "ok" : "not ok", m->name, wrong ? ": " : "",
               wrong ? wrong : "");
    } else if (wrong) {
        printf("not ok - %s: %s; decisions:", m->name, wrong);
        for (int i = 0; i < depth; i++)
            printf(" %d/%d", path[i].chosen, path[i].of);
        printf("\n");
    } else {
        printf("ok - %s: %llu states, %llu runs\n", m->name, (unsigned long long)states,
               (unsigned long long)runs);
    }
    for (int t = 0; t < m->threads; t++)
        free(thread[t].stack);
    free(seen);
    return (wrong != NULL) != broken;
}
