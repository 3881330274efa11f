/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.h: rankinfo's part about large messages: the table that ranks would use, and measuring a new one. */
#ifndef RK_TOOLS_RANKINFO_PATHS_H
#define RK_TOOLS_RANKINFO_PATHS_H

#include "lib/channel/shm/proto_table.h"

#include <stdio.h>

/* Which path each size takes, why, and where that comes from. */
void info_print_paths(FILE *out);

/* Measure this machine and leave the table where ranks look for it; false: not done, and said why. */
bool info_calibrate(FILE *out);

/* calibrate.c: fill in the rates, with two processes on two cores; false: said why. Takes a second or two. */
bool info_measure_paths(struct rk_paths *paths);

#endif
