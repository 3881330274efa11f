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

struct xr_stdin_credit;

/* For n hosts; all read. NULL: out of memory. */
struct xr_stdin_credit *xr_stdin_credit_open(uint32_t n);
void xr_stdin_credit_close(struct xr_stdin_credit *credit);

/* Count bytes sent to all hosts. */
void xr_stdin_credit_sent(struct xr_stdin_credit *credit, uint32_t bytes);
/* A host has taken more bytes, or reads no more. Returns how many the slowest host has taken since the last call. */
uint32_t xr_stdin_credit_taken(struct xr_stdin_credit *credit, uint32_t host, uint32_t bytes);
uint32_t xr_stdin_credit_end(struct xr_stdin_credit *credit, uint32_t host);
/* Return whether this host, or any host, still reads. */
bool xr_stdin_credit_reads(const struct xr_stdin_credit *credit, uint32_t host);
bool xr_stdin_credit_any(const struct xr_stdin_credit *credit);

#endif
