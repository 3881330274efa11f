/*
 * limits.h: can this machine and this user hold that many ranks?
 */
#ifndef RK_LAUNCHER_LIMITS_H
#define RK_LAUNCHER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open files of a process that starts others, without those. */
#define RK_FDS_OWN 64
/* For each agent just below: its wire, the command that started it, and pipes to that one while it starts. */
#define RK_FDS_PER_AGENT 6u

/* The soft limit of open files, 0: not known. As long as nobody has raised it, the user's, which ranks shall have. */
uint64_t rk_limits_files(void);
/* Let this process open so many files. False: err holds why not, beginning with "WHOSE N open files"; whose ends with a
 * verb. */
bool rk_limits_raise_files(uint64_t need, const char *whose, char *err, size_t errlen);

/*
 * Raise the soft limit of open files to what an agent of n ranks needs (with
 * more than the usual for each) that has others below it, and look at the limits
 * of processes (of the user, of the cgroups, of the system). False: err holds
 * the one that is too low.
 */
bool rk_limits_check(int n, int more, uint32_t below, char *err, size_t errlen);

#endif
