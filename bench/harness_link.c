/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_link.c: see harness_link.h. */
#include "bench/harness_link.h"
#include "bench/backend.h"
#include "bench/harness_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_ROOM = 1024 };

static char words[WORDS_ROOM]; /* each with its NUL */
static char *shared_argv[WORDS_ROOM + 2];

static void __attribute__((noreturn)) link_fail(const char *text)
{
    fprintf(stderr, "%s: %s\n", be_program, text);
    exit(2);
}

/* Does the argument give the option? *used: it and its value. */
static bool link_is_option(const char *arg, const char *name, int *used)
{
    size_t len = strlen(name);

    if (strncmp(arg, name, len) != 0 || (arg[len] && arg[len] != '='))
        return false;
    *used = arg[len] ? 1 : 2;
    return true;
}

/* Copy all but the two options to words; returns the bytes. */
static size_t gather_words(int argc, char **argv)
{
    size_t at = 0;

    for (int i = 1, used; i < argc; i += used) {
        size_t len = strlen(argv[i]) + 1;
        used = 1;
        if (link_is_option(argv[i], "--listen", &used) || link_is_option(argv[i], "--connect", &used))
            continue;
        if (at + len > sizeof(words))
            link_fail("--connect: the command line is too long");
        memcpy(words + at, argv[i], len);
        at += len;
    }
    return at;
}

bool harness_link(int *argc, char ***argv)
{
    struct bench_opts opts;
    bool listens, connects;
    char err[512];
    size_t len, at = 0;
    int n = 0;

    if (bench_opts_parse(&opts, *argc, *argv, err, sizeof(err))) {
        bench_opts_free(&opts); /* harness_run reports it */
        return false;
    }
    listens = opts.listen[0];
    connects = opts.connect[0];
    if (opts.help || opts.list || (!listens && !connects)) {
        bench_opts_free(&opts);
        return false;
    }
    if (listens && connects)
        link_fail("--listen and --connect exclude each other");
    len = gather_words(*argc, *argv);
    if (listens && len)
        link_fail("--listen runs what the other side asks for: leave out benchmarks and options");
    len = be_connect(listens, listens ? opts.listen : opts.connect, words, len, sizeof(words));
    bench_opts_free(&opts);
    shared_argv[n++] = (*argv)[0];
    while (at < len) {
        shared_argv[n++] = words + at;
        at += strlen(words + at) + 1;
    }
    *argc = n;
    *argv = shared_argv;
    return true;
}
