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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM "/dev/shm/"
#define FILES_MAX 1024
/* Reading a process takes about 0.1 ms, while all wait to be ended. Files of further processes stay. */
#define PROCESSES_MAX 256
#define DEPTH_MAX 16

struct xr_shm_cleanup {
    char *folder;
    char mpich[32];        /* prefix of MPICH 5's names of this job */
    char *file[FILES_MAX]; /* names in /dev/shm */
    size_t nfiles;
};

rank_status_t xr_shm_cleanup_create(const char *job, struct xr_shm_cleanup **out)
{
    struct xr_shm_cleanup *l = calloc(1, sizeof(*l));
    const char *tmp = rk_env("TMPDIR");

    if (!l)
        return RANK_ERR_NO_MEMORY;
    if (asprintf(&l->folder, "%s/%s", tmp && *tmp == '/' ? tmp : "/tmp", job) < 0) {
        free(l);
        return RANK_ERR_NO_MEMORY;
    }
    /* MPICH hashes the job's name of PMI-1 into a number, in this way. */
    snprintf(l->mpich, sizeof(l->mpich), "mpich_shm_%x_", rk_fnv32(RK_FNV32_START, job, strlen(job)));
    *out = l;
    return RANK_OK;
}

void xr_shm_cleanup_destroy(struct xr_shm_cleanup *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nfiles; i++)
        free(l->file[i]);
    free(l->folder);
    free(l);
}

const char *xr_shm_cleanup_folder(const struct xr_shm_cleanup *l)
{
    return l->folder;
}

/*
 * Return whether the name is one of MPICH 4 and 5, Open MPI 4 and 5, or UCX (which unlinks its file soon after).
 * No other files are touched.
 */
static bool is_library_segment(const char *name)
{
    static const char *const prefix[] = {"mpich_shm_", "mpich_shar_tmp", "vader_segment.",
                                         "sm_segment.", "ucx_shm_posix_"};

    for (size_t i = 0; i < RK_ARRAY_LEN(prefix); i++) {
        if (strncmp(name, prefix[i], strlen(prefix[i])) == 0)
            return !strchr(name, '/') && !strchr(name, ' '); /* " (deleted)" */
    }
    return false;
}

static bool note_file(void *arg, const char *path)
{
    struct xr_shm_cleanup *l = arg;
    const char *name = path + strlen(SHM);

    if (strncmp(path, SHM, strlen(SHM)) != 0 || !is_library_segment(name))
        return true;
    for (size_t i = 0; i < l->nfiles; i++) {
        if (strcmp(l->file[i], name) == 0)
            return true;
    }
    if (l->nfiles == FILES_MAX || !(l->file[l->nfiles] = strdup(name)))
        return false;
    l->nfiles++;
    return true;
}

void xr_shm_cleanup_note(struct xr_shm_cleanup *l)
{
    size_t n = 0;
    pid_t *pids = l ? xr_proc_tree_all(&n) : NULL;

    for (size_t i = 0; pids && i < n && i < PROCESSES_MAX; i++)
        xr_procfs_each_file(pids[i], note_file, l);
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

static void remove_file(const char *name)
{
    char path[sizeof(SHM) + NAME_MAX];
    struct stat st;

    snprintf(path, sizeof(path), SHM "%s", name);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        unlink(path);
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

void xr_shm_cleanup_remove(struct xr_shm_cleanup *l, bool pmi1)
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
    remove_tree(AT_FDCWD, l->folder, DEPTH_MAX);
}
