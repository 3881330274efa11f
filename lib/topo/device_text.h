/* SPDX-License-Identifier: BSD-3-Clause */
/* device_text.h: read the devices of a rank from text. */
#ifndef RK_TOPO_DEVICE_TEXT_H
#define RK_TOPO_DEVICE_TEXT_H

#include "lib/rank.h"

#include <stdbool.h>

/*
 * Read the text that lib/topo/pair_text.h describes. visible: CUDA_VISIBLE_DEVICES, or NULL. Fills all but out->size.
 * Returns false if the text is malformed.
 */
bool rk_device_text(const char *text, const char *visible, rank_device_t *out);

#endif
