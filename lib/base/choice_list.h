/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice_list.h: check lists of the form "allreduce:ring@64K-1M,bcast:chain".
 *
 * Each key has a set of words of its own. A word may have a range of sizes behind an @.
 */
#ifndef RK_BASE_CHOICE_LIST_H
#define RK_BASE_CHOICE_LIST_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * allowed: "allreduce:ring|shm,bcast:chain|shm". Blanks around the parts of text, empty parts and an empty text
 * are valid. On failure err gets a text that begins with name.
 */
rank_status_t rk_choice_list_check(const char *name, const char *text, const char *allowed, char *err,
                             size_t errlen);

/* Parse "64K-1M", "64K-", "-1M" or "64K", len long; the bounds are included. False if it is none. */
bool rk_choice_list_range(const char *text, size_t len, size_t *from, size_t *to);

#endif
