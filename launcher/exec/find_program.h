/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * find_program.h: find the program before any process is started.
 */
#ifndef XR_LAUNCHER_EXEC_FIND_PROGRAM_H
#define XR_LAUNCHER_EXEC_FIND_PROGRAM_H

#include "launcher/util/exit_code.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Return the absolute path of the ranks' working directory; dir may be NULL (xrun's). Symbolic links stay. here:
 * ranks may run on this host, so it must exist here. NULL: err holds a text.
 */
char *xr_program_wdir(const char *dir, bool here, char *err, size_t errlen);

/* Return the path of name if it holds a slash, else name itself, to be searched for later. NULL: out of memory. */
char *xr_program_path(const char *name, const char *wdir);

/*
 * Return the path to execute for name. With a slash: as given, relative to wdir. Else the first executable of
 * that name in the directories of dirs (or NULL), of path (NULL: the default), then in wdir. NULL: err holds
 * what was searched for and where, and *exit_code is 126 or 127.
 */
char *xr_program_find(const char *name, const char *dirs, const char *path, const char *wdir,
                      char *err, size_t errlen, int *exit_code);

#endif
