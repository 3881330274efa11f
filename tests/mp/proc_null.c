/* SPDX-License-Identifier: BSD-3-Clause */
/* proc_null.c: communicate with RANK_PROC_NULL, by every call. */
#include "tests/mp/mp.h"

#include <string.h>

enum { CELLS = 1000, STEPS = 30 };

static void is_null(const rank_envelope_t *e)
{
    MP_CHECK_EQ(e->source, RANK_PROC_NULL);
    MP_CHECK_EQ(e->tag, RANK_ANY_TAG);
    MP_CHECK(e->count == 0 && e->bytes == 0 && e->sent_bytes == 0 && e->status == RANK_OK);
}

static void fill_envelope(rank_envelope_t *e)
{
    memset(e, 0x55, sizeof(*e));
}

/* A rod of size * CELLS cells; its two ends keep the value of the halo, 0. */
static void grid(const struct mp *mp)
{
    int me = mp->rank, left = me > 0 ? me - 1 : RANK_PROC_NULL, right = me < mp->size - 1 ? me + 1 : RANK_PROC_NULL;
    int64_t u[CELLS + 2], next[CELLS], sum, all;
    rank_team_t w = mp->world;

    memset(u, 0, sizeof(u));
    for (int i = 1; i <= CELLS; i++)
        u[i] = 1 << 30;
    for (int step = 0; step < STEPS; step++) {
        rank_request_t req[4];
        if (step % 2) {
            MP_OK(rank_sendrecv(&u[1], 1, RANK_INT64, left, 1, &u[CELLS + 1], 1, RANK_INT64, right, 1, w, NULL));
            MP_OK(rank_sendrecv(&u[CELLS], 1, RANK_INT64, right, 2, &u[0], 1, RANK_INT64, left, 2, w, NULL));
        } else {
            MP_OK(rank_irecv(&u[CELLS + 1], 1, RANK_INT64, right, 1, w, &req[0]));
            MP_OK(rank_irecv(&u[0], 1, RANK_INT64, left, 2, w, &req[1]));
            MP_OK(rank_isend(&u[1], 1, RANK_INT64, left, 1, w, &req[2]));
            MP_OK(rank_isend(&u[CELLS], 1, RANK_INT64, right, 2, w, &req[3]));
            MP_OK(rank_waitall(4, req, NULL));
        }
        for (int i = 1; i <= CELLS; i++)
            next[i - 1] = (u[i - 1] + 2 * u[i] + u[i + 1]) / 4;
        memcpy(&u[1], next, sizeof(next));
    }
    MP_CHECK(left != RANK_PROC_NULL || (u[0] == 0 && u[1] < u[2]));
    MP_CHECK(right != RANK_PROC_NULL || (u[CELLS + 1] == 0 && u[CELLS] < u[CELLS - 1]));
    for (int i = STEPS + 1; i < CELLS - STEPS; i++)
        MP_CHECK_EQ(u[i], 1 << 30);
    /* Only the two ends of the rod lose heat. */
    sum = 0;
    for (int i = 1; i <= CELLS; i++)
        sum += u[i];
    MP_OK(rank_allreduce(&sum, &all, 1, RANK_INT64, RANK_SUM, w));
    MP_CHECK(all < mp->size * (int64_t)CELLS << 30 && all > (mp->size * (int64_t)CELLS - 2 * STEPS) << 30);
    /* The rank that a shift without such a value leads to does not exist. */
    if (me == 0) {
        MP_STATUS(rank_recv(&u[0], 1, RANK_INT64, me - 1, 0, w, NULL), RANK_ERR_RANK);
        MP_STATUS(rank_sendrecv(&u[1], 1, RANK_INT64, 0, 1, &u[0], 1, RANK_INT64, me - 1, 1, w, NULL), RANK_ERR_RANK);
    }
}

