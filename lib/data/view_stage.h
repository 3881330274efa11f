/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view_stage.h: move a view's payload in long pieces, whatever frames carry.
 *
 * Each copy of device memory costs some microseconds, and frames are short. A staged view keeps a piece of the payload
 * in host memory: frames are packed from it, or unpacked into it, and one copy moves it.
 */
#ifndef RK_DATA_VIEW_STAGE_H
#define RK_DATA_VIEW_STAGE_H

#include "lib/data/view.h"

enum { RK_VIEW_STAGE = 512 << 10 }; /* bytes of a piece */

/*
 * Replace *view, of which a transfer will move the first bytes, by a staged one, for either packing or unpacking.
 * No-op for payload in host memory, as its copies cannot fail, and without memory.
 */
void rk_view_stage_open(struct rk_view *view, size_t bytes);

/*
 * Restore the view. flush: unpacked data that is still in host memory moves; returns the status of that. No-op for other
 * views. A staged view that has been unpacked up to its last byte needs no flush.
 */
rank_status_t rk_view_stage_close(struct rk_view *view, bool flush);

#endif
