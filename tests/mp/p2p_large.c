/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_large.c: transfer large messages by the protocol that RANK_LARGE names.
 * Sizes around each threshold: from and to any address, cut short, in pieces, both ways at once, from many ranks at once, and to a
 * rank that comes late.
 *
 *   --stops   each rank is stopped now and then, wherever it is
 */
#include "tests/mp/mp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = (1 << 20) + 4096 * 3, GUARD = 64, TAG = 5 };

static const int64_t sizes[] = {1,      33,     4095,   4096,    4097,    8191,    16383,   16384,       16385,
                                32751,  32752,  32753,  32760,   32768,   32769,   65535,   65536,       65537,
                                131072, 131073, 262143, 262145,  524288,  524289,  1048575, 1 << 20,     1048577,
                                (1 << 20) + 4096 * 2 + 1};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static char *guarded(size_t bytes, size_t shift)
{
    char *p = mp_alloc(bytes + 2 * GUARD + shift);

    memset(p, 0x5a, bytes + 2 * GUARD + shift);
    return p;
}

static void check_guards(const char *p, size_t shift, size_t bytes, size_t filled, uint64_t key)
{
    MP_CHECK_EQ(mp_verify(p + GUARD + shift, filled, key), -1);
    for (size_t i = 0; i < GUARD + shift; i++)
        MP_CHECK_EQ(p[i], 0x5a);
    for (size_t i = GUARD + shift + filled; i < bytes + 2 * GUARD + shift; i++)
        MP_CHECK_EQ(p[i], 0x5a);
}

/* Each size to the next rank and from the one before, all at once, from and to odd addresses. */
static void around(struct mp *mp, int kind)
{
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;

    for (int i = 0; i < SIZES; i++) {
        size_t n = (size_t)sizes[i], shift_s = (size_t)(i * 7 % 64), shift_r = (size_t)(i * 13 % 64);
        size_t cap = kind == 1 ? n / 2 : kind == 2 ? n + 100 : n;
        char *out = guarded(n, shift_s), *in = guarded(cap, shift_r);
        rank_request_t req[2];
        rank_envelope_t env[2];

        mp_fill(out + GUARD + shift_s, n, (uint64_t)(i * 100 + mp->rank));
        if (i % 2) /* expected or not */
            mp_barrier(mp->world);
        MP_OK(rank_irecv(in + GUARD + shift_r, (int64_t)cap, RANK_BYTE, left, TAG, mp->world, &req[0]));
        MP_OK(rank_isend(out + GUARD + shift_s, (int64_t)n, RANK_BYTE, right, TAG, mp->world, &req[1]));
        MP_STATUS(rank_wait(&req[0], &env[0]), cap < n ? RANK_ERR_TRUNCATED : RANK_OK);
        MP_OK(rank_wait(&req[1], &env[1]));
        MP_CHECK_EQ(env[0].sent_bytes, n);
        check_guards(in, shift_r, cap, cap < n ? cap : n, (uint64_t)(i * 100 + left));
        free(out);
        free(in);
    }
}

/* Many at once both ways: no two share a copy's words, and each comes whole. */
static void windows(struct mp *mp, uint64_t *random)
{
    enum { W = 12 };
    char *out[W], *in[W];
    int peer = mp->rank ^ 1;
    rank_request_t req[2 * W];
    int64_t bytes[W];

    if (peer >= mp->size)
        peer = mp->rank;
    for (int k = 0; k < W; k++) {
        bytes[k] = k == 3 ? 0 : 1 + (int64_t)mp_below(random, MOST - 1);
        out[k] = mp_alloc((size_t)bytes[k]);
        in[k] = mp_alloc((size_t)bytes[k]);
        mp_fill(out[k], (size_t)bytes[k], (uint64_t)(mp->rank * 1000 + k));
    }
    for (int k = 0; k < W; k++) {
        MP_OK(rank_irecv(in[k], bytes[k], RANK_BYTE, peer, k, mp->world, &req[k]));
        MP_OK(rank_isend(out[W - 1 - k], bytes[W - 1 - k], RANK_BYTE, peer, W - 1 - k, mp->world, &req[W + k]));
    }
    MP_OK(rank_waitall(2 * W, req, NULL));
    for (int k = 0; k < W; k++) {
        MP_CHECK_EQ(mp_verify(in[k], (size_t)bytes[k], (uint64_t)(peer * 1000 + k)), -1);
        free(out[k]);
        free(in[k]);
    }
}

