/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_clock.h: measure how long calls last after the death of the peer.
 *
 * The kernel closes the pipe of a killed process with its sockets: that is the death. A thread of the survivor watches the
 * pipe. It also measures how late the machine runs a thread that has to run: a loaded machine extends the bound.
 */
#ifndef TESTS_CONN_DEATH_CLOCK_H
#define TESTS_CONN_DEATH_CLOCK_H

#include "tests/conn/conn_pair.h"

/* Begin to watch the other side; NULL: only the machine. One watch at a time. */
void death_clock_start(const struct pair *p);
/* A call has just ended: it fails the case, unless that is within bound_s of the death, which it waits for. */
void death_clock_check(const char *call, double bound_s);
/* Seconds that a loaded machine adds to a bound; as measured so far. */
double death_clock_grace(void);
void death_clock_stop(void);

#endif
