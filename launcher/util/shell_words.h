/*
 * shell_words.h: command lines as text: cut into words as a shell cuts them, a word
 * written so that a shell reads it as one, and text that a terminal may see.
 */
#ifndef XR_LAUNCHER_UTIL_SHELL_WORDS_H
#define XR_LAUNCHER_UTIL_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * At blanks, but for those in '...', in "..." and behind \. Nothing is expanded. The words end with NULL and are freed
 * with xr_strings_free. NULL: *wrong says what is wrong, or is NULL where there was no memory.
 */
char **xr_words_split(const char *text, const char **wrong);
size_t xr_words_count(char *const *words);

/* Is the program of a command line, without its path, name? False if the line cannot be split. */
bool xr_command_is(const char *text, const char *name);

/* For a shell of another host, whichever it is. */
void xr_words_quote(FILE *to, const char *word);

/* What a noun has behind n. */
static inline const char *xr_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* In place: what would steer a terminal becomes '?'. */
void xr_words_show(char *text);

#endif
