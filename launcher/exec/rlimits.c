/* rlimits.c: see rlimits.h. */
#include "launcher/exec/rlimits.h"
#include "lib/base/compiler.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors of an agent for each rank: two pipes, whose other ends may still be open while ranks
 * are started, a pidfd, connections of PMIx and PMI-1, and a part of those of the threads that start
 * them. */
#define FDS_PER_RANK 8
/* Processes and threads beside the ranks: keeper, agent with PMIx's two, and room to breathe. */
#define TASKS_OWN 8
/* libpmix's server has frames of more than half of it. */
#define LEAST_STACK (256 << 10)

/* The first line of a file, without its end. */
static bool read_line(const char *path, char *line, size_t len)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, (int)len, f);

    if (f)
        fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

static bool read_number(const char *path, long long *out)
{
    char line[64], *end;

    if (!read_line(path, line, sizeof(line)))
        return false;
    *out = strtoll(line, &end, 10);
    return end != line; /* "max" is no number */
}

uint64_t xr_limits_files(void)
{
    struct rlimit lim;

    return getrlimit(RLIMIT_NOFILE, &lim) ? 0 : lim.rlim_cur;
}

bool xr_limits_raise_files(uint64_t need, const char *whose, char *err, size_t errlen)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= need)
        return true;
    if (lim.rlim_max < need) {
        snprintf(err, errlen,
                 "%s %llu open files in one process, and the hard limit is %llu; start "
                 "fewer or raise it (ulimit -Hn)",
                 whose, (unsigned long long)need, (unsigned long long)lim.rlim_max);
        return false;
    }
    lim.rlim_cur = lim.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &lim) == 0)
        return true;
    snprintf(err, errlen, "%s %llu open files in one process, and the limit cannot be raised: %s", whose,
             (unsigned long long)need, strerror(errno));
    return false;
}

/*
 * Memory that may be locked is only ever raised: where it is little, that is most often what a login host has by default,
 * and not the user's wish, and networks need it.
 */
static const struct {
    int resource;
    bool raise_only;
} ulimits[XR_ULIMITS] = {
    {RLIMIT_STACK, false}, {RLIMIT_CORE, false}, {RLIMIT_CPU, false},     {RLIMIT_FSIZE, false},
    {RLIMIT_DATA, false},  {RLIMIT_AS, false},   {RLIMIT_MEMLOCK, true},
};

void xr_ulimits_read(struct xr_ulimits *out)
{
    struct rlimit lim;

    out->umask = umask(0);
    umask(out->umask);
    for (int i = 0; i < XR_ULIMITS; i++)
        out->soft[i] = getrlimit((unsigned)ulimits[i].resource, &lim) ? RLIM_INFINITY : lim.rlim_cur;
}

void xr_ulimits_set(const struct xr_ulimits *limits)
{
    struct rlimit lim;

    umask(limits->umask & 0777);
    for (int i = 0; i < XR_ULIMITS; i++) {
        rlim_t soft = limits->soft[i];
        if (getrlimit((unsigned)ulimits[i].resource, &lim))
            continue;
        if (soft > lim.rlim_max)
            soft = lim.rlim_max;
        if (soft == lim.rlim_cur || (soft < lim.rlim_cur && ulimits[i].raise_only))
            continue;
        lim.rlim_cur = soft;
        setrlimit((unsigned)ulimits[i].resource, &lim);
    }
}

static bool check_files(int n, int more, uint32_t below, char *err, size_t errlen)
{
    char whose[64];

    snprintf(whose, sizeof(whose), "%d rank%s", n, n == 1 ? " needs" : "s need");
    return xr_limits_raise_files((uint64_t)n * (uint64_t)(FDS_PER_RANK + more) + below * XR_FDS_PER_AGENT + XR_FDS_OWN,
                                 whose, err, errlen);
}

/* CAP_SYS_ADMIN or CAP_SYS_RESOURCE, or root: the kernel does not hold them to RLIMIT_NPROC. */
static bool exempt(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long long caps = 0;
    char line[256];

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "CapEff: %llx", &caps) == 1)
            break;
    }
    if (f)
        fclose(f);
    return getuid() == 0 || caps >> 21 & 1 || caps >> 24 & 1;
}