static void messages(const struct mp *mp)
{
    const int null = RANK_PROC_NULL;
    rank_iov_t iov[2] = {{.base = NULL}, {.base = NULL}};
    rank_team_t w = mp->world;
    rank_envelope_t e;
    rank_request_t req[6];
    int32_t v = 7;

    iov[0] = iov[1] = (rank_iov_t){.base = &v, .bytes = 4};
    MP_OK(rank_send(&v, 1, RANK_INT32, null, 0, w));
    MP_OK(rank_ssend(&v, 1, RANK_INT32, null, 0, w));
    MP_OK(rank_sendv(iov, 2, null, 0, w));
    fill_envelope(&e);
    MP_OK(rank_recv(&v, 1, RANK_INT32, null, 0, w, &e));
    is_null(&e);
    MP_OK(rank_recv(&v, 1, RANK_INT32, null, RANK_ANY_TAG, w, NULL));
    fill_envelope(&e);
    MP_OK(rank_recvv(iov, 1, null, 5, w, &e));
    is_null(&e);
    fill_envelope(&e);
    MP_OK(rank_sendrecv(&v, 1, RANK_INT32, null, 0, &v, 0, RANK_INT32, null, 0, w, &e));
    is_null(&e);

    MP_OK(rank_isend(&v, 1, RANK_INT32, null, 0, w, &req[0]));
    MP_OK(rank_issend(&v, 1, RANK_INT32, null, 0, w, &req[1]));
    MP_OK(rank_isendv(iov, 2, null, 0, w, &req[2]));
    MP_OK(rank_waitall(3, req, NULL));
    for (int way = 0; way < 3; way++) {
        int done = 0;
        if (way < 2)
            MP_OK(rank_irecv(&v, 1, RANK_INT32, null, 0, w, &req[0]));
        else
            MP_OK(rank_irecvv(iov, 1, null, RANK_ANY_TAG, w, &req[0]));
        MP_OK(rank_cancel(&req[0]));
        fill_envelope(&e);
        if (way)
            MP_OK(rank_wait(&req[0], &e));
        else
            MP_OK(rank_test(&req[0], &done, &e));
        MP_CHECK(way || done);
        is_null(&e);
        MP_CHECK(req[0] == RANK_REQUEST_NULL);
    }

    MP_OK(rank_send_init(&v, 1, RANK_INT32, null, 0, w, &req[0]));
    MP_OK(rank_ssend_init(&v, 1, RANK_INT32, null, 0, w, &req[1]));
    MP_OK(rank_recv_init(&v, 1, RANK_INT32, null, RANK_ANY_TAG, w, &req[2]));
    for (int i = 0; i < 3; i++) {
        rank_envelope_t of[3];
        MP_OK(rank_startall(3, req));
        fill_envelope(&of[2]);
        MP_OK(rank_waitall(3, req, of));
        is_null(&of[2]);
    }
    for (int i = 0; i < 3; i++)
        MP_OK(rank_request_free(&req[i]));

    /* What is wrong besides stays an error. */
    MP_STATUS(rank_send(&v, -1, RANK_INT32, null, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_send(&v, 1, RANK_INT32, null, -1, w), RANK_ERR_TAG);
    MP_STATUS(rank_send(&v, 1, RANK_INT32, null, RANK_ANY_TAG, w), RANK_ERR_TAG);
    MP_STATUS(rank_irecv(&v, 1, RANK_INT32, null, 0, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_bcast(&v, 1, RANK_INT32, null, w), RANK_ERR_RANK);
    MP_CHECK_EQ(v, 7);
}

static void probes(const struct mp *mp)
{
    rank_team_t w = mp->world;
    rank_message_t message = RANK_MESSAGE_NULL;
    rank_request_t req;
    rank_envelope_t e;
    int32_t v = 7;
    int found = 0;

    fill_envelope(&e);
    MP_OK(rank_probe(RANK_PROC_NULL, 0, w, &e));
    is_null(&e);
    fill_envelope(&e);
    MP_OK(rank_iprobe(RANK_PROC_NULL, RANK_ANY_TAG, w, &found, &e));
    MP_CHECK_EQ(found, 1);
    is_null(&e);
    for (int i = 0; i < 4; i++) {
        found = 0;
        fill_envelope(&e);
        if (i % 2)
            MP_OK(rank_mprobe(RANK_PROC_NULL, 3, w, &message, &e));
        else
            MP_OK(rank_improbe(RANK_PROC_NULL, 3, w, &found, &message, &e));
        MP_CHECK_EQ(found, 1 - i % 2);
        is_null(&e);
        MP_CHECK(message != RANK_MESSAGE_NULL);
        fill_envelope(&e);
        if (i < 2) {
            MP_OK(rank_mrecv(&v, 1, RANK_INT32, &message, &e));
        } else {
            MP_OK(rank_imrecv(&v, 1, RANK_INT32, &message, &req));
            MP_OK(rank_wait(&req, &e));
        }
        is_null(&e);
        MP_CHECK(message == RANK_MESSAGE_NULL);
    }
    MP_CHECK_EQ(v, 7);
}

static void one_sided(const struct mp *mp)
{
    const int null = RANK_PROC_NULL;
    uint64_t v = 7, result = 9, seen = 9;
    rank_request_t req;
    rank_mem_t mem;
    void *mine, *at = &v;
    rank_piece_t piece = {.local = &v, .bytes = 8, .offset = 0};

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, &mine, &mem));
    MP_OK(rank_put(&v, 8, null, mem, 0));
    MP_OK(rank_get(&v, 8, null, mem, 0));
    MP_OK(rank_iput(&v, 8, null, mem, 0, &req));
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_iget(&v, 8, null, mem, 0, &req));
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_putv(&piece, 1, null, mem));
    MP_OK(rank_getv(&piece, 1, null, mem));
    MP_OK(rank_put_strided(&v, 8, 8, 1, null, mem, 0, 8));
    MP_OK(rank_get_strided(&v, 8, 8, 1, null, mem, 0, 8));
    MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &v, null, mem, 0, NULL));
    MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &v, null, mem, 0, &result));
    MP_OK(rank_atomic_cas(RANK_INT64, &v, &v, null, mem, 0, &result));
    MP_OK(rank_put_signal(&v, 8, null, mem, 0, mem, 8, 1, RANK_SIGNAL_ADD));
    MP_OK(rank_signal_wait(mem, 8, RANK_CMP_GE, 1, null, &seen));
    MP_OK(rank_flush(mem, null));
    MP_OK(rank_flush_local(mem, null));
    MP_OK(rank_ptr(mem, null, &at));
    MP_CHECK(v == 7 && result == 9 && seen == 9 && at == NULL);
    MP_STATUS(rank_put(&v, 8, -1, mem, 0), RANK_ERR_RANK);
    MP_STATUS(rank_flush(mem, -1), RANK_ERR_RANK);
    MP_OK(rank_barrier(mp->world));
    for (int i = 0; i < 64; i++)
        MP_CHECK_EQ(((const char *)mine)[i], 0);
    MP_OK(rank_free(&mem));
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "grid");
    grid(&mp);
    mp_case(&mp, "messages");
    messages(&mp);
    mp_case(&mp, "probes");
    probes(&mp);
    mp_case(&mp, "one-sided");
    one_sided(&mp);
    mp_end(&mp);
    return 0;
}
