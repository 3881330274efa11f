/*
 * rank_dtype.c: list the size of datatypes, and the operations on them.
 *
 * Run: xrun -n 1 ./rank_dtype
 * Prints: F64: 8 bytes, SUM 1, BAND 0
 * Prints: INT32: 4 bytes, SUM 1, BAND 1
 */
#include <rank.h>

#include <stdio.h>

static void describe(const char *name, rank_dtype_t dtype)
{
    printf("%s: %d bytes, SUM %d, BAND %d\n", name, (int)rank_dtype_size(dtype),
           rank_op_defined(RANK_SUM, dtype), rank_op_defined(RANK_BAND, dtype));
}

int main(void)
{
    describe("F64", RANK_F64);
    describe("INT32", RANK_INT32);
    return 0;
}