/* Tasks that the real user has now. */
static long long tasks_of_user(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    long long sum = 0;

    while (proc && (e = readdir(proc))) {
        char path[300], line[256];
        long long threads = 0;
        unsigned uid = 0;
        bool mine = false;
        FILE *f;

        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/status", e->d_name);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f)) {
            if (sscanf(line, "Uid: %u", &uid) == 1)
                mine = uid == getuid();
            if (sscanf(line, "Threads: %lld", &threads) == 1)
                break;
        }
        if (f)
            fclose(f);
        sum += mine ? threads : 0;
    }
    if (proc)
        closedir(proc);
    return sum;
}

static bool check_user(int n, char *err, size_t errlen)
{
    struct rlimit lim;
    long long have;

    if (getrlimit(RLIMIT_NPROC, &lim) || lim.rlim_cur == RLIM_INFINITY || exempt())
        return true;
    have = tasks_of_user();
    if ((unsigned long long)(have + n + TASKS_OWN) <= lim.rlim_cur)
        return true;
    snprintf(err, errlen,
             "%d rank%s more than the limit of processes allows: %llu for this user, who has "
             "%lld now; start fewer or raise it (ulimit -u)",
             n, n == 1 ? " is" : "s are", (unsigned long long)lim.rlim_cur, have);
    return false;
}

/* pids.max of a cgroup and of each above it, down to the mount point. */
static bool check_cgroup(int n, const char *mount, char *path, char *err, size_t errlen)
{
    for (;;) {
        char file[1200];
        long long max, now;
        char *slash;

        snprintf(file, sizeof(file), "%s%s/pids.max", mount, path);
        if (read_number(file, &max)) {
            snprintf(file, sizeof(file), "%s%s/pids.current", mount, path);
            if (read_number(file, &now) && now + n + TASKS_OWN > max) {
                snprintf(err, errlen,
                         "%d rank%s more than the control group %s allows: pids.max is %lld, "
                         "%lld are there now; start fewer or raise it",
                         n, n == 1 ? " is" : "s are", *path ? path : "/", max, now);
                return false;
            }
        }
        slash = strrchr(path, '/');
        if (!slash)
            return true;
        *slash = '\0';
    }
}

static bool check_cgroups(int n, char *err, size_t errlen)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    bool ok = true;

    while (ok && f && fgets(line, sizeof(line), f)) {
        /* "0::/path" (version 2) or "7:pids:/path" (version 1) */
        char *controllers = strchr(line, ':'), *path;
        if (!controllers || !(path = strchr(controllers + 1, ':')))
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        controllers++;
        if (*controllers == '\0')
            ok = check_cgroup(n, "/sys/fs/cgroup", path, err, errlen);
        else if (strcmp(controllers, "pids") == 0)
            ok = check_cgroup(n, "/sys/fs/cgroup/pids", path, err, errlen);
    }
    if (f)
        fclose(f);
    return ok;
}

static bool check_system(int n, char *err, size_t errlen)
{
    static const char *const files[] = {"/proc/sys/kernel/pid_max",
                                        "/proc/sys/kernel/threads-max"};

    for (size_t i = 0; i < RK_ARRAY_LEN(files); i++) {
        long long max;
        if (read_number(files[i], &max) && n + TASKS_OWN > max) {
            snprintf(err, errlen, "%d rank%s more than this system can hold: %s is %lld", n,
                     n == 1 ? " is" : "s are", files[i], max);
            return false;
        }
    }
    return true;
}

static bool check_stack(char *err, size_t errlen)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_STACK, &lim) || lim.rlim_cur >= LEAST_STACK)
        return true;
    snprintf(err, errlen, "a stack of %llu KiB is too small to start ranks, %d KiB are needed; raise the limit (ulimit -s)",
             (unsigned long long)lim.rlim_cur >> 10, LEAST_STACK >> 10);
    return false;
}

bool xr_limits_check(int n, int more, uint32_t below, char *err, size_t errlen)
{
    return check_stack(err, errlen) && check_system(n, err, errlen) && check_user(n, err, errlen) &&
           check_cgroups(n, err, errlen) && check_files(n, more, below, err, errlen);
}
