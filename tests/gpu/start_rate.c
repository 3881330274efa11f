/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start_rate.c: measure an allreduce in a stream, against one by hand.
 *
 *   xrun -n 2 start_rate.mp [--starts N]
 *
 * Each round of a stream writes the input, reduces it and writes to the output. With rank_start_on the host only enqueues;
 * by hand it synchronizes with the stream, starts and waits. Rank 0 prints a record (gpu_record.h).
 */
#include "tests/gpu/gpu_record.h"

#include "lib/rank.h"
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

enum { BYTES = 8192, ROUNDS = 7 };

static const double start_limit = 1.3; /* of the time by hand */

struct lane {
    CUstream stream;
    CUdeviceptr in, out;
    rank_request_t req;
    rank_queue_t queue; /* RANK_QUEUE_NULL: by hand */
};

static double lane_seconds(const struct lane *l, int64_t starts)
{
    rank_request_t req = l->req;
    double start;

    mp_barrier(rank_world());
    start = gpu_seconds();
    for (int64_t i = 0; i < starts; i++) {
        GPU_MUST(MemsetD8Async, l->in, (unsigned char)i, BYTES, l->stream);
        if (l->queue) {
            MP_OK(rank_start_on(&req, l->queue));
        } else {
            GPU_MUST(StreamSynchronize, l->stream);
            MP_OK(rank_start(&req));
            MP_OK(rank_wait(&req, NULL));
        }
        GPU_MUST(MemsetD8Async, l->out, 0, 64, l->stream);
    }
    GPU_MUST(StreamSynchronize, l->stream);
    if (l->queue)
        MP_OK(rank_wait(&req, NULL));
    return (gpu_seconds() - start) / (double)starts;
}

int main(int argc, char **argv)
{
    rank_queue_opts_t opts = RANK_QUEUE_OPTS_INIT;
    struct lane lane = {.queue = RANK_QUEUE_NULL};
    double best[2] = {1e9, 1e9}, ratio;
    rank_queue_t queue;
    rank_status_t st;
    int64_t starts;
    struct mp mp;

    mp_start_level(&mp, &argc, argv, RANK_THREAD_MULTIPLE);
    starts = mp_option(argc, argv, "--starts", 200);
    gpu_probe = "rank_start_on, allreduce of 8 KiB";
    device_memory(mp.rank);
    GPU_MUST(StreamCreateWithPriority, &lane.stream, CU_STREAM_NON_BLOCKING, 0);
    GPU_MUST(MemAlloc, &lane.in, BYTES);
    GPU_MUST(MemAlloc, &lane.out, BYTES);
    MP_OK(rank_allreduce_init((const void *)(uintptr_t)lane.in, (void *)(uintptr_t)lane.out, BYTES / 4, RANK_F32, RANK_SUM, mp.world, &lane.req));
    opts.stream = lane.stream;
    st = rank_queue_create(RANK_TEAM_NULL, &opts, &queue);
    if (st == RANK_OK) {
        for (int i = 0; i < ROUNDS; i++) { /* in turn, so that both see the same phases of the machine */
            for (int way = 0; way < 2; way++) {
                double seconds;

                lane.queue = way ? queue : RANK_QUEUE_NULL;
                seconds = lane_seconds(&lane, starts);
                if (seconds < best[way])
                    best[way] = seconds;
            }
        }
        MP_OK(rank_queue_free(&queue));
    }
    ratio = best[1] / best[0];
    if (mp.rank == 0 && st == RANK_OK)
        printf("%s\t%s\t%.4g\tof the time by hand\t%.4g us, by hand %.4g us\t%g\n", gpu_probe, ratio <= start_limit ? "pass" : "fail", ratio,
               best[1] * 1e6, best[0] * 1e6, start_limit);
    else if (mp.rank == 0)
        record_text(gpu_probe, st == RANK_ERR_NOT_SUPPORTED ? "skip" : "fail", rank_status_string(st));
    MP_OK(rank_request_free(&lane.req));
    GPU_MUST(MemFree, lane.in);
    GPU_MUST(MemFree, lane.out);
    GPU_MUST(StreamDestroy, lane.stream);
    device_memory_end();
    mp_end(&mp);
    return 0;
}
