/* SPDX-License-Identifier: BSD-3-Clause */
/* help.c: print --help and the OPTIONS section of xrun.1. See options.h. */
#include "launcher/cli/options.h"

#include <string.h>

/* Print text for troff, which would typeset - as a hyphen and ' as a quotation mark. */
static void print_troff(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\'')
            fputs("\\(aq", to);
        else
            fputc(*text, to);
    }
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
    const char *group = NULL;

    fprintf(to, "usage: xrun [options] program [arguments] [: [options] program [arguments]]...\n\n"
                "Starts N copies of a program, the ranks of a job, and forwards their output.\n"
                "A : begins another program of the same job, with options of its own.\n");
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        if (row.group != group)
            fprintf(to, "\n%s:\n", row.group);
        group = row.group;
        for (int k = 0; k < XR_OPTION_NAMES && row.names[k]; k++)
            fprintf(to, "%s%s", k ? ", " : "  ", row.names[k]);
        fprintf(to, "%s%s\n        ", row.value ? " " : "", row.value ? row.value : "");
        print_folded(to, row.help, 8);
    }
    fprintf(to, "\nEach option has a variable: XRUN_TIMEOUT=5 is --timeout 5. rankinfo lists the\n"
                "variables of the library (RANK_*).\n\n"
                "Exit code: that of the first failing rank; 128 + signal if a signal killed it;\n"
                "124 after --timeout; 126 if the program cannot be executed, 127 if there is\n"
                "none; 2 for bad usage. See xrun(1).\n");
}

void xr_options_man(FILE *to)
{
    struct xr_option_row row;
    const char *group = NULL;

    for (size_t i = 0; xr_options_row(i, &row); i++) {
        if (row.group != group)
            fprintf(to, ".SS %s\n", row.group);
        group = row.group;
        fprintf(to, ".TP\n");
        for (int k = 0; k < XR_OPTION_NAMES && row.names[k]; k++) {
            fprintf(to, "%s\\fB", k ? ", " : "");
            print_troff(to, row.names[k]);
            fprintf(to, "\\fR");
        }
        fprintf(to, "%s%s%s\n", row.value ? " \\fI" : "", row.value ? row.value : "", row.value ? "\\fR" : "");
        print_troff(to, row.help);
        if (row.detail) {
            fputc('\n', to);
            print_troff(to, row.detail);
        }
        fputc('\n', to);
    }
}
