/* SPDX-License-Identifier: BSD-3-Clause */
/* procfs.c: see procfs.h. */
#include "launcher/util/procfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_files(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg)
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

void xr_maps_each(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg)
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
        open_files(pid, fn, arg);
}

bool xr_proc_variable(pid_t pid, const char *name, char *out, size_t len)
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

pid_t xr_maps_child(pid_t pid)
{
    char name[64];
    int child = 0;
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(name, "re");
    if (f && fscanf(f, "%d", &child) != 1)
        child = 0;
    if (f)
        fclose(f);
    return child;
}
