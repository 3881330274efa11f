/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack_traces.c: run a debugger for each rank, a few at a time.
 *
 * A debugger may hang or be refused, so that each is killed after a time limit.
 * Its output is sent rank by rank. See stack_traces.h.
 */
#include "launcher/agent/stack_traces.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/conn.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"
#include "launcher/exec/spawn_proc.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"

#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    AT_ONCE = 4,          /* debuggers */
    TICK_MS = 100,
    TEXT_MAX = 256 << 10, /* bytes of one rank */
    ARGS_MAX = 12
};

extern char **environ;

struct trace {
    struct xr_traces *all;
    uint32_t rank;
    pid_t pid;   /* the traced process */
    pid_t child; /* the debugger; 0: none runs */
    int fd;      /* its output; -1: at its end */
    struct event *ev;
    uint64_t deadline;
    bool late; /* it was killed for the deadline */
    char *text;
    size_t len;
};

struct xr_traces {
    struct event_base *base;
    struct xr_conn *const *wire; /* to the front end; *wire is NULL after its end */
    struct trace *list;
    uint32_t n, next, running;
    uint64_t deadline;
    char *tool; /* path of the debugger; NULL: there is none */
    bool gdb;
    char **env;
    struct event *tick;
    struct xr_spawner spawner;
    bool done;
};

static void stack_traces_send(struct xr_traces *t, uint32_t rank, pid_t pid, const char *text, size_t len)
{
    struct xr_packer p = {0};

    if (!*t->wire || len == 0)
        return;
    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, (uint32_t)pid);
    xr_pack_bytes(&p, text, len);
    xr_conn_send(*t->wire, XR_MSG_TRACE_TEXT, &p);
}

/* Send the reason why a rank has no trace. */
static void send_reason(struct xr_traces *t, const struct trace *x, const char *why)
{
    char text[512];

    snprintf(text, sizeof(text), "no stack trace: %s\n", why);
    stack_traces_send(t, x->rank, x->pid, text, strlen(text));
}

/* -------------------------------------------------------------------- one rank */

static void stop_reading(struct trace *x)
{
    if (x->ev)
        event_free(x->ev);
    x->ev = NULL;
    if (x->fd >= 0)
        close(x->fd);
    x->fd = -1;
}

/* Read what the debugger has written. Bytes above TEXT_MAX are dropped. */
static void stack_traces_read(struct trace *x)
{
    char rest[4096];
    ssize_t n;

    for (;;) {
        bool room = x->text && x->len < TEXT_MAX;
        n = room ? read(x->fd, x->text + x->len, TEXT_MAX - x->len)
                 : read(x->fd, rest, sizeof(rest));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (room)
            x->len += (size_t)n;
    }
    if (n == 0)
        stop_reading(x);
}

static void on_text(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    stack_traces_read(arg);
}

static char *const *arguments(const struct xr_traces *t, const char *pid, char *out[ARGS_MAX])
{
    static const char *const gdb[] = {"gdb", "-nx", "-q", "-batch", "-ex", "thread apply all bt",
                                      "-p"};
    static const char *const eu_stack[] = {"eu-stack", "-m", "-p"};
    size_t n = t->gdb ? RK_ARRAY_LEN(gdb) : RK_ARRAY_LEN(eu_stack);

    for (size_t i = 0; i < n; i++)
        out[i] = (char *)(uintptr_t)(t->gdb ? gdb[i] : eu_stack[i]);
    out[n] = (char *)(uintptr_t)pid;
    out[n + 1] = NULL;
    return out;
}

