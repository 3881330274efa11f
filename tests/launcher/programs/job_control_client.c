/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_control_client.c: signal ranks and remove files by PMIx_Job_control.
 *
 * job_control_client signal ALL|RANK    rank 0 has SIGUSR2 sent to all or one; each target waits for it
 * job_control_client end KEY ALL|RANK   rank 0 has all or one ended: "kill" or "terminate"; all wait for their end
 * job_control_client refused            requests that are not supported or invalid are refused at once
 * job_control_client cleanup FILE HOW   FILE is removed with the job; HOW: end, or stay for ever
 * job_control_client cleanup-dir DIR HOW  the same for a folder with files and folders in it
 */
#include "client_common.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pmix_status_t control(const pmix_proc_t *targets, size_t n, const char *key, const void *value,
                             pmix_data_type_t type)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    pmix_status_t rc;

    PMIX_INFO_LOAD(&info, key, value, type);
    rc = PMIx_Job_control(targets, n, &info, 1, &results, &nresults);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

static int send_signals(const char *to)
{
    bool all_ranks = strcmp(to, "ALL") == 0, mine;
    struct timespec limit = {20, 0};
    int sig = SIGUSR2;
    pmix_proc_t target;
    sigset_t set;

    PMIX_LOAD_PROCID(&target, me.nspace, all_ranks ? PMIX_RANK_WILDCARD : (pmix_rank_t)atoi(to));
    mine = all_ranks || target.rank == me.rank;
    need("PMIx_Fence", fence());
    if (me.rank == 0)
        need("PMIx_Job_control", control(all_ranks ? NULL : &target, !all_ranks, PMIX_JOB_CTRL_SIGNAL, &sig, PMIX_INT));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (mine && sigtimedwait(&set, NULL, &limit) != SIGUSR2) {
        fprintf(stderr, "rank %u has got no signal\n", me.rank);
        return 9;
    }
    need("PMIx_Fence", fence());
    limit.tv_sec = 0;
    if (sigtimedwait(&set, NULL, &limit) == SIGUSR2) {
        fprintf(stderr, "rank %u has got a signal too many\n", me.rank);
        return 9;
    }
    return finish();
}

_Noreturn static void end_some(const char *how, const char *to)
{
    bool on = true, all_ranks = strcmp(to, "ALL") == 0;
    pmix_proc_t target;

    PMIX_LOAD_PROCID(&target, me.nspace, all_ranks ? PMIX_RANK_WILDCARD : (pmix_rank_t)atoi(to));
    need("PMIx_Fence", fence());
    if (me.rank == 0)
        need("PMIx_Job_control", control(all_ranks ? NULL : &target, !all_ranks, *how == 'k' ? PMIX_JOB_CTRL_KILL : PMIX_JOB_CTRL_TERMINATE,
                                         &on, PMIX_BOOL));
    for (;;)
        pause();
}

static int refused(void)
{
    pmix_proc_t no_rank, other;
    bool on = true;
    int sig = SIGUSR2;

    PMIX_LOAD_PROCID(&no_rank, me.nspace, size);
    PMIX_LOAD_PROCID(&other, "another-job", 0);
    if (control(NULL, 0, PMIX_JOB_CTRL_PAUSE, &on, PMIX_BOOL) != PMIX_ERR_NOT_SUPPORTED ||
        control(NULL, 0, PMIX_JOB_CTRL_CHECKPOINT, "id", PMIX_STRING) != PMIX_ERR_NOT_SUPPORTED ||
        control(&no_rank, 1, PMIX_JOB_CTRL_SIGNAL, &sig, PMIX_INT) == PMIX_SUCCESS ||
        control(&other, 1, PMIX_JOB_CTRL_SIGNAL, &sig, PMIX_INT) == PMIX_SUCCESS) {
        fprintf(stderr, "rank %u was not refused\n", me.rank);
        return 9;
    }
    return finish();
}

static bool make_file(const char *file)
{
    FILE *f = fopen(file, "w");

    return f && fclose(f) == 0;
}

/* DIR/file and DIR/in/file */
static bool make_folder(const char *dir)
{
    char name[4096];

    if (mkdir(dir, 0700) && errno != EEXIST)
        return false;
    snprintf(name, sizeof(name), "%s/in", dir);
    if (mkdir(name, 0700) && errno != EEXIST)
        return false;
    snprintf(name, sizeof(name), "%s/in/file", dir);
    if (!make_file(name))
        return false;
    snprintf(name, sizeof(name), "%s/file", dir);
    return make_file(name);
}

static void register_folder(const char *dir)
{
    pmix_info_t info[2], *results = NULL;
    size_t nresults = 0;

    PMIX_INFO_LOAD(&info[0], PMIX_REGISTER_CLEANUP_DIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_CLEANUP_RECURSIVE, NULL, PMIX_BOOL);
    need("PMIx_Job_control", PMIx_Job_control(NULL, 0, info, 2, &results, &nresults));
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}

static int leave_file(const char *file, bool folder, bool stay)
{
    if (folder ? !make_folder(file) : !make_file(file))
        return 9;
    if (folder)
        register_folder(file);
    else
        need("PMIx_Job_control", control(NULL, 0, PMIX_REGISTER_CLEANUP, file, PMIX_STRING));
    need("PMIx_Fence", fence());
    if (!stay)
        return finish();
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    sigset_t set;

    /* Before PMIx has threads. */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    start();
    if (argc > 2 && strcmp(argv[1], "signal") == 0)
        return send_signals(argv[2]);
    if (argc > 3 && strcmp(argv[1], "end") == 0)
        end_some(argv[2], argv[3]);
    if (argc > 3 && strcmp(argv[1], "cleanup") == 0)
        return leave_file(argv[2], false, strcmp(argv[3], "stay") == 0);
    if (argc > 3 && strcmp(argv[1], "cleanup-dir") == 0)
        return leave_file(argv[2], true, strcmp(argv[3], "stay") == 0);
    if (argc > 1 && strcmp(argv[1], "refused") == 0)
        return refused();
    fprintf(stderr, "job_control_client: what?\n");
    return 2;
}
