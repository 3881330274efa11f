/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_mapped.c: copy from a mapped buffer that another process has just written. */
#include "bench/limits/limit_bench.h"

enum { SAMPLES = 61 };

struct shared {
    struct limit_flag to, from;
    int samples;
    _Alignas(4096) char buf[LIMIT_MOST];
};

static void copy_mapped_writer(void *arg)
{
    struct shared *s = arg;
    uint64_t turn = 0;

    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            limit_await(&s->to, ++turn);
            limit_fill(s->buf, limit_size[k], turn);
            limit_set(&s->from, turn);
        }
    }
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    char *mine = aligned_alloc(4096, LIMIT_MOST);
    uint64_t turn = 0;
    double v[SAMPLES], t;
    pid_t pid;

    if (!mine)
        limit_die("memory");
    memset(mine, 1, LIMIT_MOST);
    s->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(copy_mapped_writer, s);
    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            limit_set(&s->to, ++turn);
            limit_await(&s->from, turn);
            t = limit_ns();
            memcpy(mine, s->buf, limit_size[k]);
            v[i] = limit_ns() - t;
            limit_check_filled(mine, limit_size[k], turn);
        }
        limit_print_copy("copy_mapped", limit_size[k], limit_median(v, s->samples),
                         "a mapped buffer that another process has just written, copied");
    }
    limit_join(pid);
    free(mine);
    return 0;
}
