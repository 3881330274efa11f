/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_stream.c: send messages of 16 MiB from rank 0 to rank 1.
 *
 *   ucx_stream COUNT
 *
 * Rank 0 prints "going" when the third has gone. An error ends it: each rank prints the error and the number of messages
 * before it; its exit code is 3. What comes is compared.
 */
#include "lib/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((int64_t)16 << 20)

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0, n;
    unsigned char *data = malloc(BYTES);
    rank_status_t st = RANK_OK;
    rank_team_t world;
    int me;

    if (!data || rank_init(NULL) != RANK_OK)
        return 1;
    world = rank_world();
    me = rank_team_rank(world);
    for (n = 0; n < count && st == RANK_OK; n++) {
        if (me == 0) {
            memset(data, (int)n + 1, BYTES);
            st = rank_send(data, BYTES, RANK_BYTE, 1, 1, world);
        } else {
            memset(data, 0, BYTES);
            st = rank_recv(data, BYTES, RANK_BYTE, 0, 1, world, NULL);
            for (int64_t i = 0; st == RANK_OK && i < BYTES; i += 509) {
                if (data[i] != (unsigned char)(n + 1)) {
                    printf("rank 1: message %ld is wrong at %lld\n", n, (long long)i);
                    return 1;
                }
            }
        }
        if (me == 0 && n == 2) {
            printf("going\n");
            fflush(stdout);
        }
    }
    free(data);
    if (st != RANK_OK) {
        printf("rank %d: %s, message %ld\n", me, rank_status_string(st), n);
        fflush(stdout);
        return 3;
    }
    rank_finalize();
    printf("rank %d: all passed\n", me);
    return 0;
}
