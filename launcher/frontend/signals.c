/* signals.c: what signals to xrun mean for the job. */
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/compiler.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SIGNAL_GRACE_MS 2000 /* what a user interrupts may want to save something */

void rk_front_forward(struct front *f, int sig)
{
    struct rk_packer p = {0};

    rk_front_jobs_signal(f, sig);
    if (f->done)
        return;
    rk_pack_u32(&p, (uint32_t)sig);
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_SIGNAL, &p);
}

bool rk_front_control(struct front *f, struct rk_unpacker *u)
{
    uint32_t sig = rk_unpack_u32(u), n = rk_unpack_u32(u), kind = n ? RK_MSG_TARGETS : RK_MSG_SIGNAL;
    struct rk_packer p = {0};

    rk_pack_u32(&p, sig);
    if (n)
        rk_pack_u32(&p, n);
    for (uint32_t i = 0; i < n && !u->failed; i++)
        rk_pack_u32(&p, rk_unpack_u32(u));
    if (!rk_unpack_done(u) || sig < 1 || sig > 64 || f->ending || f->done) {
        rk_packer_free(&p);
        return f->ending || f->done;
    }
    rk_tree_send(f->tree, RK_NODE_ALL, kind, &p);
    return true;
}

static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    rk_report_cause(f->report, "signal %d (%s)", (int)sig, strsignal(sig));
    if (++f->interrupts == 1) {
        if (!f->options->quiet)
            rk_stream_say(f->err, "xrun: got %s; ending the job (once more to kill it at once)",
                          strsignal(sig));
        rk_front_force(f, 128 + sig, sig, rk_front_grace(f, SIGNAL_GRACE_MS));
    } else {
        rk_front_force(f, 128 + sig, sig, 0);
        rk_branches_give_up(f->branches);
    }
    /* Nobody reads our output and the user insists. */
    if (f->interrupts > 2 && !rk_tree_child_count(f->tree))
        event_base_loopexit(f->base, NULL);
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    if (sig == SIGCONT) /* it takes back a stop, as the kernel's does */
        event_del(f->stopping);
    rk_front_forward(f, sig);
    if (sig == SIGCONT) {
        rk_user_terminal_take(f->terminal);
        rk_reader_wake(f->reader);
    }
}

void rk_front_on_stopping(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    rk_user_terminal_give_back(f->terminal);
    raise(SIGSTOP); /* the SIGCONT that ends it is handed on as any other */
    rk_user_terminal_take(f->terminal);
    rk_reader_wake(f->reader);
}

/* ^Z stops the ranks, who may do something about it first and say so, and then xrun; fg goes on with both. */
static void on_stop(evutil_socket_t sig, short what, void *arg)
{
    const struct timeval soon = {0, (RK_STOP_MS + 50) * 1000};
    struct front *f = arg;

    (void)what;
    if (event_pending(f->stopping, EV_TIMEOUT, NULL))
        return;
    rk_front_forward(f, sig);
    event_add(f->stopping, &soon);
}

/* Orphans of a dead keeper come to us too; those are for end_all. */
static void on_child(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;
    size_t n = rk_branches_pids(f->branches, NULL, SIZE_MAX);
    pid_t *pids = n ? calloc(n, sizeof(*pids)) : NULL;
    int status;

    (void)sig;
    (void)what;
    if (f->keeper > 0 && waitpid(f->keeper, &status, WNOHANG) == f->keeper)
        f->keeper = 0;
    n = pids ? rk_branches_pids(f->branches, pids, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (waitpid(pids[i], &status, WNOHANG) == pids[i])
            rk_branches_reaped(f->branches, pids[i], status);
    }
    free(pids);
    rk_front_jobs_reap(f);
    if (n)
        rk_front_leave_if_over(f);
}

static rank_status_t watch_signal(struct front *f, int sig, event_callback_fn fn)
{
    struct sigaction old;
    struct event *ev;

    /* What is ignored stays so (nohup, a background job of an old shell). */
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN && sig != SIGCHLD &&
        sig != SIGCONT)
        return RANK_OK;
    ev = evsignal_new(f->base, sig, fn, f);
    if (!ev || event_add(ev, NULL)) {
        if (ev)
            event_free(ev);
        return RANK_ERR_NO_MEMORY;
    }
    f->signals[f->nsignals++] = ev;
    return RANK_OK;
}

rank_status_t rk_front_watch_signals(struct front *f)
{
    static const struct {
        int sig;
        event_callback_fn fn;
    } wanted[] = {{SIGCHLD, on_child},          {SIGINT, on_end_signal},
                  {SIGTERM, on_end_signal},     {SIGHUP, on_end_signal},
                  {SIGQUIT, on_end_signal},
                  {SIGUSR1, on_forward_signal}, {SIGUSR2, on_forward_signal},
                  {SIGWINCH, on_forward_signal},
                  {SIGCONT, on_forward_signal}, {SIGTSTP, on_stop}};

    for (size_t i = 0; i < RK_ARRAY_LEN(wanted); i++) {
        rank_status_t st = watch_signal(f, wanted[i].sig, wanted[i].fn);
        if (st)
            return st;
    }
    return RANK_OK;
}
