/* SPDX-License-Identifier: BSD-3-Clause */
/* module.h: the channels that lie in shared objects of their own and are opened when needed. */
#ifndef RK_CHANNEL_MODULE_H
#define RK_CHANNEL_MODULE_H

#include "lib/core/channel.h"

/* The key of the card that the ucx channel's open fills and its connect fetches. */
#define RK_UCX_CARD "rank.ucx"

/*
 * Load the ucx channel. It stays loaded; a second call gives the same struct.
 * RANK_ERR_NOT_SUPPORTED, with one line that says why: no such file, or UCX is
 * not there, or the file is of another version of the library.
 */
rank_status_t rk_module_open_ucx(const struct rk_channel **out);

/* Where its file lies, without loading it; RANK_ERR_NOT_SUPPORTED, silently, if there is none. */
rank_status_t rk_module_find_ucx(char *path, size_t len);

#endif
