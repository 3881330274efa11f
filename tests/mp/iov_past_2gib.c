/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iov_past_2gib.c: transfer lists of pieces that exceed 2 GiB together.
 *
 * rank_sendv, rank_putv, rank_getv. They use little memory: the source is one block named many times, the destination one block
 * mapped at many addresses. Also one message of more than 2^32 elements, of which little is received.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 16 << 20, TIMES = 130, REST = 40 };

static const int64_t total = (int64_t)BLOCK * TIMES + REST;

/* So many mappings of one block, one behind the other, and a page of its own behind them for the rest. */
static char *vast_map(size_t times, size_t *bytes)
{
    int fd = memfd_create("vast", MFD_CLOEXEC);
    char *base;

    *bytes = BLOCK * times + 4096;
    MP_CHECK(fd >= 0 && ftruncate(fd, BLOCK) == 0);
    base = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MP_CHECK(base != MAP_FAILED);
    for (size_t i = 0; i < times; i++)
        MP_CHECK(mmap(base + i * BLOCK, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    return base;
}

static void check_vast(const char *at, uint64_t key)
{
    MP_CHECK_EQ(mp_verify(at, BLOCK, key), -1);
    MP_CHECK_EQ(mp_verify(at + (size_t)BLOCK * TIMES, REST, key), -1);
}

static void message(struct mp *mp, char *block, char *vast)
{
    rank_iov_t list[TIMES + 1];
    rank_envelope_t env;

    for (int i = 0; i <= TIMES; i++)
        list[i] = (rank_iov_t){.base = block, .bytes = i < TIMES ? BLOCK : REST, .count = 1};
    mp_fill(block, BLOCK, 21);
    if (mp->rank == 0) {
        MP_OK(rank_sendv(list, TIMES + 1, 1, 1, mp->world));
    } else if (mp->rank == 1) {
        MP_OK(rank_recv(vast, total, RANK_BYTE, 0, 1, mp->world, &env));
        MP_CHECK_EQ(env.bytes, total);
        MP_CHECK_EQ(env.sent_bytes, total);
        check_vast(vast, 21);
    }
}

/* Of more elements than 2^32 the receiver wants a few; and a count that no memory has. */
static void cut_short(struct mp *mp)
{
    const int64_t count = ((int64_t)BLOCK << 8) + REST;
    rank_envelope_t env;
    size_t bytes;
    char few[200], *all;

    if (mp->rank == 0) {
        all = vast_map(256, &bytes);
        mp_fill(all, sizeof(few), 23);
        MP_OK(rank_send(all, count, RANK_BYTE, 1, 2, mp->world));
        MP_STATUS(rank_send(all, INT64_MAX, RANK_INT64, 1, 2, mp->world), RANK_ERR_COUNT);
        munmap(all, bytes);
    } else if (mp->rank == 1) {
        MP_OK(rank_probe(0, 2, mp->world, &env));
        MP_CHECK_EQ(env.count, count);
        MP_STATUS(rank_recv(few, sizeof(few), RANK_BYTE, 0, 2, mp->world, &env), RANK_ERR_TRUNCATED);
        MP_CHECK_EQ(env.sent_bytes, count);
        MP_CHECK_EQ(env.bytes, (int64_t)sizeof(few));
        MP_CHECK_EQ(mp_verify(few, sizeof(few), 23), -1);
    }
}

/* All puts go to one block, all gets come from it. */
static void one_sided(struct mp *mp, char *block, char *vast)
{
    rank_piece_t list[TIMES + 1];
    rank_mem_t mem;
    void *mine;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, BLOCK, &mine, &mem));
    mp_fill(block, BLOCK, 22);
    if (mp->rank == 0) {
        for (int i = 0; i <= TIMES; i++)
            list[i] = (rank_piece_t){.local = block, .bytes = i < TIMES ? BLOCK : REST, .offset = 0};
        MP_OK(rank_putv(list, TIMES + 1, 1, mem));
        MP_OK(rank_flush(mem, 1));
        memset(vast, 0, BLOCK);
        memset(vast + (size_t)BLOCK * TIMES, 0, REST);
        for (int i = 0; i <= TIMES; i++)
            list[i].local = vast + (size_t)i * BLOCK;
        MP_OK(rank_getv(list, TIMES + 1, 1, mem));
        check_vast(vast, 22);
    }
    mp_barrier(mp->world);
    if (mp->rank == 1)
        MP_CHECK_EQ(mp_verify(mine, BLOCK, 22), -1);
    MP_OK(rank_free(&mem));
}

int main(int argc, char **argv)
{
    size_t bytes;
    struct mp mp;
    char *block, *vast;

    mp_start(&mp, &argc, argv);
    block = mp_alloc(BLOCK);
    vast = vast_map(TIMES, &bytes);
    mp_case(&mp, "a message of pieces");
    message(&mp, block, vast);
    mp_case(&mp, "a count past 2^32");
    cut_short(&mp);
    mp_case(&mp, "one-sided pieces");
    one_sided(&mp, block, vast);
    free(block);
    munmap(vast, bytes);
    mp_end(&mp);
    return 0;
}