/* Pieces on either side, or on both. */
static void pieces(struct mp *mp)
{
    int peer = mp->rank ^ 1;

    if (peer >= mp->size)
        return;
    for (int shape = 0; shape < 4; shape++) {
        enum { N = 300000, BLOCK = 1000 };
        rank_iov_t s = {.bytes = BLOCK, .count = N / BLOCK, .stride = BLOCK + 24}, r = s;
        char *out = guarded((BLOCK + 24) * (N / BLOCK), 0), *in = guarded((BLOCK + 24) * (N / BLOCK), 0);
        char *plain = mp_alloc(N), *got = mp_alloc(N);
        rank_request_t req[2];

        s.base = out + GUARD;
        r.base = in + GUARD;
        mp_fill(plain, N, (uint64_t)(mp->rank + shape * 10));
        for (int b = 0; b < N / BLOCK; b++)
            memcpy(out + GUARD + b * (BLOCK + 24), plain + b * BLOCK, BLOCK);
        if (shape & 1)
            MP_OK(rank_irecvv(&r, 1, peer, TAG, mp->world, &req[0]));
        else
            MP_OK(rank_irecv(got, N, RANK_BYTE, peer, TAG, mp->world, &req[0]));
        if (shape & 2)
            MP_OK(rank_isendv(&s, 1, peer, TAG, mp->world, &req[1]));
        else
            MP_OK(rank_isend(plain, N, RANK_BYTE, peer, TAG, mp->world, &req[1]));
        MP_OK(rank_waitall(2, req, NULL));
        for (int b = 0; (shape & 1) && b < N / BLOCK; b++) {
            memcpy(got + b * BLOCK, in + GUARD + b * (BLOCK + 24), BLOCK);
            for (int i = 0; i < 24; i++)
                MP_CHECK_EQ(in[GUARD + b * (BLOCK + 24) + BLOCK + i], 0x5a);
        }
        MP_CHECK_EQ(mp_verify(got, N, (uint64_t)(peer + shape * 10)), -1);
        free(out);
        free(in);
        free(plain);
        free(got);
    }
}

/* From rank_alloc memory, to it, or both; and to a part of it that the sender, not in its team, has no key of. Cut short now and then. */
static void mapped(struct mp *mp)
{
    enum { FROM = 1, TO = 2, OWN = 4 };
    static const int kinds[] = {FROM, TO, FROM | TO, FROM | TO | OWN};
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    char *mine[2] = {mp_alloc(MOST + SIZES + GUARD), mp_alloc(MOST + SIZES + GUARD)};
    void *ours[2], *own;
    rank_mem_t mem[2], own_mem;
    rank_team_t alone;

    for (int k = 0; k < 2; k++)
        MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, MOST + SIZES + GUARD, &ours[k], &mem[k]));
    MP_OK(rank_team_split(mp->world, mp->rank, 0, &alone));
    MP_OK(rank_alloc(alone, RANK_MEM_HOST, MOST + SIZES + GUARD, &own, &own_mem));
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        char *out = kinds[k] & FROM ? ours[0] : mine[0];
        char *in = kinds[k] & OWN ? own : kinds[k] & TO ? ours[1] : mine[1];

        for (int i = 0; i < SIZES; i++) {
            size_t n = (size_t)sizes[i], want = i % 5 == 4 ? n - n / 3 : n;
            rank_request_t req[2];

            mp_fill(out + i, n, (uint64_t)(mp->rank + i));
            memset(in + i + want, 0x5a, GUARD);
            if (i % 2)
                mp_barrier(mp->world);
            MP_OK(rank_irecv(in + i, (int64_t)want, RANK_BYTE, left, TAG, mp->world, &req[1]));
            if (mp->rank % 2 || i % 4 == 3) { /* else it waits for its send and nothing else, and may copy a share */
                MP_OK(rank_isend(out + i, sizes[i], RANK_BYTE, right, TAG, mp->world, &req[0]));
                MP_STATUS(rank_wait(&req[1], NULL), want < n ? RANK_ERR_TRUNCATED : RANK_OK);
                MP_OK(rank_wait(&req[0], NULL));
            } else {
                MP_OK(rank_send(out + i, sizes[i], RANK_BYTE, right, TAG, mp->world));
                MP_STATUS(rank_wait(&req[1], NULL), want < n ? RANK_ERR_TRUNCATED : RANK_OK);
            }
            MP_CHECK_EQ(mp_verify(in + i, want, (uint64_t)(left + i)), -1);
            for (int g = 0; g < GUARD; g++)
                MP_CHECK_EQ(in[(size_t)i + want + (size_t)g], 0x5a);
        }
        mp_barrier(mp->world); /* the next kind's first messages go into this one's memory */
    }
    MP_OK(rank_free(&own_mem));
    MP_OK(rank_team_free(&alone));
    for (int k = 0; k < 2; k++) {
        MP_OK(rank_free(&mem[k]));
        free(mine[k]);
    }
}

/* A synchronous one too, and one with a late receive: the sender waits and then helps, or has gone on. */
static void late(struct mp *mp)
{
    char *buf = mp_alloc(MOST);
    rank_request_t req;

    for (int i = 0; i < 6; i++) {
        size_t n = (size_t)sizes[SIZES - 1 - i];

        mp_barrier(mp->world);
        if (mp->rank == 0) {
            for (int r = 1; r < mp->size; r++) {
                mp_fill(buf, n, (uint64_t)(i + r));
                if (i % 2) {
                    MP_OK(rank_ssend(buf, (int64_t)n, RANK_BYTE, r, TAG, mp->world));
                } else { /* it computes, and polls now and then only */
                    int done = 0;
                    MP_OK(rank_isend(buf, (int64_t)n, RANK_BYTE, r, TAG, mp->world, &req));
                    for (volatile int k = 0; k < 3000000; k++)
                        ;
                    while (!done)
                        MP_OK(rank_test(&req, &done, NULL));
                }
            }
        } else {
            rank_envelope_t env;
            MP_OK(rank_probe(0, TAG, mp->world, &env));
            MP_OK(rank_recv(buf, (int64_t)n, RANK_BYTE, 0, TAG, mp->world, NULL));
            MP_CHECK_EQ(mp_verify(buf, n, (uint64_t)(i + mp->rank)), -1);
        }
    }
    free(buf);
}

