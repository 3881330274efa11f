/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_fds.h: detect that the program has closed the library's descriptors.
 *
 * The library's descriptors are recorded with their inodes; a missing one proves it. Those that libpmix opens are
 * guessed by number: they appear in the report only.
 */
#ifndef RK_BASE_KEPT_FDS_H
#define RK_BASE_KEPT_FDS_H

#include <stdbool.h>

/* The library keeps fd open from now on. what: "the node's shared memory"; must stay valid. */
void rk_kept_fds_note(int fd, const char *what);
/* The library closes fd itself. */
void rk_kept_fds_forget(int fd);

/* Bracket fork, so that the child can record descriptors of its own. */
void rk_kept_fds_lock(void);
void rk_kept_fds_unlock(void);

/* Bracket PMIx_Init: returns the lowest free number, or -1; records what was opened since. */
int rk_kept_fds_lowest(void);
void rk_kept_fds_note_pmix(int lowest);

/* Has the program closed one of those? */
bool rk_kept_fds_pmix_closed(void);

/* Has the program closed a descriptor of the library? Reports the first time which, and what fails. */
bool rk_kept_fds_closed(const char *doing);

#endif
