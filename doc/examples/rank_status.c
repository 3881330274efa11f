/*
 * rank_status.c: print the text of an error.
 *
 * Run: xrun -n 1 ./rank_status
 * Prints: rank_send: tag out of range
 */
#include <rank.h>

#include <stdio.h>

int main(void)
{
    int64_t value = 42;

    if (rank_init(NULL) != RANK_OK)
        return 1;

    rank_status_t status = rank_send(&value, 1, RANK_INT64, 0, -5, rank_world());
    if (status != RANK_OK)
        printf("rank_send: %s\n", rank_status_string(status));
    return rank_finalize() == RANK_OK ? 0 : 1;
}
