/* SPDX-License-Identifier: BSD-3-Clause */
/* help.c: print --help and the options part of xrun.1 from the table of options. See options.h. */
#include "launcher/cli/options.h"

#include <string.h>

/* Print text for troff, which would typeset a plain - as a hyphen. */
static void print_troff(FILE *to, const char *text)
{
    for (; *text; text++)
        fprintf(to, *text == '-' ? "\\-" : "%c", *text);
}

/* Print the words of text, folded at column 78 behind an indent. */
static void print_folded(FILE *to, const char *text, int indent)
{
    int column = indent;

    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column > indent && column + 1 + n > 78) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", n, text);
        column += n;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}

void xr_options_help(FILE *to)
{
    struct xr_option_row row;

    fprintf(to, "usage: xrun [options] program [arguments] [: [options] program [arguments]]...\n\n"
                "Starts N copies of a program, the ranks of a job, and carries their output.\n"
                "After a : comes another program of the same job, with options of its own.\n\n");
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        for (int k = 0; k < XR_OPTION_NAMES && row.names[k]; k++)
            fprintf(to, "%s%s", k ? ", " : "  ", row.names[k]);
        fprintf(to, "%s%s\n        ", row.value ? " " : "", row.value ? row.value : "");
        print_folded(to, row.doc, 8);
    }
    fprintf(to, "\nVariables of the library (RANK_*): rankinfo lists them.\n"
                "Exit code: the first failing rank's; 128 + signal if it was killed by one; 124\n"
                "after --timeout; 126 and 127 for a program that cannot be executed or found;\n"
                "2 for bad usage.\n");
}

void xr_options_man(FILE *to)
{
    struct xr_option_row row;

    for (size_t i = 0; xr_options_row(i, &row); i++) {
        fprintf(to, ".TP\n");
        for (int k = 0; k < XR_OPTION_NAMES && row.names[k]; k++) {
            fprintf(to, "%s\\fB", k ? ", " : "");
            print_troff(to, row.names[k]);
            fprintf(to, "\\fR");
        }
        fprintf(to, "%s%s%s\n", row.value ? " \\fI" : "", row.value ? row.value : "", row.value ? "\\fR" : "");
        print_troff(to, row.doc);
        fputc('\n', to);
    }
}
