/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_spawn.c: spawn children with rank_spawn, and lose some.
 * Parents and children of several sizes on one team; several families at once; grandchildren; failures. The children are this
 * program with --child.
 *
 *   --alone              without a launcher
 *   --failures           what cannot be started, or does not join; launchers end badly for that
 *   --die child|parent   a rank of one side is killed while the other waits for it; --spoke: after it
 *                        has talked to all others; --freeing: while all others free the team, or finalize
 *   --die root           by its child, while it is in rank_spawn
 *   --part free|last     the children fail once the only team, or the last of several, has been freed
 *   --part held|other    a team with them is left
 *   --again N            N jobs, one after another: a later one has the numbers of the one before
 *   --beside N           N children come and go; their output is checked from outside; --shown: where each is, and
 *                        what of its environment comes from xrun
 */
#include "tests/mp/mp.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char self[4096];

/* Spawn n children of this program, which do what --child names. */
static rank_status_t spawn(rank_team_t team, int root, int n, const char *what, rank_team_t *both)
{
    const char *args[] = {"--child", what, NULL}, *env[] = {"MP_SPAWN_TEST=1", NULL};
    rank_spawn_params_t p = {.size = sizeof(p), .program = self, .args = args, .env = env, .n = n};

    *both = RANK_TEAM_NULL;
    /* The arguments of the others are ignored. */
    return rank_spawn(rank_team_rank(team) == root ? &p : NULL, root, team, both);
}

/* All to all, short and long; first: what a rank of the team adds to its place. */
static void talk(rank_team_t team)
{
    static const int64_t sizes[] = {8, 5000, 300000};
    int rank = rank_team_rank(team), size = rank_team_size(team);

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        char *out = mp_alloc((size_t)sizes[s]), *in = mp_alloc((size_t)sizes[s]);
        for (int d = 0; d < size; d++) {
            int to = (rank + d) % size, from = (rank - d + size) % size;
            rank_envelope_t env;
            mp_fill(out, (size_t)sizes[s], (uint64_t)(rank * 1000 + to));
            memset(in, 0, (size_t)sizes[s]);
            MP_OK(rank_sendrecv(out, sizes[s], RANK_BYTE, to, 3, in, sizes[s], RANK_BYTE,
                                d % 2 ? RANK_ANY_SOURCE : from, d % 2 ? 3 : RANK_ANY_TAG, team,
                                &env));
            MP_CHECK_EQ(mp_verify(in, (size_t)sizes[s], (uint64_t)(env.source * 1000 + rank)), -1);
            mp_barrier(team);
        }
        free(out);
        free(in);
    }
}

static void ssend(rank_team_t team)
{
    int rank = rank_team_rank(team), size = rank_team_size(team);
    int32_t v = rank;

    if (rank == 0) {
        for (int r = 1; r < size; r++)
            MP_OK(rank_ssend(&v, 1, RANK_INT32, r, 4, team));
    } else {
        MP_OK(rank_recv(&v, 1, RANK_INT32, 0, 4, team, NULL));
        MP_CHECK_EQ(v, 0);
    }
}

static void collect(rank_team_t team)
{
    int rank = rank_team_rank(team), size = rank_team_size(team);
    int64_t one[1] = {rank + 1}, sum[1], *all = mp_alloc((size_t)size * sizeof(*all));
    double *big = mp_alloc(20000 * sizeof(*big));

    MP_OK(rank_allreduce(one, sum, 1, RANK_INT64, RANK_SUM, team));
    MP_CHECK_EQ(sum[0], (int64_t)size * (size + 1) / 2);
    MP_OK(rank_allgather(one, all, 1, RANK_INT64, team));
    for (int r = 0; r < size; r++)
        MP_CHECK_EQ(all[r], r + 1);
    for (int i = 0; i < 20000; i++)
        big[i] = i % 100 + rank;
    MP_OK(rank_allreduce(RANK_IN_PLACE, big, 20000, RANK_F64, RANK_SUM, team));
    for (int i = 0; i < 20000; i++)
        MP_CHECK_EQ(big[i], (int64_t)size * (i % 100) + (int64_t)size * (size - 1) / 2);
    MP_OK(rank_bcast(one, 1, RANK_INT64, size - 1, team));
    MP_CHECK_EQ(one[0], size);
    MP_OK(rank_barrier(team));
    free(all);
    free(big);
}

