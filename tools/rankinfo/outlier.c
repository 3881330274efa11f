/* SPDX-License-Identifier: BSD-3-Clause */
/* outlier.c: find disturbed rates. */
#include "tools/rankinfo/outlier.h"

uint32_t info_expected_rate(const uint32_t *rate, int n, int i)
{
    enum { EACH_SIDE = 2 };
    uint32_t near[2 * EACH_SIDE + 1];
    int k = 0;

    /* Insertion sort. At the ends there are fewer; of an even number the lower median counts. */
    for (int at = i < EACH_SIDE ? 0 : i - EACH_SIDE; at < n && at <= i + EACH_SIDE; at++) {
        int to = k++;

        for (; to > 0 && near[to - 1] > rate[at]; to--)
            near[to] = near[to - 1];
        near[to] = rate[at];
    }
    return near[(k - 1) / 2];
}

bool info_is_outlier(const uint32_t *rate, int n, int i)
{
    uint64_t expected = info_expected_rate(rate, n, i);

    return 2 * (uint64_t)rate[i] <= expected || rate[i] >= 2 * expected;
}

uint32_t info_nearer_rate(uint32_t expected, uint32_t a, uint32_t b)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;

    if (high <= expected)
        return (uint32_t)high;
    if (low >= expected)
        return (uint32_t)low;
    /* As ratios: half is as far as twice. */
    return low * high <= (uint64_t)expected * expected ? (uint32_t)high : (uint32_t)low;
}