static bool stack_traces_begin(struct xr_traces *t, struct trace *x)
{
    int ends[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC), pidfd = -1;
    struct xr_spawn spec = {.program = t->tool, .env = t->env, .wdir = "/"};
    const char *step = "";
    char *argv[ARGS_MAX], pid[16];

    if (null < 0)
        return false;
    if (pipe2(ends, O_CLOEXEC)) {
        close(null);
        return false;
    }
    snprintf(pid, sizeof(pid), "%d", (int)x->pid);
    spec.argv = arguments(t, pid, argv);
    spec.fd[0] = null;
    spec.fd[1] = spec.fd[2] = ends[1];
    x->child = xr_spawn(&spec, &t->spawner, &pidfd, &step);
    close(null);
    close(ends[1]);
    if (pidfd >= 0)
        close(pidfd);
    if (x->child < 0) {
        x->child = 0;
        close(ends[0]);
        return false;
    }
    x->fd = ends[0];
    fcntl(x->fd, F_SETFL, O_NONBLOCK);
    x->text = malloc(TEXT_MAX);
    x->deadline = rk_clock_ns() + XR_TRACE_TOOL_MS * 1000000ull;
    x->ev = event_new(t->base, x->fd, EV_READ | EV_PERSIST, on_text, x);
    if (x->ev)
        event_add(x->ev, NULL);
    t->running++;
    return true;
}

/* ----------------------------------------------------------- frames of the text */

static bool begins_with(const char *line, size_t len, const char *word)
{
    return len >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

static bool is_frame(const char *line, size_t len)
{
    return len > 1 && line[0] == '#' && line[1] >= '0' && line[1] <= '9';
}

static size_t line_length(const char *at, size_t left)
{
    const char *nl = memchr(at, '\n', left);

    return nl ? (size_t)(nl - at) + 1 : left;
}

static bool line_names(const char *line, size_t len, const char *word)
{
    return memmem(line, len, word, strlen(word)) != NULL;
}

/* Frames of a thread's start in libc: by name with its debug symbols, else by file. */
static bool is_thread_start(const char *line, size_t len)
{
    return line_names(line, len, " start_thread") || line_names(line, len, "clone3") || line_names(line, len, " __clone") ||
           line_names(line, len, "/libc.so");
}

/*
 * Return whether libpmix created this thread: the outermost frame that is not libc's. A thread that calls libpmix is
 * the program's.
 */
static bool is_service_thread(const char *text, size_t len)
{
    bool service = false;

    for (size_t at = 0, n; at < len; at += n) {
        n = line_length(text + at, len - at);
        if (is_frame(text + at, n) && !is_thread_start(text + at, n))
            service = line_names(text + at, n, "/libpmix.so");
    }
    return service;
}

/* The frame in which the kernel calls a handler, in the text of gdb and of eu-stack. */
static bool is_handler_call(const char *line, size_t len)
{
    return line_names(line, len, "<signal handler called>") || line_names(line, len, " __restore_rt");
}

/*
 * Keep the stacks of the program's threads. Each is a line that names the thread, and its frames without those of a
 * signal handler. A text without frames stays, because it holds the reason. Returns the new length.
 */
static size_t keep_frames(char *text, size_t len)
{
    size_t kept = 0, thread = 0, frames = 0; /* starts of the last thread and of its frames in the kept text */
    bool any = false;

    for (size_t at = 0; !any && at < len; at += line_length(text + at, len - at))
        any = is_frame(text + at, len - at);
    if (!any)
        return len;
    for (size_t at = 0, n; at < len; at += n) {
        bool head;
        n = line_length(text + at, len - at);
        head = begins_with(text + at, n, "Thread ") || begins_with(text + at, n, "TID ");
        if (!head && !is_frame(text + at, n))
            continue;
        if (head && is_service_thread(text + thread, kept - thread))
            kept = thread;
        if (head)
            thread = kept;
        if (!head && is_handler_call(text + at, n)) {
            kept = frames;
            continue;
        }
        memmove(text + kept, text + at, n);
        kept += n;
        if (head)
            frames = kept;
    }
    return is_service_thread(text + thread, kept - thread) ? thread : kept;
}

static void stack_traces_finish(struct xr_traces *t, struct trace *x)
{
    x->child = 0;
    t->running--;
    if (x->fd >= 0)
        stack_traces_read(x);
    stop_reading(x);
    x->len = x->text ? keep_frames(x->text, x->len) : 0;
    stack_traces_send(t, x->rank, x->pid, x->text, x->len);
    if (x->late)
        send_reason(t, x, "the tool did not end in time and was killed");
    else if (x->len == 0)
        send_reason(t, x, "the tool printed nothing");
    free(x->text);
    x->text = NULL;
}

/* ------------------------------------------------------------------------- all */

static void stack_traces_end(struct xr_traces *t)
{
    if (t->done)
        return;
    t->done = true;
    if (t->tick)
        event_del(t->tick);
    if (*t->wire)
        xr_conn_send(*t->wire, XR_MSG_TRACED, NULL);
}

/* Start debuggers while there is room, or end. */
static void stack_traces_continue(struct xr_traces *t)
{
    while (!t->done && t->next < t->n && t->running < AT_ONCE) {
        struct trace *x = &t->list[t->next++];
        if (rk_clock_ns() > t->deadline)
            send_reason(t, x, "no time is left for it");
        else if (!stack_traces_begin(t, x))
            send_reason(t, x, strerror(errno));
    }
    if (t->next == t->n && t->running == 0)
        stack_traces_end(t);
}

/* Kill debuggers that take too long. */
static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct xr_traces *t = arg;
    uint64_t now = rk_clock_ns();

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < t->n; i++) {
        struct trace *x = &t->list[i];
        if (x->child > 0 && !x->late && (now > x->deadline || now > t->deadline)) {
            x->late = true;
            kill(x->child, SIGKILL);
        }
    }
    stack_traces_continue(t);
}

