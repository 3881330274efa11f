/* SPDX-License-Identifier: BSD-3-Clause */
/* mp.c: see mp.h. */
#include "tests/mp/mp.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Far from the tags that tests use. */
enum { BARRIER_TAG = 0x7ba7000 };

static const char *running = "start"; /* the case, for mp_fail */
static uint64_t the_seed;              /* the same */

double mp_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void mp_fail(const char *file, int line, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (rank_initialized())
        fprintf(stderr, "rank %d, ", rank_team_rank(rank_world()));
    fprintf(stderr, "case %s: %s:%d: %s (--seed %llu)\n", running, file, line, text, (unsigned long long)the_seed);
    fflush(NULL);
    if (!rank_initialized())
        _exit(99);
    rank_abort(99, "a check failed");
}

void mp_check_status(const char *file, int line, const char *what, rank_status_t got,
                     rank_status_t want)
{
    if (got != want)
        mp_fail(file, line, "%s gave %d (%s), not %d (%s)", what, (int)got,
                rank_status_string(got), (int)want, rank_status_string(want));
}

/* The machine's description that a PMIx server of version 5 shows to its clients: PMIx keeps it open. */
static bool is_topology(int dir, const char *name)
{
    char to[512];
    ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);

    if (n < 0)
        return false;
    to[n] = '\0';
    return strstr(to, "/hwloc.sm") != NULL;
}

int mp_count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    int n = 0;

    if (!d)
        return -1;
    while ((e = readdir(d)))
        n += e->d_name[0] != '.' && !is_topology(dirfd(d), e->d_name);
    closedir(d);
    return n - 1; /* the directory's own */
}

int64_t mp_status_kb(const char *field)
{
    FILE *f = fopen("/proc/self/status", "re");
    size_t len = strlen(field);
    long long kb = -1;
    char line[256];

    if (!f)
        return -1;
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, field, len) == 0 && line[len] == ':')
            kb = strtoll(line + len + 1, NULL, 10);
    }
    fclose(f);
    return kb;
}

int64_t mp_option(int argc, char **argv, const char *option, int64_t dflt)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            return strtoll(argv[i + 1], NULL, 0);
    }
    return dflt;
}

int64_t mp_rounds(int64_t n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return (n + 2) / 3;
#else
    return n;
#endif
}

bool mp_flag(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            return true;
    }
    return false;
}

void mp_start(struct mp *mp, int *argc, char **argv)
{
    mp_start_level(mp, argc, argv, RANK_THREAD_SERIALIZED);
}

/* Mostly not, or the core goes to another rank, or a while, and now and then one so long that all others wait. */
void mp_delay(const struct mp *mp, uint64_t *random)
{
    uint64_t what;

    if (mp->delay <= 0)
        return;
    what = mp_below(random, 256);
    if (what == 0)
        usleep((useconds_t)(20 * mp->delay));
    else if (what < 24)
        usleep((useconds_t)mp_below(random, (uint64_t)mp->delay));
    else if (what < 80)
        sched_yield();
}

void mp_start_level(struct mp *mp, int *argc, char **argv, rank_thread_level_t level)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    int64_t seed = mp_option(*argc, argv, "--seed", -1);

    opts.thread_level = level;
    memset(mp, 0, sizeof(*mp));
    mp->name = "start";
    mp->fds = mp_count_fds();
    MP_OK(rank_init(level == RANK_THREAD_SERIALIZED ? NULL : &opts));
    MP_CHECK_EQ(rank_thread_level(), level);
    mp->world = rank_world();
    MP_CHECK(mp->world != RANK_TEAM_NULL);
    mp->rank = rank_team_rank(mp->world);
    mp->size = rank_team_size(mp->world);
    MP_CHECK(mp->rank >= 0 && mp->rank < mp->size);
    mp->delay = mp_option(*argc, argv, "--delay", 0);
    mp->seed = seed >= 0 ? (uint64_t)seed : (uint64_t)(mp_now() * 1e6) % 1000000007u;
    for (int r = 1; r < mp->size && mp->rank == 0; r++)
        MP_OK(rank_send(&mp->seed, 1, RANK_UINT64, r, BARRIER_TAG, mp->world));
    if (mp->rank > 0)
        MP_OK(rank_recv(&mp->seed, 1, RANK_UINT64, 0, BARRIER_TAG, mp->world, NULL));
    the_seed = mp->seed;
    if (mp->rank == 0) {
        printf("seed %llu\n", (unsigned long long)mp->seed);
        fflush(stdout); /* the failure may end this process */
    }
}

