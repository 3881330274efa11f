/* SPDX-License-Identifier: BSD-3-Clause */
/* parser.c: parse the lines of a PMI-1 client. See parser.h. */
#include "launcher/pmi1/parser.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *xr_pmi1_input_room(struct xr_pmi1_input *in, size_t *room)
{
    if (in->start > 0) {
        memmove(in->data, in->data + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    *room = sizeof(in->data) - in->end;
    return in->data + in->end;
}

void xr_pmi1_input_filled(struct xr_pmi1_input *in, size_t n)
{
    in->end += n;
}

static bool parser_number(const char *text, long min, long max, long *out)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < min || n > max)
        return false;
    *out = n;
    return true;
}

/* The next line, with NUL for the newline. NULL if none is complete. */
static char *parse_block_line(struct xr_pmi1_input *in)
{
    char *line = in->data + in->start, *nl = memchr(line, '\n', in->end - in->start);

    if (!nl)
        return NULL;
    *nl = '\0';
    in->start = (size_t)(nl - in->data) + 1;
    return line;
}

/* Blank-separated words, each key=value; the first is the command. */
static bool parser_split(char *line, struct xr_pmi1_command *out)
{
    char *rest = line, *word;

    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (*word == '\0')
            continue;
        if (!value || value == word)
            return false;
        *value++ = '\0';
        if (!out->name) {
            if (strcmp(word, "cmd") != 0)
                return false;
            out->name = value;
        } else if (out->npairs < XR_PMI1_PAIRS_MAX) { /* no known command has more */
            out->pair[out->npairs].key = word;
            out->pair[out->npairs++].value = value;
        }
    }
    return out->name != NULL;
}

/* Handle a line of a block. The parser itself uses the lines with the number of blocks. */
static bool in_block(struct xr_pmi1_input *in, const char *line)
{
    if (strncmp(line, "totspawns=", 10) == 0)
        return parser_number(line + 10, 1, INT_MAX, &in->spawns);
    if (strncmp(line, "spawnssofar=", 12) == 0)
        return parser_number(line + 12, 1, INT_MAX, &in->spawn_no);
    return true;
}

enum xr_pmi1_next xr_pmi1_input_next(struct xr_pmi1_input *in, struct xr_pmi1_command *out)
{
    char *line;

    memset(out, 0, sizeof(*out));
    while ((line = parse_block_line(in))) {
        if (strlen(line) + 1 != (size_t)(in->data + in->start - line))
            return XR_PMI1_MALFORMED; /* a NUL inside */
        if (!in->in_block && strncmp(line, "mcmd=", 5) == 0) {
            in->in_block = true;
            in->spawns = in->spawn_no = 1;
            if (in->line)
                in->line(in->arg, NULL);
        } else if (!in->in_block) {
            return parser_split(line, out) ? XR_PMI1_COMMAND : XR_PMI1_MALFORMED;
        } else if (strcmp(line, "endcmd") == 0) {
            in->in_block = false;
            out->name = "spawn";
            out->block = true;
            out->last = in->spawn_no >= in->spawns;
            return XR_PMI1_COMMAND;
        } else if (!in_block(in, line)) {
            return XR_PMI1_MALFORMED;
        } else if (in->line) {
            in->line(in->arg, line);
        }
    }
    /* A line that fills the buffer can never become complete. */
    return in->end - in->start == sizeof(in->data) ? XR_PMI1_MALFORMED : XR_PMI1_MORE;
}

const char *xr_pmi1_value(const struct xr_pmi1_command *command, const char *key)
{
    for (unsigned i = 0; i < command->npairs; i++) {
        if (strcmp(command->pair[i].key, key) == 0)
            return command->pair[i].value;
    }
    return NULL;
}

bool xr_pmi1_number(const struct xr_pmi1_command *command, const char *key, long min, long max,
                    long *out)
{
    const char *value = xr_pmi1_value(command, key);

    return value && parser_number(value, min, max, out);
}
