/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_pair.c: see conn_pair.h. */
#include "config.h"

#include "tests/conn/conn_pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool pair_by_socket, pair_by_ucx;

void pair_sleep(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* ------------------------------------------------------------------------ processes */

/* Returns false if the process fails, or does not end until then; it is killed, then. */
static bool reap(pid_t pid, double until, bool kills, const char *name)
{
    int how = 0;

    while (waitpid(pid, &how, WNOHANG) == 0) {
        if (mp_now() > until) {
            fprintf(stderr, "%s: process %d does not end\n", name, (int)pid);
            kill(pid, SIGABRT);
            pair_sleep(0.2);
            kill(pid, SIGKILL);
            waitpid(pid, &how, 0);
            return false;
        }
        pair_sleep(0.001);
    }
    if ((WIFEXITED(how) && WEXITSTATUS(how) == 0) || (kills && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL))
        return true;
    fprintf(stderr, "%s: process %d ends with %s %d\n", name, (int)pid, WIFSIGNALED(how) ? "signal" : "exit code",
            WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    return false;
}

/* Fork a side, with its end of the pipes. */
static pid_t fork_side_of(struct pair p, void (*side)(struct pair *p), int in, int out, const int unused[2])
{
    static char name[80];
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    close(unused[0]);
    close(unused[1]);
    p.in = in;
    p.out = out;
    snprintf(name, sizeof(name), "%s, side %d", p.name, p.me);
    mp_name_case(name, p.seed);
    side(&p);
    exit(0);
}

/* In a process of its own, so that no side is the parent of another, and all of them are in one group. */
static bool run_sides(struct pair p, void (*side)(struct pair *p), double until, bool kills)
{
    int there[2], back[2];
    pid_t pids[2];
    bool ok;

    CHECK(pipe(there) == 0 && pipe(back) == 0);
    p.me = 1;
    p.other = pids[1] = fork_side_of(p, side, there[0], back[1], (int[2]){there[1], back[0]});
    p.me = 0;
    pids[0] = fork_side_of(p, side, back[0], there[1], (int[2]){there[0], back[1]});
    close(there[0]);
    close(there[1]);
    close(back[0]);
    close(back[1]);
    ok = reap(pids[0], until, kills, p.name);
    return reap(pids[1], until, kills, p.name) && ok;
}

bool pair_run(const char *name, void (*side)(struct pair *p), uint64_t seed, int limit_s, bool kills)
{
    double until = mp_now() + limit_s;
    pid_t pid;
    bool ok;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        if (pair_by_ucx)
            /* A process killed in UCX's shared memory leaves a cell of the survivor's only fifo unwritten, which ends its receives. */
            setenv("UCX_TLS", kills ? "tcp,self" : "posix,self", 1);
        _exit(run_sides((struct pair){.seed = seed, .name = name}, side, until - 0.5, kills) ? 0 : 1);
    }
    ok = reap(pid, until + 1, kills, name);
    kill(-pid, SIGKILL); /* what a failure has left */
    printf("%s - %s%s seed %llu\n", ok ? "ok" : "not ok", name, pair_by_socket ? ", by socket" : pair_by_ucx ? ", by UCX (stand-in)" : "", (unsigned long long)seed);
    return ok;
}

bool pair_use(int way)
{
    pair_by_socket = way == PAIR_SOCKET;
    pair_by_ucx = way == PAIR_UCX;
#ifdef HAVE_UCX
    return true;
#else
    return !pair_by_ucx;
#endif
}

const char *pair_channel(bool first)
{
    return pair_by_ucx && first ? "ucx" : pair_by_ucx || pair_by_socket ? "tcp" : "shm";
}

/* --------------------------------------------------------------------- between the sides */

void pair_put(struct pair *p, const void *data, size_t len)
{
    CHECK(write(p->out, data, len) == (ssize_t)len);
}

void pair_get(struct pair *p, void *data, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = read(p->in, (char *)data + got, len - got);
        if (n <= 0)
            mp_fail(__FILE__, __LINE__, "the other side is gone");
        got += (size_t)n;
    }
}

void pair_meet(struct pair *p)
{
    char c = 0;

    pair_put(p, &c, 1);
    pair_get(p, &c, 1);
}

rank_conn_opts_t pair_opts(void)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;

    opts.secret = "a secret of this one test";
    opts.secret_bytes = PAIR_SECRET;
    opts.timeout_ns = 20 * SECOND;
    opts.flags = pair_by_socket || pair_by_ucx ? RANK_CONN_NO_SHM : 0;
    return opts;
}

rank_ctx_t pair_context(int level, int progress_thread)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    rank_ctx_t ctx;

    opts.thread_level = level;
    opts.progress_thread = progress_thread;
    OK(rank_ctx_open(&opts, &ctx));
    return ctx;
}

rank_listener_t pair_listen(struct pair *p, rank_ctx_t ctx, const rank_conn_opts_t *opts)
{
    char address[PAIR_ADDRESS] = "";
    size_t len = sizeof(address);
    rank_listener_t listener;

    OK(rank_listen(ctx, "127.0.0.1:0", opts, &listener));
    OK(rank_listener_address(listener, address, &len));
    pair_put(p, address, sizeof(address));
    return listener;
}

rank_team_t pair_connect(struct pair *p, rank_ctx_t ctx, rank_listener_t listener)
{
    rank_conn_opts_t opts = pair_opts();
    char address[PAIR_ADDRESS];
    rank_team_t conn;

    if (listener) {
        OK(rank_accept(listener, 20 * SECOND, &conn));
    } else {
        pair_get(p, address, sizeof(address));
        OK(rank_connect(ctx, address, &opts, &conn));
    }
    return conn;
}
