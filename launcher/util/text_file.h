/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text_file.h: read a file of lines: a hostfile, a rankfile, a file of variables.
 *
 * A pipe is read to its end, so that <(command) works.
 */
#ifndef XR_LAUNCHER_UTIL_TEXT_FILE_H
#define XR_LAUNCHER_UTIL_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct xr_text_file {
    FILE *file;
    char *line;
    size_t cap;
    unsigned number; /* number of the last line, from 1 */
    bool nul;        /* that line holds a NUL byte and ends there */
};

/* Returns false with the reason, without the path, in why. Close the file whatever is returned. */
bool xr_text_file_open(const char *path, struct xr_text_file *out, char *why, size_t whylen);
/* Return the next line without its end; writable. NULL at the end, or after an error: see xr_text_file_close. */
char *xr_text_file_line(struct xr_text_file *file);
/* Returns false if reading failed. A zeroed file is accepted. */
bool xr_text_file_close(struct xr_text_file *file);

#endif
