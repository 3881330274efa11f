/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.h: print what this librank is, and what it detects: the parts of rankinfo.
 *
 * Room: the program rankinfo.
 * Callers: the user, doc/update.sh.
 * Never: sends a message; changes configuration, but for the table that --calibrate writes.
 * Tests: tests/install/rankinfo.sh, tests/unit/proto_table_test.c.
 *
 * rankinfo is linked with the library's internals, so that it prints the tables that the library uses.
 */
#ifndef RK_TOOLS_RANKINFO_INFO_H
#define RK_TOOLS_RANKINFO_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Print compiled-in features and versions. */
void info_print_build(FILE *out);

/* Print every configuration variable: value and its source, default, unit, documentation. */
void info_print_conf(FILE *out);
/* The same as a section of a manual page, without values of this machine. */
void info_print_conf_man(FILE *out);

/* Print channels and why they do not work. load: open the ucx module, too. */
void info_print_channels(FILE *out, bool load);

#endif
