/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_fds.h: find out that the program has closed descriptors that the library keeps (closefrom, as daemons do).
 *
 * The library's own are noted with their inode, and one of them that is gone is the proof. Those that libpmix opens are
 * only guessed, by their numbers: they are named in the report, and prove nothing.
 */
#ifndef RK_BASE_KEPT_FDS_H
#define RK_BASE_KEPT_FDS_H

#include <stdbool.h>

/* The library keeps fd open from now on. what: "the node's shared memory"; it must stay. */
void rk_kept_fds_note(int fd, const char *what);
/* The library closes fd itself. */
void rk_kept_fds_forget(int fd);

/* Around PMIx_Init: returns the lowest free number, -1 if there is none; and notes what was opened since. */
int rk_kept_fds_lowest(void);
void rk_kept_fds_note_pmix(int lowest);

/* Has the program closed one of the library's own? The first time it reports which, and what cannot be done. */
bool rk_kept_fds_closed(const char *doing);

#endif
