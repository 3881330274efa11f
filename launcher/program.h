/*
 * program.h: find the program before anything is started.
 */
#ifndef RK_LAUNCHER_PROGRAM_H
#define RK_LAUNCHER_PROGRAM_H

#include <stddef.h>

/* The shells' exit codes for these, sysexits.h's for lost output. */
enum {
    RK_EXIT_USAGE = 2,
    RK_EXIT_OUTPUT_LOST = 74,
    RK_EXIT_TIMEOUT = 124,
    RK_EXIT_CANNOT_EXECUTE = 126,
    RK_EXIT_NOT_FOUND = 127
};

/*
 * The absolute path of the directory that ranks start in; dir may be NULL
 * (where xrun is). NULL: err holds why.
 */
char *rk_program_wdir(const char *dir, char *err, size_t errlen);

/*
 * The path to execute for name: as it stands if it holds a slash (seen from
 * wdir), else the first executable of that name in the directories of dirs (or
 * NULL), of path (NULL: the usual ones), then in wdir. NULL: err holds what was looked for and
 * where, and *exit_code is 126 or 127.
 */
char *rk_program_find(const char *name, const char *dirs, const char *path, const char *wdir,
                      char *err, size_t errlen, int *exit_code);

#endif
