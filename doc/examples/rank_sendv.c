/*
 * rank_sendv.c: send a column of a matrix.
 *
 * Run: xrun -n 2 ./rank_sendv
 * Prints: column 1: 1 4 7
 */
#include <rank.h>

#include <stdio.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

enum { ROWS = 3, COLS = 3 };

int main(void)
{
    must(rank_init(NULL));
    if (rank_team_rank(rank_world()) == 0) {
        double a[ROWS][COLS] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}};
        rank_iov_t column = {
            .base = &a[0][1], .bytes = sizeof(double), .count = ROWS, .stride = COLS * sizeof(double)};
        must(rank_sendv(&column, 1, 1, 0, rank_world()));
    } else {
        double column[ROWS];
        must(rank_recv(column, ROWS, RANK_F64, 0, 0, rank_world(), NULL));
        printf("column 1: %g %g %g\n", column[0], column[1], column[2]);
    }
    must(rank_finalize());
    return 0;
}