/* Put to the next, get from the one before, count at 0. */
static void one_sided(rank_team_t team)
{
    int rank = rank_team_rank(team), size = rank_team_size(team);
    int64_t v = 100 + rank, got = 0, one = 1, *part;
    rank_mem_t mem;
    void *ptr;

    MP_OK(rank_alloc(team, RANK_MEM_HOST, 64, &ptr, &mem));
    part = ptr;
    MP_OK(rank_put(&v, 8, (rank + 1) % size, mem, 8));
    MP_OK(rank_flush(mem, RANK_ALL));
    MP_OK(rank_barrier(team));
    MP_CHECK_EQ(part[1], 100 + (rank + size - 1) % size);
    MP_OK(rank_get(&got, 8, (rank + size - 1) % size, mem, 8));
    MP_CHECK_EQ(got, 100 + (rank + 2 * size - 2) % size);
    MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, 0, mem, 16, NULL));
    MP_OK(rank_flush(mem, RANK_ALL));
    MP_OK(rank_barrier(team));
    if (rank == 0)
        MP_CHECK_EQ(part[2], size);
    MP_OK(rank_free(&mem));
}

/* Each world out of the common team; a mix of both; all in the reverse order; the shared ones. */
static void split(rank_team_t team, int nparents)
{
    int rank = rank_team_rank(team), size = rank_team_size(team);
    rank_team_t t, u;

    MP_OK(rank_team_split(team, rank < nparents, 0, &t));
    MP_CHECK_EQ(rank_team_size(t), rank < nparents ? nparents : size - nparents);
    collect(t);
    MP_OK(rank_team_dup(t, &u));
    collect(u);
    MP_OK(rank_team_free(&u));
    MP_OK(rank_team_free(&t));

    MP_OK(rank_team_split(team, rank % 2, -rank, &t));
    MP_CHECK_EQ(rank_team_size(t), (size + 1 - rank % 2) / 2);
    MP_CHECK_EQ(rank_team_rank(t), (size - 1 - rank) / 2);
    talk(t);
    collect(t);
    MP_OK(rank_team_dup(t, &u));
    collect(u);
    MP_OK(rank_team_free(&t));
    collect(u);
    MP_OK(rank_team_free(&u));

    MP_OK(rank_team_split_shared(team, 0, &t));
    collect(t);
    one_sided(t);
    MP_OK(rank_team_free(&t));
}

static void use(rank_team_t both, int nparents)
{
    talk(both);
    ssend(both);
    collect(both);
    one_sided(both);
    split(both, nparents);
}

/* ------------------------------------------------------------------------- parents */

static void families(struct mp *mp)
{
    static const int children[] = {1, 2, 4};
    rank_team_t both;

    mp_case(mp, "families");
    for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
        int root = (int)i % mp->size;
        MP_OK(spawn(mp->world, root, children[i], "use", &both));
        MP_CHECK_EQ(rank_team_size(both), mp->size + children[i]);
        MP_CHECK_EQ(rank_team_rank(both), mp->rank);
        if (mp->rank == 0)
            MP_CHECK(strcmp(rank_channel_name(both, mp->size), "self") != 0);
        use(both, mp->size);
        collect(mp->world);
        MP_OK(rank_team_free(&both));
        MP_CHECK(both == RANK_TEAM_NULL);
    }
}

