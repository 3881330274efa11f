/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.h: print and calibrate the protocols of large messages. */
#ifndef RK_TOOLS_RANKINFO_PATHS_H
#define RK_TOOLS_RANKINFO_PATHS_H

#include "lib/channel/shm/proto_table.h"

#include <stdio.h>

/* Print the protocol of each size, its reason and the source of the table. */
void info_print_paths(FILE *out);

/* Measure this machine and save the table where ranks load it; returns false after a message. */
bool info_calibrate(FILE *out);

/*
 * calibrate.c: fill in the rates, with two processes on two cores; returns false after a message. Takes a second
 * or two.
 */
bool info_measure_paths(struct rk_proto_table *paths);

#endif
