/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_rights.c: compare rights and lists of keys with a model, by pairs of ranks. */
#include "tests/conn/rights_model.h"
#include "tests/mp/mp.h"

enum { MANY = 1265 };

int main(int argc, char **argv)
{
    struct mp mp;
    int other;

    mp_start(&mp, &argc, argv);
    other = mp.rank ^ 1;
    mp_case(&mp, "rights");
    if (other < mp.size)
        rights_run(RANK_CTX_NULL, mp.world, other, mp.seed + (uint64_t)(mp.rank / 2), (int)mp_rounds(9));
    mp_case(&mp, "many keys");
    if (other < mp.size)
        rights_many(RANK_CTX_NULL, mp.world, other, MANY);
    mp_barrier(mp.world);
    mp_end(&mp);
    return 0;
}
