/*
 * feed.h: how far the hosts whose ranks read xrun's standard input have come.
 *
 * Each host tells what its slowest rank has been given, and the slowest host
 * decides how much more may be read. One whose ranks read no more does not
 * count.
 */
#ifndef RK_LAUNCHER_IOF_FEED_H
#define RK_LAUNCHER_IOF_FEED_H

#include <stdbool.h>
#include <stdint.h>

struct rk_feed;

/* Of n hosts; all read. NULL: no memory. */
struct rk_feed *rk_feed_open(uint32_t n);
void rk_feed_close(struct rk_feed *feed);

/* Bytes went out to all. */
void rk_feed_sent(struct rk_feed *feed, uint32_t bytes);
/* A host has taken so many more; it reads no more: how many the slowest has taken since this was last
 * asked. */
uint32_t rk_feed_taken(struct rk_feed *feed, uint32_t host, uint32_t bytes);
uint32_t rk_feed_gone(struct rk_feed *feed, uint32_t host);
/* Does this host, does any, read on? */
bool rk_feed_reads(const struct rk_feed *feed, uint32_t host);
bool rk_feed_any(const struct rk_feed *feed);

#endif
