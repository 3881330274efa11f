/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random_stops.c: stop and continue a rank's program at random, all on one core.
 *
 *   random_stops [--seed N] [--apart] PROGRAM ARGS...
 *
 * --apart: each has the cores that the launcher gave it, so that the others run on while it is stopped.
 *
 * The program takes this process over, so its pid is the rank's. A child remains that sends SIGSTOP and
 * SIGCONT until the rank has ended, and that holds nothing of it open. Rank 0 prints the seed, which is the job's own
 * without --seed; each rank's moments follow from it and from the rank.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static uint64_t below(uint64_t *state, uint64_t n)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

/* The same core for all, whatever the launcher has bound this rank to: the first that it may use at all. */
static int share_a_core(void)
{
    cpu_set_t all, one;
    size_t cpu = 0;

    memset(&all, 0xff, sizeof(all));
    CPU_ZERO(&one);
    if (sched_setaffinity(0, sizeof(all), &all) != 0 || sched_getaffinity(0, sizeof(all), &all) != 0)
        return -1;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &all))
        cpu++;
    if (cpu == CPU_SETSIZE)
        return -1;
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one);
}

static void pass(uint64_t us)
{
    struct timespec t = {0, (long)us * 1000};

    nanosleep(&t, NULL);
}

/* The same for all ranks of a job, and another for each job. */
static uint64_t seed_of_job(void)
{
    const char *job = getenv("PMIX_NAMESPACE");
    uint64_t h = 14695981039346656037u;
    struct timespec now;

    if (!job || !*job) {
        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec;
    }
    for (; *job; job++)
        h = (h ^ (unsigned char)*job) * 1099511628211u;
    return h % 1000000007u;
}

/* Mostly as short as a slice of the scheduler's, now and then so long that all others wait for this one. Where they
 * do not wait for the core, too, all is sooner over. */
static void stop_and_go(pid_t rank, uint64_t random, uint64_t most_us)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return;
    while (getppid() == rank) {
        pass(below(&random, most_us * 3 / 2));
        kill(rank, SIGSTOP);
        pass(below(&random, below(&random, 16) == 0 ? most_us * 10 : most_us));
        kill(rank, SIGCONT);
    }
}

int main(int argc, char **argv)
{
    const char *which = getenv("PMIX_RANK");
    uint64_t seed, rank = which ? strtoull(which, NULL, 10) : 0;
    pid_t me = getpid(), child;
    bool apart = false;

    seed = seed_of_job();
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        argv += 2;
        argc -= 2;
    }
    if (argc > 1 && strcmp(argv[1], "--apart") == 0) {
        apart = true;
        argv++;
        argc--;
    }
    if (argc < 2) {
        fprintf(stderr, "random_stops: there is no program; stutter [--seed N] [--apart] PROGRAM ARGS...\n");
        return 2;
    }
    if (!apart && share_a_core() != 0) {
        perror("random_stops: cannot bind to a core");
        return 2;
    }
    if (rank == 0) {
        fprintf(stderr, "random_stops: seed %llu\n", (unsigned long long)seed);
        fflush(stderr);
    }
    child = fork();
    if (child < 0) {
        perror("random_stops: fork");
        return 2;
    }
    if (child == 0) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        stop_and_go(me, seed * 1000003 + rank, apart ? 1000 : 4000);
        _exit(0);
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    kill(child, SIGKILL);
    return 2;
}
