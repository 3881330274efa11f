/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_cleanup.c: see shm_cleanup.h. */
#include "launcher/compat/shm_cleanup.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/util/procfs.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/fnv.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHM "/dev/shm/"
#define FILES_MAX 1024
/*
 * Reading a process takes about 0.1 ms, while all wait to be ended. Files of further processes are found
 * afterwards.
 */
#define PROCESSES_MAX 256
#define DEPTH_MAX 16
/* A reader of /proc/PID/maps keeps the mappings of a dead process a moment longer. */
#define HELD_TRIES 10
#define HELD_MS 10

struct xr_leftovers {
    char *folder;
    char mpich[32];        /* prefix of MPICH 5's names of this job */
    char *file[FILES_MAX]; /* names in /dev/shm */
    size_t nfiles;
    struct timespec since; /* nothing of the job is older */
    bool missed;           /* some files may not have been seen in any process */
};

struct timespec xr_leftovers_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now); /* the clock of file times */
    return now;
}

rank_status_t xr_leftovers_create(const char *job, struct xr_leftovers **out)
{
    struct xr_leftovers *l = calloc(1, sizeof(*l));
    const char *tmp = rk_env("TMPDIR");

    if (!l)
        return RANK_ERR_NO_MEMORY;
    if (asprintf(&l->folder, "%s/%s", tmp && *tmp == '/' ? tmp : "/tmp", job) < 0) {
        free(l);
        return RANK_ERR_NO_MEMORY;
    }
    /* MPICH hashes the job's name of PMI-1 into a number, in this way. */
    snprintf(l->mpich, sizeof(l->mpich), "mpich_shm_%x_", rk_fnv32(RK_FNV32_START, job, strlen(job)));
    l->since = xr_leftovers_now();
    *out = l;
    return RANK_OK;
}

void xr_leftovers_destroy(struct xr_leftovers *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nfiles; i++)
        free(l->file[i]);
    free(l->folder);
    free(l);
}

const char *xr_leftovers_folder(const struct xr_leftovers *l)
{
    return l->folder;
}

/*
 * Return whether the name is one of MPICH 4 and 5, Open MPI 4 and 5, or UCX (which unlinks its file soon after).
 * No other files are touched.
 */
static bool known(const char *name)
{
    static const char *const prefix[] = {"mpich_shm_", "mpich_shar_tmp", "vader_segment.",
                                         "sm_segment.", "ucx_shm_posix_"};

    for (size_t i = 0; i < RK_ARRAY_LEN(prefix); i++) {
        if (strncmp(name, prefix[i], strlen(prefix[i])) == 0)
            return !strchr(name, '/') && !strchr(name, ' '); /* " (deleted)" */
    }
    return false;
}

static bool note(void *arg, const char *path)
{
    struct xr_leftovers *l = arg;
    const char *name = path + strlen(SHM);

    if (strncmp(path, SHM, strlen(SHM)) != 0 || !known(name))
        return true;
    for (size_t i = 0; i < l->nfiles; i++) {
        if (strcmp(l->file[i], name) == 0)
            return true;
    }
    if (l->nfiles == FILES_MAX || !(l->file[l->nfiles] = strdup(name))) {
        l->missed = true;
        return false;
    }
    l->nfiles++;
    return true;
}

void xr_leftovers_note(struct xr_leftovers *l)
{
    size_t n = 0;
    pid_t *pids = l ? xr_descend_all(&n) : NULL;

    for (size_t i = 0; pids && i < n && i < PROCESSES_MAX; i++)
        xr_proc_each_file(pids[i], note, l);
    if (l && (!pids || n > PROCESSES_MAX))
        l->missed = true;
    free(pids);
}

/* Remove all files of this user below a folder, then the folder. Links are removed, not followed. */
static void remove_tree(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirent *e;
    struct stat st;
    DIR *dir;

    if (fd < 0)
        return;
    if (depth == 0 || fstat(fd, &st) || st.st_uid != geteuid() || !(dir = fdopendir(fd))) {
        close(fd);
        return;
    }
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, e->d_name, 0))
            remove_tree(fd, e->d_name, depth - 1);
    }
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

void xr_leftovers_expect(struct xr_leftovers *l)
{
    if (l)
        l->missed = true;
}

static void remove_file(const char *name)
{
    char path[sizeof(SHM) + NAME_MAX];
    struct stat st;

    snprintf(path, sizeof(path), SHM "%s", name);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        unlink(path);
}

/* Return whether the file was made since then; by modification time if the file system keeps no birth time. */
static bool made_since(int fd, const struct timespec *since)
{
    struct statx st;
    const struct statx_timestamp *t = &st.stx_ctime;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_CTIME | STATX_BTIME, &st))
        return false;
    if (st.stx_mask & STATX_BTIME)
        t = &st.stx_btime;
    return t->tv_sec > since->tv_sec || (t->tv_sec == since->tv_sec && (long)t->tv_nsec >= since->tv_nsec);
}

/*
 * Remove a file that is not in use; returns false if it is. The kernel grants a write lease only while no other
 * process of any container has the file open or mapped, and delays new opens meanwhile. It breaks the lease with
 * SIGURG, which is ignored, instead of SIGIO, which kills.
 */
static bool remove_if_unheld(int dir, const char *name, const struct timespec *since)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool unheld = true;
    struct stat st;

    if (fd < 0)
        return true;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && made_since(fd, since)) {
        unheld = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
        if (unheld)
            unlinkat(dir, name, 0);
    }
    close(fd);
    return unheld;
}

/* Returns false if some are in use, perhaps by other jobs. */
static bool remove_all_unheld(const struct timespec *since)
{
    DIR *dir = opendir(SHM);
    struct dirent *e;
    bool all = true;

    while (dir && (e = readdir(dir))) {
        if (known(e->d_name))
            all = remove_if_unheld(dirfd(dir), e->d_name, since) && all;
    }
    if (dir)
        closedir(dir);
    return all;
}

void xr_leftovers_remove_unheld(const struct timespec *since)
{
    const struct timespec pause = {0, HELD_MS * 1000000};

    for (int i = 0; !remove_all_unheld(since) && i < HELD_TRIES; i++)
        nanosleep(&pause, NULL);
}

/* A rank that died alone on its host leaves no process to read, but these names are known. */
static void remove_by_name(const char *begin)
{
    DIR *dir = opendir(SHM);
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        if (strncmp(e->d_name, begin, strlen(begin)) == 0)
            remove_file(e->d_name);
    }
    if (dir)
        closedir(dir);
}

void xr_leftovers_remove(struct xr_leftovers *l, bool pmi1)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nfiles; i++) {
        remove_file(l->file[i]);
        free(l->file[i]);
    }
    l->nfiles = 0;
    if (pmi1)
        remove_by_name(l->mpich);
    if (l->missed)
        xr_leftovers_remove_unheld(&l->since);
    l->missed = false;
    remove_tree(AT_FDCWD, l->folder, DEPTH_MAX);
}
