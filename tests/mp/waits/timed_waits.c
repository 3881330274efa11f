/* SPDX-License-Identifier: BSD-3-Clause */
/* timed_waits.c: wait with a timeout for requests, messages, signals. --level N. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { DATA = 100, NEVER = 200, GO = 22, STOP = 23, N = 6 };
enum { MS = 1000 * 1000, LONG_S = 20 };

/* A call that times out takes its time, and no more than a loaded machine makes of it. */
#define TIMES_OUT(call, timeout_ns)                                                                                    \
    do {                                                                                                               \
        double begun_ = mp_now(), took_;                                                                               \
        MP_STATUS(call, RANK_ERR_TIMED_OUT);                                                                           \
        took_ = mp_now() - begun_;                                                                                     \
        MP_CHECK(took_ > 1e-9 * (double)(timeout_ns) - 1e-6 && took_ < LONG_S);                                              \
    } while (0)

/* Nothing comes: each call ends alone. Afterwards all that it waited for works. */
static void nothing_comes(struct mp *mp)
{
    static const int64_t timeouts[] = {0, 1, 50 * 1000, 3 * MS, 150 * MS};
    int from = (mp->rank + 1) % mp->size, to = (mp->rank + mp->size - 1) % mp->size;
    rank_request_t req[3] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL, RANK_REQUEST_NULL};
    rank_envelope_t env[3];
    rank_message_t message;
    int32_t in[2] = {-1, -1}, out[2] = {7, 8};
    int64_t ndone, at[3];
    rank_mem_t mem;
    uint64_t seen = 5;
    void *word;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, sizeof(uint64_t), &word, &mem));
    MP_OK(rank_irecv(&in[0], 1, RANK_INT32, from, DATA, mp->world, &req[0]));
    MP_OK(rank_irecv(&in[1], 1, RANK_INT32, from, NEVER, mp->world, &req[2]));
    mp_barrier(mp->world);
    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        int64_t t = timeouts[i];

        TIMES_OUT(rank_wait_timed(&req[0], t, env), t);
        TIMES_OUT(rank_waitall_timed(3, req, t, env), t);
        ndone = 9;
        TIMES_OUT(rank_waitsome_timed(3, req, t, &ndone, at, env), t);
        MP_CHECK_EQ(ndone, 0);
        TIMES_OUT(rank_mprobe_timed(from, GO, mp->world, t, &message, env), t);
        TIMES_OUT(rank_signal_wait_timed(mem, 0, RANK_CMP_EQ, 1, from, t, &seen), t);
        MP_CHECK(seen == 5 && req[0] != RANK_REQUEST_NULL && req[2] != RANK_REQUEST_NULL);
    }
    mp_barrier(mp->world);
    MP_OK(rank_send(&out[0], 1, RANK_INT32, to, DATA, mp->world));
    MP_OK(rank_waitsome_timed(3, req, -1, &ndone, at, env));
    MP_CHECK(ndone == 1 && at[0] == 0 && in[0] == 7 && req[0] == RANK_REQUEST_NULL);
    TIMES_OUT(rank_waitall_timed(3, req, MS, env), MS);
    mp_barrier(mp->world);
    MP_OK(rank_send(&out[1], 1, RANK_INT32, to, NEVER, mp->world));
    MP_OK(rank_waitall_timed(3, req, INT64_MAX, env));
    MP_CHECK(in[1] == 8 && env[2].tag == NEVER && env[0].source == RANK_UNDEFINED);
    MP_OK(rank_wait_timed(&req[0], 0, NULL));
    MP_OK(rank_send(NULL, 0, RANK_BYTE, to, GO, mp->world));
    MP_OK(rank_mprobe_timed(from, GO, mp->world, (int64_t)LONG_S * 1000 * MS, &message, env));
    MP_OK(rank_mrecv(NULL, 0, RANK_BYTE, &message, NULL));
    MP_OK(rank_put_signal(NULL, 0, to, mem, 0, mem, 0, 1, RANK_SIGNAL_SET));
    MP_OK(rank_signal_wait_timed(mem, 0, RANK_CMP_EQ, 1, from, -1, &seen));
    MP_CHECK_EQ(seen, 1);
    MP_OK(rank_free(&mem));
}

