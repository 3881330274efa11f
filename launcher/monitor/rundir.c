/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.c: see rundir.h.
 *
 * Sockets are addressed through /proc/self/fd, because the path of one is limited to
 * 107 characters.
 */
#include "launcher/monitor/rundir.h"
#include "lib/base/conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PLACES 2
#define LISTEN_TRIES 10

/* Return the path of a place. New sockets go to the first place that exists. */
static bool rundir_place(int i, char out[PATH_MAX])
{
    const char *run = rk_env("XDG_RUNTIME_DIR");

    if (i == 1)
        return snprintf(out, PATH_MAX, "/tmp/xrun-%u", (unsigned)geteuid()) < PATH_MAX;
    return run && run[0] == '/' && snprintf(out, PATH_MAX, "%s/xrun", run) < PATH_MAX;
}

/* Open the directory. Returns -1 with errno unless it belongs to this user alone. */
static int open_rundir(const char *path, bool make)
{
    struct stat st;
    int fd;

    if (make && mkdir(path, 0700) && errno != EEXIST)
        return -1;
    fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 077)) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

static bool socket_address(int dir, const char *job, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s", dir, job) <
           (int)sizeof(out->sun_path);
}

/*
 * Listen in a directory. Returns -1 with errno; ENOENT: the directory has just been removed. The socket gets its name
 * when it listens: before that it would look stale.
 */
static int listen_in(int dir, const char *job)
{
    struct sockaddr_un to;
    char temporary[32];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
    mode_t mask;

    if (fd < 0)
        return -1;
    errno = ENAMETOOLONG;
    mask = umask(0177);
    snprintf(temporary, sizeof(temporary), ".%d", (int)getpid());
    if (!socket_address(dir, job, &to) || !socket_address(dir, temporary, &to) ||
        bind(fd, (struct sockaddr *)&to, sizeof(to)) || listen(fd, 8) ||
        renameat(dir, temporary, dir, job)) {
        error = errno;
        if (error != EADDRINUSE && error != ENAMETOOLONG)
            unlinkat(dir, temporary, 0);
        close(fd);
        fd = -1;
        errno = error;
    }
    umask(mask);
    return fd;
}

int xr_rundir_listen(const char *job)
{
    char path[PATH_MAX];
    int fd = -1, error = ENOENT;

    for (int i = 0; fd < 0 && i < PLACES; i++) {
        if (!rundir_place(i, path))
            continue;
        /* Another job of the user may remove the directory at the same time. */
        for (int tries = 0; fd < 0 && tries < LISTEN_TRIES; tries++) {
            int dir = open_rundir(path, true);
            fd = dir >= 0 ? listen_in(dir, job) : -1;
            error = errno;
            if (dir >= 0)
                close(dir);
            if (error != ENOENT)
                break;
        }
    }
    errno = error;
    return fd;
}

/* Connect to a job. Returns -1 on failure. Removes a socket without a listener. */
static int rundir_connect_to(int dir, const char *job)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un to;

    if (fd < 0)
        return -1;
    if (socket_address(dir, job, &to) && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    if (errno == ECONNREFUSED)
        unlinkat(dir, job, 0);
    close(fd);
    return -1;
}

static void rundir_each_in(int dir, void (*fn)(void *arg, const char *job, int fd), void *arg)
{
    int copy = dup(dir);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;

    if (!d && copy >= 0)
        close(copy);
    while (d && (e = readdir(d))) {
        int fd;
        if (e->d_name[0] == '.' || (e->d_type != DT_SOCK && e->d_type != DT_UNKNOWN))
            continue;
        fd = rundir_connect_to(dir, e->d_name);
        if (fd >= 0)
            fn(arg, e->d_name, fd);
    }
    if (d)
        closedir(d);
}

static void close_connection(void *arg, const char *job, int fd)
{
    (void)arg;
    (void)job;
    close(fd);
}

void xr_rundir_remove(const char *job)
{
    char path[PATH_MAX];

    for (int i = 0; i < PLACES; i++) {
        int dir = rundir_place(i, path) ? open_rundir(path, false) : -1;
        if (dir < 0)
            continue;
        unlinkat(dir, job, 0);
        if (rmdir(path))
            rundir_each_in(dir, close_connection, NULL); /* sockets of other jobs, perhaps stale ones */
        rmdir(path);
        close(dir);
    }
}

void xr_rundir_each(void (*fn)(void *arg, const char *job, int fd), void *arg)
{
    char path[PATH_MAX];

    for (int i = 0; i < PLACES; i++) {
        int dir = rundir_place(i, path) ? open_rundir(path, false) : -1;
        if (dir < 0)
            continue;
        rundir_each_in(dir, fn, arg);
        rmdir(path); /* if all was stale */
        close(dir);
    }
}
