/*
 * stdin_reader.h: the user's standard input, on its way to rank 0.
 *
 * Reads no further ahead than the agent has room for, so that what rank 0 does
 * not want stays with whoever shares the descriptor, but for one window.
 */
#ifndef XR_LAUNCHER_IOF_STDIN_READER_H
#define XR_LAUNCHER_IOF_STDIN_READER_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdint.h>

struct xr_reader;

/* on_data gets what was read; no bytes: the end, and error says why it could not be read on, or is 0. */
rank_status_t xr_reader_open(struct event_base *base, int fd,
                             void (*on_data)(void *arg, const void *data, size_t len, int error), void *arg,
                             struct xr_reader **out);
void xr_reader_close(struct xr_reader *reader);

/* The agent has taken n bytes more. */
void xr_reader_credit(struct xr_reader *reader, uint32_t n);
/* Back in the foreground: a terminal may be read again. It is noticed without this, but later. */
void xr_reader_wake(struct xr_reader *reader);

#endif
