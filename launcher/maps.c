/* maps.c: see maps.h. */
#include "launcher/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rk_maps_each(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg)
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
}

pid_t rk_maps_child(pid_t pid)
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
