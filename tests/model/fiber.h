/* SPDX-License-Identifier: BSD-3-Clause */
/* fiber.h: switch to another stack. */
/* On x86-64 by hand: swapcontext gets the signal mask from the kernel each time, which would be most of the work. */
#ifndef TESTS_MODEL_FIBER_H
#define TESTS_MODEL_FIBER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __x86_64__

typedef void *fiber_t;

void fiber_swap(void **save, void *to);
__asm__(".text\n.p2align 4\n.type fiber_swap, @function\nfiber_swap:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size fiber_swap, . - fiber_swap\n");

/* It begins in entry, which never returns. */
static inline void fiber_make(fiber_t *f, char *stack, size_t bytes, void (*entry)(void))
{
    uintptr_t *top = (uintptr_t *)(void *)(stack + bytes);

    *--top = 0; /* no return address */
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    *f = top;
}

static inline void fiber_switch(fiber_t *from, fiber_t *to)
{
    fiber_swap(from, *to);
}

#else

#include <ucontext.h>

typedef ucontext_t fiber_t;

static inline void fiber_make(fiber_t *f, char *stack, size_t bytes, void (*entry)(void))
{
    getcontext(f);
    f->uc_stack.ss_sp = stack;
    f->uc_stack.ss_size = bytes;
    f->uc_link = NULL;
    makecontext(f, entry, 0);
}

static inline void fiber_switch(fiber_t *from, fiber_t *to)
{
    if (swapcontext(from, to))
        abort();
}

#endif
#endif
