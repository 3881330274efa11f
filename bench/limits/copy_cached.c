/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_cached.c: copy a buffer that this core has copied before. */
#include "bench/limits/limit_bench.h"

enum { SAMPLES = 61 };

int main(int argc, char **argv)
{
    char *from = aligned_alloc(4096, LIMIT_MOST), *to = aligned_alloc(4096, LIMIT_MOST);
    int samples = limit_quick(argc, argv) ? 3 : SAMPLES, times;
    double v[SAMPLES], t;

    if (!from || !to)
        limit_die("memory");
    limit_pin(0);
    memset(to, 1, LIMIT_MOST);
    for (int k = 0; k < LIMIT_SIZES; k++) {
        times = (int)(LIMIT_MOST / limit_size[k]);
        limit_fill(from, limit_size[k], (uint64_t)k + 1);
        for (int i = 0; i < samples; i++) {
            t = limit_ns();
            for (int n = 0; n < times; n++) {
                memcpy(to, from, limit_size[k]);
                __asm__ volatile("" : : "r"(to) : "memory"); /* every one of them */
            }
            v[i] = (limit_ns() - t) / times;
        }
        limit_check_filled(to, limit_size[k], (uint64_t)k + 1);
        limit_print_copy("copy_cached", limit_size[k], limit_median(v, samples),
                         "a buffer that this core has copied before");
    }
    free(from);
    free(to);
    return 0;
}
