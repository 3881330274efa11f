/*
 * limits.h: can this machine and this user hold that many ranks?
 */
#ifndef RK_LAUNCHER_LIMITS_H
#define RK_LAUNCHER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Raise the soft limit of open files to what an agent of n ranks needs (with
 * more than the usual for each), and
 * look at the limits of processes (of the user, of the cgroups, of the
 * system). *nofile: the soft limit that was there before and that ranks shall
 * have. False: err holds the one that is too low.
 */
bool rk_limits_check(int n, int more, uint64_t *nofile, char *err, size_t errlen);

#endif
