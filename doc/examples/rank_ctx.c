/*
 * rank_ctx.c: open two contexts in one process and wait for their events together.
 *
 * Run: xrun -n 1 ./rank_ctx
 * Prints: two contexts, two descriptors
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK) {
        fprintf(stderr, "%s\n", rank_status_string(status));
        exit(1);
    }
}

int main(void)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    rank_ctx_t first, second;
    int fds[2];

    opts.name = "first";
    must(rank_ctx_open(&opts, &first));
    must(rank_ctx_open(NULL, &second));
    must(rank_ctx_progress_fd(first, &fds[0]));
    must(rank_ctx_progress_fd(second, &fds[1]));
    while (rank_ctx_progress_arm(first) != RANK_OK) /* before poll(2) */
        must(rank_ctx_progress(first));
    if (fds[0] != fds[1])
        printf("two contexts, two descriptors\n");
    must(rank_ctx_close(&first, 0));
    must(rank_ctx_close(&second, 0));
    return 0;
}
