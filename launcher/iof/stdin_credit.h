/*
 * stdin_credit.h: how far the hosts whose ranks read xrun's standard input have come.
 *
 * Each host tells what its slowest rank has been given, and the slowest host
 * decides how much more may be read. One whose ranks read no more does not
 * count.
 */
#ifndef XR_LAUNCHER_IOF_STDIN_CREDIT_H
#define XR_LAUNCHER_IOF_STDIN_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct xr_feed;

/* Of n hosts; all read. NULL: no memory. */
struct xr_feed *xr_feed_open(uint32_t n);
void xr_feed_close(struct xr_feed *feed);

/* Bytes went out to all. */
void xr_feed_sent(struct xr_feed *feed, uint32_t bytes);
/* A host has taken so many more; it reads no more: how many the slowest has taken since this was last
 * asked. */
uint32_t xr_feed_taken(struct xr_feed *feed, uint32_t host, uint32_t bytes);
uint32_t xr_feed_gone(struct xr_feed *feed, uint32_t host);
/* Does this host, does any, read on? */
bool xr_feed_reads(const struct xr_feed *feed, uint32_t host);
bool xr_feed_any(const struct xr_feed *feed);

#endif
