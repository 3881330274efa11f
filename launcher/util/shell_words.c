/* SPDX-License-Identifier: BSD-3-Clause */
/* shell_words.c: see shell_words.h. */
#include "launcher/util/shell_words.h"
#include "launcher/util/strv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool shell_words_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Return whether a \ inside "..." escapes this character: only these four. */
static bool is_escape(const char *at)
{
    return at[0] == '\\' && at[1] && strchr("\"\\$`", at[1]);
}

/* Read one word into to, which has room for it, and advance *text. Returns the error, or NULL. */
static const char *take_word(const char **text, char *to)
{
    const char *at = *text;

    while (*at && !shell_words_is_blank(*at)) {
        char quote = *at;
        if (quote == '\\') {
            if (!at[1])
                return "nothing stands behind the last \\";
            *to++ = at[1];
            at += 2;
        } else if (quote == '\'' || quote == '"') {
            for (at++; *at && *at != quote; at++) {
                if (quote == '"' && is_escape(at))
                    at++;
                *to++ = *at;
            }
            if (!*at)
                return quote == '"' ? "a \" is not closed" : "a ' is not closed";
            at++;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    *text = at;
    return NULL;
}

char **xr_shell_words_split(const char *text, const char **wrong)
{
    size_t len = strlen(text), n = 0;
    char *word = malloc(len + 1), **words = calloc(len / 2 + 2, sizeof(*words));
    bool ok = word && words;

    *wrong = NULL;
    while (ok) {
        while (shell_words_is_blank(*text))
            text++;
        if (!*text)
            break;
        *wrong = take_word(&text, word);
        ok = !*wrong && (words[n] = strdup(word)) != NULL;
        n += ok;
    }
    free(word);
    if (ok)
        return words;
    xr_strv_free(words);
    return NULL;
}

bool xr_shell_words_run_program(const char *text, const char *name)
{
    const char *wrong, *slash;
    char **words = xr_shell_words_split(text, &wrong);
    bool is = false;

    if (words && words[0]) {
        slash = strrchr(words[0], '/');
        is = strcmp(slash ? slash + 1 : words[0], name) == 0;
    }
    xr_strv_free(words);
    return is;
}

void xr_shell_words_quote(FILE *to, const char *word)
{
    fputc('\'', to);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", to);
        else
            fputc(*word, to);
    }
    fputc('\'', to);
}

void xr_shell_words_show(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}
