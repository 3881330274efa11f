/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parser.h: parse the bytes of a PMI-1 client into commands.
 *
 * A command is a line "cmd=put kvsname=K key=A value=B", or for spawn a block of
 * lines from "mcmd=spawn" to "endcmd". The bytes are untrusted: nothing outside the
 * buffer here is read or kept.
 */
#ifndef XR_LAUNCHER_PMI1_PARSER_H
#define XR_LAUNCHER_PMI1_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#define XR_PMI1_LINE_MAX 2048 /* clients keep to 1024 */
#define XR_PMI1_PAIRS_MAX 8

struct xr_pmi1_input {
    size_t start, end;     /* of the bytes in data that are not parsed yet */
    bool in_block;         /* between mcmd= and endcmd */
    void (*line)(void *arg, const char *line); /* called with each line of a block, with NULL before the first; or NULL */
    void *arg;
    long spawns, spawn_no; /* the number of blocks of the request, and of this one */
    char data[XR_PMI1_LINE_MAX];
};

struct xr_pmi1_command {
    const char *name; /* this and the pairs point into the input's data: valid until the next call */
    bool block;       /* it was a block of lines; pairs are not kept */
    bool last;        /* the last block of the request */
    unsigned npairs;
    struct {
        const char *key, *value;
    } pair[XR_PMI1_PAIRS_MAX];
};

enum xr_pmi1_next {
    XR_PMI1_MORE,    /* no command is complete */
    XR_PMI1_COMMAND,
    XR_PMI1_MALFORMED /* not PMI-1; the rest of the connection is useless */
};

/* The place and number of bytes to read next; report with xr_pmi1_input_filled how many came. Only after
 * xr_pmi1_input_next has returned XR_PMI1_MORE: then there is always room. */
char *xr_pmi1_input_room(struct xr_pmi1_input *in, size_t *room);
void xr_pmi1_input_filled(struct xr_pmi1_input *in, size_t n);

enum xr_pmi1_next xr_pmi1_input_next(struct xr_pmi1_input *in, struct xr_pmi1_command *out);

/* The value of a key, or NULL. */
const char *xr_pmi1_value(const struct xr_pmi1_command *command, const char *key);
/* A number from min to max. Returns false if it is missing or not such a number. */
bool xr_pmi1_number(const struct xr_pmi1_command *command, const char *key, long min, long max,
                    long *out);

#endif
