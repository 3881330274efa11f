/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_abort.c: end the job by rank_abort while other ranks are in endless calls. */
#include "tests/mp/mp.h"

int main(int argc, char **argv)
{
    struct mp mp;
    int code = (int)mp_option(argc, argv, "--code", 7);
    char c;

    if (mp_flag(argc, argv, "--before"))
        rank_abort(code, "before rank_init");
    mp_start(&mp, &argc, argv);
    mp_barrier(mp.world);
    if (mp.rank == mp.size - 1)
        rank_abort(code, "as the test wants it");
    MP_OK(rank_recv(&c, 1, RANK_BYTE, mp.size - 1, 1, mp.world, NULL));
    mp_fail(__FILE__, __LINE__, "rank_recv returned");
}
