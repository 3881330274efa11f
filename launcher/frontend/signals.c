/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.c: handle signals to xrun: end, forward, stop, reap. */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/compiler.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void xr_front_forward(struct front *f, int sig)
{
    struct xr_packer p = {0};

    xr_child_jobs_signal(f, sig);
    if (xr_job_is_done(f->state))
        return;
    xr_pack_u32(&p, (uint32_t)sig);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_SIGNAL, &p);
}

bool xr_front_control(struct front *f, struct xr_unpacker *u)
{
    uint32_t sig = xr_unpack_u32(u), n = xr_unpack_u32(u), kind = n ? XR_MSG_TARGETS : XR_MSG_SIGNAL;
    bool ends = xr_job_is_ending(f->state) || xr_job_is_done(f->state);
    struct xr_packer p = {0};

    xr_pack_u32(&p, sig);
    if (n)
        xr_pack_u32(&p, n);
    for (uint32_t i = 0; i < n && !u->failed; i++)
        xr_pack_u32(&p, xr_unpack_u32(u));
    if (!xr_unpack_done(u) || sig < 1 || sig > 64 || ends) {
        xr_packer_free(&p);
        return ends;
    }
    xr_tree_send(f->tree, XR_NODE_ALL, kind, &p);
    return true;
}

static void end_after_report(void *arg)
{
    struct front *f = arg;

    if (!xr_job_is_forced(f->state))
        xr_front_force(f, 128 + f->end_signal, f->end_signal, xr_front_grace(f, XR_SIGNAL_GRACE_MS));
}

/* The user, or a tool, may take the job for hung: report first what the ranks wait for. */
static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    xr_report_cause(f->report, "signal %d (%s)", (int)sig, strsignal(sig));
    if (++f->interrupts == 1) {
        if (!f->options->quiet)
            xr_stream_print(f->err, "xrun: got %s; ending the job (once more to kill it at once)",
                          strsignal(sig));
        f->end_signal = sig;
        if ((sig == SIGTERM || sig == SIGINT) && xr_job_is_active(f->state)) {
            xr_front_set_exit_code(f, 128 + sig);
            xr_heartbeat_explain_last(f->heartbeat, end_after_report, f);
        } else {
            xr_front_force(f, 128 + sig, sig, xr_front_grace(f, XR_SIGNAL_GRACE_MS));
        }
    } else {
        xr_front_force(f, 128 + sig, sig, 0);
    }
    /* Only output that is not read keeps xrun, and the user repeats the signal. */
    if (f->interrupts > 2 && !xr_tree_child_count(f->tree))
        event_base_loopexit(f->base, NULL);
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    if (sig == SIGCONT) /* it cancels a pending stop, as in the kernel */
        event_del(f->stop_self);
    xr_front_forward(f, sig);
    if (sig == SIGCONT) {
        xr_user_tty_take(f->terminal);
        xr_reader_wake(f->reader);
    }
}

void xr_front_on_stop_self(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    xr_user_tty_give_back(f->terminal);
    raise(SIGSTOP); /* the SIGCONT that ends it is forwarded as any other */
    xr_user_tty_take(f->terminal);
    xr_reader_wake(f->reader);
}

/* ^Z stops the ranks, which may handle it and print, and then xrun. fg continues both. */
static void on_stop(evutil_socket_t sig, short what, void *arg)
{
    const struct timeval soon = {0, XR_STOP_SELF_MS * 1000};
    struct front *f = arg;

    (void)what;
    if (event_pending(f->stop_self, EV_TIMEOUT, NULL))
        return;
    xr_front_forward(f, sig);
    event_add(f->stop_self, &soon);
}

/* Wait for known children only. Orphans of a dead supervisor come to this process too; end_all reaps them. */
static void on_child(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;
    size_t n = xr_launch_pids(f->launch, NULL, SIZE_MAX);
    pid_t *pids = n ? calloc(n, sizeof(*pids)) : NULL;
    int status;

    (void)sig;
    (void)what;
    if (f->supervisor > 0 && waitpid(f->supervisor, &status, WNOHANG) == f->supervisor)
        f->supervisor = 0;
    n = pids ? xr_launch_pids(f->launch, pids, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (waitpid(pids[i], &status, WNOHANG) == pids[i])
            xr_launch_reaped(f->launch, pids[i], status);
    }
    free(pids);
    xr_child_jobs_reap(f);
    if (n)
        xr_front_leave_if_over(f);
}

static rank_status_t watch_signal(struct front *f, int sig, event_callback_fn fn)
{
    struct sigaction old;
    struct event *ev;

    /* An ignored signal stays ignored (nohup, a background job of an old shell). */
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

rank_status_t xr_front_watch_signals(struct front *f)
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
