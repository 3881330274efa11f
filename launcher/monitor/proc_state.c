/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_state.c: see proc_state.h.
 *
 * A rank may be a script that runs the program, so all its processes are probed as
 * a tree.
 */
#include "launcher/monitor/proc_state.h"
#include "launcher/monitor/status_board.h"
#include "launcher/util/procfs.h"
#include "launcher/util/shell_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TREE_MAX 64
#define DEPTH_MAX 16

/* A process that uses less than 1/100 of a core sleeps, apart from timers. */
#define IDLE_SHARE 100

struct proc_sum {
    int n;
    pid_t wanted; /* found: it is in the tree */
    bool found, runs, stopped, held;
    uint64_t ticks;
};

const char *xr_proc_doing_text(enum xr_proc_doing doing)
{
    static const char *const word[] = {"is gone", "computes",   "waits",
                                       "sleeps",  "is stopped", "is held by a debugger"};

    return word[doing];
}

static void walk_tree(struct proc_sum *t, pid_t pid, int depth)
{
    pid_t children[TREE_MAX];
    struct xr_procfs_stat stat;
    size_t n;

    if (t->n >= TREE_MAX || depth >= DEPTH_MAX || !xr_procfs_stat(pid, &stat) || stat.ended)
        return;
    t->n++;
    t->found = t->found || pid == t->wanted;
    t->ticks += stat.ticks;
    t->runs = t->runs || stat.state == 'R';
    t->stopped = t->stopped || stat.state == 'T';
    t->held = t->held || stat.state == 't';
    n = xr_procfs_children(pid, children, TREE_MAX);
    for (size_t i = 0; i < n; i++)
        walk_tree(t, children[i], depth + 1);
}

/* ---------------------------------------------------------------- system call */

static const struct {
    long number;
    const char *name;
    bool descriptor; /* the first argument is a descriptor */
} calls[] = {
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_accept4, "accept", true},
    {SYS_connect, "connect", true},
    {SYS_flock, "flock", true},
    {SYS_futex, "futex: a lock, or another thread", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "nanosleep", false},
    {SYS_wait4, "wait: for a child", false},
    {SYS_waitid, "wait: for a child", false},
    {SYS_epoll_pwait, "epoll_wait", false},
    {SYS_ppoll, "poll", false},
    {SYS_pselect6, "select", false},
    {SYS_rt_sigtimedwait, "sigwait", false},
    {SYS_rt_sigsuspend, "sigsuspend", false},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait", false},
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_accept, "accept", true},
    {SYS_pause, "pause", false},
#endif
};

static const char *descriptor_name(unsigned long fd)
{
    return fd == 0 ? " (stdin)" : fd == 1 ? " (stdout)" : fd == 2 ? " (stderr)" : "";
}

static void name_call(pid_t pid, char *out, size_t len)
{
    char text[256], *end;
    unsigned long first;
    long number;

    *out = '\0';
    if (!xr_procfs_read(pid, "syscall", text, sizeof(text)))
        return;
    number = strtol(text, &end, 10);
    if (end == text) /* "running" */
        return;
    first = strtoul(end, NULL, 16);
    for (size_t i = 0; i < RK_ARRAY_LEN(calls); i++) {
        if (calls[i].number != number)
            continue;
        if (calls[i].descriptor)
            snprintf(out, len, " in %s of descriptor %lu%s", calls[i].name, first,
                     descriptor_name(first));
        else
            snprintf(out, len, " in %s", calls[i].name);
        return;
    }
    snprintf(out, len, " in system call %ld", number);
}

/* Find the program: the innermost first child of scripts. */
static pid_t innermost(pid_t pid)
{
    pid_t child;

    for (int depth = 0; depth < DEPTH_MAX && xr_procfs_children(pid, &child, 1); depth++)
        pid = child;
    return pid;
}

/* ---------------------------------------------------------------------- probe */