/* What others receive all the while does not keep a wait from its end. */
static void while_busy(struct mp *mp)
{
    int peer = mp->rank ^ 1, stopped = 0;
    rank_request_t never = RANK_REQUEST_NULL;
    char byte, other;

    if (peer >= mp->size)
        return;
    if (mp->rank & 1) { /* flood until the other has had enough */
        while (!stopped) {
            MP_OK(rank_send("x", 1, RANK_BYTE, peer, DATA, mp->world));
            MP_OK(rank_iprobe(peer, STOP, mp->world, &stopped, NULL));
        }
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, peer, STOP, mp->world, NULL));
        MP_OK(rank_send(NULL, 0, RANK_BYTE, peer, GO, mp->world));
        return;
    }
    MP_OK(rank_irecv(&byte, 1, RANK_BYTE, peer, NEVER, mp->world, &never));
    for (int i = 0; i < 5; i++)
        TIMES_OUT(rank_wait_timed(&never, 5 * MS, NULL), 5 * MS);
    MP_OK(rank_send(NULL, 0, RANK_BYTE, peer, STOP, mp->world));
    for (;;) {
        rank_envelope_t env;
        MP_OK(rank_recv(&other, 1, RANK_BYTE, peer, RANK_ANY_TAG, mp->world, &env));
        if (env.tag == GO)
            break;
    }
    MP_OK(rank_cancel(&never));
    MP_STATUS(rank_wait_timed(&never, -1, NULL), RANK_ERR_CANCELED);
}

/* Messages of any size come at any time, into receives that wait again and again. */
static void any_time(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
    uint64_t random = mp->seed + (uint64_t)mp->rank, same = mp->seed;
    int64_t late = 0;

    for (int64_t round = 0; round < mp_rounds(60); round++) {
        rank_request_t req[2 * N];
        char *in[N], *out[N];
        size_t size[N];
        rank_status_t st;

        for (int i = 0; i < N; i++) {
            size[i] = (size_t)1 << mp_random(&same) % 21;
            in[i] = mp_alloc(size[i]);
            out[i] = mp_alloc(size[i]);
            mp_fill(out[i], size[i], (uint64_t)(round * N + i));
            MP_OK(rank_irecv(in[i], (int64_t)size[i], RANK_BYTE, from, i, mp->world, &req[i]));
        }
        for (uint64_t spin = mp_random(&random) % 100000; spin; spin--)
            __asm__ volatile("" ::: "memory");
        for (int i = 0; i < N; i++)
            MP_OK(rank_isend(out[i], (int64_t)size[i], RANK_BYTE, to, i, mp->world, &req[N + i]));
        while ((st = rank_waitall_timed(2 * N, req, (int64_t)(mp_random(&random) % 30000), NULL)) == RANK_ERR_TIMED_OUT)
            late++;
        MP_OK(st);
        for (int i = 0; i < N; i++) {
            MP_CHECK(req[i] == RANK_REQUEST_NULL && req[N + i] == RANK_REQUEST_NULL);
            MP_CHECK_EQ(mp_verify(in[i], size[i], (uint64_t)(round * N + i)), -1);
            free(in[i]);
            free(out[i]);
        }
    }
    printf("# rank %d: %lld waits timed out\n", mp->rank, (long long)late);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start_level(&mp, &argc, argv, (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED));
    mp_case(&mp, "nothing comes");
    nothing_comes(&mp);
    mp_case(&mp, "while other messages come");
    while_busy(&mp);
    mp_case(&mp, "messages at any time");
    any_time(&mp);
    mp_end(&mp);
    return 0;
}
