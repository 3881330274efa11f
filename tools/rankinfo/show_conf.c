/* SPDX-License-Identifier: BSD-3-Clause */
/* show_conf.c: print the configuration table for a terminal and for man. */
#include "lib/base/conf.h"
#include "tools/rankinfo/info.h"

#include <string.h>

enum { WIDTH = 88, VALUES_TEXT = 2048 /* room for the algorithms of all collectives */ };

/* Print words of text, indented, in lines of at most WIDTH. */
static void show_conf_print_wrapped(FILE *out, const char *text, int indent)
{
    int column = 0;

    while (*text) {
        size_t len = strcspn(text, " ");

        if (column && column + 1 + (int)len > WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column = fprintf(out, "%*s%.*s", indent, "", (int)len, text);
        else
            column += fprintf(out, " %.*s", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static const char *type_name(enum rk_conf_type type)
{
    switch (type) {
    case RK_CONF_BOOL:
        return "on or off";
    case RK_CONF_INT:
        return "whole number";
    case RK_CONF_SIZE:
        return "size";
    case RK_CONF_TIME:
        return "time";
    case RK_CONF_ENUM:
        return "one of";
    case RK_CONF_SET:
        return "list of";
    case RK_CONF_STRING:
        return "text";
    case RK_CONF_PICKS:
        return "list of";
    }
    return "";
}

/* Describe valid values: "size in bytes, 0 to 1024K", "one of auto, on, off". */
static void describe_values(const struct rk_conf_row *row, char *text, size_t len)
{
    struct rk_conf_row bound = *row;
    char hi[32], lo[32];
    int n;

    n = snprintf(text, len, "%s%s", type_name(row->type), row->type == RK_CONF_STRING ? "" : " ");
    if (row->type == RK_CONF_PICKS) { /* "barrier:shm|..., bcast:..." */
        for (const char *p = row->allowed; *p && n < (int)len; p++)
            n += snprintf(text + n, len - (size_t)n, *p == ',' ? "%c " : "%c", *p);
        return;
    }
    if (row->type == RK_CONF_ENUM || row->type == RK_CONF_SET) {
        for (const char *p = row->allowed; *p && n < (int)len; p++)
            n += *p == '|' ? snprintf(text + n, len - (size_t)n, ", ")
                           : snprintf(text + n, len - (size_t)n, "%c", *p);
        return;
    }
    if (row->type == RK_CONF_BOOL || row->type == RK_CONF_STRING) {
        if (row->type == RK_CONF_BOOL)
            text[n - 1] = '\0';
        else if (*row->unit)
            snprintf(text + n, len - (size_t)n, " (%s)", row->unit);
        return;
    }
    bound.offset = 0;
    rk_conf_format(&bound, &row->min, lo, sizeof(lo));
    rk_conf_format(&bound, &row->max, hi, sizeof(hi));
    if (row->max)
        n += snprintf(text + n, len - (size_t)n, "from %s to %s", lo, hi);
    else
        n += snprintf(text + n, len - (size_t)n, "from %s", lo);
    if (*row->unit && row->type != RK_CONF_TIME && n < (int)len)
        n += snprintf(text + n, len - (size_t)n, ", in %s", row->unit);
    if (row->allowed && n < (int)len)
        snprintf(text + n, len - (size_t)n, ", or %s", row->allowed);
}

void info_print_conf(FILE *out)
{
    char value[1024], values[VALUES_TEXT], line[VALUES_TEXT + 1200];

    fprintf(out, "configuration: environment, or lines 'NAME = value' in rank.conf\n");
    for (int i = 0; rk_conf_rows[i].name; i++) {
        const struct rk_conf_row *row = &rk_conf_rows[i];

        rk_conf_format(row, &rk_conf, value, sizeof(value));
        describe_values(row, values, sizeof(values));
        fprintf(out, "\n  %s = %s\n", row->name, *value ? value : "(empty)");
        show_conf_print_wrapped(out, row->doc, 6);
        snprintf(line, sizeof(line), "default: %s; value: %s", *row->dflt ? row->dflt : "(empty)",
                 values);
        show_conf_print_wrapped(out, line, 6);
        fprintf(out, "      from: %s\n", rk_conf_origin(i));
    }
}

/* Escape text for troff: hyphens, backslashes, leading dots. */
static void print_escaped(FILE *out, const char *text)
{
    bool line_start = true;

    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else if (line_start && (*text == '.' || *text == '\''))
            fprintf(out, "\\&%c", *text);
        else
            fputc(*text, out);
        line_start = false;
    }
}

void info_print_conf_man(FILE *out)
{
    char values[VALUES_TEXT];

    for (const struct rk_conf_row *row = rk_conf_rows; row->name; row++) {
        describe_values(row, values, sizeof(values));
        fprintf(out, ".TP\n.B ");
        print_escaped(out, row->name);
        fputc('\n', out);
        print_escaped(out, row->doc);
        fprintf(out, "\n.br\nValue: ");
        print_escaped(out, values);
        fprintf(out, ". Default: ");
        if (*row->dflt)
            print_escaped(out, row->dflt);
        else
            fprintf(out, "empty");
        fprintf(out, ".\n");
    }
}
