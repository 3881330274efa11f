/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * card.h: pack the addresses of all open channels into one blob.
 *
 * Each channel that reaches other hosts has a part: its name and its bytes. A process publishes the blob in the launcher's
 * store, and passes it to processes of other jobs. Pure.
 */
#ifndef RK_CORE_CARD_H
#define RK_CORE_CARD_H

#include <stdbool.h>
#include <stddef.h>

/* Key of the blob in the store. */
#define RK_CARD_KEY "rank.card"

/* Append the part of a channel to a blob, which grows. Returns false if out of memory, or if it exceeds RK_CARD_MAX. */
bool rk_card_add(unsigned char **card, size_t *len, const char *channel, const void *part, size_t bytes);
/* Return the part of a channel and set its bytes; NULL: the blob has none. The blob may be malformed. */
const void *rk_card_part(const void *card, size_t len, const char *channel, size_t *bytes);

#endif