/* A part of the world spawns, in another order; the rest goes on. */
static void part(struct mp *mp)
{
    rank_team_t half, both;

    mp_case(mp, "part");
    MP_OK(rank_team_split(mp->world, mp->rank % 2, -mp->rank, &half));
    if (mp->rank % 2 == 0) {
        MP_OK(spawn(half, rank_team_size(half) - 1, 2, "use", &both));
        MP_CHECK_EQ(rank_team_rank(both), rank_team_rank(half));
        use(both, rank_team_size(half));
        MP_OK(rank_team_free(&both));
    }
    MP_OK(rank_team_free(&half));
    collect(mp->world);
}

/* Two families at once, and a third from parents and children of the second together. */
static void several(struct mp *mp)
{
    rank_team_t first, second, third;
    int n = mp->size;

    mp_case(mp, "several");
    MP_OK(spawn(mp->world, 0, 2, "use", &first));
    MP_OK(spawn(mp->world, n - 1, 1, "join", &second));
    use(first, n);
    MP_OK(spawn(second, n, 2, "use", &third)); /* the child is the root */
    MP_CHECK_EQ(rank_team_size(third), n + 3);
    use(third, n + 1);
    collect(second);
    MP_OK(rank_team_free(&third));
    MP_OK(rank_team_free(&second));
    MP_OK(rank_team_free(&first));
}

/* Children with children of their own. */
static void grandchildren(struct mp *mp)
{
    rank_team_t both;

    mp_case(mp, "grandchildren");
    MP_OK(spawn(mp->world, 0, 2, "spawn", &both));
    use(both, mp->size);
    MP_OK(rank_team_free(&both));
}

static void errors(struct mp *mp)
{
    rank_spawn_params_t p = {.size = sizeof(p), .program = "/no/such/program", .n = 2}, bad;
    rank_team_t both = mp->world, none = RANK_TEAM_NULL;
    int parents = 7;

    mp_case(mp, "errors");
    MP_STATUS(rank_spawn(&p, 0, none, &both), RANK_ERR_HANDLE);
    MP_STATUS(rank_spawn(&p, mp->size, mp->world, &both), RANK_ERR_RANK);
    MP_STATUS(rank_spawn(&p, 0, mp->world, mp->rank == mp->size - 1 ? NULL : &both), RANK_ERR_ARG);
    MP_STATUS(rank_spawn(NULL, 0, mp->world, &both), RANK_ERR_ARG);
    bad = p;
    bad.n = 0;
    MP_STATUS(rank_spawn(&bad, 0, mp->world, &both), RANK_ERR_COUNT);
    bad = p;
    bad.program = NULL;
    MP_STATUS(rank_spawn(&bad, 0, mp->world, &both), RANK_ERR_ARG);
    bad = p;
    bad.size = 3;
    MP_STATUS(rank_spawn(&bad, 0, mp->world, &both), RANK_ERR_ARG);
    MP_CHECK(both == mp->world);
    MP_STATUS(rank_parent(NULL, &parents), RANK_ERR_ARG);
    MP_OK(rank_parent(&both, &parents));
    MP_CHECK(both == RANK_TEAM_NULL);
    MP_CHECK_EQ(parents, 0);
    collect(mp->world);
}

/* What cannot be started, or does not join. */
static void failures(struct mp *mp)
{
    rank_spawn_params_t p = {.size = sizeof(p), .n = 2};
    rank_team_t both = mp->world;

    mp_case(mp, "failures");
    p.program = "/no/such/program";
    MP_STATUS(rank_spawn(&p, 0, mp->world, &both), RANK_ERR_SPAWN);
    MP_CHECK(both == mp->world);
    collect(mp->world);
    p.program = "/bin/true";
    MP_STATUS(rank_spawn(&p, mp->size - 1, mp->world, &both), RANK_ERR_PEER_DEAD);
    MP_CHECK(both == mp->world);
    collect(mp->world);
    MP_STATUS(spawn(mp->world, 0, 2, "early", &both), RANK_ERR_PEER_DEAD);
    collect(mp->world);
    MP_OK(spawn(mp->world, 0, 1, "use", &both)); /* and all is well again */
    use(both, mp->size);
    MP_OK(rank_team_free(&both));
}