/* So long that a waiting sender may get the request to write it into the ring. */
static void blocking(struct mp *mp)
{
    enum { N = 5000000 };
    char *buf = mp_alloc(N);
    int peer = mp->rank ^ 1;

    for (int turn = 0; turn < 2 && peer < mp->size; turn++) {
        if (turn == mp->rank % 2) {
            mp_fill(buf, N, (uint64_t)(mp->rank + turn * 64));
            MP_OK(rank_send(buf, N, RANK_BYTE, peer, TAG, mp->world));
        } else {
            memset(buf, 0, N);
            MP_OK(rank_recv(buf, N, RANK_BYTE, peer, TAG, mp->world, NULL));
            MP_CHECK_EQ(mp_verify(buf, N, (uint64_t)(peer + turn * 64)), -1);
        }
    }
    free(buf);
}

/* Memory that only this process can copy, as some devices' is; elsewhere any memory. */
static char *hidden(struct mp *mp, int peer, size_t bytes)
{
    const char *channel = rank_channel_name(mp->world, peer);
    char *p = MAP_FAILED;
#ifdef SYS_memfd_secret
    int fd = channel && strcmp(channel, "shm") == 0 ? (int)syscall(SYS_memfd_secret, O_CLOEXEC) : -1;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
#endif
    (void)channel;
    if (p == MAP_FAILED)
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MP_CHECK(p != MAP_FAILED);
    return p;
}

/* What the kernel does not copy goes another way; it is tried again for others (the case matches the words that it
 * prints else). */
static void kept_from_the_kernel(struct mp *mp)
{
    enum { N = 200000 };
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    char *secret = hidden(mp, right, N), *plain = mp_alloc(N);

    for (int turn = 0; turn < 4; turn++) {
        char *out = turn == 0 ? secret : plain, *in = turn == 0 ? plain : secret;
        rank_request_t req[2];

        if (turn == 3) /* and the rest, as ever */
            in = mp_alloc(N);
        mp_fill(out, N, (uint64_t)(turn * 100 + mp->rank));
        MP_OK(rank_irecv(in, N, RANK_BYTE, left, TAG, mp->world, &req[0]));
        MP_OK(rank_isend(out, N, RANK_BYTE, right, TAG, mp->world, &req[1]));
        MP_OK(rank_waitall(2, req, NULL));
        MP_CHECK_EQ(mp_verify(in, N, (uint64_t)(turn * 100 + left)), -1);
        if (turn == 3)
            free(in);
    }
    munmap(secret, N);
    free(plain);
}

/* A process that stops this one for up to 2 ms, and lets it go on for as long, until the pipe is closed. */
static pid_t stopper(int *end)
{
    pid_t victim = getpid(), pid;
    uint64_t random = (uint64_t)victim;
    int end_pipe[2];
    char byte;

    MP_CHECK(pipe2(end_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    pid = fork();
    MP_CHECK(pid >= 0);
    if (pid > 0) {
        close(end_pipe[0]);
        *end = end_pipe[1];
        return pid;
    }
    close(end_pipe[1]);
    while (getppid() == victim && read(end_pipe[0], &byte, 1) < 0) {
        struct timespec stop = {0, (long)mp_below(&random, 2000000)}, go = {0, (long)mp_below(&random, 2000000)};

        kill(victim, SIGSTOP);
        nanosleep(&stop, NULL);
        kill(victim, SIGCONT);
        nanosleep(&go, NULL);
    }
    _exit(0);
}

static void end_stops(pid_t pid, int end)
{
    int status;

    if (!pid)
        return;
    close(end);
    MP_CHECK_EQ(waitpid(pid, &status, 0), pid);
    MP_CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"exact", "truncated", "room to spare"};
    uint64_t random;
    pid_t stops = 0;
    int end = -1;
    struct mp mp;

    if (mp_flag(argc, argv, "--stops"))
        stops = stopper(&end);
    mp_start(&mp, &argc, argv);
    random = mp.seed;
    for (int kind = 0; kind < 3; kind++) {
        mp_case(&mp, names[kind]);
        around(&mp, kind);
    }
    mp_case(&mp, "windows");
    for (int i = 0; i < 4; i++)
        windows(&mp, &random);
    mp_case(&mp, "pieces");
    pieces(&mp);
    mp_case(&mp, "mapped");
    mapped(&mp);
    mp_case(&mp, "late");
    late(&mp);
    mp_case(&mp, "blocking");
    blocking(&mp);
    mp_case(&mp, "memory that the kernel does not copy");
    kept_from_the_kernel(&mp);
    end_stops(stops, end);
    mp_end(&mp);
    return 0;
}
