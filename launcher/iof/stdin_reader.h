/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdin_reader.h: read the user's standard input for rank 0.
 *
 * It reads at most a window ahead of the agent. What rank 0 does not read stays
 * available to other processes with the descriptor.
 */
#ifndef XR_LAUNCHER_IOF_STDIN_READER_H
#define XR_LAUNCHER_IOF_STDIN_READER_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdint.h>

struct xr_reader;

/* on_data receives what was read. No bytes: the end; error is the reason that reading failed, or 0. */
rank_status_t xr_reader_open(struct event_base *base, int fd,
                             void (*on_data)(void *arg, const void *data, size_t len, int error), void *arg,
                             struct xr_reader **out);
void xr_reader_close(struct xr_reader *reader);

/* The agent has taken n bytes more. */
void xr_reader_credit(struct xr_reader *reader, uint32_t n);
/* xrun is back in the foreground: a terminal may be read again. Without this call it is noticed later. */
void xr_reader_wake(struct xr_reader *reader);

#endif
