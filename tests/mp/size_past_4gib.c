/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * size_past_4gib.c: transfer a message and one-sided data of more than 4 GiB.
 * 32-bit sizes end there.
 *
 *   --private   one message of memory that only its owner has mapped, and --mapped, one from and to memory of rank_alloc: by
 *               the protocol that the case names
 *   --whole     put and get all of rank_alloc's and of registered memory
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 16 << 20, PAGE = 4096 };

static const int64_t big = (4ll << 30) + (1ll << 20) + 40;

static void one_sided(struct mp *mp)
{
    rank_mem_t mem;
    void *p;
    char a[4096], b[4096];

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, big, &p, &mem));
    mp_fill(a, sizeof(a), 14);
    if (mp->rank == 0) {
        MP_OK(rank_put(a, sizeof(a), 1, mem, big - 4096));
        MP_OK(rank_flush(mem, 1));
        MP_OK(rank_get(b, sizeof(b), 1, mem, big - 4096));
        MP_CHECK(memcmp(a, b, sizeof(a)) == 0);
        MP_OK(rank_get(b, sizeof(b), 1, mem, (big - 4096) & 0xffffffff));
        for (size_t i = 0; i < sizeof(b); i++)
            MP_CHECK_EQ(b[i], 0);
    }
    MP_OK(rank_free(&mem));
}

