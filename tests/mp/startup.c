/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * startup.c: start many ranks, connect and end them; load UCX only if needed.
 *
 *   --no-ucx      libucp must not be in the address space at the end
 *   --alone       expect a world of one
 *   --channel X   what must carry messages to the next rank
 *   --contact     talk to every rank
 *   --crowd       all ranks contact rank 0, which is outside the library meanwhile
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool loaded(const char *library)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];
    bool found = false;

    MP_CHECK(f != NULL);
    while (fgets(line, sizeof(line), f))
        found |= strstr(line, library) != NULL;
    fclose(f);
    return found;
}

static void crowd(struct mp *mp)
{
    int32_t v = mp->rank;

    mp_case(mp, "crowd");
    if (mp->rank > 0) {
        MP_OK(rank_send(&v, 1, RANK_INT32, 0, 3, mp->world));
        return;
    }
    usleep(500 * 1000); /* their handshakes are old when it looks */
    for (int i = 1; i < mp->size; i++)
        MP_OK(rank_recv(&v, 1, RANK_INT32, RANK_ANY_SOURCE, 3, mp->world, NULL));
}

int main(int argc, char **argv)
{
    struct mp mp;
    int to, from;
    int32_t v;
    const char *channel = NULL;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--channel") == 0)
            channel = argv[i + 1];
    }
    mp_start(&mp, &argc, argv);
    if (mp_flag(argc, argv, "--alone"))
        MP_CHECK_EQ(mp.size, 1);
    to = (mp.rank + 1) % mp.size;
    from = (mp.rank - 1 + mp.size) % mp.size;
    mp_case(&mp, "ring");
    MP_OK(rank_sendrecv(&mp.rank, 1, RANK_INT32, to, 1, &v, 1, RANK_INT32, from, 1, mp.world, NULL));
    MP_CHECK_EQ(v, from);
    if (mp_flag(argc, argv, "--contact")) {
        mp_case(&mp, "contact");
        for (int d = 1; d < mp.size; d++) {
            MP_OK(rank_sendrecv(&mp.rank, 1, RANK_INT32, (mp.rank + d) % mp.size, 2, &v, 1,
                                RANK_INT32, (mp.rank - d + mp.size) % mp.size, 2, mp.world, NULL));
            MP_CHECK_EQ(v, (mp.rank - d + mp.size) % mp.size);
        }
    }
    if (mp_flag(argc, argv, "--crowd"))
        crowd(&mp);
    MP_CHECK(strcmp(rank_channel_name(mp.world, mp.rank), "self") == 0);
    if (channel && mp.size > 1 && strcmp(rank_channel_name(mp.world, to), channel) != 0)
        mp_fail(__FILE__, __LINE__, "channel %s, not %s", rank_channel_name(mp.world, to), channel);
    if (mp_flag(argc, argv, "--no-ucx"))
        MP_CHECK(!loaded("libucp") && !loaded("libuct") && !loaded("libucs"));
    mp_end(&mp);
    return 0;
}