/* Return the time since when it uses nearly no CPU time, or 0 if it does. */
static uint64_t idle_since(struct xr_proc_state_past *past, uint64_t now, uint64_t cpu_ns, bool runs)
{
    uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t allowed = (now - past->looked_ns) / IDLE_SHARE + tick;

    if (runs || (past->looked_ns && cpu_ns > past->cpu_ns + allowed)) {
        past->idle_ns = 0;
    } else if (past->idle_ns == 0) {
        past->idle_ns = now;
    }
    past->looked_ns = now;
    past->cpu_ns = cpu_ns;
    return past->idle_ns;
}

/* Read the slot of the status board. Returns whether the rank waits in librank. */
static bool read_slot(const struct rk_board_slot *slot, uint64_t now, struct xr_proc_state *out)
{
    struct rk_board_view view;

    if (!slot || !rk_board_read(slot, &view) || view.state == RK_BOARD_NONE)
        return false;
    out->on_board = true;
    out->refused = view.refused;
    if (view.pid > 0 && view.pid < INT32_MAX)
        out->pid = (pid_t)view.pid;
    if (view.state != RK_BOARD_WAITING && view.state != RK_BOARD_JOINING)
        return false;
    out->joining = view.state == RK_BOARD_JOINING;
    out->since_ns = view.since_ns < now ? view.since_ns : now;
    out->begun_ns = view.state == RK_BOARD_WAITING && view.begun_ns < now ? view.begun_ns : 0;
    if (out->joining) {
        snprintf(out->text, sizeof(out->text), "rank_init");
    } else {
        out->what = view.what;
        xr_status_board_wait_text(&view.what, out->text, sizeof(out->text));
    }
    return true;
}

void xr_proc_state_read(pid_t pid, const struct rk_board_slot *slot, uint64_t now,
                struct xr_proc_state_past *past, struct xr_proc_state *out)
{
    struct proc_sum t = {0};
    uint64_t idle, tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    bool waits;
    char call[96];

    *out = (struct xr_proc_state){.pid = pid, .since_ns = now};
    waits = read_slot(slot, now, out);
    t.wanted = out->pid;
    walk_tree(&t, pid, 0);
    if (t.n == 0)
        return;
    if (!t.found) /* a process that is gone wrote the slot */
        waits = out->on_board = false;
    if (!out->on_board)
        out->pid = innermost(pid);
    out->cpu_ns = t.ticks * tick;
    idle = idle_since(past, now, out->cpu_ns, t.runs);
    if (!t.stopped && !t.held)
        past->halted_ns = 0;
    else if (past->halted_ns == 0)
        past->halted_ns = now;
    if (t.stopped || t.held) {
        out->doing = t.stopped ? XR_DOING_STOPPED : XR_DOING_HELD;
        /* It may have slept before. */
        if (!waits || past->halted_ns < out->since_ns)
            out->since_ns = past->halted_ns;
        if (idle && idle < out->since_ns)
            out->since_ns = idle;
        snprintf(out->text, sizeof(out->text), "%s%s", xr_proc_doing_text(out->doing),
                 t.stopped ? " by a signal; SIGCONT lets it go on" : "");
    } else if (waits) {
        out->doing = XR_DOING_WAIT;
    } else if (idle) {
        out->doing = XR_DOING_SLEEP;
        out->since_ns = idle;
        name_call(out->pid, call, sizeof(call));
        snprintf(out->text, sizeof(out->text), "sleeps%s", call);
    } else {
        out->doing = XR_DOING_WORK;
        snprintf(out->text, sizeof(out->text), "computes");
    }
}

void xr_proc_state_text(const struct xr_proc_state *l, char *out, size_t len)
{
    if (l->refused)
        snprintf(out, len, "%" PRIu64 " frame%s refused; %s", l->refused, xr_plural(l->refused), l->text);
    else
        snprintf(out, len, "%s", l->text);
}
