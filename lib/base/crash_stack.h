/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash_stack.h: print the stack of a rank that crashes.
 *
 * Handlers are installed only where the program has none. They run gdb or eu-stack on the process; then the signal
 * ends it as usual, with the same exit code, core file and launcher report. One rank of a host prints at a time;
 * others that crash meanwhile print their signal only.
 */
#ifndef RK_BASE_CRASH_STACK_H
#define RK_BASE_CRASH_STACK_H

/* Handle SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT until the close, unless RANK_CRASH_STACK is off. */
void rk_crash_stack_open(void);
void rk_crash_stack_close(void);

#endif
