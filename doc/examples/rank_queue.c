/*
 * rank_queue.c: sum after each step of a CUDA stream, without waiting on the host.
 *
 * This program has no stream of its own; one that has passes it as main passes NULL here.
 *
 * Run: xrun -n 2 ./rank_queue
 * Prints: rank 0: not supported by this build or on this machine
 * Prints: rank 1: not supported by this build or on this machine
 */
#include <rank.h>

#include <stdio.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

/* sum: n values in device or host memory, which each step's kernels write and the next step's read. */
static rank_status_t run_steps(void *stream, float *sum, int64_t n, int steps)
{
    rank_queue_opts_t opts = RANK_QUEUE_OPTS_INIT;
    rank_queue_t queue;
    rank_request_t request;

    opts.stream = stream;
    rank_status_t status = rank_queue_create(RANK_TEAM_NULL, &opts, &queue);
    if (status != RANK_OK)
        return status;
    must(rank_allreduce_init(sum, sum, n, RANK_F32, RANK_SUM, rank_world(), &request));
    for (int step = 0; step < steps; step++) {
        /* Here the program launches the kernels of a step on the stream. */
        must(rank_start_on(&request, queue));
    }
    status = rank_wait(&request, NULL);
    must(rank_request_free(&request));
    must(rank_queue_free(&queue));
    return status;
}

int main(void)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    float sum[4] = {1, 2, 3, 4};

    opts.thread_level = RANK_THREAD_MULTIPLE;
    must(rank_init(&opts));
    printf("rank %d: %s\n", rank_team_rank(rank_world()), rank_status_string(run_steps(NULL, sum, 4, 10)));
    must(rank_finalize());
    return 0;
}
