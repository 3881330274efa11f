/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit_status.h: convert how a rank ended to a text and an exit code.
 */
#ifndef XR_LAUNCHER_JOB_EXIT_STATUS_H
#define XR_LAUNCHER_JOB_EXIT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* status: from waitpid. unfinished: a PMIx client that did not finalize. */
bool xr_exit_status_failed(int status, bool unfinished);
/* Return xrun's exit code for it: the code, 128 + signal, or 1 if it only did not finalize. */
int xr_exit_status_code(int status, bool unfinished);
/* Convert the argument of an abort to an exit code. */
int xr_exit_status_abort_code(int code);
/* Format "exited with code 3", "was killed by signal 11 (Segmentation fault)" ... */
void xr_exit_status_how(int status, bool unfinished, char *out, size_t len);
/* Format "1.25 s". */
void xr_exit_status_time(uint64_t ns, char *out, size_t len);

#endif
