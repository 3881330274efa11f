/*
 * rank_probe.c: receive a message of unknown length.
 *
 * Run: xrun -n 2 ./rank_probe
 * Prints: 5 numbers, the last is 16
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

int main(void)
{
    must(rank_init(NULL));
    if (rank_team_rank(rank_world()) == 1) {
        int32_t squares[] = {0, 1, 4, 9, 16};
        must(rank_send(squares, 5, RANK_INT32, 0, 0, rank_world()));
    } else {
        rank_message_t message;
        rank_envelope_t envelope;
        must(rank_mprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, rank_world(), &message, &envelope));

        int64_t n = envelope.bytes / (int64_t)sizeof(int32_t);
        int32_t *numbers = malloc((size_t)envelope.bytes);
        if (!numbers)
            rank_abort(1, "out of memory");
        must(rank_mrecv(numbers, n, RANK_INT32, &message, NULL));
        printf("%d numbers, the last is %d\n", (int)n, (int)numbers[n - 1]);
        free(numbers);
    }
    must(rank_finalize());
    return 0;
}
