/* SPDX-License-Identifier: BSD-3-Clause */
/* procfs.c: see procfs.h. */
#include "launcher/util/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool xr_procfs_read(pid_t pid, const char *file, char *out, size_t len)
{
    char path[96];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, out, len - 1);
    close(fd);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

bool xr_procfs_stat(pid_t pid, struct xr_procfs_stat *out)
{
    enum { PF_EXITING = 4, KILLED = 1 << (SIGKILL - 1) };
    unsigned long user, system, pending;
    char text[1024], *after;
    unsigned flags;
    long threads;

    /* "pid (name) state parent ...": the name may hold anything. */
    if (!xr_procfs_read(pid, "stat", text, sizeof(text)) || !(after = strrchr(text, ')')))
        return false;
    /* Fields 3, 4, 9, 14, 15, 20 and 31. */
    if (sscanf(after + 1,
               " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %ld %*d %*u %*u %*d "
               "%*u %*u %*u %*u %*u %*u %lu",
               &out->state, &out->parent, &flags, &user, &system, &threads, &pending) != 7)
        return false;
    out->ticks = user + system;
    out->ended = (out->state == 'Z' && threads <= 1) || out->state == 'X';
    out->ending = (flags & PF_EXITING) || (pending & KILLED);
    return true;
}

size_t xr_procfs_children(pid_t pid, pid_t *children, size_t max)
{
    char file[48], text[1024], *at = text, *end;
    size_t n = 0;

    snprintf(file, sizeof(file), "task/%d/children", (int)pid);
    if (!xr_procfs_read(pid, file, text, sizeof(text)))
        return 0;
    /* A blank follows each number; a last one without it was cut. */
    for (long child; n < max && (child = strtol(at, &end, 10)) > 0 && *end == ' '; at = end)
        children[n++] = (pid_t)child;
    return n;
}

static void each_open_file(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg)
{
    char name[64], path[512];
    struct dirent *e;
    bool more = true;
    DIR *dir;

    snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
    dir = opendir(name);
    while (more && dir && (e = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), e->d_name, path, sizeof(path) - 1);
        if (n <= 0)
            continue;
        path[n] = '\0';
        if (*path == '/')
            more = fn(arg, path);
    }
    if (dir)
        closedir(dir);
}

void xr_procfs_each_file(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg)
{
    char name[64], *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool more = true;
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    f = fopen(name, "re");
    /* "from-to mode offset device inode   /path" */
    while (more && f && (len = getline(&line, &cap, f)) > 0) {
        char *path = strchr(line, '/');
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        if (path)
            more = fn(arg, path);
    }
    free(line);
    if (f)
        fclose(f);
    if (more)
        each_open_file(pid, fn, arg);
}

bool xr_procfs_variable(pid_t pid, const char *name, char *out, size_t len)
{
    size_t n = strlen(name), room = 0;
    char path[64], *line = NULL;
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    f = fopen(path, "re");
    while (f && !found && getdelim(&line, &room, '\0', f) > 0) {
        found = strncmp(line, name, n) == 0 && line[n] == '=';
        if (found)
            snprintf(out, len, "%s", line + n + 1);
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}
