/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parser.h: what a PMI-1 client writes, as commands.
 *
 * A command is a line "cmd=put kvsname=K key=A value=B", or for spawning a block
 * of lines from "mcmd=spawn" to "endcmd". The bytes come from outside: whatever
 * they are, nothing is read or kept beyond the buffer here.
 */
#ifndef XR_LAUNCHER_PMI1_PARSER_H
#define XR_LAUNCHER_PMI1_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#define XR_PMI1_LINE_MAX 2048 /* clients keep to 1024 */
#define XR_PMI1_PAIRS_MAX 8

struct xr_pmi1_input {
    size_t start, end;     /* of what is in data and not yet looked at */
    bool in_block;         /* between mcmd= and endcmd */
    void (*line)(void *arg, const char *line); /* gets each line of a block, NULL before the first; or NULL */
    void *arg;
    long spawns, spawn_no; /* of the block: how many belong together, and which this is */
    char data[XR_PMI1_LINE_MAX];
};

struct xr_pmi1_command {
    const char *name; /* points into the input's data, as do the others: until the next call */
    bool block;       /* it was one of several lines; pairs are not kept */
    bool last;        /* of the blocks that belong together */
    unsigned npairs;
    struct {
        const char *key, *value;
    } pair[XR_PMI1_PAIRS_MAX];
};

enum xr_pmi1_next {
    XR_PMI1_MORE,    /* no whole command is there */
    XR_PMI1_COMMAND,
    XR_PMI1_NONSENSE /* no client speaks so; nothing that follows can be understood */
};

/* Where to put bytes that arrive, and how many; say with filled how many came. Call it only after
 * next has said MORE: then there is always room. */
char *xr_pmi1_input_room(struct xr_pmi1_input *in, size_t *room);
void xr_pmi1_input_filled(struct xr_pmi1_input *in, size_t n);

enum xr_pmi1_next xr_pmi1_input_next(struct xr_pmi1_input *in, struct xr_pmi1_command *out);

/* The value of a key, or NULL. */
const char *xr_pmi1_value(const struct xr_pmi1_command *command, const char *key);
/* A number from min to max; false if it is missing or none. */
bool xr_pmi1_number(const struct xr_pmi1_command *command, const char *key, long min, long max,
                    long *out);

#endif