bool xr_traces_reaped(struct xr_traces *t, pid_t pid)
{
    for (uint32_t i = 0; t && pid > 0 && i < t->n; i++) {
        if (t->list[i].child == pid) {
            stack_traces_finish(t, &t->list[i]);
            stack_traces_continue(t);
            return true;
        }
    }
    return false;
}

static void find_tool(struct xr_traces *t)
{
    char why[512];
    int code;

    t->tool = xr_program_find("gdb", NULL, rk_env("PATH"), "/", why, sizeof(why), &code);
    t->gdb = t->tool != NULL;
    if (!t->tool)
        t->tool = xr_program_find("eu-stack", NULL, rk_env("PATH"), "/", why, sizeof(why), &code);
}

/* Our environment, with the debugger's requests to symbol servers switched off. */
static char **make_env(void)
{
    size_t n = 0;
    char **env;

    while (environ[n])
        n++;
    env = malloc((n + 2) * sizeof(*env));
    if (!env)
        return NULL;
    env[0] = (char *)(uintptr_t) "DEBUGINFOD_URLS=";
    memcpy(env + 1, environ, (n + 1) * sizeof(*env));
    return env;
}

struct xr_traces *xr_traces_start(struct event_base *base, struct xr_conn *const *wire,
                                  const struct xr_trace_target *ranks, uint32_t n, uint32_t ms)
{
    const struct timeval tick = {0, TICK_MS * 1000};
    struct xr_traces *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->base = base;
    t->wire = wire;
    t->deadline = rk_clock_ns() + ms * 1000000ull;
    t->list = calloc(n ? n : 1, sizeof(*t->list));
    t->env = make_env();
    t->tick = event_new(base, -1, EV_PERSIST, on_tick, t);
    if (!t->list || !t->env || !t->tick || xr_spawner_open(&t->spawner)) {
        stack_traces_end(t);
        return t;
    }
    event_add(t->tick, &tick);
    find_tool(t);
    for (t->n = 0; t->n < n; t->n++)
        t->list[t->n] = (struct trace){.all = t, .rank = ranks[t->n].rank, .pid = ranks[t->n].pid, .fd = -1};
    if (!t->tool) {
        const char *text = "no stack traces: neither gdb nor eu-stack is in PATH\n";
        stack_traces_send(t, XR_NO_RANK, 0, text, strlen(text));
        t->n = 0;
    }
    stack_traces_continue(t);
    return t;
}

void xr_traces_close(struct xr_traces *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n; i++) {
        stop_reading(&t->list[i]);
        free(t->list[i].text);
    }
    if (t->tick)
        event_free(t->tick);
    free(t->list);
    free(t->env);
    free(t->tool);
    free(t);
}