static void end(struct mp *mp)
{
    running = "finalize";
    MP_OK(rank_finalize());
    MP_CHECK(!rank_initialized());
    mp->world = RANK_TEAM_NULL;
}

void mp_end(struct mp *mp)
{
    int fds;

    end(mp);
    fds = mp_count_fds();
    if (fds > mp->fds)
        mp_fail(__FILE__, __LINE__, "%d descriptors open, %d before rank_init", fds, mp->fds);
    printf("mp: done\n");
    fflush(stdout);
}

void mp_end_survivor(struct mp *mp)
{
    end(mp);
    printf("mp: done\n");
    fflush(stdout);
}

void mp_case(struct mp *mp, const char *name)
{
    running = mp->name = name;
    if (mp->rank == 0)
        printf("case %s\n", name);
    mp_barrier(mp->world);
}

void mp_name_case(const char *name, uint64_t seed)
{
    running = name;
    the_seed = seed;
}

/* Dissemination: after round k each rank has the news of 2^(k+1) ranks. */
void mp_barrier(rank_team_t team)
{
    int rank = rank_team_rank(team), size = rank_team_size(team), round = 0;
    char out = 1, in = 0;

    for (int d = 1; d < size; d *= 2, round++)
        MP_OK(rank_sendrecv(&out, 1, RANK_BYTE, (rank + d) % size, BARRIER_TAG + 1 + round, &in, 1,
                            RANK_BYTE, (rank - d + size) % size, BARRIER_TAG + 1 + round, team,
                            NULL));
}

/* Eight bytes at a time: big messages must not be slow to check. */
static uint64_t word_at(uint64_t key, uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u ^ key * 0xd6e8feb86659fd93u;

    return z ^ (z >> 29);
}

void mp_fill(void *buf, size_t bytes, uint64_t key)
{
    unsigned char *p = buf;
    size_t i = 0;
    uint64_t w;

    for (; i + 8 <= bytes; i += 8) {
        w = word_at(key, i);
        memcpy(p + i, &w, 8);
    }
    w = word_at(key, i);
    memcpy(p + i, &w, bytes - i);
}

int64_t mp_verify(const void *buf, size_t bytes, uint64_t key)
{
    const unsigned char *p = buf;

    for (size_t i = 0; i < bytes; i += 8) {
        size_t n = bytes - i < 8 ? bytes - i : 8;
        uint64_t w = word_at(key, i);
        if (memcmp(p + i, &w, n) == 0)
            continue;
        for (size_t j = 0; j < n; j++) {
            if (p[i + j] != ((unsigned char *)&w)[j])
                return (int64_t)(i + j);
        }
    }
    return -1;
}

void *mp_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    if (!p)
        mp_fail(__FILE__, __LINE__, "no memory for %zu bytes", bytes);
    return p;
}

static void *kill_self(void *arg)
{
    const double *when = arg;
    struct timespec t = {(time_t)*when, (long)((*when - (double)(time_t)*when) * 1e9)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
    kill(getpid(), SIGKILL);
    return NULL;
}

void mp_die_at(const double *when)
{
    pthread_t thread;

    MP_CHECK_EQ(pthread_create(&thread, NULL, kill_self, (void *)(uintptr_t)when), 0);
}
