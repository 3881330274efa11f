/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c: check memory limits that the kernel enforces by a signal.
 *
 * A shared page that cannot be had is a SIGBUS or an OOM kill when it is touched or backed; a file that grows past
 * RLIMIT_FSIZE is SIGXFSZ. So the limits are checked before memory is backed. As reading cgroup files costs tens
 * of microseconds, a result stays valid for an eighth of the free room.
 */
#include "lib/base/compiler.h"
#include "lib/base/log.h"
#include "lib/mem/memfd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NO_LIMIT INT64_MAX

static _Atomic int64_t credit; /* bytes allowed before the next check */

static int64_t read_number(const char *path)
{
    FILE *f = fopen(path, "re");
    long long v;
    int64_t out = -1;

    if (!f)
        return -1;
    if (fscanf(f, "%lld", &v) == 1) /* "max" is no number: no limit */
        out = v;
    fclose(f);
    return out;
}

/* Sum of two fields of a "name number" file. */
static int64_t read_fields(const char *path, const char *a, const char *b)
{
    FILE *f = fopen(path, "re");
    char name[128];
    long long v;
    int64_t sum = 0;

    if (!f)
        return 0;
    while (fscanf(f, "%127s %lld%*[^\n]", name, &v) == 2) {
        if (strcmp(name, a) == 0 || strcmp(name, b) == 0)
            sum += v;
    }
    fclose(f);
    return sum;
}

/* Free room in one cgroup: its limit less used memory that cannot be reclaimed. */
static int64_t cgroup_room(const char *dir, const char *max, const char *now, const char *afile,
                           const char *ifile)
{
    char path[1024];
    int64_t limit, used;

    snprintf(path, sizeof(path), "%s/%s", dir, max);
    limit = read_number(path);
    if (limit < 0 || limit > (INT64_MAX >> 4))
        return NO_LIMIT;
    snprintf(path, sizeof(path), "%s/%s", dir, now);
    used = read_number(path);
    if (used < 0)
        return NO_LIMIT;
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    return limit - used + read_fields(path, afile, ifile);
}

/* Smallest free room from this cgroup to the root of the hierarchy. */
static int64_t hierarchy_room(const char *root, const char *group, int v2)
{
    char dir[1024];
    int64_t least = NO_LIMIT;
    size_t base = strlen(root);

    if ((size_t)snprintf(dir, sizeof(dir), "%s%s", root, group) >= sizeof(dir))
        return NO_LIMIT;
    for (;;) {
        int64_t room = v2 ? cgroup_room(dir, "memory.max", "memory.current", "active_file",
                                        "inactive_file")
                          : cgroup_room(dir, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                        "total_active_file", "total_inactive_file");
        char *slash;
        if (room < least)
            least = room;
        slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < base)
            return least;
        *slash = '\0';
    }
}

static int64_t cgroups_room(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    int64_t least = NO_LIMIT, room;

    if (!f)
        return NO_LIMIT;
    while (fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':'), *group;
        if (!controllers || !(group = strchr(controllers + 1, ':')))
            continue;
        *controllers++ = '\0';
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (strcmp(group, "/") == 0)
            *group = '\0';
        if (*controllers == '\0')
            room = hierarchy_room("/sys/fs/cgroup", group, 1);
        else if (strcmp(controllers, "memory") == 0)
            room = hierarchy_room("/sys/fs/cgroup/memory", group, 0);
        else
            continue;
        if (room < least)
            least = room;
    }
    fclose(f);
    return least;
}

static int64_t machine_room(void)
{
    int64_t kb = read_fields("/proc/meminfo", "MemAvailable:", "SwapFree:");
    return kb > 0 ? kb * 1024 : NO_LIMIT;
}

rank_status_t rk_mem_check_room(size_t file_bytes, size_t more, int level, const char *what)
{
    struct rlimit lim;
    int64_t group, machine, room;

    if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
        file_bytes > lim.rlim_cur) {
        rk_log(level, "%s: %zu bytes of shared memory are more than the file size limit of %llu allows "
               "(ulimit -f)",
               what, file_bytes, (unsigned long long)lim.rlim_cur);
        return RANK_ERR_NO_MEMORY;
    }
    if (more <= INT64_MAX &&
        atomic_fetch_sub_explicit(&credit, (int64_t)more, memory_order_relaxed) >= (int64_t)more)
        return RANK_OK;
    group = cgroups_room();
    machine = machine_room();
    room = group < machine ? group : machine;
    if (more > INT64_MAX || (int64_t)more > room) {
        atomic_store_explicit(&credit, 0, memory_order_relaxed);
        rk_log(level, "%s: %zu bytes are needed and %lld are left %s", what, more,
               (long long)(room > 0 ? room : 0),
               group < machine ? "in this memory cgroup (memory.max)" : "on this machine");
        return RANK_ERR_NO_MEMORY;
    }
    room = (room - (int64_t)more) / 8;
    if (room > (64 << 20))
        room = 64 << 20;
    atomic_store_explicit(&credit, room, memory_order_relaxed);
    return RANK_OK;
}
