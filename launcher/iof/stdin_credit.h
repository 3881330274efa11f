/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdin_credit.h: count how much standard input each host has taken.
 *
 * Each host reports what its slowest rank has received. The slowest host decides
 * how much more may be read. A host whose ranks read no more does not count.
 */
#ifndef XR_LAUNCHER_IOF_STDIN_CREDIT_H
#define XR_LAUNCHER_IOF_STDIN_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct xr_feed;

/* For n hosts; all read. NULL: out of memory. */
struct xr_feed *xr_feed_open(uint32_t n);
void xr_feed_close(struct xr_feed *feed);

/* Count bytes sent to all hosts. */
void xr_feed_sent(struct xr_feed *feed, uint32_t bytes);
/* A host has taken more bytes, or reads no more. Returns how many the slowest host has taken since the last call. */
uint32_t xr_feed_taken(struct xr_feed *feed, uint32_t host, uint32_t bytes);
uint32_t xr_feed_gone(struct xr_feed *feed, uint32_t host);
/* Return whether this host, or any host, still reads. */
bool xr_feed_reads(const struct xr_feed *feed, uint32_t host);
bool xr_feed_any(const struct xr_feed *feed);

#endif
