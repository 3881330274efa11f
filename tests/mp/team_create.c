/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_create.c: split, dup, create and free teams; keep their tags apart.
 *
 *   --short   without counting the memory of thousands of teams, which depends on no channel
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

static void members(rank_team_t team, const int *expect, int n)
{
    int *got = mp_alloc((size_t)n * sizeof(int));

    MP_OK(rank_team_members(team, got, n));
    for (int r = 0; r < n; r++) {
        MP_CHECK_EQ(got[r], expect[r]);
        MP_CHECK_EQ(rank_team_world_rank(team, r), expect[r]);
    }
    free(got);
}

/* Send from all to all in a team, with world ranks to identify the members. expect: the world rank of
 * each member, in order. */
static void talk(struct mp *mp, rank_team_t team, const int *expect, int n)
{
    int rank = rank_team_rank(team);
    int32_t out = mp->rank, in;

    MP_CHECK_EQ(rank_team_size(team), n);
    MP_CHECK(rank >= 0 && rank < n);
    MP_CHECK_EQ(expect[rank], mp->rank);
    members(team, expect, n);
    for (int d = 0; d < n; d++) {
        int to = (rank + d) % n, from = (rank - d + n) % n;
        rank_envelope_t env;
        MP_OK(rank_sendrecv(&out, 1, RANK_INT32, to, 1, &in, 1, RANK_INT32, from, 1, team, &env));
        MP_CHECK_EQ(in, expect[from]);
        MP_CHECK_EQ(env.source, from);
    }
    mp_barrier(team);
    MP_OK(rank_barrier(team));
}

static void split(struct mp *mp)
{
    int *expect = mp_alloc((size_t)mp->size * sizeof(int));
    rank_team_t t;

    for (int colors = 1; colors <= mp->size; colors++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            int n = 0;
            for (int r = 0; r < mp->size; r++) {
                int w = reverse ? mp->size - 1 - r : r;
                if (w % colors == mp->rank % colors)
                    expect[n++] = w;
            }
            t = RANK_TEAM_NULL;
            MP_OK(rank_team_split(mp->world, mp->rank % colors, reverse ? -mp->rank : 0, &t));
            talk(mp, t, expect, n);
            MP_OK(rank_team_free(&t));
            MP_CHECK(t == RANK_TEAM_NULL);
        }
    }
    free(expect);
}

/* Equal keys keep the old order; extreme keys and colors are fine. */
static void keys(struct mp *mp)
{
    int *expect = mp_alloc((size_t)mp->size * sizeof(int)), n = 0;
    rank_team_t t;

    for (int r = 0; r < mp->size; r += 2)
        expect[n++] = r;
    for (int r = 1; r < mp->size; r += 2)
        expect[n++] = r;
    MP_OK(rank_team_split(mp->world, 0x7fffffff, mp->rank & 1 ? 0x7fffffff : -0x7fffffff - 1, &t));
    talk(mp, t, expect, mp->size);
    MP_OK(rank_team_free(&t));
    free(expect);
}

static void undefined(struct mp *mp)
{
    int expect[1] = {mp->rank};
    rank_team_t t = mp->world;

    MP_OK(rank_team_split(mp->world, mp->rank == mp->size - 1 ? 4 : RANK_UNDEFINED, 0, &t));
    if (mp->rank == mp->size - 1) {
        talk(mp, t, expect, 1);
        MP_OK(rank_team_free(&t));
    } else {
        MP_CHECK(t == RANK_TEAM_NULL);
    }
    t = mp->world;
    MP_OK(rank_team_split(mp->world, RANK_UNDEFINED, 0, &t));
    MP_CHECK(t == RANK_TEAM_NULL);
    /* A bad color on every rank: an error, and the next split is in step. */
    MP_STATUS(rank_team_split(mp->world, -7, 0, &t), RANK_ERR_ARG);
}

/* Those that shm reaches, and no others: not those of this host that only the network reaches. */
static void shared(struct mp *mp)
{
    int *expect = mp_alloc((size_t)mp->size * sizeof(int)), n = 0;
    rank_team_t t;

    for (int r = 0; r < mp->size; r++) {
        if (r == mp->rank || strcmp(rank_channel_name(mp->world, r), "shm") == 0)
            expect[n++] = r;
    }
    MP_OK(rank_team_split_shared(mp->world, 0, &t));
    talk(mp, t, expect, n);
    MP_OK(rank_team_free(&t));
    free(expect);
}

