/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c: print each rank.   xcc hello.c -o hello && xrun -n 4 hello */
#include <rank.h>

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char host[64] = "?";
    rank_status_t st = rank_init(NULL);

    if (st) {
        fprintf(stderr, "hello: rank_init: %s\n", rank_status_string(st));
        return 1;
    }
    gethostname(host, sizeof(host) - 1);
    printf("hello from rank %d of %d on %s\n", rank_team_rank(rank_world()),
           rank_team_size(rank_world()), host);
    return rank_finalize() ? 1 : 0;
}
