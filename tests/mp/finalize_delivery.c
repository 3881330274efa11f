/* SPDX-License-Identifier: BSD-3-Clause */
/* finalize_delivery.c: deliver messages of a sender that is in rank_finalize. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct mp mp;
    int peer;
    enum { N = 50, LARGE = 8, BYTES = 300000 };
    static char large[LARGE][BYTES];
    struct timespec pause = {0, 100000000};

    mp_start(&mp, &argc, argv);
    peer = mp.rank ^ 1;
    mp_case(&mp, "late receiver");
    if (peer < mp.size && (mp.rank & 1) == 0) {
        char out[2000];
        for (int i = 0; i < N; i++) {
            mp_fill(out, sizeof(out), (uint64_t)i);
            MP_OK(rank_send(out, i * 40, RANK_BYTE, peer, i, mp.world));
        }
        for (int i = 0; i < LARGE; i++) { /* without a wait for these: rank_finalize completes them */
            rank_request_t req;
            mp_fill(large[i], BYTES, (uint64_t)(100 + i));
            MP_OK(rank_isend(large[i], BYTES, RANK_BYTE, peer, 100 + i, mp.world, &req));
        }
    } else if (peer < mp.size) {
        char in[2000];
        nanosleep(&pause, NULL); /* the sender is in rank_finalize by now, most likely */
        for (int i = N - 1; i >= 0; i--) {
            MP_OK(rank_recv(in, sizeof(in), RANK_BYTE, peer, i, mp.world, NULL));
            MP_CHECK_EQ(mp_verify(in, (size_t)i * 40, (uint64_t)i), -1);
        }
        for (int i = LARGE - 1; i >= 0; i--) {
            MP_OK(rank_recv(large[i], BYTES, RANK_BYTE, peer, 100 + i, mp.world, NULL));
            MP_CHECK_EQ(mp_verify(large[i], BYTES, (uint64_t)(100 + i)), -1);
        }
    }
    /* Left to the library: teams, memory and a posted receive. */
    if (mp_flag(argc, argv, "--leave")) {
        rank_team_t t;
        rank_mem_t mem;
        rank_request_t req;
        static char never;
        void *p;
        MP_OK(rank_team_dup(mp.world, &t));
        MP_OK(rank_alloc(t, RANK_MEM_HOST, 100000, &p, &mem));
        MP_OK(rank_irecv(&never, 1, RANK_BYTE, peer < mp.size ? peer : mp.rank, 12345, mp.world,
                         &req));
    }
    mp_end(&mp);
    return 0;
}
