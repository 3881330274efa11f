/*
 * rank_progress.c: wait for a message in an event loop.
 *
 * Run: xrun -n 2 ./rank_progress
 * Prints: received 42
 */
#include <rank.h>

#include <stdio.h>
#include <poll.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

int main(void)
{
    int64_t value = 42;
    rank_request_t request;
    int done = 0, fd;

    must(rank_init(NULL));
    if (rank_team_rank(rank_world()) == 1) {
        must(rank_send(&value, 1, RANK_INT64, 0, 0, rank_world()));
    } else {
        value = 0;
        must(rank_progress_fd(&fd));
        must(rank_irecv(&value, 1, RANK_INT64, 1, 0, rank_world(), &request));
        while (!done) {
            rank_status_t status = rank_progress_arm();
            if (status == RANK_OK) {
                struct pollfd event = {.fd = fd, .events = POLLIN};
                poll(&event, 1, -1);
            } else if (status != RANK_ERR_AGAIN)
                must(status);
            must(rank_progress());
            must(rank_test(&request, &done, NULL));
        }
        printf("received %d\n", (int)value);
    }
    must(rank_finalize());
    return 0;
}
