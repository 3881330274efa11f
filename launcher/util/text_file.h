/*
 * text_file.h: a file of lines that somebody named: a hostfile, a rankfile, a
 * file of variables, a resource manager's list.
 *
 * It may be a pipe or a terminal as well. One that nobody writes to is an
 * error, and not something to wait for for ever.
 */
#ifndef XR_LAUNCHER_UTIL_TEXT_FILE_H
#define XR_LAUNCHER_UTIL_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct xr_text_file {
    char *data;
    size_t len, at;
    unsigned number; /* of the line that was given last, from 1 on */
    bool nul;        /* that line holds a NUL byte: it is cut there */
};

/* False: why says why, without the path. Free the file whatever is returned. */
bool xr_text_file_read(const char *path, struct xr_text_file *out, char *why, size_t whylen);
/* The next line, without its end of either kind; it may be written to. NULL: there is none. */
char *xr_text_file_line(struct xr_text_file *file);
/* NULL and a zeroed one are fine. */
void xr_text_file_free(struct xr_text_file *file);

#endif