/* Each rank has the same map; nodes are numbered by their lowest ranks, and ranks that share memory have one node. */
static void nodes(struct mp *mp)
{
    int *mine = mp_alloc((size_t)mp->size * sizeof(int)), next = 0;
    int *all = mp_alloc((size_t)mp->size * (size_t)mp->size * sizeof(int));

    for (int r = 0; r < mp->size; r++)
        mine[r] = rank_node_of(r, mp->world);
    if (mine[0] == RANK_ERR_NOT_SUPPORTED && !getenv("XRUN_RANK"))
        printf("the launcher does not report the nodes\n");
    else
        MP_CHECK_EQ(mine[0], 0);
    MP_OK(rank_allgather(mine, all, mp->size, RANK_INT32, mp->world));
    for (int r = 0; r < mp->size && mine[0] == 0; r++) {
        MP_CHECK(mine[r] >= 0 && mine[r] <= next);
        next += mine[r] == next;
        MP_CHECK(strcmp(rank_channel_name(mp->world, r), "shm") != 0 || mine[r] == mine[mp->rank]);
        for (int k = 0; k < mp->size; k++)
            MP_CHECK_EQ(all[r * mp->size + k], mine[k]);
    }
    free(mine);
    free(all);
}

/* A random list of ranks, drawn alike by all; own: this rank's index, or -1. */
static int draw_list(struct mp *mp, uint64_t *common, int *list, int *own)
{
    int n = 1 + (int)mp_below(common, (uint64_t)mp->size);

    for (int r = 0; r < mp->size; r++)
        list[r] = r;
    *own = -1;
    for (int i = 0; i < n; i++) {
        int k = i + (int)mp_below(common, (uint64_t)(mp->size - i)), r = list[k];
        list[k] = list[i];
        list[i] = r;
        if (r == mp->rank)
            *own = i;
    }
    return n;
}

/* Two lists of ranks of the world. */
static rank_team_relation_t relation(const int *a, int na, const int *b, int nb)
{
    bool same = na == nb;
    int common = 0;

    for (int i = 0; i < na; i++) {
        same = same && a[i] == b[i];
        for (int k = 0; k < nb; k++)
            common += a[i] == b[k];
    }
    return same ? RANK_TEAM_CONGRUENT : na == nb && common == na ? RANK_TEAM_SIMILAR : RANK_TEAM_UNEQUAL;
}

/*
 * Teams of random lists, which have ranks in common, with few tags; their lists again from a team that has another
 * order. Meanwhile a receive of any message waits on the parent, and a collective runs there.
 */
static void lists(struct mp *mp)
{
    int *list = mp_alloc((size_t)mp->size * sizeof(int)), *expect = mp_alloc((size_t)mp->size * sizeof(int)), own;
    uint64_t common = mp->seed, random = mp->seed + (uint64_t)mp->rank;
    rank_team_t parent[2], t;

    MP_OK(rank_team_dup(mp->world, &parent[0]));
    MP_OK(rank_team_split(mp->world, 0, -mp->rank, &parent[1]));
    for (int round = 0; round < 60; round++) {
        rank_request_t req[2];
        int64_t one = 1, sum = 0, any = -1, number = round;
        bool reversed = mp_below(&common, 2);

        MP_OK(rank_irecv(&any, 1, RANK_INT64, RANK_ANY_SOURCE, RANK_ANY_TAG, parent[reversed], &req[0]));
        if (mp_below(&random, 2))
            mp_delay(mp, &random);
        MP_OK(rank_iallreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, parent[reversed], &req[1]));
        for (int i = 0; i < 4; i++) {
            int n = draw_list(mp, &common, list, &own);
            int64_t tag = (int64_t)mp_below(&common, 2) * (INT64_MAX - 1);
            for (int k = 0; k < n; k++)
                expect[k] = reversed ? mp->size - 1 - list[k] : list[k];
            own = -1;
            for (int k = 0; k < n; k++) {
                if (expect[k] == mp->rank)
                    own = k;
            }
            t = RANK_TEAM_NULL;
            if (own < 0) {
                MP_STATUS(rank_team_create(parent[reversed], n, list, tag, &t), RANK_ERR_ARG);
                MP_CHECK(t == RANK_TEAM_NULL);
                continue;
            }
            MP_OK(rank_team_create(parent[reversed], n, list, tag, &t));
            talk(mp, t, expect, n);
            MP_OK(rank_team_members(parent[1], list, mp->size));
            MP_OK(rank_team_compare(t, parent[1], &own));
            MP_CHECK_EQ(own, relation(expect, n, list, mp->size));
            MP_OK(rank_team_compare(t, t, &own));
            MP_CHECK_EQ(own, RANK_TEAM_IDENT);
            MP_OK(rank_team_free(&t));
        }
        MP_CHECK_EQ(any, -1); /* none of that met the receive */
        MP_OK(rank_send(&number, 1, RANK_INT64, rank_team_rank(parent[reversed]), 3, parent[reversed]));
        MP_OK(rank_waitall(2, req, NULL));
        MP_CHECK_EQ(any, round);
        MP_CHECK_EQ(sum, mp->size);
    }
    MP_OK(rank_team_free(&parent[0]));
    MP_OK(rank_team_free(&parent[1]));
    free(list);
    free(expect);
}

