/* SPDX-License-Identifier: BSD-3-Clause */
/* flag.c: hand a flag from core to core, bare, and with 8 bytes in its line. */
#include "bench/limits/limit_bench.h"

enum { SAMPLES = 201, TIMES = 2000 };

struct line {
    struct limit_flag to, from;
    int samples;
};

static void flag_answer(void *arg)
{
    struct line *l = arg;
    uint64_t turn = 0;

    for (int i = 0; i < 2 * l->samples * TIMES; i++) {
        limit_await(&l->to, ++turn);
        if (i >= l->samples * TIMES)
            limit_check(l->to.data == turn * 3);
        l->from.data = turn * 5;
        limit_set(&l->from, turn);
    }
}

int main(int argc, char **argv)
{
    struct line *l = limit_shared(sizeof(*l));
    uint64_t turn = 0;
    double v[SAMPLES], t;
    pid_t pid;

    l->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(flag_answer, l);
    for (int payload = 0; payload < 2; payload++) {
        for (int i = 0; i < l->samples; i++) {
            t = limit_ns();
            for (int k = 0; k < TIMES; k++) {
                if (payload)
                    l->to.data = (turn + 1) * 3;
                limit_set(&l->to, ++turn);
                limit_await(&l->from, turn);
                if (payload)
                    limit_check(l->from.data == turn * 5);
            }
            v[i] = (limit_ns() - t) / TIMES / 2;
        }
        limit_print(payload ? "flag_8B" : "flag", limit_median(v, l->samples), "ns",
                    payload ? "8 bytes and a flag in one line, one way"
                            : "a flag handed from core to core, one way");
    }
    limit_join(pid);
    return 0;
}