/* Left to rank_finalize by all. */
static void leave(struct mp *mp)
{
    rank_team_t both;

    mp_case(mp, "leave");
    MP_OK(spawn(mp->world, 0, 2, "leave", &both));
    collect(both);
}

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    MP_CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/*
 * Connections go with their jobs, some of them while the next job comes. Every other job is silent: the first message between
 * some of its ranks and these is the one of the disconnection, which may come after it.
 */
static int come_and_go(struct mp *mp, int n)
{
    enum { WARM = 4, CLOSING_MAX = 8 };
    int before = 0;
    rank_team_t both;

    mp_case(mp, "come-and-go");
    for (int i = 0; i < n; i++) {
        bool silent = i % 2;

        MP_OK(spawn(mp->world, i % mp->size, 2, silent ? "go silently" : "go", &both));
        if (!silent)
            talk(both);
        MP_OK(rank_team_free(&both));
        if (i == WARM)
            before = open_descriptors();
    }
    collect(mp->world);
    printf("descriptors: %d, then %d\n", before, open_descriptors());
    MP_CHECK(n <= WARM || open_descriptors() <= before + CLOSING_MAX);
    mp_end(mp);
    return 0;
}

static void show(const char *name)
{
    static const char *const names[] = {"XRUN_RANK", "XRUN_SIZE", "XRUN_LOCAL_RANK", "XRUN_LOCAL_SIZE", "XRUN_NODE_RANK",
                                        "XRUN_NODES", "XRUN_JOB", "MP_GIVEN", "MP_SPAWN_TEST"};
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    printf("%s on %s:", name, host);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        printf(" %s", getenv(names[i]) ? getenv(names[i]) : "-");
    printf("\n");
}

static int beside(struct mp *mp, int n, bool shown)
{
    rank_team_t both;

    mp_case(mp, "beside");
    if (shown)
        show("parent");
    MP_OK(spawn(mp->world, 0, n, shown ? "show" : "leave", &both));
    collect(both);
    mp_end(mp);
    return 0;
}

/* The last child or the first parent is killed, and all others see it, whether they ever spoke to it or not.
 * A launcher may end the other ranks of its world as well. */
