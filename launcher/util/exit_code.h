/*
 * exit_code.h: exit codes of xrun itself.
 */
#ifndef XR_LAUNCHER_UTIL_EXIT_CODE_H
#define XR_LAUNCHER_UTIL_EXIT_CODE_H

/* The shells' exit codes for these, sysexits.h's for lost output. */
enum {
    XR_EXIT_USAGE = 2,
    XR_EXIT_OUTPUT_LOST = 74,
    XR_EXIT_TIMEOUT = 124,
    XR_EXIT_CANNOT_EXECUTE = 126,
    XR_EXIT_NOT_FOUND = 127
};

#endif
