/* SPDX-License-Identifier: BSD-3-Clause */
/* option_line.h: parse a line of words as the options of xrun. */
#ifndef TESTS_LAUNCHER_OPTION_LINE_H
#define TESTS_LAUNCHER_OPTION_LINE_H

#include "launcher/cli/options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Options point into the line's copy: valid until the next call. At most 511 bytes and 62 words, separated by blanks. */
static inline rank_status_t option_line_parse(struct xr_options *o, char *err, size_t errlen, const char *line)
{
    static char words[512];
    static char *argv[64];
    int argc = 1;

    argv[0] = (char *)(uintptr_t) "xrun";
    snprintf(words, sizeof(words), "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    return xr_options_parse(argc, argv, o, err, errlen);
}

#endif
