/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit_code.h: define the exit codes of xrun itself.
 */
#ifndef XR_LAUNCHER_UTIL_EXIT_CODE_H
#define XR_LAUNCHER_UTIL_EXIT_CODE_H

/* The values of shells, and of sysexits.h for lost output. */
enum {
    XR_EXIT_USAGE = 2,
    XR_EXIT_OUTPUT_LOST = 74,
    XR_EXIT_TIMEOUT = 124,
    XR_EXIT_CANNOT_EXECUTE = 126,
    XR_EXIT_NOT_FOUND = 127
};

#endif
