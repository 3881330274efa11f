/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * companion.h: find what is installed beside the library.
 *
 * That is its modules, and plugins of libpmix in a portable installation (packaging/portable.sh).
 *
 * The places: RANK_MODULES alone if set; otherwise the directory of the running librank.so (its subdirectory when
 * installed, its own in the build tree), then the configured directory. A program linked with librank.a, as xrun, has
 * ../lib/librank from its own directory instead of the first: an installation may have been moved.
 */
#ifndef RK_BASE_COMPANION_H
#define RK_BASE_COMPANION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { RK_COMPANION_PLACES_MAX = 3 };

struct rk_companion_places {
    char dir[RK_COMPANION_PLACES_MAX][PATH_MAX];
    int n;
};

void rk_companion_list(struct rk_companion_places *p);

/* Find a file or folder in the first place that has it. Returns false if none has. */
bool rk_companion_find(const char *name, char *path, size_t len);

/*
 * Name the folder of libpmix's plugins to libpmix, which otherwise loads those of the libpmix that the machine has. Only in
 * an installation that brings its own. Call before libpmix is initialized. Returns true if rk_companion_pmix_end has to follow.
 */
bool rk_companion_pmix_begin(void);

/* Take the name out of the environment: child processes may have another libpmix. */
void rk_companion_pmix_end(void);

#endif
