/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash_stack.c: run a debugger on this process when it crashes.
 *
 * Everything called from the handler is async-signal-safe, as the process may hold malloc's lock. So the child is
 * created by the system call, without atfork handlers, and all texts are prepared before.
 */
#include "lib/base/crash_stack.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOOL_MS = 10000, TICK_MS = 20, STACK_BYTES = 64 << 10 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const char *const signal_texts[] = {"Segmentation fault", "Bus error", "Floating point exception",
                                           "Illegal instruction", "Aborted"};

/*
 * gdb first, as for --timeout-traces. Neither may contact symbol servers on the network. The thread that crashed comes
 * first, without the frames of the handler. Threads of libpmix are left out: their outermost frame above libc is in it.
 */
static const char tool_script[] =
    "unset DEBUGINFOD_URLS LD_PRELOAD\n"
    "if command -v gdb; then tool=\"gdb -nx -q -batch -ex 'thread apply all bt 64'\"\n"
    "elif command -v eu-stack; then tool='eu-stack -m -n 64'\n"
    "else echo 'no stack: neither gdb nor eu-stack is in PATH' >&2; exit\n"
    "fi >/dev/null\n"
    "eval \"$tool -p $1\" 2>/dev/null | awk '\n"
    "function end() {\n"
    "    if (head == \"\" || !crashed && outer ~ /libpmix\\.so/) return\n"
    "    if (crashed) printf \"%s\\n%s\", head, frames\n"
    "    else others = others head \"\\n\" frames\n"
    "}\n"
    "/^(Thread|TID)/ { end(); head = $0; frames = outer = \"\"; crashed = 0 }\n"
    "/^#/ {\n"
    "    frames = frames $0 \"\\n\"\n"
    "    if (!/\\/libc\\.so| (start_thread|__clone3?|clone3?)( |$)/) outer = $0\n"
    "}\n"
    "/^#.*(<signal handler called>| __restore_rt)/ { frames = outer = \"\"; crashed = 1 }\n"
    "END { end(); printf \"%s\", others }' >&2\n";

static pid_t opened_by;
static char pid_text[16];
static bool handled[RK_ARRAY_LEN(signals)];
static atomic_flag printing = ATOMIC_FLAG_INIT;
static char alt_stack[STACK_BYTES] __attribute__((aligned(64)));
static bool alt_stack_ours;

extern char **environ;

static void write_text(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));

    (void)n;
}

/*
 * One rank of a host at a time: the kernel frees the name with the process. Returns true if it is this one's turn.
 */
static bool has_turn(void)
{
    static const char name[] = "\0librank-crash-stack";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path, name, sizeof(name));
    return fd < 0 || bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name))) == 0;
}

static void run_tool(void)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)tool_script, (char *)"sh", pid_text, NULL};
    sigset_t none;
    long child;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child < 0)
        return;
    if (child == 0) {
        setpgid(0, 0);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve("/bin/sh", argv, environ);
        _exit(127);
    }
    for (int ms = 0; ms < TOOL_MS; ms += TICK_MS) {
        if (waitpid((pid_t)child, NULL, WNOHANG) != 0) /* ended, or reaped elsewhere */
            return;
        poll(NULL, 0, TICK_MS);
    }
    kill((pid_t)-child, SIGKILL);
    waitpid((pid_t)child, NULL, 0);
}

static void report_crash(int sig)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(signals); i++) {
        if (signals[i] == sig) {
            write_text(rk_log_prefix());
            write_text(": error: ");
            write_text(signal_texts[i]);
            write_text("\n");
        }
    }
    if (has_turn())
        run_tool();
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    /* A forked child is no rank, and one of vfork shares the flag with its parent. */
    if (getpid() == opened_by) {
        if (atomic_flag_test_and_set(&printing)) {
            for (;;) /* another thread crashed first and ends the process */
                pause();
        }
        report_crash(sig);
    }
    signal(sig, SIG_DFL);
    raise(sig); /* it is blocked here and ends the process on return */
}

/* A handler needs a stack of its own after an overflow. Other threads keep what they have. */
static void set_alt_stack(void)
{
    stack_t has, ours = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};

    alt_stack_ours = sigaltstack(NULL, &has) == 0 && has.ss_flags == SS_DISABLE && sigaltstack(&ours, NULL) == 0;
}

void rk_crash_stack_open(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, has;

    if (!rk_conf.crash_stack)
        return;
    opened_by = getpid();
    snprintf(pid_text, sizeof(pid_text), "%d", (int)opened_by);
    action.sa_sigaction = on_crash;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < RK_ARRAY_LEN(signals); i++) {
        handled[i] = sigaction(signals[i], NULL, &has) == 0 && !(has.sa_flags & SA_SIGINFO) && has.sa_handler == SIG_DFL &&
                     sigaction(signals[i], &action, NULL) == 0;
    }
    set_alt_stack();
}

void rk_crash_stack_close(void)
{
    stack_t off = {.ss_flags = SS_DISABLE}, has;
    struct sigaction now;

    for (size_t i = 0; i < RK_ARRAY_LEN(signals); i++) {
        if (handled[i] && sigaction(signals[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == on_crash)
            signal(signals[i], SIG_DFL);
        handled[i] = false;
    }
    if (alt_stack_ours && sigaltstack(NULL, &has) == 0 && has.ss_sp == alt_stack)
        sigaltstack(&off, NULL);
    alt_stack_ours = false;
}
