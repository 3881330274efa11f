/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_queued_sends.c: kill the peer of sends that wait for room in the channel.
 * Each of them ends with RANK_ERR_PEER_DEAD; earlier ones ended well, so that no success follows the first failure. As many sends to
 * a rank that lives arrive, whole and in order.
 *
 *   --queued N   so many that are open when the victim dies (100)
 *   --bytes N    each (2000)
 *   --seed N
 *
 * With RANK_EAGER_WINDOW=1G credit never ends: what is open then is queued, and nothing else. With less credit most are
 * announced, and in the queue is what finds no room for that.
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No room that a channel or a kernel has is as large as the most. PASSES: what can still go has gone after these. */
enum { SENT_MOST = 400000, PASSES = 2000, ALIVE = 1, DEAD = 2, READY = 3 };

struct scene {
    struct mp mp;
    int victim, queued;
    size_t bytes;
    rank_team_t living;
    char *out, *more; /* what goes to the victim; all that goes to the living */
    rank_request_t *dead, *alive;
    rank_envelope_t *env;
};

/* Stopped: it makes no call any more. */
static bool is_quiet(pid_t pid)
{
    char path[64], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    MP_CHECK(f != NULL);
    MP_CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state == 'T';
}

static bool is_done(rank_request_t *req)
{
    int done = 0;

    MP_OK(rank_test(req, &done, NULL)); /* the victim lives still: what is done went well */
    return done;
}

/* Sends until so many are open that no progress ends, not even the first of them. */
static void fill_queue(struct scene *s)
{
    int n = 0;

    for (int sent = 0; n < s->queued; sent++) {
        MP_CHECK(sent < SENT_MOST);
        MP_OK(rank_isend(s->out, (int64_t)s->bytes, RANK_BYTE, s->victim, DEAD, s->mp.world, &s->dead[n]));
        if (is_done(&s->dead[n]))
            continue;
        if (++n < s->queued)
            continue;
        for (int i = 0; i < PASSES; i++)
            MP_OK(rank_progress());
        for (int i = n = 0; i < s->queued; i++) {
            if (!is_done(&s->dead[i]))
                s->dead[n++] = s->dead[i];
        }
    }
}

static void check_dead(struct scene *s)
{
    bool failed = false;

    MP_STATUS(rank_waitall(s->queued, s->dead, s->env), RANK_ERR_PEER_DEAD);
    for (int i = 0; i < s->queued; i++) {
        MP_CHECK(s->dead[i] == RANK_REQUEST_NULL);
        failed |= s->env[i].status != RANK_OK;
        if (failed && s->env[i].status != RANK_ERR_PEER_DEAD)
            mp_fail(__FILE__, __LINE__, "send %d of %d ended with %d", i, s->queued, (int)s->env[i].status);
    }
    MP_CHECK_EQ(s->env[s->queued - 1].status, RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_send(s->out, (int64_t)s->bytes, RANK_BYTE, s->victim, DEAD, s->mp.world), RANK_ERR_PEER_DEAD);
}

int main(int argc, char **argv)
{
    static struct scene s;
    int64_t mine = getpid(), pid[64];
    char *in;
    int n;

    mp_start(&s.mp, &argc, argv);
    MP_CHECK(s.mp.size >= 2 && s.mp.size <= 64);
    n = s.victim = s.mp.size - 1;
    s.queued = (int)mp_option(argc, argv, "--queued", 100);
    s.bytes = (size_t)mp_option(argc, argv, "--bytes", 2000);
    s.out = mp_alloc(s.bytes);
    in = mp_alloc(s.bytes);
    s.more = mp_alloc(s.bytes * (size_t)s.queued);
    s.dead = mp_alloc((size_t)s.queued * sizeof(*s.dead));
    s.alive = mp_alloc((size_t)s.queued * sizeof(*s.alive));
    s.env = mp_alloc((size_t)s.queued * sizeof(*s.env));
    mp_fill(s.out, s.bytes, 0);
    MP_OK(rank_team_split(s.mp.world, s.mp.rank == s.victim ? RANK_UNDEFINED : 0, 0, &s.living));
    MP_OK(rank_allgather(&mine, pid, 1, RANK_INT64, s.mp.world));
    mp_case(&s.mp, "queued");
    if (s.mp.rank == s.victim) {
        for (int r = 0; r < n; r++) /* a rank that has reported it waits for nothing of ours */
            MP_OK(rank_recv(in, 1, RANK_BYTE, r, READY, s.mp.world, NULL));
        raise(SIGSTOP);
        _exit(1); /* no process lets it go on */
    }
    MP_OK(rank_send(s.out, 1, RANK_BYTE, s.victim, READY, s.mp.world));
    while (!is_quiet((pid_t)pid[s.victim]))
        MP_OK(rank_progress());
    fill_queue(&s);
    for (int i = 0; i < s.queued; i++) {
        mp_fill(s.more + (size_t)i * s.bytes, s.bytes, (uint64_t)i);
        MP_OK(rank_isend(s.more + (size_t)i * s.bytes, (int64_t)s.bytes, RANK_BYTE, (s.mp.rank + 1) % n, ALIVE, s.mp.world,
                         &s.alive[i]));
    }
    mp_barrier(s.living);
    if (s.mp.rank == 0)
        MP_CHECK_EQ(kill((pid_t)pid[s.victim], SIGKILL), 0);
    check_dead(&s);
    for (int i = 0; i < s.queued; i++) {
        MP_OK(rank_recv(in, (int64_t)s.bytes, RANK_BYTE, (s.mp.rank + n - 1) % n, ALIVE, s.mp.world, NULL));
        MP_CHECK_EQ(mp_verify(in, s.bytes, (uint64_t)i), -1);
    }
    MP_OK(rank_waitall(s.queued, s.alive, NULL));
    mp_barrier(s.living);
    MP_OK(rank_team_free(&s.living));
    mp_end_survivor(&s.mp);
    free(s.env);
    free(s.alive);
    free(s.dead);
    free(s.more);
    free(in);
    free(s.out);
    return 0;
}
