/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_link.h: run with one other process, without a launcher. */
#ifndef BENCH_HARNESS_LINK_H
#define BENCH_HARNESS_LINK_H

#include <stdbool.h>

/*
 * If the command line has --listen or --connect, join the other process in place of be_init. Both get the same command
 * line: that of the one that connects, which is rank 0, without these options. Returns false if there is none.
 * A mistake ends the process with a line.
 */
bool harness_link(int *argc, char ***argv);

#endif
