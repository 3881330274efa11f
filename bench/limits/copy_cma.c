/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_cma.c: read by CMA what another has just written: a buffer, a list. */
#include "bench/limits/limit_bench.h"

#include <sys/uio.h>

enum { SAMPLES = 61, BLOCKS = 256, BLOCK = 1024, APART = 2 * BLOCK, STEP = 37 /* prime to BLOCKS */ };

struct shared {
    struct limit_flag to, from;
    char *theirs; /* in the writer */
    int samples;
};

static void copy_cma_writer(void *arg)
{
    struct shared *s = arg;
    uint64_t turn = 0;

    s->theirs = aligned_alloc(4096, LIMIT_MOST);
    if (!s->theirs)
        limit_die("memory");
    memset(s->theirs, 1, LIMIT_MOST);
    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            limit_await(&s->to, ++turn);
            limit_fill(s->theirs, limit_size[k], turn);
            limit_set(&s->from, turn);
        }
    }
    for (int i = 0; i < s->samples; i++) {
        limit_await(&s->to, ++turn);
        limit_fill(s->theirs, BLOCKS * APART, turn);
        limit_set(&s->from, turn);
    }
    limit_await(&s->to, ++turn); /* until all is read */
    free(s->theirs);
}

/* Blocks of the list lie together here, and scattered there. Returns ns. */
static double read_list(pid_t pid, char *mine, char *theirs, uint64_t turn)
{
    struct iovec to[BLOCKS], from[BLOCKS];
    const uint64_t *p = (const uint64_t *)(void *)mine;
    double t;

    for (size_t i = 0; i < BLOCKS; i++) {
        to[i] = (struct iovec){mine + i * BLOCK, BLOCK};
        from[i] = (struct iovec){theirs + i * STEP % BLOCKS * APART, BLOCK};
    }
    t = limit_ns();
    if (process_vm_readv(pid, to, BLOCKS, from, BLOCKS, 0) != BLOCKS * BLOCK)
        limit_die("process_vm_readv");
    t = limit_ns() - t;
    for (size_t i = 0; i < BLOCKS * BLOCK / 8; i++)
        limit_check(p[i] == (turn << 32) + i / (BLOCK / 8) * STEP % BLOCKS * (APART / 8) + i % (BLOCK / 8));
    return t;
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
    pid = limit_fork(copy_cma_writer, s);
    for (int k = 0; k < LIMIT_SIZES; k++) {
        for (int i = 0; i < s->samples; i++) {
            struct iovec to = {mine, limit_size[k]}, from = {NULL, limit_size[k]};
            limit_set(&s->to, ++turn);
            limit_await(&s->from, turn);
            from.iov_base = s->theirs;
            t = limit_ns();
            if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)limit_size[k])
                limit_die("process_vm_readv");
            v[i] = limit_ns() - t;
            limit_check_filled(mine, limit_size[k], turn);
        }
        limit_print_copy("copy_cma", limit_size[k], limit_median(v, s->samples),
                         "a private buffer that another process has just written, by process_vm_readv");
    }
    for (int i = 0; i < s->samples; i++) {
        limit_set(&s->to, ++turn);
        limit_await(&s->from, turn);
        v[i] = read_list(pid, mine, s->theirs, turn);
    }
    limit_print("copy_cma_256x1K", limit_median(v, s->samples) / 1e3, "us", "256 scattered blocks of 1 KiB of it in a call, 2 KiB apart");
    limit_set(&s->to, ++turn);
    limit_join(pid);
    free(mine);
    return 0;
}
