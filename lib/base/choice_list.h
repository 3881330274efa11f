/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice_list.h: check lists of the form "allreduce:ring,bcast:chain".
 *
 * Each key has a set of words of its own.
 */
#ifndef RK_BASE_CHOICE_LIST_H
#define RK_BASE_CHOICE_LIST_H

#include "lib/rank.h"

/*
 * allowed: "allreduce:ring|shm,bcast:chain|shm". Blanks around the parts of text, empty parts and an empty text
 * are valid. On failure err gets a text that begins with name.
 */
rank_status_t rk_picks_check(const char *name, const char *text, const char *allowed, char *err,
                             size_t errlen);

#endif