/* The same tag and source on three teams: each receive gets its own team's message, though they
 * are requested in another order. */
static void apart(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_team_t team[3] = {mp->world, RANK_TEAM_NULL, RANK_TEAM_NULL};
    rank_request_t req[3];
    int32_t out[3], in;
    int found;

    MP_OK(rank_team_dup(mp->world, &team[1]));
    MP_OK(rank_team_dup(team[1], &team[2]));
    for (int i = 0; i < 3; i++) {
        MP_CHECK_EQ(rank_team_rank(team[i]), mp->rank);
        MP_CHECK_EQ(rank_team_size(team[i]), mp->size);
        out[i] = 100 * i + mp->rank;
        MP_OK(rank_isend(&out[i], 1, RANK_INT32, to, 9, team[i], &req[i]));
    }
    for (int i = 2; i >= 0; i--) {
        rank_envelope_t env;
        MP_OK(rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, i ? RANK_ANY_TAG : 9, team[i], &env));
        MP_CHECK_EQ(in, 100 * i + from);
        MP_CHECK_EQ(env.source, from);
        MP_OK(rank_iprobe(RANK_ANY_SOURCE, 9, team[i], &found, NULL));
        MP_CHECK_EQ(found, 0);
    }
    MP_OK(rank_waitall(3, req, NULL));
    MP_OK(rank_barrier(mp->world)); /* nothing in flight on what we free */
    MP_OK(rank_team_free(&team[2]));
    MP_OK(rank_team_free(&team[1]));
}

/* A message may come before the team exists at the receiver. */
static void early(struct mp *mp)
{
    for (int i = 0; i < 30; i++) {
        rank_team_t t;
        int32_t v = i;
        MP_OK(rank_team_dup(mp->world, &t));
        if (mp->rank == i % mp->size) { /* first out of dup, perhaps */
            for (int r = 0; r < mp->size; r++) {
                rank_request_t req;
                MP_OK(rank_isend(&v, 1, RANK_INT32, r, 2, t, &req));
                MP_OK(rank_wait(&req, NULL));
            }
        }
        v = -1;
        MP_OK(rank_recv(&v, 1, RANK_INT32, i % mp->size, 2, t, NULL));
        MP_CHECK_EQ(v, i);
        MP_OK(rank_team_free(&t));
    }
}

/* Halves of halves, all alive at once, down to single ranks. */
static void nested(struct mp *mp)
{
    rank_team_t team[8] = {mp->world};
    int lo = 0, n = mp->size, depth = 0;

    while (n > 1) {
        int half = (n + 1) / 2, upper = mp->rank - lo >= half;
        int expect[64];
        MP_OK(rank_team_split(team[depth], upper, 0, &team[depth + 1]));
        depth++;
        if (upper)
            lo += half;
        n = upper ? n - half : half;
        for (int i = 0; i < n; i++)
            expect[i] = lo + i;
        talk(mp, team[depth], expect, n);
    }
    for (; depth > 0; depth--)
        MP_OK(rank_team_free(&team[depth]));
    mp_barrier(mp->world);
}

/* Disjoint teams make teams of their own at the same time: ids must not meet. */
static void disjoint(struct mp *mp)
{
    rank_team_t half, sub[10];
    int32_t out, in;

    MP_OK(rank_team_split(mp->world, mp->rank & 1, 0, &half));
    for (int i = 0; i < 10; i++)
        MP_OK(rank_team_dup(half, &sub[i]));
    for (int i = 9; i >= 0; i--) {
        int r = rank_team_rank(sub[i]), n = rank_team_size(sub[i]);
        out = i * 1000 + mp->rank;
        MP_OK(rank_sendrecv(&out, 1, RANK_INT32, (r + 1) % n, 0, &in, 1, RANK_INT32,
                            (r - 1 + n) % n, 0, sub[i], NULL));
        MP_CHECK_EQ(in / 1000, i);
        MP_CHECK_EQ(in % 1000, 2 * ((r - 1 + n) % n) + (mp->rank & 1));
    }
    mp_barrier(half);
    for (int i = 0; i < 10; i++)
        MP_OK(rank_team_free(&sub[i]));
    MP_OK(rank_team_free(&half));
}

