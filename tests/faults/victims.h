/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victims.h: kill a rank for each row of a table, and check what others return.
 *
 * One job goes through a table. A few ranks live, and each row has a victim of its own, on a team with the living.
 * Afterwards the living go on among themselves. Options of every program that uses it:
 *   --in NAME,...  these rows only; all ranks without a row live. Else two live, and there are rows as ranks suffice
 *   --first N      the row that the first victim is for (0)
 *   --victim R     of one row: the rank of the world that dies (the last)
 *   --asleep       victims are in no call of the library when they die
 *   --leave        the first victim dies, further ones finalize alone
 *   --mapped       payloads lie in memory of rank_alloc
 *   --within S     seconds in which all get it: 1 with --in, 5 with a whole table, and more where the build is slow
 *   --seed N       decides the moments
 */
#ifndef TESTS_FAULTS_VICTIMS_H
#define TESTS_FAULTS_VICTIMS_H

#include "tests/mp/mp.h"

enum { SMALL = 64, LARGE = 300000, HUGE = 5000000, DATA = 20, NEVER = 999 };

struct scene {
    struct mp mp;
    rank_team_t team, living;
    int victim;             /* on the team */
    int source;             /* the same, of signals at own: registered memory has ranks of the world */
    int to, from, first;    /* the next of the living on the team, the one before, and the first */
    double when, within;    /* of CLOCK_MONOTONIC, which is one on a host */
    size_t bytes;           /* of the row */
    char *out, *in;         /* HUGE each; out is filled by the rank of the world */
    int64_t counts[64], displs[64];
    rank_mem_t own, mem;    /* this rank's memory; the victim's */
    char key[RANK_RKEY_MAX]; /* of the victim's memory */
    size_t key_len;
    rank_request_t again;   /* persistent, made by its row */
    rank_team_t dup;        /* with DUP */
};

struct row {
    const char *name;
    rank_status_t (*call)(struct scene *s);
    int flags;
    size_t bytes;
    void (*victim)(struct scene *s); /* what it does until its death; else it waits in a receive */
};

/* A row's flags. */
enum {
    LATER = 1,      /* may succeed as long as the death is unknown */
    ONCE = 2,       /* else the same call ends so afterwards, too */
    TOGETHER = 4,   /* the victim makes the same calls; implies LATER */
    REMOTE = 8,     /* on the victim's memory, once registered and once of rank_alloc */
    REGISTERED = 16, /* the same once */
    ALLOCATED = 32, /* the same once, of rank_alloc; the call may free it */
    DUP = 64,       /* a duplicate of the team, which the call frees */
    SLEEPS = 128,   /* the victim is in no call */
    VICTIM_0 = 256, /* the victim is rank 0 of the team, or rank 1; else the last */
    VICTIM_1 = 512
};

/* Run a table. Returns what main returns. */
int victims_main(int argc, char **argv, const struct row *rows, int nrows);

rank_status_t after(rank_status_t st, rank_request_t *req); /* wait, if it has started */
void check_dead(int line, const char *what, rank_status_t st);
#define IS_DEAD(call) check_dead(__LINE__, #call, (call))

#endif
