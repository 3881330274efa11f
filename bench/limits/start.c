/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.c: measure the least cost of starting two programs.
 * The work of the kernel and the dynamic loader for two that end at
 * once, and the same with a PMIx server that they join and leave, as little of it as there can be.
 *
 * One program plays all parts: "serve" is a launcher that does nothing else, "join" what it starts, "leave" the bare one.
 */
#include "bench/limits/limit_bench.h"

#include <pmix.h>
#include <pmix_server.h>
#include <semaphore.h>
#include <spawn.h>

enum { RUNS = 31, RANKS = 2 };

static const pmix_nspace_t space = "limit-start";
static sem_t come;
static pmix_server_module_t module;

static void start_on_answer(pmix_status_t status, void *arg)
{
    (void)arg;
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        limit_die(PMIx_Error_string(status));
    sem_post(&come);
}

static void start_check(pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "start: PMIx: %s\n", PMIx_Error_string(rc));
        exit(1);
    }
}

static pid_t start_limits(const char *part, char **env)
{
    char self[] = "/proc/self/exe", name[16];
    char *argv[] = {name, NULL};
    pid_t pid;
    int error;

    snprintf(name, sizeof(name), "%s", part);
    error = posix_spawn(&pid, self, NULL, NULL, argv, env);
    if (error) {
        errno = error;
        limit_die("posix_spawn");
    }
    return pid;
}

static int start_leave(void)
{
    return 0;
}

static int start_join(void)
{
    pmix_proc_t me;

    start_check(PMIx_Init(&me, NULL, 0));
    start_check(PMIx_Fence(NULL, 0, NULL, 0));
    start_check(PMIx_Finalize(NULL, 0));
    return 0;
}

static void start_register_job(void)
{
    uint32_t size = RANKS;
    pmix_info_t info[3];
    char *nodes, *procs;
    char host[64] = "";

    gethostname(host, sizeof(host) - 1);
    start_check(PMIx_generate_regex(host, &nodes));
    start_check(PMIx_generate_ppn("0,1", &procs));
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, procs, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    start_check(PMIx_server_register_nspace(space, RANKS, info, 3, start_on_answer, NULL));
    sem_wait(&come);
}

static int start_serve(void)
{
    extern char **environ;
    pid_t pid[RANKS];

    setenv("PMIX_MCA_gds", "hash", 1);
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    setenv("HWLOC_SYNTHETIC", "pu:1", 1);
    sem_init(&come, 0, 0);
    start_check(PMIx_server_init(&module, NULL, 0));
    start_register_job();
    for (int i = 0; i < RANKS; i++) {
        pmix_proc_t proc;
        char **env = NULL;
        size_t n = 0, have = 0;
        PMIX_LOAD_PROCID(&proc, space, (pmix_rank_t)i);
        start_check(PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, start_on_answer, NULL));
        sem_wait(&come);
        while (environ[n])
            n++;
        env = calloc(n + 1, sizeof(*env)); /* what there is, and what PMIx adds to it */
        for (size_t k = 0; env && k < n; k++)
            env[have++] = strdup(environ[k]);
        start_check(PMIx_server_setup_fork(&proc, &env));
        pid[i] = start_limits("join", env);
    }
    for (int i = 0; i < RANKS; i++)
        limit_join(pid[i]);
    _exit(0); /* as a launcher would: nothing is to be cleaned up */
}

static double median_ms(const char *part, int at_once, int runs)
{
    extern char **environ;
    double v[RUNS];
    pid_t pid[RANKS];

    for (int i = 0; i < runs; i++) {
        double t = limit_ns();
        for (int k = 0; k < at_once; k++)
            pid[k] = start_limits(part, environ);
        for (int k = 0; k < at_once; k++)
            limit_join(pid[k]);
        v[i] = (limit_ns() - t) / 1e6;
    }
    return limit_median(v, runs);
}

int main(int argc, char **argv)
{
    int runs = limit_quick(argc, argv) ? 3 : RUNS;

    alarm(60);
    if (strcmp(argv[0], "join") == 0)
        return start_join();
    if (strcmp(argv[0], "leave") == 0)
        return start_leave();
    if (strcmp(argv[0], "serve") == 0)
        return start_serve();
    limit_print("start_2", median_ms("leave", RANKS, runs), "ms", "two programs linked with PMIx are started and end");
    limit_print("start_pmix_2", median_ms("serve", 1, runs), "ms", "the same, by a PMIx server that they join and leave");
    return 0;
}
