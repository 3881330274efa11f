/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness_ctl.h: send the harness's own messages between the ranks.
 *
 * They are plain sends and receives to and from rank 0 with a tag of their own.
 * So a collective is not measured with its own help, and ranks without a part in a
 * benchmark can wait here. Every rank makes the same calls.
 */
#ifndef RK_BENCH_HARNESS_CTL_H
#define RK_BENCH_HARNESS_CTL_H

#include <stddef.h>
#include <stdint.h>

/* Rank 0's bytes come to every rank. */
void bench_ctl_bcast(void *buf, size_t bytes);
/* The sum over all ranks, at rank 0; elsewhere value. */
int64_t bench_ctl_sum(int64_t value);
/* The same number of bytes of every rank, one after another, in all of rank 0. */
void bench_ctl_gather(const void *mine, size_t bytes, void *all);
/* Element by element, the way of --average; v of rank 0 holds the result. */
void bench_ctl_combine(double *v, size_t n, int average);
/* No rank is through before every rank has come. */
void bench_ctl_meet(void);

#endif