/* Unreceived messages are dropped when their team is freed, whether they have arrived by then or not: they do not use up the memory
 * for unexpected messages, although more of them are sent than fit there. */
static void unread(struct mp *mp)
{
    enum { ROUNDS = 100, MESSAGES = 700 /* within a window */, EACH = 200 /* bytes of memory, at least */ };
    int64_t before, grown;

    before = mp_status_kb("VmHWM");
    for (int i = 0; i < ROUNDS; i++) {
        rank_team_t t;
        MP_OK(rank_team_dup(mp->world, &t));
        for (int k = 0; k < MESSAGES; k++)
            MP_OK(rank_send(&before, 1, RANK_INT64, (mp->rank + 1) % mp->size, 3, t));
        mp_barrier(mp->world);
        MP_OK(rank_team_free(&t));
    }
    grown = mp_status_kb("VmHWM") - before;
    printf("teams: %d messages that are never received: memory grew by %lld kB\n", ROUNDS * MESSAGES, (long long)grown);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    MP_CHECK(grown < ROUNDS * MESSAGES * EACH / 2000);
#endif
}

/* The sender of a message that is never received does not wait for ever: its team is freed while the message is here, or before. */
static void unread_sync(struct mp *mp)
{
    static const int64_t lengths[] = {8, 1000, 100000};
    char *some = mp_alloc(100000);

    memset(some, 1, 100000);
    for (int i = 0; i < 6 && mp->size > 1; i++) {
        bool before = i & 1;
        rank_team_t t;
        MP_OK(rank_team_dup(mp->world, &t));
        if (mp->rank == 0) {
            if (before)
                MP_OK(rank_recv(NULL, 0, RANK_BYTE, 1, 4, mp->world, NULL));
            MP_OK(rank_ssend(some, lengths[i / 2], RANK_BYTE, 1, 5, t));
        } else if (mp->rank == 1 && !before) {
            MP_OK(rank_probe(0, 5, t, NULL));
        }
        MP_OK(rank_team_free(&t));
        if (mp->rank == 1 && before)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, 0, 4, mp->world));
        mp_barrier(mp->world);
    }
    free(some);
}

enum { PARKED_MAX = 4, MESSAGES_MAX = 200, BCAST = 40000 };

/* What is pending on a team that has been freed. */
struct parked {
    int n, root, round;
    rank_request_t req[MESSAGES_MAX + 4];
    struct {
        char *buf;
        size_t bytes;
        uint64_t key;
        bool received;
    } message[MESSAGES_MAX];
    int nmessages;
    int64_t mine, sum;
    char *bcast;
    rank_request_t never;
};

static const int64_t parked_sizes[] = {0, 8, 3000, 100000};

/* Messages between all, drawn alike by all, a tag each, and three collectives; then the team is freed at once. */
static void park(struct mp *mp, struct parked *f, int round, uint64_t *common, uint64_t *random)
{
    rank_team_t t, gone;

    MP_OK(rank_team_dup(mp->world, &t));
    f->n = f->nmessages = 0;
    f->round = round;
    for (int tag = 0; tag < 3 * mp->size; tag++) {
        int from = (int)mp_below(common, (uint64_t)mp->size), to = (int)mp_below(common, (uint64_t)mp->size);
        size_t bytes = (size_t)parked_sizes[mp_below(common, 4)];

        for (int in = 0; in < 2; in++) {
            if (mp->rank != (in ? to : from))
                continue;
            MP_CHECK(f->nmessages < MESSAGES_MAX);
            f->message[f->nmessages].buf = mp_alloc(bytes);
            f->message[f->nmessages].bytes = bytes;
            f->message[f->nmessages].received = in;
            f->message[f->nmessages].key = (uint64_t)round << 32 | (uint64_t)tag;
            if (in) {
                MP_OK(rank_irecv(f->message[f->nmessages].buf, (int64_t)bytes, RANK_BYTE,
                                 mp_below(random, 2) ? RANK_ANY_SOURCE : from, tag, t, &f->req[f->n++]));
            } else {
                mp_fill(f->message[f->nmessages].buf, bytes, f->message[f->nmessages].key);
                MP_OK((mp_below(random, 2) ? rank_isend : rank_issend)(f->message[f->nmessages].buf, (int64_t)bytes, RANK_BYTE,
                                                                       to, tag, t, &f->req[f->n++]));
            }
            f->nmessages++;
        }
    }
    MP_OK(rank_irecv(NULL, 0, RANK_BYTE, RANK_ANY_SOURCE, 100000, t, &f->never));
    f->root = (int)mp_below(common, (uint64_t)mp->size);
    f->bcast = mp_alloc(BCAST);
    mp_fill(f->bcast, BCAST, (uint64_t)(mp->rank == f->root ? round : -1));
    f->mine = mp->rank + round;
    MP_OK(rank_iallreduce(&f->mine, &f->sum, 1, RANK_INT64, RANK_SUM, t, &f->req[f->n++]));
    MP_OK(rank_ibcast(f->bcast, BCAST, RANK_BYTE, f->root, t, &f->req[f->n++]));
    MP_OK(rank_ibarrier(t, &f->req[f->n++]));
    gone = t;
    MP_OK(rank_team_free(&t));
    MP_CHECK(t == RANK_TEAM_NULL);
    MP_CHECK_EQ(rank_team_size(gone), RANK_ERR_HANDLE);
}

