/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_allreduce.c: reduce device memory in the order of a CUDA stream.
 *
 *     xcc stream_allreduce.c gpu_stream.c -ldl -o stream_allreduce && xrun -n 2 ./stream_allreduce [floats] [steps]
 *
 * Each step copies numbers to the GPU, sums them over all ranks, and copies the sums back.
 * A program would compute both by kernels in the same stream.
 * The host puts all steps into the stream and waits once; then it does the same by hand, and waits twice in a step.
 */
#include "gpu_stream.h"

#include <rank.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct steps {
    int64_t floats, n;
    float *in, *out;       /* of all steps, in host memory */
    float *numbers, *sums; /* of one, in device memory */
    void *stream;
    rank_request_t allreduce; /* persistent: numbers to sums */
};

static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "stream_allreduce: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The GPU that suits this rank, or else the ranks take them in turn. */
static int nearest_gpu(int me)
{
    rank_device_t mine = RANK_DEVICE_INIT;

    if (!rank_device_query(&mine) && mine.ngpus > 0 && mine.gpu[0].ordinal >= 0 && mine.gpu[0].ordinal < gpu_count())
        return mine.gpu[0].ordinal;
    return me % gpu_count();
}

/* Small whole numbers: their sums are exact in any order. */
static float number(int64_t step, int64_t i, int rank)
{
    return (float)((step + i) % 16 + rank);
}

/* How many sums of all steps are wrong. */
static int64_t wrong_sums(const struct steps *s, int size)
{
    int64_t wrong = 0;

    for (int64_t step = 0; step < s->n; step++) {
        for (int64_t i = 0; i < s->floats; i++) {
            float sum = (float)size * number(step, i, 0) + (float)(size * (size - 1) / 2);
            wrong += s->out[step * s->floats + i] != sum;
        }
    }
    return wrong;
}

/* The host waits at the end only. */
static void in_order_of_stream(struct steps *s, rank_queue_t queue)
{
    size_t bytes = (size_t)s->floats * sizeof(float);

    for (int64_t step = 0; step < s->n; step++) {
        gpu_copy_in(s->numbers, s->in + step * s->floats, bytes, s->stream);
        must(rank_start_on(&s->allreduce, queue), "rank_start_on");
        gpu_copy_out(s->out + step * s->floats, s->sums, bytes, s->stream);
    }
    gpu_stream_wait(s->stream);
    must(rank_wait(&s->allreduce, NULL), "rank_wait"); /* the status of all of them */
}

/* The host waits for the numbers, and for their sums. */
static void by_hand(struct steps *s)
{
    size_t bytes = (size_t)s->floats * sizeof(float);

    for (int64_t step = 0; step < s->n; step++) {
        gpu_copy_in(s->numbers, s->in + step * s->floats, bytes, s->stream);
        gpu_stream_wait(s->stream);
        must(rank_start(&s->allreduce), "rank_start");
        must(rank_wait(&s->allreduce, NULL), "rank_wait");
        gpu_copy_out(s->out + step * s->floats, s->sums, bytes, s->stream);
    }
    gpu_stream_wait(s->stream);
}

/* Time a way to do all steps, by its second run. Returns how many sums are wrong. */
static int64_t measure(struct steps *s, rank_queue_t queue, double *us)
{
    int64_t mine, all;

    for (int run = 0; run < 2; run++) {
        memset(s->out, 0, (size_t)(s->floats * s->n) * sizeof(float));
        must(rank_barrier(rank_world()), "barrier");
        *us = seconds();
        if (queue != RANK_QUEUE_NULL)
            in_order_of_stream(s, queue);
        else
            by_hand(s);
        *us = (seconds() - *us) * 1e6 / (double)s->n;
    }
    mine = wrong_sums(s, rank_team_size(rank_world()));
    must(rank_allreduce(&mine, &all, 1, RANK_INT64, RANK_SUM, rank_world()), "allreduce");
    return all;
}

int main(int argc, char **argv)
{
    struct steps s = {.floats = argc > 1 ? atoll(argv[1]) : 4096, .n = argc > 2 ? atoll(argv[2]) : 100};
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    rank_queue_opts_t of_stream = RANK_QUEUE_OPTS_INIT;
    const char *problem = gpu_open(); /* before rank_init, which then finds the driver */
    double stream_us, hand_us;
    int64_t wrong;
    rank_queue_t queue;
    int me, size;
    char text[128];

    opts.thread_level = RANK_THREAD_MULTIPLE; /* a thread of the library runs what the stream starts */
    must(rank_init(&opts), "rank_init");
    me = rank_team_rank(rank_world());
    size = rank_team_size(rank_world());
    snprintf(text, sizeof(text), "stream_allreduce: %s", problem ? problem : "1 to 2^24 floats, 1 to 1000 steps");
    if (problem || s.floats < 1 || s.floats > 1 << 24 || s.n < 1 || s.n > 1000)
        rank_abort(problem ? 1 : 2, text);

    gpu_use(nearest_gpu(me));
    s.numbers = gpu_alloc((size_t)s.floats * sizeof(float));
    s.sums = gpu_alloc((size_t)s.floats * sizeof(float));
    s.in = gpu_host_alloc((size_t)(s.floats * s.n) * sizeof(float));
    s.out = gpu_host_alloc((size_t)(s.floats * s.n) * sizeof(float));
    for (int64_t i = 0; i < s.floats * s.n; i++)
        s.in[i] = number(i / s.floats, i % s.floats, me);
    s.stream = gpu_stream_create();
    must(rank_allreduce_init(s.numbers, s.sums, s.floats, RANK_F32, RANK_SUM, rank_world(), &s.allreduce), "rank_allreduce_init");
    of_stream.stream = s.stream;
    of_stream.depth = (int32_t)s.n;
    must(rank_queue_create(RANK_TEAM_NULL, &of_stream, &queue), "rank_queue_create");

    wrong = measure(&s, queue, &stream_us);
    wrong += measure(&s, RANK_QUEUE_NULL, &hand_us);
    if (me == 0)
        printf("%d ranks, %lld allreduces of %lld floats: %s\n"
               "  in the order of the stream  %.1f us a step\n"
               "  waiting by hand             %.1f us a step\n",
               size, (long long)s.n, (long long)s.floats, wrong ? "wrong" : "right", stream_us, hand_us);
    if (wrong)
        rank_abort(1, "stream_allreduce: sums are wrong");

    must(rank_queue_free(&queue), "rank_queue_free");
    must(rank_request_free(&s.allreduce), "rank_request_free");
    gpu_stream_destroy(s.stream);
    gpu_free(s.numbers);
    gpu_free(s.sums);
    gpu_host_free(s.in);
    gpu_host_free(s.out);
    must(rank_finalize(), "rank_finalize");
    gpu_close();
    return 0;
}
