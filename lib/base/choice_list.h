/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice_list.h: values of the form "key:word,key:word", each key with words of its
 * own: "allreduce:ring,bcast:chain".
 */
#ifndef RK_BASE_CHOICE_LIST_H
#define RK_BASE_CHOICE_LIST_H

#include "lib/rank.h"

/*
 * allowed: "allreduce:ring|shm,bcast:chain|shm". Blanks around the parts of
 * text, empty parts and none at all are fine. err gets a text that begins with
 * name if the status is not RANK_OK.
 */
rank_status_t rk_picks_check(const char *name, const char *text, const char *allowed, char *err,
                             size_t errlen);

#endif
