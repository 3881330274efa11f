/* misuse.c: programs that use the library wrongly are told so: bad arguments, calls before and after. */
#include "tests/mp/mp.h"

#include <string.h>
#include <unistd.h>

/* The cases of the file "cases" look for the lines. */
static void wrong_arguments(const struct mp *mp)
{
    char buf[64] = "x";
    rank_mem_t mem;
    void *part;

    MP_STATUS(rank_send(buf, 1, RANK_BYTE, 99, 0, mp->world), RANK_ERR_RANK);
    MP_STATUS(rank_send(buf, 1, RANK_BYTE, 98, 0, mp->world), RANK_ERR_RANK); /* the same kind: no line */
    MP_STATUS(rank_irecv(buf, -4, RANK_BYTE, 0, 0, mp->world, NULL), RANK_ERR_COUNT);
    MP_STATUS(rank_allreduce(buf, RANK_IN_PLACE, 1, RANK_INT32, RANK_SUM, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_bcast(buf, 1, RANK_BYTE, mp->size, mp->world), RANK_ERR_RANK);
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, 0, &part, &mem));
    MP_STATUS(rank_put(buf, 8, 0, mem, 60), RANK_ERR_BOUNDS);
    MP_STATUS(rank_barrier(RANK_TEAM_NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_wait(NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_ssend(buf, 1, (rank_dtype_t)999, 0, 0, mp->world), RANK_ERR_DTYPE);
    MP_STATUS(rank_probe(0, -5, mp->world, NULL), RANK_ERR_TAG); /* the ninth: no line */
    MP_OK(rank_free(&mem));
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    if (mp_flag(argc, argv, "--arguments"))
        wrong_arguments(&mp);
    mp_end(&mp);
    return 0;
}
