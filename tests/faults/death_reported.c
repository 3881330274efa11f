/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_reported.c: call functions at deaths of ranks (rank_on_death).
 * Two ranks die, one after the other. Each living one gets one call for each, on two teams, with the status set; a function
 * that was taken back gets none, and one that comes later is told of the dead.
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct mp mp;
static rank_team_t copy;
static int calls[2], last[2];

static void dead(rank_team_t team, int rank, rank_status_t cause, void *arg)
{
    int which = team == copy;

    MP_CHECK(arg == &calls[which] && (which || team == mp.world));
    MP_CHECK(cause == RANK_ERR_PEER_DEAD);
    MP_CHECK(rank >= mp.size - 2);
    MP_CHECK(calls[which] == 0 || rank != last[which]);
    last[which] = rank;
    calls[which]++;
}

static void never(rank_team_t team, int rank, rank_status_t cause, void *arg)
{
    (void)team;
    (void)arg;
    mp_fail(__FILE__, __LINE__, "called for rank %d with %d", rank, (int)cause);
}

static void await_calls(int n)
{
    double until = mp_now() + 30;

    while ((calls[0] < n || calls[1] < n) && mp_now() < until)
        MP_OK(rank_progress());
    MP_CHECK(calls[0] >= n && calls[1] >= n); /* the second may follow at once */
}

int main(int argc, char **argv)
{
    rank_team_t living, third;
    int victim;

    mp_start(&mp, &argc, argv);
    MP_CHECK(mp.size >= 3);
    victim = mp.rank - (mp.size - 2);
    MP_OK(rank_team_dup(mp.world, &copy));
    MP_OK(rank_team_dup(mp.world, &third));
    MP_OK(rank_team_split(mp.world, victim >= 0 ? RANK_UNDEFINED : 0, 0, &living));
    MP_OK(rank_on_death(mp.world, dead, &calls[0]));
    MP_OK(rank_on_death(copy, dead, &calls[1]));
    MP_OK(rank_on_death(third, never, NULL));
    MP_OK(rank_on_death(third, NULL, NULL));
    mp_barrier(mp.world);
    if (victim == 0)
        kill(getpid(), SIGKILL);
    await_calls(1);
    if (victim == 1)
        kill(getpid(), SIGKILL);
    await_calls(2);
    calls[1] = 0;
    MP_OK(rank_on_death(copy, dead, &calls[1]));
    await_calls(2);
    MP_CHECK(calls[0] == 2 && calls[1] == 2);
    MP_OK(rank_on_death(mp.world, NULL, NULL)); /* to others a rank that leaves behind a death is dead, too */
    MP_OK(rank_on_death(copy, NULL, NULL));
    mp_barrier(living);
    MP_OK(rank_team_free(&living));
    mp_end_survivor(&mp);
    return 0;
}
