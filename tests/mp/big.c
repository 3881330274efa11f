/* big.c: a message, and one-sided copies, past the 4 GiB at which 32-bit sizes end. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

static const int64_t big = (4ll << 30) + (1ll << 20) + 40;

static void message(struct mp *mp)
{
    char *buf = mp_alloc((size_t)big);
    rank_envelope_t env;

    if (mp->rank == 0) {
        mp_fill(buf, (size_t)big, 12);
        MP_OK(rank_send(buf, big / 8, RANK_INT64, 1, 1, mp->world));
    } else if (mp->rank == 1) {
        MP_OK(rank_probe(0, 1, mp->world, &env));
        MP_CHECK_EQ(env.bytes, big);
        MP_OK(rank_recv(buf, big / 8, RANK_INT64, 0, 1, mp->world, &env));
        MP_CHECK_EQ(env.count, big / 8);
        MP_CHECK_EQ(env.bytes, big);
        MP_CHECK_EQ(env.sent_bytes, big);
        MP_CHECK_EQ(mp_verify(buf, (size_t)big, 12), -1);
    }
    free(buf);
}

static void truncated(struct mp *mp)
{
    if (mp->rank == 0) {
        char *buf = mp_alloc((size_t)big); /* of which nobody sees the rest */
        mp_fill(buf, 4096, 13);
        MP_OK(rank_send(buf, big, RANK_BYTE, 1, 1, mp->world));
        free(buf);
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

static void one_sided(struct mp *mp)
{
    rank_mem_t mem;
    void *p;
    char a[4096], b[4096];

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, big, 0, &p, &mem));
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

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "message");
    message(&mp);
    mp_case(&mp, "truncated");
    truncated(&mp);
    mp_case(&mp, "one-sided");
    one_sided(&mp);
    mp_end(&mp);
    return 0;
}
