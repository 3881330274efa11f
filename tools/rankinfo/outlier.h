/* SPDX-License-Identifier: BSD-3-Clause */
/* outlier.h: find rates that other processes have probably disturbed. */
#ifndef RK_TOOLS_RANKINFO_OUTLIER_H
#define RK_TOOLS_RANKINFO_OUTLIER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Expected rate number i of n: the median of itself and up to two neighbours on each side, so that two adjacent
 * outliers do not confirm each other. n is at least 1.
 */
uint32_t info_expected_rate(const uint32_t *rate, int n, int i);
/* Is the rate far from it: half or less, twice or more? */
bool info_is_outlier(const uint32_t *rate, int n, int i);
/* The rate that is closer to the expected one. */
uint32_t info_nearer_rate(uint32_t expected, uint32_t a, uint32_t b);

#endif
