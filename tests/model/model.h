/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h: run the library's own code in every order that x86 memory allows.
 *
 * Threads are coroutines. Each atomic access of the code under test is a step: it is redirected here, and
 * before it the search decides which thread goes on. A store goes into its thread's store buffer, from where it reaches memory
 * in order but at any later time (TSO); a fence or a read-modify-write empties the buffer of its thread, the kernel's
 * membarrier all buffers. So the search sees what really goes wrong on such machines: a load that overtakes a
 * store. Copies into memory go the same way. Plain loads see memory: it is up to the protocol that they come in time.
 *
 * The search is depth first, by running everything again with another decision at the end. A state (memory, store
 * buffers, what each thread has read so far, which threads are blocked) that was met before is not gone into again; states are
 * remembered by 64 bits of hash.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model {
    const char *name;
    int threads;
    void (*thread)(int which);
    void (*begin)(void); /* put memory into its first state */
    void *memory;        /* what threads share */
    size_t bytes;
    uint64_t (*more)(void); /* a hash of what they share on their stacks; NULL: nothing */
    /* Where all orders are too many: those with at most so many switches from a thread that could have gone on
     * (Musuvathi, Qadeer: Iterative context bounding, PLDI 2007). 0: all. */
    int switches;
    /* Faults that a machine does not have, to see that they would be found. */
    bool weak; /* nothing but a fence empties the store buffer */
    bool torn; /* and are a read and a write */
};

/* Explore; prints "ok - NAME" or "not ok" with the decisions that lead there. The number of failures, 0 or 1.
 * broken: there is a fault, which has to be found. */
int model_check(const struct model *m, bool broken);

/* For threads. */
uint64_t model_load(const volatile void *p, size_t bytes);
void model_store(volatile void *p, uint64_t v, size_t bytes);
/* A store that empties the buffer, too. */
void model_store_now(volatile void *p, uint64_t v, size_t bytes);
/* A copy into shared memory: stores of up to 8 bytes. */
void *model_copy(void *to, const void *from, size_t bytes);
uint64_t model_exchange(volatile void *p, uint64_t v, size_t bytes);
uint64_t model_add(volatile void *p, uint64_t v, size_t bytes);
uint64_t model_or(volatile void *p, uint64_t v, size_t bytes);
uint64_t model_and(volatile void *p, uint64_t v, size_t bytes);
/* Compare and exchange; *expected becomes what was there. It never fails without a reason, as on x86. */
bool model_cas(volatile void *p, void *expected, uint64_t v, size_t bytes);
void model_fence(void);
void model_membarrier(void);
/* The state of this thread is in these values: how it came here, and how often it has polled, is forgotten. */
void model_here(uint64_t a, uint64_t b, uint64_t c);
/* Its state includes this memory, too, which is no atomic. */
void model_note(uint64_t v);
/* Which thread this is; and one of n ways to go on. */
int model_me(void);
unsigned model_choose(unsigned n);
/* Goes on once those bits of *p are so; to take a lock is to find it 0 and make it 1. What is not atomic may change only under
 * one. */
void model_await(const volatile void *p, uint32_t mask, uint32_t value);
void model_take(volatile void *p);
void model_give(volatile void *p);
/* Before a read of several things, ... */
void model_look(void);
/* Nothing to do until memory changes; where there was a model_look, since that. */
void model_block(void);
/* As the kernel's: sleeps only while *p is v, and until a thread wakes p. */
void model_futex_wait(volatile void *p, uint32_t v);
void model_futex_wake(volatile void *p);
void model_expect(bool holds, const char *text);

#ifdef MODEL_REDIRECT
#define memcpy(to, from, n) model_copy(to, from, n)
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_add
#undef atomic_fetch_or
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong
#undef atomic_thread_fence
#undef atomic_signal_fence
#define atomic_load_explicit(p, order) model_load(p, sizeof(*(p)))
#define atomic_store_explicit(p, v, order) model_store(p, (uint64_t)(v), sizeof(*(p)))
#define atomic_load(p) model_load(p, sizeof(*(p)))
/* Sequentially consistent: nothing overtakes it. */
#define atomic_store(p, v) model_store_now(p, (uint64_t)(v), sizeof(*(p)))
#define atomic_exchange(p, v) model_exchange(p, (uint64_t)(v), sizeof(*(p)))
#define atomic_fetch_add(p, v) model_add(p, (uint64_t)(v), sizeof(*(p)))
#define atomic_fetch_or(p, v) model_or(p, (uint64_t)(v), sizeof(*(p)))
#define atomic_compare_exchange_weak(p, expected, v) model_cas(p, expected, v, sizeof(*(p)))
#define atomic_compare_exchange_strong(p, expected, v) model_cas(p, expected, v, sizeof(*(p)))
#define atomic_thread_fence(order) model_fence()
#define atomic_signal_fence(order) ((void)0)
#endif

#endif
