/* SPDX-License-Identifier: BSD-3-Clause */
/* proc_tree.c: see proc_tree.h. */
#include "launcher/exec/proc_tree.h"
#include "launcher/util/procfs.h"
#include "lib/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool ended; /* all threads are zombies */
    signed char descendant; /* 1, 0, or -1: not known yet */
};

/* Without a child there is no descendant, and a long /proc need not be read. */
static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static bool read_process(pid_t pid, struct process *p)
{
    struct xr_procfs_stat stat;

    if (!xr_procfs_stat(pid, &stat))
        return false;
    *p = (struct process){.pid = pid, .parent = stat.parent, .ended = stat.ended, .descendant = -1};
    return true;
}

static int proc_tree_by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;

    return (x > y) - (x < y);
}

/* Return all processes, sorted by pid; NULL if /proc cannot be read. */
static struct process *list_all(size_t *count)
{
    DIR *proc = opendir("/proc");
    struct process *list = NULL;
    size_t n = 0, cap = 0;
    struct dirent *e;

    while (proc && (e = readdir(proc))) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        if (n == cap) {
            struct process *more;
            cap = cap ? cap * 2 : 256;
            more = realloc(list, cap * sizeof(*list));
            if (!more)
                break;
            list = more;
        }
        n += read_process((pid_t)atoi(e->d_name), &list[n]);
    }
    if (proc)
        closedir(proc);
    if (list)
        qsort(list, n, sizeof(*list), proc_tree_by_pid);
    *count = n;
    return list;
}

static struct process *proc_tree_find(struct process *list, size_t n, pid_t pid)
{
    struct process key = {.pid = pid};

    return bsearch(&key, list, n, sizeof(*list), proc_tree_by_pid);
}

/* Determine whether p is a descendant of this process: follow parents until one is known. */
static int proc_tree_settle(struct process *list, size_t n, struct process *p, pid_t self)
{
    struct process *up = p;
    int descendant;

    /* Limit the steps: a table read while processes start and end may hold a loop. */
    for (size_t steps = 0; up && up->descendant < 0 && up->parent != self && steps < n; steps++)
        up = proc_tree_find(list, n, up->parent);
    descendant = up && (up->descendant >= 0 ? up->descendant : up->parent == self);
    for (struct process *q = p; q && q->descendant < 0; q = proc_tree_find(list, n, q->parent)) {
        q->descendant = (signed char)descendant;
        if (q == up)
            break;
    }
    return descendant;
}

int xr_proc_tree_signal(int sig, const pid_t *keep, size_t nkeep)
{
    size_t n = 0;
    struct process *list = has_children() ? list_all(&n) : NULL;
    pid_t self = getpid();
    int sent = 0;

    for (size_t i = 0; i < nkeep; i++) {
        struct process *p = list ? proc_tree_find(list, n, keep[i]) : NULL;
        if (p)
            p->descendant = 0;
    }
    for (size_t i = 0; list && i < n; i++) {
        if (list[i].pid != self && proc_tree_settle(list, n, &list[i], self) && !list[i].ended)
            sent += kill(list[i].pid, sig) == 0;
    }
    free(list);
    return sent;
}

static bool is_kept(pid_t pid, const pid_t *keep, size_t nkeep)
{
    for (size_t i = 0; i < nkeep; i++) {
        if (keep[i] == pid)
            return true;
    }
    return false;
}

bool xr_proc_tree_end(int ms, const pid_t *keep, size_t nkeep)
{
    const struct timespec pause = {0, 5000000};
    uint64_t deadline = rk_clock_ns() + (uint64_t)ms * 1000000u;

    for (;;) {
        int left = xr_proc_tree_signal(SIGKILL, keep, nkeep), zombies = 0;
        siginfo_t info;

        /* Reap all except the is_kept: the caller waits for those. */
        for (;;) {
            info.si_pid = 0;
            if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid ||
                is_kept(info.si_pid, keep, nkeep))
                break;
            waitpid(info.si_pid, NULL, 0);
            zombies++;
        }
        if (left == 0 && zombies == 0)
            return true;
        if (rk_clock_ns() > deadline)
            return false;
        /* A killed process takes a moment to end, and processes that are not children yet cannot be waited for. */
        nanosleep(&pause, NULL);
    }
}

pid_t *xr_proc_tree_children(size_t *count)
{
    size_t n = 0, k = 0;
    struct process *list = has_children() ? list_all(&n) : NULL;
    pid_t *children = calloc(n + 1, sizeof(*children));

    for (size_t i = 0; list && children && i < n; i++) {
        if (list[i].parent == getpid())
            children[k++] = list[i].pid;
    }
    free(list);
    *count = k;
    return children;
}

pid_t *xr_proc_tree_all(size_t *count)
{
    size_t n = 0, k = 0;
    struct process *list = has_children() ? list_all(&n) : NULL;
    pid_t self = getpid(), *pids = calloc(n + 1, sizeof(*pids));

    for (size_t i = 0; list && pids && i < n; i++) {
        if (list[i].pid != self && proc_tree_settle(list, n, &list[i], self) && !list[i].ended)
            pids[k++] = list[i].pid;
    }
    free(list);
    *count = k;
    return pids;
}
