/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mp.h: start, check and end programs of several ranks.
 *
 * A failed check prints its place and text, and ends the job. The barrier here is
 * made of sends and receives, so that tests of sending do not depend on the
 * collectives.
 */
#ifndef TESTS_MP_MP_H
#define TESTS_MP_MP_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mp {
    int rank, size;
    rank_team_t world;
    uint64_t seed;    /* --seed N, else from rank 0's clock; the same on every rank */
    int fds;          /* open before rank_init */
    int64_t delay;    /* --delay N: microseconds of mp_delay; 0: none */
    const char *name; /* of the case that runs */
};

/* Takes --seed N out of argv, calls rank_init. */
void mp_start(struct mp *mp, int *argc, char **argv);
/* The same at another level than rank_init's default. */
void mp_start_level(struct mp *mp, int *argc, char **argv, rank_thread_level_t level);
/* Finalize, check for descriptors that stayed open, and print "mp: done". */
void mp_end(struct mp *mp);
/* As mp_end where ranks died: no word about descriptors. */
void mp_end_survivor(struct mp *mp);

/* With --delay: delay the rank here, or do not: by its random numbers, so that a seed replays it. */
void mp_delay(const struct mp *mp, uint64_t *random);

/* Begin a new case: rank 0 prints it; a barrier. */
void mp_case(struct mp *mp, const char *name);
/* The name and the seed that a failure prints, where there is no mp_start: a failed check ends the process, then. */
void mp_name_case(const char *name, uint64_t seed);
/* Of sends and receives over any team; every rank returns only after every one has called. */
void mp_barrier(rank_team_t team);

/* --option N in argv, or dflt. */
int64_t mp_option(int argc, char **argv, const char *option, int64_t dflt);
bool mp_flag(int argc, char **argv, const char *option);
/* So many, or a third of it under a sanitizer: each takes longer there, and the first of them show its findings. */
int64_t mp_rounds(int64_t n);

int mp_count_fds(void);
/* A value in kB from /proc/self/status, such as "VmHWM"; -1 if it is not there. */
int64_t mp_status_kb(const char *field);
double mp_now(void); /* seconds */
/* SIGKILL to this process when mp_now reaches *when, which has to stay; returns at once. */
void mp_die_at(const double *when);

void mp_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void mp_check_status(const char *file, int line, const char *what, rank_status_t got,
                     rank_status_t want);

#define MP_CHECK(cond)                                                                             \
    do {                                                                                           \
        if (!(cond))                                                                               \
            mp_fail(__FILE__, __LINE__, "not so: %s", #cond);                                      \
    } while (0)
#define MP_CHECK_EQ(got, want)                                                                     \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_)                                                                         \
            mp_fail(__FILE__, __LINE__, "%s is %lld, not %lld (%s)", #got, got_, want_, #want);    \
    } while (0)
#define MP_OK(call) mp_check_status(__FILE__, __LINE__, #call, (call), RANK_OK)
#define MP_STATUS(call, want) mp_check_status(__FILE__, __LINE__, #call, (call), (want))

/* splitmix64: small, and good enough to shuffle messages. */
static inline uint64_t mp_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t mp_below(uint64_t *state, uint64_t n)
{
    return mp_random(state) % n;
}

/* Bytes that depend on a key and on the place; mp_verify gives the offset of the first wrong byte,
 * or -1. */
void mp_fill(void *buf, size_t bytes, uint64_t key);
int64_t mp_verify(const void *buf, size_t bytes, uint64_t key);

void *mp_alloc(size_t bytes); /* never NULL; 1 byte at least */

#endif
