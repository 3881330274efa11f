/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.h: the parts of rankinfo, a tool that shows what this librank is and
 * what it sees. It is linked with the library's inside, so that it asks the
 * very tables that the library uses.
 */
#ifndef RK_TOOLS_RANKINFO_INFO_H
#define RK_TOOLS_RANKINFO_INFO_H

#include <stdbool.h>
#include <stdio.h>

/* What was compiled in, with what. */
void info_print_build(FILE *out);

/* Every configuration variable: present value and where it came from, default, unit, doc. */
void info_print_conf(FILE *out);
/* The same as a section of a manual page, without what depends on this machine. */
void info_print_conf_man(FILE *out);

/* Channels: what is there and what keeps it from working. load: open the ucx module too. */
void info_print_channels(FILE *out, bool load);

/* Cores, memory, GPUs and NICs; false if that could not be found out (and was said). */
bool info_print_topology(FILE *out);

#endif
