/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shell_words.h: split, quote and sanitise command lines.
 */
#ifndef XR_LAUNCHER_UTIL_SHELL_WORDS_H
#define XR_LAUNCHER_UTIL_SHELL_WORDS_H


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Split at blanks outside '...', "..." and \. Expands nothing. The array ends with NULL; caller frees with
 * xr_strv_free. NULL: *wrong is the error, or NULL if out of memory.
 */
char **xr_shell_words_split(const char *text, const char **wrong);

/*
 * Return whether the program of a command line, without its path, is name. Returns false if the line cannot be
 * split.
 */
bool xr_shell_words_run_program(const char *text, const char *name);

/* Quote for the shell of another host, of any kind. */
void xr_shell_words_quote(FILE *to, const char *word);

/* Return the plural ending of a noun after n. */
static inline const char *xr_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Replace characters that would steer a terminal by '?', in place. */
void xr_shell_words_show(char *text);

#endif