static void see_death(struct mp *mp, rank_team_t both, bool spoke, int victim, bool same_world)
{
    int64_t v[1] = {1}, sum[1], any[1];
    static uint64_t word;
    rank_request_t req[2];
    rank_envelope_t env;
    rank_mem_t own;

    MP_OK(rank_reg(&word, sizeof(word), &own)); /* the other job might have its key */
    if (spoke)
        talk(both);
    if (rank_team_rank(both) == victim)
        raise(SIGKILL);
    MP_OK(rank_irecv(v, 1, RANK_INT64, victim, 5, both, &req[0]));
    MP_OK(rank_irecv(any, 1, RANK_INT64, RANK_ANY_SOURCE, 6, both, &req[1]));
    MP_STATUS(rank_wait(&req[0], NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_wait(&req[1], &env), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_signal_wait(own, 0, RANK_CMP_NE, 0, RANK_ANY_SOURCE, NULL), RANK_ERR_PEER_DEAD);
    MP_OK(rank_dereg(&own));
    MP_STATUS(rank_allreduce(v, sum, 1, RANK_INT64, RANK_SUM, both), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_ssend(v, 1, RANK_INT64, victim, 5, both), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_team_dup(both, &both), RANK_ERR_PEER_DEAD);
    if (!same_world)
        collect(mp->world);
    MP_OK(rank_team_free(&both));
}

/* The victim is in no call; the others wait for it in rank_team_free, and the first one in rank_finalize. */
static void see_death_freeing(rank_team_t both, int victim)
{
    static double when;

    if (rank_team_rank(both) == victim) {
        when = mp_now() + 0.2;
        mp_die_at(&when);
        for (;;)
            pause();
    }
    if (rank_team_rank(both) == (victim == 0))
        return;
    MP_OK(rank_team_free(&both));
    MP_CHECK(both == RANK_TEAM_NULL);
}

static int die(struct mp *mp, const char *side, const char *how)
{
    bool of_child = strcmp(side, "child") == 0;
    rank_team_t both;
    char what[64];

    if (strcmp(side, "root") == 0) { /* in rank_spawn */
        snprintf(what, sizeof(what), "kill-%d", (int)getpid());
        mp_case(mp, what);
        MP_STATUS(spawn(mp->world, 0, 2, what, &both), RANK_ERR_PEER_DEAD);
        MP_CHECK(both == RANK_TEAM_NULL);
        mp_end_survivor(mp);
        return 0;
    }
    snprintf(what, sizeof(what), "die-%s-%s", side, how);
    mp_case(mp, what);
    MP_OK(spawn(mp->world, 0, 2, what, &both));
    if (strcmp(how, "freeing") == 0)
        see_death_freeing(both, of_child ? mp->size + 1 : 0);
    else
        see_death(mp, both, strcmp(how, "spoke") == 0, of_child ? mp->size + 1 : 0, !of_child);
    mp_end_survivor(mp);
    return 0;
}

/* Free what --part names. */
static void part_with(rank_team_t both, const char *how)
{
    rank_team_t half, again;

    if (strcmp(how, "held") == 0)
        return;
    if (strcmp(how, "free") != 0) {
        MP_OK(rank_team_split(both, rank_team_rank(both) % 2, 0, &half));
        MP_OK(rank_team_dup(both, &again));
        MP_OK(rank_team_free(&both));
        if (strcmp(how, "other") != 0)
            MP_OK(rank_team_free(&half));
        both = again;
    }
    MP_OK(rank_team_free(&both));
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All of the first nparents ranks notify each of the others that they need nothing from it any more. */
static void release_peers(rank_team_t both, int nparents)
{
    char c = 0;
    int me = rank_team_rank(both), n = rank_team_size(both);

    for (int i = nparents; i < n && me < nparents; i++)
        MP_OK(rank_send(&c, 1, RANK_BYTE, i, 7, both));
    for (int i = 0; i < nparents && me >= nparents; i++)
        MP_OK(rank_recv(&c, 1, RANK_BYTE, i, 7, both, NULL));
}

/* The children fail. Do we live on, well past the time in which jobs that are connected end? */
static int part_and_fail(struct mp *mp, const char *how)
{
    enum { AFTER_MS = 1500, END_MS = 20000 };
    int64_t mine = 0, pids[64] = {0}, begin, gone = 0;
    int32_t more = 1;
    int n = mp->size + 2;
    char what[64];
    rank_team_t both;

    snprintf(what, sizeof(what), "part-%s", how);
    mp_case(mp, what);
    MP_CHECK(n <= 64);
    MP_OK(spawn(mp->world, 0, 2, what, &both));
    MP_OK(rank_allgather(&mine, pids, 1, RANK_INT64, both));
    release_peers(both, mp->size);
    part_with(both, how);
    for (begin = now_ms(); more;) {
        collect(mp->world);
        if (!gone && kill((pid_t)pids[n - 1], 0) && kill((pid_t)pids[n - 2], 0) && errno == ESRCH)
            gone = now_ms();
        more = (!gone || now_ms() - gone < AFTER_MS) && now_ms() - begin < END_MS;
        MP_OK(rank_bcast(&more, 1, RANK_INT32, 0, mp->world));
    }
    printf("went on\n");
    mp_end(mp);
    return 0;
}

/* ------------------------------------------------------------------------ children */

static int child(struct mp *mp, const char *what)
{
    rank_team_t both, again, more;
    int nparents = 0;

    MP_CHECK(getenv("MP_SPAWN_TEST"));
    MP_OK(rank_parent(&both, &nparents));
    MP_CHECK(both != RANK_TEAM_NULL && nparents > 0);
    MP_OK(rank_parent(&again, NULL));
    MP_CHECK(again == both);
    MP_CHECK_EQ(rank_team_size(both), nparents + mp->size);
    MP_CHECK_EQ(rank_team_rank(both), nparents + mp->rank);
    if (strncmp(what, "die-", 4) == 0) {
        bool parent = strncmp(what, "die-parent", 10) == 0;
        if (strstr(what, "freeing"))
            see_death_freeing(both, parent ? 0 : nparents + 1);
        else
            see_death(mp, both, strstr(what, "spoke") != NULL, parent ? 0 : nparents + 1, !parent);
        MP_OK(rank_finalize());
        printf("child: done\n");
        return 0;
    }
    if (strncmp(what, "part-", 5) == 0) {
        int64_t pid = getpid(), pids[64];
        MP_OK(rank_allgather(&pid, pids, 1, RANK_INT64, both));
        release_peers(both, nparents);
        part_with(both, what + 5);
        fflush(stdout);
        _exit(3);
    }
    if (strcmp(what, "leave") == 0 || strcmp(what, "show") == 0) {
        if (strcmp(what, "show") == 0)
            show("child");
        collect(both);
        MP_OK(rank_finalize());
        return 0;
    }
    if (strncmp(what, "go", 2) == 0) {
        if (strcmp(what, "go") == 0)
            talk(both);
    } else if (strcmp(what, "join") == 0) {
        MP_OK(spawn(both, nparents, 2, "use", &more));
        use(more, nparents + 1);
        collect(both);
        MP_OK(rank_team_free(&more));
    } else {
        if (strcmp(what, "spawn") == 0) {
            MP_OK(spawn(mp->world, mp->size - 1, 2, "use", &more));
            use(more, mp->size);
            MP_OK(rank_team_free(&more));
        }
        use(both, nparents);
        collect(mp->world);
    }
    MP_OK(rank_team_free(&both));
    MP_OK(rank_parent(&both, &nparents));
    MP_CHECK(both == RANK_TEAM_NULL);
    MP_CHECK_EQ(nparents, 0);
    MP_OK(rank_finalize());
    return 0;
}

/* Before rank_init: all leave, with an error; or the first one kills the root, and none waits for it. */
static int before_init(const char *what)
{
    rank_status_t st;

    if (strcmp(what, "early") == 0)
        return 3;
    kill((pid_t)atoi(what + strlen("kill-")), SIGKILL);
    st = rank_init(NULL);
    printf("child: refused: %s\n", rank_status_string(st));
    return st ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct mp mp;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (argc > 2 && (strcmp(argv[2], "early") == 0 || strncmp(argv[2], "kill-", 5) == 0))
        return before_init(argv[2]);
    mp_start(&mp, &argc, argv);
    MP_CHECK(n > 0);
    if (argc > 2 && strcmp(argv[1], "--child") == 0)
        return child(&mp, argv[2]);
    if (argc > 2 && strcmp(argv[1], "--die") == 0)
        return die(&mp, argv[2], mp_flag(argc, argv, "--spoke") ? "spoke" : mp_flag(argc, argv, "--freeing") ? "freeing" : "silent");
    if (argc > 2 && strcmp(argv[1], "--part") == 0)
        return part_and_fail(&mp, argv[2]);
    if (argc > 2 && strcmp(argv[1], "--again") == 0)
        return come_and_go(&mp, atoi(argv[2]));
    if (argc > 2 && strcmp(argv[1], "--beside") == 0)
        return beside(&mp, atoi(argv[2]), mp_flag(argc, argv, "--shown"));
    if (mp_flag(argc, argv, "--alone")) {
        rank_spawn_params_t p = {.size = sizeof(p), .program = self, .n = 1};
        rank_team_t both;
        MP_STATUS(rank_spawn(&p, 0, mp.world, &both), RANK_ERR_NOT_SUPPORTED);
        mp_end(&mp);
        return 0;
    }
    if (mp_flag(argc, argv, "--failures")) {
        failures(&mp);
        mp_end(&mp);
        return 0;
    }
    errors(&mp);
    families(&mp);
    part(&mp);
    several(&mp);
    grandchildren(&mp);
    leave(&mp);
    mp_end(&mp);
    return 0;
}
