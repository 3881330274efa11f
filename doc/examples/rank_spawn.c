/*
 * rank_spawn.c: start two workers, which are this program again.
 *
 * Run: xrun -n 1 ./rank_spawn
 * Prints: 1 parent and 2 workers, sum 3
 */
#include <rank.h>

#include <stdio.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

int main(int argc, char **argv)
{
    rank_team_t team;
    int nparents, rank;
    int64_t sum = 0;

    (void)argc;
    must(rank_init(NULL));
    must(rank_parent(&team, &nparents));
    if (team == RANK_TEAM_NULL) {
        rank_spawn_params_t params = RANK_SPAWN_PARAMS_INIT;
        params.program = argv[0];
        params.n = 2;
        must(rank_spawn(&params, 0, rank_world(), &team));
        nparents = rank_team_size(rank_world());
    }
    rank = rank_team_rank(team);
    int64_t mine = rank;
    must(rank_reduce(&mine, &sum, 1, RANK_INT64, RANK_SUM, 0, team));
    if (rank == 0)
        printf("%d parent and %d workers, sum %d\n", nparents, rank_team_size(team) - nparents, (int)sum);
    must(rank_team_free(&team));
    must(rank_finalize());
    return 0;
}
