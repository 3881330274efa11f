/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bash_completion.c: completion of xrun's command lines for bash. See options.h.
 *
 * Printed by "xrun --help=bash", and installed where bash-completion looks. All
 * that it knows of the options comes from their table: what follows an option
 * is told by how the table writes its value.
 */
#include "launcher/cli/options.h"

#include <ctype.h>
#include <string.h>

/* "-n|-np" */
static void print_names(FILE *to, const struct xr_option_row *row, const char *between)
{
    for (int k = 0; k < XR_OPTION_NAMES && row->names[k]; k++)
        fprintf(to, "%s%s", k ? between : "", row->names[k]);
}

/* The words of a|b|NAME that are meant as they stand, with a blank before each. */
static void print_words(FILE *to, const char *value)
{
    while (*value) {
        size_t n = strcspn(value, "|");
        if (n && islower((unsigned char)value[0]) && strcspn(value, ":=[,") >= n)
            fprintf(to, " %.*s", (int)n, value);
        value += n + (value[n] == '|');
    }
}

/* What completes the value of an option, as a command of bash. */
static void print_value(FILE *to, const struct xr_option_row *row)
{
    fprintf(to, "    ");
    print_names(to, row, "|");
    if (strncmp(row->value, "DIR", 3) == 0) {
        fprintf(to, ") _xrun_files -d ;;\n");
    } else if (strncmp(row->value, "FILE", 4) == 0) {
        fprintf(to, ") _xrun_files -f ;;\n");
    } else if (strncmp(row->value, "NAME[=", 6) == 0 || row->pair) {
        fprintf(to, ") _xrun_words \"$(compgen -e)\" ;;\n");
    } else if (strcmp(row->value, "NAME|CIDR") == 0) {
        fprintf(to, ") _xrun_words \"$(ls /sys/class/net 2>/dev/null)\" ;;\n");
    } else if (strcmp(row->value, "HOSTS") == 0) {
        fprintf(to, ") _xrun_hosts ;;\n");
    } else {
        fprintf(to, ") _xrun_words '");
        print_words(to, row->value);
        fprintf(to, "' ;;\n");
    }
}

static const char head[] =
    "# Completion of xrun for bash. Made by xrun --help=bash.\n"
    "\n"
    "_xrun_words() # WORDS: those that cur begins, and nothing else\n"
    "{\n"
    "    compopt +o default +o bashdefault 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_xrun_files() # -f or -d\n"
    "{\n"
    "    compopt +o default +o bashdefault -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_xrun_hosts() # the last of a list, by the hosts that bash knows (/etc/hosts, or $HOSTFILE)\n"
    "{\n"
    "    local last=${cur##*,}\n"
    "    compopt +o default +o bashdefault -o nospace 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -A hostname -P \"${cur%\"$last\"}\" -- \"$last\" | sort -u)\n"
    "}\n"
    "\n";

static const char walk[] =
    "    esac\n"
    "}\n"
    "\n"
    "_xrun()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} word want= ended= program=0 i\n"
    "    COMPREPLY=()\n"
    "    # What stands before the word: an option whose value it is, or a program?\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((program)); then\n"
    "            [ \"$word\" != : ] || { program=0 ended=; }\n"
    "        elif [ -n \"$want\" ]; then\n"
    "            if [ \"$word\" = = ]; then :; elif _xrun_takes_two \"$want\"; then want=second; else want=; fi\n"
    "        elif [ -n \"$ended\" ] || [[ $word != -* ]]; then\n"
    "            program=$i\n"
    "        elif [ \"$word\" = -- ]; then\n"
    "            ended=1\n"
    "        elif _xrun_takes_value \"$word\"; then\n"
    "            want=$word\n"
    "        fi\n"
    "    done\n"
    "    if ((program)); then\n"
    "        ! declare -F _command_offset >/dev/null || _command_offset \"$program\"\n"
    "    elif [ -n \"$want\" ]; then\n"
    "        [ \"$cur\" != = ] || cur=\n"
    "        _xrun_value \"$want\"\n"
    "    elif [[ $cur == -* && -z $ended ]]; then\n";

static const char tail[] =
    "    elif [[ $cur != */* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\" | sort -u)\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -o bashdefault -o default -F _xrun xrun\n";

/* A function of bash that is true of the options with a value, or with two. */
static void print_takes(FILE *to, const char *function, bool two)
{
    struct xr_option_row row;

    fprintf(to, "%s() # OPTION\n{\n    case $1 in\n    ", function);
    for (size_t i = 0, n = 0; xr_options_row(i, &row); i++) {
        if (!row.value || (two && !row.pair))
            continue;
        fputs(n++ ? "|" : "", to);
        print_names(to, &row, "|");
    }
    fprintf(to, ") return 0 ;;\n    esac\n    return 1\n}\n\n");
}

void xr_options_bash(FILE *to)
{
    struct xr_option_row row;

    fputs(head, to);
    print_takes(to, "_xrun_takes_value", false);
    print_takes(to, "_xrun_takes_two", true);
    fprintf(to, "_xrun_value() # OPTION\n{\n    case $1 in\n");
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        if (row.value)
            print_value(to, &row);
    }
    fputs(walk, to);
    fprintf(to, "        _xrun_words '");
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        fputs(i ? " " : "", to);
        print_names(to, &row, " ");
    }
    fprintf(to, "'\n");
    fputs(tail, to);
}
