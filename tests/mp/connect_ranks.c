/* SPDX-License-Identifier: BSD-3-Clause */
/* connect_ranks.c: connect ranks of a job by rank_connect, beside their world. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 7, BYTES = 100000, WAIT_NS = 2000000000 };

/* Messages, a key and a put over the connection; every rank of a job has keys that differ in their ranks only. */
static void use(struct mp *mp, rank_team_t conn, int there)
{
    int other = 1 - rank_team_rank(conn);
    char *mine = mp_alloc(BYTES), *data = mp_alloc(BYTES), key[RANK_RKEY_MAX] = {0}, theirs[RANK_RKEY_MAX];
    rank_mem_t mem, remote;
    size_t len = sizeof(key);
    int32_t to = mp->rank, from = -1;

    MP_OK(rank_sendrecv(&to, 1, RANK_INT32, other, TAG, &from, 1, RANK_INT32, other, TAG, conn, NULL));
    MP_CHECK_EQ(from, there);
    MP_OK(rank_ctx_reg(RANK_CTX_NULL, mine, BYTES, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &mem));
    MP_OK(rank_rkey_pack(mem, key, &len));
    MP_OK(rank_sendrecv(key, sizeof(key), RANK_BYTE, other, TAG, theirs, sizeof(theirs), RANK_BYTE, other, TAG, conn, NULL));
    MP_STATUS(rank_rkey_open(conn, other, key, len, &remote), RANK_ERR_HANDLE); /* its own key is none of the peer */
    MP_OK(rank_rkey_open(conn, other, theirs, len, &remote));
    mp_fill(data, BYTES, (uint64_t)mp->rank);
    MP_OK(rank_put(data, BYTES, other, remote, 0));
    MP_OK(rank_flush(remote, other));
    MP_OK(rank_barrier(conn));
    MP_CHECK_EQ(mp_verify(mine, BYTES, (uint64_t)there), -1);
    MP_OK(rank_barrier(conn));
    MP_OK(rank_rkey_close(&remote));
    MP_OK(rank_dereg(&mem));
    free(mine);
    free(data);
}

int main(int argc, char **argv)
{
    rank_listener_t listener = RANK_LISTENER_NULL;
    char address[128] = "";
    size_t len = sizeof(address);
    rank_team_t *conn;
    struct mp mp;
    int n;

    mp_start(&mp, &argc, argv);
    conn = calloc((size_t)mp.size, sizeof(*conn));
    mp_case(&mp, "rank 0 accepts all others");
    if (mp.rank == 0) {
        MP_OK(rank_listen(RANK_CTX_NULL, "127.0.0.1:0", NULL, &listener));
        MP_OK(rank_listener_address(listener, address, &len));
    }
    MP_OK(rank_bcast(address, sizeof(address), RANK_BYTE, 0, mp.world));
    for (n = 0; mp.rank == 0 && n < mp.size - 1; n++)
        MP_OK(rank_accept(listener, -1, &conn[n]));
    if (mp.rank > 0)
        MP_OK(rank_connect(RANK_CTX_NULL, address, NULL, &conn[n++]));
    for (int i = 0; i < n; i++) {
        int32_t there = 0;
        if (mp.rank == 0) {
            MP_OK(rank_recv(&there, 1, RANK_INT32, 0, TAG + 1, conn[i], NULL));
            use(&mp, conn[i], there);
        } else {
            MP_OK(rank_send(&mp.rank, 1, RANK_INT32, 1, TAG + 1, conn[i]));
            use(&mp, conn[i], 0);
        }
    }
    mp_barrier(mp.world);
    if (mp.rank == 1)
        MP_OK(rank_disconnect(&conn[0], WAIT_NS)); /* the others leave theirs to rank_finalize */
    mp_barrier(mp.world);
    free(conn);
    mp_end(&mp);
    return 0;
}
