/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_no_answer.c: call rank_spawn while the launcher does not reply.
 * FIRST_XRUN is the pid of the first front end, which is stopped meanwhile.
 */
#include "lib/rank.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    rank_spawn_params_t p = {.size = sizeof(p), .n = 1, .program = "/bin/true"};
    const char *first = getenv("FIRST_XRUN");
    pid_t pid = first ? (pid_t)atoi(first) : 0;
    rank_team_t both;
    rank_status_t st;

    if (pid <= 1 || rank_init(NULL) != RANK_OK)
        return 2;
    if (kill(pid, SIGSTOP))
        return 3;
    st = rank_spawn(&p, 0, rank_world(), &both);
    kill(pid, SIGCONT);
    printf("rank_spawn: %s\n", rank_status_string(st));
    rank_finalize();
    return st == RANK_ERR_SPAWN ? 0 : 4;
}
