/*
 * exit_status.h: how a rank ended, as words and as an exit code.
 */
#ifndef XR_LAUNCHER_JOB_EXIT_STATUS_H
#define XR_LAUNCHER_JOB_EXIT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* status: as from waitpid. unfinished: a PMIx client that left without finalizing. */
bool xr_verdict_failed(int status, bool unfinished);
/* What xrun exits with for it: the code, 128 + signal, 1 for one that was merely unfinished. */
int xr_verdict_code(int status, bool unfinished);
/* The code that a call of abort asks for, made to fit into an exit code. */
int xr_verdict_abort_code(int code);
/* "exited with code 3", "was killed by signal 11 (Segmentation fault)" ... */
void xr_verdict_how(int status, bool unfinished, char *out, size_t len);
/* "1.25 s" */
void xr_verdict_time(uint64_t ns, char *out, size_t len);

#endif
