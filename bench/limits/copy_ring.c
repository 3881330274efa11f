/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_ring.c: copy twice, through a ring of fifo slots between two processes.
 * One copies from its buffer, just written, into the ring while the other copies out of it.
 */
#include "bench/limits/limit_bench.h"

enum { SAMPLES = 61, BOXES = 8, BOX = 16 << 10 };

struct shared {
    struct limit_flag start, ready, full, empty; /* the last two count boxes */
    int samples;
    _Alignas(4096) char box[BOXES][BOX];
};

static void copy_ring_writer(void *arg)
{
    struct shared *s = arg;
    char *from = aligned_alloc(4096, LIMIT_MOST);
    uint64_t turn = 0, sent = 0;

    if (!from)
        limit_die("memory");
    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            limit_fill(from, limit_size[k], ++turn);
            limit_set(&s->ready, turn);
            limit_await(&s->start, turn);
            for (size_t at = 0; at < limit_size[k]; at += BOX, sent++) {
                size_t n = limit_size[k] - at < BOX ? limit_size[k] - at : BOX;
                if (sent >= BOXES)
                    limit_at_least(&s->empty, sent - BOXES + 1);
                memcpy(s->box[sent % BOXES], from + at, n);
                limit_set(&s->full, sent + 1);
            }
        }
    }
    free(from);
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    char *mine = aligned_alloc(4096, LIMIT_MOST);
    uint64_t turn = 0, got = 0;
    double v[SAMPLES], t;
    pid_t pid;

    if (!mine)
        limit_die("memory");
    memset(mine, 1, LIMIT_MOST);
    s->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(copy_ring_writer, s);
    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            limit_await(&s->ready, ++turn);
            t = limit_ns();
            limit_set(&s->start, turn);
            for (size_t at = 0; at < limit_size[k]; at += BOX) {
                size_t n = limit_size[k] - at < BOX ? limit_size[k] - at : BOX;
                limit_at_least(&s->full, got + 1);
                memcpy(mine + at, s->box[got % BOXES], n);
                limit_set(&s->empty, ++got);
            }
            v[i] = limit_ns() - t;
            limit_check_filled(mine, limit_size[k], turn);
        }
        limit_print_copy("copy_ring", limit_size[k], limit_median(v, s->samples),
                         "a private buffer, just written, through a ring of 8 boxes of 16 KiB");
    }
    limit_join(pid);
    free(mine);
    return 0;
}
