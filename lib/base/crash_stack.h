/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash_stack.h: print the stack of a rank that crashes.
 *
 * The handlers stand only where the program has none of its own. They run gdb or eu-stack on the process and let the
 * signal end it as it would without them: exit code, core file and the launcher's report stay. One rank of a host
 * prints at a time; others that crash meanwhile print only their signal.
 */
#ifndef RK_BASE_CRASH_STACK_H
#define RK_BASE_CRASH_STACK_H

/* Handle SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT until the close, unless RANK_CRASH_STACK is off. */
void rk_crash_stack_open(void);
void rk_crash_stack_close(void);

#endif