/* One block that is mapped at so many addresses as make up big, and what is left over by itself. */
static char *repeated(void)
{
    int fd = memfd_create("big", MFD_CLOEXEC);
    char *base = mmap(NULL, (size_t)big + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    MP_CHECK(fd >= 0 && ftruncate(fd, BLOCK) == 0 && base != MAP_FAILED);
    for (int64_t at = 0; at + BLOCK <= big; at += BLOCK)
        MP_CHECK(mmap(base + at, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    return base;
}

static void truncated(struct mp *mp)
{
    if (mp->rank == 0) {
        char *buf = repeated();
        mp_fill(buf, 4096, 13);
        MP_OK(rank_send(buf, big, RANK_BYTE, 1, 1, mp->world));
        munmap(buf, (size_t)big + PAGE);
    } else if (mp->rank == 1) {
        char *buf = mp_alloc(1000);
        rank_envelope_t env;
        MP_STATUS(rank_recv(buf, 1000, RANK_BYTE, 0, 1, mp->world, &env), RANK_ERR_TRUNCATED);
        MP_CHECK_EQ(env.sent_bytes, big);
        MP_CHECK_EQ(env.bytes, 1000);
        MP_CHECK_EQ(mp_verify(buf, 1000, 13), -1);
        free(buf);
    }
}

/* The beginning, both sides of 4 GiB, and the end. */
static void check_all(const char *at, const char *want)
{
    const int64_t four = 4ll << 30, where[] = {0, BLOCK, four - PAGE, four, big - PAGE};

    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
        MP_CHECK(memcmp(at + where[i], want + where[i], PAGE) == 0);
}

/*
 * Both buffers are of little memory, so that every path is fast. The bytes past 4 GiB exist once: a part that is not
 * copied is missing there, and a part that goes 4 GiB astray shows in the block.
 */
static void private_message(struct mp *mp)
{
    char *here = repeated(), *got;
    rank_envelope_t env;

    mp_fill(here, BLOCK, 18);
    mp_fill(here + big - big % BLOCK, (size_t)(big % BLOCK), 19);
    if (mp->rank == 0) {
        MP_OK(rank_send(here, big / 8, RANK_INT64, 1, 1, mp->world));
    } else if (mp->rank == 1) {
        got = repeated();
        MP_OK(rank_probe(0, 1, mp->world, &env));
        MP_CHECK_EQ(env.bytes, big);
        MP_OK(rank_recv(got, big / 8, RANK_INT64, 0, 1, mp->world, &env));
        MP_CHECK_EQ(env.count, big / 8);
        MP_CHECK_EQ(env.bytes, big);
        MP_CHECK_EQ(env.sent_bytes, big);
        MP_CHECK(memcmp(got, here, BLOCK) == 0);
        MP_CHECK(memcmp(got + big - big % BLOCK, here + big - big % BLOCK, (size_t)(big % BLOCK)) == 0);
        munmap(got, (size_t)big + PAGE);
    }
    munmap(here, (size_t)big + PAGE);
}

/* Marks in it; what lies between is as it was made, all 0. */
static void mapped_message(struct mp *mp)
{
    const int64_t where[] = {0, (2ll << 30) - 500, (4ll << 30) - 500, big - 1000};
    enum { MARKS = sizeof(where) / sizeof(where[0]), BYTES = 1000 };
    rank_envelope_t env;
    rank_mem_t mem;
    char *mine;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, big, (void **)&mine, &mem));
    for (int i = 0; i < MARKS && mp->rank == 0; i++)
        mp_fill(mine + where[i], BYTES, (uint64_t)i + 20);
    if (mp->rank == 0) {
        MP_OK(rank_send(mine, big, RANK_BYTE, 1, 1, mp->world));
    } else if (mp->rank == 1) {
        MP_OK(rank_recv(mine, big, RANK_BYTE, 0, 1, mp->world, &env));
        MP_CHECK_EQ(env.bytes, big);
        for (int i = 0; i < MARKS; i++)
            MP_CHECK_EQ(mp_verify(mine + where[i], BYTES, (uint64_t)i + 20), -1);
        MP_CHECK_EQ(mine[BYTES], 0);
    }
    MP_OK(rank_free(&mem));
}

/* One put and one get of it all, by the handle of rank 1's memory at mine there. */
static void moved(struct mp *mp, char *mine, rank_mem_t mem, uint64_t key)
{
    char *here = repeated();

    mp_fill(here, BLOCK, key);
    mp_fill(here + big - big % BLOCK, (size_t)(big % BLOCK), key + 1);
    if (mp->rank == 0) {
        MP_OK(rank_put(here, big, 1, mem, 0));
        MP_OK(rank_flush(mem, 1));
    }
    mp_barrier(mp->world);
    if (mp->rank == 1)
        check_all(mine, here);
    mp_barrier(mp->world);
    if (mp->rank == 0) {
        char *back = repeated();
        MP_OK(rank_get(back, big, 1, mem, 0));
        check_all(back, here);
        munmap(back, (size_t)big + PAGE);
    }
    munmap(here, (size_t)big + PAGE);
    mp_barrier(mp->world);
}

static void whole(struct mp *mp)
{
    char key[RANK_RKEY_MAX], *mine;
    size_t len = sizeof(key);
    rank_envelope_t env;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, big, (void **)&mine, &mem));
    moved(mp, mine, mem, 15);
    MP_OK(rank_free(&mem));
    if (mp->rank == 1) {
        mine = repeated(); /* in pieces, so that no peer maps it */
        MP_OK(rank_reg(mine, big, &mem));
        MP_OK(rank_rkey_pack(mem, key, &len));
        MP_OK(rank_send(key, (int64_t)len, RANK_BYTE, 0, 1, mp->world));
        moved(mp, mine, mem, 16);
        MP_OK(rank_dereg(&mem));
        munmap(mine, (size_t)big + PAGE);
    } else if (mp->rank == 0) {
        MP_OK(rank_recv(key, sizeof(key), RANK_BYTE, 1, 1, mp->world, &env));
        MP_OK(rank_rkey_open(mp->world, 1, key, (size_t)env.bytes, &mem));
        moved(mp, NULL, mem, 16);
        MP_OK(rank_rkey_close(&mem));
    }
}

int main(int argc, char **argv)
{
    bool private = mp_flag(argc, argv, "--private"), mapped = mp_flag(argc, argv, "--mapped");
    bool all = mp_flag(argc, argv, "--whole");
    struct mp mp;

    mp_start(&mp, &argc, argv);
    if (private || mapped) {
        mp_case(&mp, private ? "private memory" : "mapped memory");
        (private ? private_message : mapped_message)(&mp);
        mp_end(&mp);
        return 0;
    }
    if (all) {
        mp_case(&mp, "one-sided, all of it");
        whole(&mp);
        mp_end(&mp);
        return 0;
    }
    mp_case(&mp, "message");
    private_message(&mp);
    mp_case(&mp, "truncated");
    truncated(&mp);
    mp_case(&mp, "one-sided");
    one_sided(&mp);
    mp_end(&mp);
    return 0;
}
