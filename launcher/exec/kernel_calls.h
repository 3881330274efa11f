/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_calls.h: check that this system executes the calls that xrun needs. */
#ifndef XR_LAUNCHER_EXEC_KERNEL_CALLS_H
#define XR_LAUNCHER_EXEC_KERNEL_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Make each needed call without a valid argument. Returns false with a text in err that names the first one that a filter
 * (seccomp) or the kernel refuses. Without such a call xrun would wait for ever. Calls that xrun can do without are not
 * checked.
 */
bool xr_kernel_calls_check(char *err, size_t errlen);

/* Return whether this process runs under valgrind, which ends it at the clone of spawn_proc.c and reports invalid arguments. */
bool xr_kernel_is_valgrind(void);

#endif
