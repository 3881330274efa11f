/*
 * find_program.h: find the program before anything is started.
 */
#ifndef XR_LAUNCHER_EXEC_FIND_PROGRAM_H
#define XR_LAUNCHER_EXEC_FIND_PROGRAM_H

#include "launcher/util/exit_code.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The absolute path of the directory that ranks start in; dir may be NULL
 * (where xrun is). Links in it stay as they are. here: ranks may be on this host,
 * and it has to be there. NULL: err holds why.
 */
char *xr_program_wdir(const char *dir, bool here, char *err, size_t errlen);

/* Where name is if it holds a slash, else the name itself, which is still to be looked for. NULL: no memory. */
char *xr_program_path(const char *name, const char *wdir);

/*
 * The path to execute for name: as it stands if it holds a slash (seen from
 * wdir), else the first executable of that name in the directories of dirs (or
 * NULL), of path (NULL: the usual ones), then in wdir. NULL: err holds what was looked for and
 * where, and *exit_code is 126 or 127.
 */
char *xr_program_find(const char *name, const char *dirs, const char *path, const char *wdir,
                      char *err, size_t errlen, int *exit_code);

#endif