static void unpark(struct mp *mp, struct parked *f)
{
    MP_OK(rank_waitall(f->n, f->req, NULL));
    MP_OK(rank_cancel(&f->never));
    MP_STATUS(rank_wait(&f->never, NULL), RANK_ERR_CANCELED);
    for (int i = 0; i < f->nmessages; i++) {
        if (f->message[i].received)
            MP_CHECK_EQ(mp_verify(f->message[i].buf, f->message[i].bytes, f->message[i].key), -1);
        free(f->message[i].buf);
    }
    MP_CHECK_EQ(f->sum, (int64_t)mp->size * f->round + (int64_t)mp->size * (mp->size - 1) / 2);
    MP_CHECK_EQ(mp_verify(f->bcast, BCAST, (uint64_t)f->round), -1);
    free(f->bcast);
}

/* Teams are freed with operations pending, which complete while other teams come and go. */
static void free_pending(struct mp *mp)
{
    struct parked *f = mp_alloc(PARKED_MAX * sizeof(*f));
    uint64_t common = mp->seed, random = mp->seed + 1 + (uint64_t)mp->rank;
    int rounds = (int)mp_rounds(60);

    for (int round = 0; round < rounds + PARKED_MAX; round++) {
        if (round >= PARKED_MAX)
            unpark(mp, &f[round % PARKED_MAX]);
        if (round < rounds)
            park(mp, &f[round % PARKED_MAX], round, &common, &random);
    }
    free(f);
}

/* The memory of a team goes once nothing is pending on it. */
static void free_pending_often(struct mp *mp)
{
    enum { ROUNDS = 2000, GROWTH_KB = 250 /* about half of their memory */ };
    int64_t before = mp_status_kb("VmHWM");

    for (int i = 0; i < ROUNDS; i++) {
        rank_request_t req;
        rank_team_t t;
        MP_OK(rank_team_dup(mp->world, &t));
        MP_OK(rank_irecv(NULL, 0, RANK_BYTE, mp->rank, 1, t, &req));
        MP_OK(rank_team_free(&t));
        MP_OK(rank_cancel(&req));
        MP_STATUS(rank_wait(&req, NULL), RANK_ERR_CANCELED);
    }
    before = mp_status_kb("VmHWM") - before;
    printf("teams: %d were freed with a receive pending: memory grew by %lld kB\n", ROUNDS, (long long)before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    MP_CHECK(before < GROWTH_KB);
#endif
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "split");
    split(&mp);
    mp_case(&mp, "keys");
    keys(&mp);
    mp_case(&mp, "undefined");
    undefined(&mp);
    mp_case(&mp, "shared");
    shared(&mp);
    mp_case(&mp, "nodes");
    nodes(&mp);
    mp_case(&mp, "lists");
    lists(&mp);
    mp_case(&mp, "apart");
    apart(&mp);
    mp_case(&mp, "early");
    early(&mp);
    mp_case(&mp, "nested");
    nested(&mp);
    mp_case(&mp, "disjoint");
    disjoint(&mp);
    mp_case(&mp, "unread");
    unread(&mp);
    unread_sync(&mp);
    mp_case(&mp, "free_pending");
    free_pending(&mp);
    if (!mp_flag(argc, argv, "--short"))
        free_pending_often(&mp);
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}
