/* leftovers.c: see leftovers.h. */
#include "launcher/leftovers.h"
#include "launcher/descend.h"
#include "launcher/maps.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM "/dev/shm/"
#define FILES_MAX 1024
/* Looking at a process takes about 0.1 ms, while all wait to be ended. */
#define PROCESSES_MAX 256
#define DEPTH_MAX 16

struct rk_leftovers {
    char *folder;
    char mpich[32];        /* how MPICH 5's names of this job begin there */
    char *file[FILES_MAX]; /* names in /dev/shm */
    size_t nfiles;
};

/* FNV-1a, by which MPICH makes a number of the name that PMI-1 gives its job. */
static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 16777619u;
    return h;
}

rank_status_t rk_leftovers_create(const char *job, struct rk_leftovers **out)
{
    struct rk_leftovers *l = calloc(1, sizeof(*l));
    const char *tmp = rk_env("TMPDIR");

    if (!l)
        return RANK_ERR_NO_MEMORY;
    if (asprintf(&l->folder, "%s/%s", tmp && *tmp == '/' ? tmp : "/tmp", job) < 0) {
        free(l);
        return RANK_ERR_NO_MEMORY;
    }
    snprintf(l->mpich, sizeof(l->mpich), "mpich_shm_%x_", hash_of(job));
    *out = l;
    return RANK_OK;
}

void rk_leftovers_destroy(struct rk_leftovers *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nfiles; i++)
        free(l->file[i]);
    free(l->folder);
    free(l);
}

const char *rk_leftovers_folder(const struct rk_leftovers *l)
{
    return l->folder;
}

/* MPICH 4 and 5; Open MPI 4 and 5; UCX, which takes the name away, but not in the same instant. Nobody else's file is
 * touched. */
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
    struct rk_leftovers *l = arg;
    const char *name = path + strlen(SHM);

    if (strncmp(path, SHM, strlen(SHM)) != 0 || !known(name))
        return true;
    for (size_t i = 0; i < l->nfiles; i++) {
        if (strcmp(l->file[i], name) == 0)
            return true;
    }
    if (l->nfiles < FILES_MAX && (l->file[l->nfiles] = strdup(name)))
        l->nfiles++;
    return l->nfiles < FILES_MAX;
}

void rk_leftovers_note(struct rk_leftovers *l)
{
    size_t n = 0;
    pid_t *pids = l ? rk_descend_all(&n) : NULL;

    for (size_t i = 0; pids && i < n && i < PROCESSES_MAX; i++)
        rk_maps_each(pids[i], note, l);
    free(pids);
}

/* Everything of ours below a folder, then it itself; links are removed, not followed. */
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

/* A rank that died alone on its host has taken its maps with it: nobody is there to be looked at. But these names are known. */
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

void rk_leftovers_remove(struct rk_leftovers *l, bool pmi1)
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
