/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c: check memory limits that the kernel enforces by a signal.
 *
 * A shared page that cannot be had is a SIGBUS or an OOM kill when it is touched or backed; a file that grows past
 * RLIMIT_FSIZE is SIGXFSZ. So the limits are checked before memory is backed. As reading cgroup files costs tens
 * of microseconds, a result stays valid for an eighth of the free room.
 */
#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/base/log.h"
#include "lib/mem/memfd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

/* A limit that is in force: a memory cgroup, or the machine. */
struct limit {
    uint64_t id; /* of the cgroup; 0: the machine */
    int64_t bytes, left; /* left: less used memory that cannot be reclaimed */
    char file[1024];
};
typedef void (*limit_fn)(void *arg, const struct limit *l);

/* Returns false if the cgroup has no limit. */
static bool limit_of_cgroup(const char *dir, bool v2, struct limit *l)
{
    char path[sizeof(l->file)];
    struct stat st;
    int64_t used;

    snprintf(l->file, sizeof(l->file), "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    l->bytes = read_number(l->file);
    if (l->bytes < 0 || l->bytes > (INT64_MAX >> 4))
        return false;
    snprintf(path, sizeof(path), "%s/%s", dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    used = read_number(path);
    if (used < 0 || stat(dir, &st) < 0)
        return false;
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    l->left = l->bytes - used + (v2 ? read_fields(path, "active_file", "inactive_file")
                                    : read_fields(path, "total_active_file", "total_inactive_file"));
    l->id = (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40; /* equal in all namespaces */
    return true;
}

/* Call fn for each limit from this cgroup to the root of the hierarchy. */
static void each_limit_of(const char *root, const char *group, bool v2, limit_fn fn, void *arg)
{
    char dir[1000];
    size_t base = strlen(root);
    struct limit l;
    char *slash;

    if ((size_t)snprintf(dir, sizeof(dir), "%s%s", root, group) >= sizeof(dir))
        return;
    for (;;) {
        if (limit_of_cgroup(dir, v2, &l))
            fn(arg, &l);
        slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < base)
            return;
        *slash = '\0';
    }
}

static void each_cgroup_limit(limit_fn fn, void *arg)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];

    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':'), *group;
        if (!controllers || !(group = strchr(controllers + 1, ':')))
            continue;
        *controllers++ = '\0';
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (strcmp(group, "/") == 0)
            *group = '\0';
        if (*controllers == '\0')
            each_limit_of("/sys/fs/cgroup", group, true, fn, arg);
        else if (strcmp(controllers, "memory") == 0)
            each_limit_of("/sys/fs/cgroup/memory", group, false, fn, arg);
    }
    if (f)
        fclose(f);
}

static struct limit limit_of_machine(void)
{
    int64_t kb = read_fields("/proc/meminfo", "MemAvailable:", "SwapFree:");
    struct limit l = {.left = kb > 0 ? kb * 1024 : NO_LIMIT};

    snprintf(l.file, sizeof(l.file), "/proc/meminfo, MemAvailable");
    return l;
}

static void take_least(void *arg, const struct limit *l)
{
    struct limit *least = arg;

    if (l->left < least->left)
        *least = *l;
}

rank_status_t rk_mem_refuse(int level, const char *fmt, ...)
{
    char text[1400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (level == RK_LOG_ERROR)
        return rk_fail(RANK_ERR_NO_MEMORY, "%s", text);
    rk_log(level, "%s", text);
    return RANK_ERR_NO_MEMORY;
}

rank_status_t rk_mem_check_room(size_t file_bytes, size_t more, int level, const char *what)
{
    struct rlimit lim;
    struct limit least;
    int64_t room;

    if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && file_bytes > lim.rlim_cur)
        return rk_mem_refuse(level, "%s: %zu bytes of shared memory are more than the file size limit of %llu allows "
                             "(ulimit -f)", what, file_bytes, (unsigned long long)lim.rlim_cur);
    if (more <= INT64_MAX &&
        atomic_fetch_sub_explicit(&credit, (int64_t)more, memory_order_relaxed) >= (int64_t)more)
        return RANK_OK;
    least = limit_of_machine();
    each_cgroup_limit(take_least, &least);
    room = least.left;
    if (more > INT64_MAX || (int64_t)more > room) {
        atomic_store_explicit(&credit, 0, memory_order_relaxed);
        return rk_mem_refuse(level, "%s: %zu bytes are needed and %lld are left %s (%s)", what, more,
                             (long long)(room > 0 ? room : 0), least.id ? "in this memory cgroup" : "on this machine", least.file);
    }
    room = (room - (int64_t)more) / 8;
    if (room > (64 << 20))
        room = 64 << 20;
    atomic_store_explicit(&credit, room, memory_order_relaxed);
    return RANK_OK;
}

/* --------------------------------------------------------------- several processes at once */

static void add_id(void *arg, const struct limit *l)
{
    struct rk_mem_groups *g = arg;
    int i = 0;

    while (i < RK_MEM_GROUPS && g->id[i])
        i++;
    if (i < RK_MEM_GROUPS)
        g->id[i] = l->id;
}

void rk_mem_groups_get(struct rk_mem_groups *out)
{
    memset(out, 0, sizeof(*out));
    each_cgroup_limit(add_id, out);
}

struct sum_check {
    const struct rk_mem_groups *of;
    int n;
    size_t bytes;
    struct limit exceeded;
    int exceeded_by, first; /* ranks below the limit (0: none is exceeded), and the lowest of them */
};

static void check_limit(void *arg, const struct limit *l)
{
    struct sum_check *c = arg;
    int n = 0, first = 0;

    for (int i = c->n - 1; i >= 0; i--) {
        bool in = l->id == 0;
        for (int k = 0; k < RK_MEM_GROUPS && !in; k++)
            in = c->of[i].id[k] == l->id;
        n += in;
        first = in ? i : first;
    }
    if (c->exceeded_by == 0 && n > 0 && (int64_t)c->bytes > l->left / n) {
        c->exceeded = *l;
        c->exceeded_by = n;
        c->first = first;
    }
}

rank_status_t rk_mem_check_sum(const struct rk_mem_groups *of, int n, size_t bytes, int mine, const char *what)
{
    struct sum_check c = {.of = of, .n = n, .bytes = bytes};
    const struct limit machine = limit_of_machine();
    const struct limit *l = &c.exceeded;
    char text[1400];

    each_cgroup_limit(check_limit, &c);
    check_limit(&c, &machine);
    if (c.exceeded_by == 0)
        return RANK_OK;
    if (l->id == 0)
        c.exceeded.bytes = read_fields("/proc/meminfo", "MemTotal:", "SwapTotal:") * 1024;
    snprintf(text, sizeof(text), "%s: %d ranks of this host need %zu bytes each, %zu MB together, and %lld of %lld MB are left "
             "(%s); request less, start fewer ranks a host, or raise the limit", what, c.exceeded_by, bytes,
             (size_t)c.exceeded_by * bytes / 1000000, (long long)(l->left > 0 ? l->left : 0) / 1000000,
             (long long)l->bytes / 1000000, l->file);
    return mine == c.first ? rk_fail(RANK_ERR_NO_MEMORY, "%s", text) : rk_fail_silent(RANK_ERR_NO_MEMORY, "%s", text);
}
