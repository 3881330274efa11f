/* front.c: see front.h. */
#include "launcher/front.h"
#include "launcher/descend.h"
#include "launcher/keeper.h"
#include "launcher/leftovers.h"
#include "launcher/message.h"
#include "launcher/program.h"
#include "launcher/reader.h"
#include "launcher/streams.h"
#include "launcher/verdict.h"
#include "launcher/wire.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURE_GRACE_MS 400 /* a failed job is gone within a second */
#define SIGNAL_GRACE_MS 2000 /* what a user interrupts may want to save something */
#define SILENT_MS 1000       /* a job that had to end does not wait longer for a reader that stands still */
#define STALL_AT (1 << 20)   /* bytes queued for the user: read no more from the agent */

struct front {
    const struct rk_options *options;
    const struct rk_job *job;
    struct event_base *base;
    struct rk_wire *wire; /* NULL: the agent is gone */
    pid_t keeper;
    char host[256];
    struct rk_stream *out, *err;
    struct rk_reader *reader;
    struct event *signals[8];
    int nsignals;
    struct event *timeout, *silence;
    int code;         /* what xrun exits with */
    bool judged;      /* code is final */
    bool ending;      /* the agent was told to end the job */
    bool forced;      /* by a time-out or a signal, not by the job itself */
    bool done;        /* the agent said so */
    int interrupts;
    uint64_t forked_ns, told_ns, seen_written;
};

/* --------------------------------------------------------------------- ending */

static void end_job(struct front *f, uint32_t grace_ms)
{
    struct rk_packer p = {0};

    if (!f->wire || f->done)
        return;
    f->ending = true;
    rk_pack_u32(&p, grace_ms);
    rk_wire_send(f->wire, RK_MSG_END, &p);
}

/* The first reason counts. */
static void judge(struct front *f, int code)
{
    if (!f->judged)
        f->code = code;
    f->judged = true;
}

static void leave_if_over(struct front *f)
{
    if (f->wire == NULL && rk_stream_backlog(f->out) == 0 && rk_stream_backlog(f->err) == 0)
        event_base_loopexit(f->base, NULL);
}

/* After a forced end: go as soon as the reader of our output stands still. */
static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = {SILENT_MS / 1000, SILENT_MS % 1000 * 1000};
    struct front *f = arg;
    uint64_t written = rk_stream_written(f->out) + rk_stream_written(f->err);

    (void)fd;
    (void)what;
    if (written == f->seen_written && rk_stream_backlog(f->out) + rk_stream_backlog(f->err) > 0) {
        event_base_loopexit(f->base, NULL);
        return;
    }
    f->seen_written = written;
    event_add(f->silence, &again);
}

static void force(struct front *f, int code, uint32_t grace_ms)
{
    const struct timeval first = {(SILENT_MS + grace_ms) / 1000,
                                  (SILENT_MS + grace_ms) % 1000 * 1000};

    judge(f, code);
    f->forced = true;
    f->seen_written = rk_stream_written(f->out) + rk_stream_written(f->err);
    event_add(f->silence, &first);
    end_job(f, grace_ms);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    if (f->done || f->ending)
        return;
    rk_stream_say(f->err, "xrun: error: the job did not end within %g s (--timeout); ending it",
                  f->options->timeout);
    force(f, RK_EXIT_TIMEOUT, FAILURE_GRACE_MS);
}

/* -------------------------------------------------------------------- signals */

static void forward(struct front *f, int sig)
{
    struct rk_packer p = {0};

    if (!f->wire || f->done)
        return;
    rk_pack_u32(&p, (uint32_t)sig);
    rk_wire_send(f->wire, RK_MSG_SIGNAL, &p);
}

static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    if (++f->interrupts == 1) {
        rk_stream_say(f->err, "xrun: got %s; ending the job (once more to kill it at once)",
                      strsignal(sig));
        force(f, 128 + sig, SIGNAL_GRACE_MS);
    } else {
        force(f, 128 + sig, 0);
    }
    /* Nobody reads our output and the user insists. */
    if (f->interrupts > 2 && !f->wire)
        event_base_loopexit(f->base, NULL);
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what;
    forward(arg, sig);
}

static void stop_self(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    raise(SIGSTOP);
    forward(f, SIGCONT);
    rk_reader_wake(f->reader);
}

/* ^Z stops the ranks and, once the loop has sent that off, xrun; fg goes on with both. */
static void on_stop(evutil_socket_t sig, short what, void *arg)
{
    const struct timeval soon = {0, 10000};
    struct front *f = arg;

    (void)sig;
    (void)what;
    forward(f, SIGSTOP);
    event_base_once(f->base, -1, EV_TIMEOUT, stop_self, f, &soon);
}

/* Orphans of a dead keeper come to us too; those are for end_all. */
static void on_child(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;
    int status;

    (void)sig;
    (void)what;
    if (f->keeper > 0 && waitpid(f->keeper, &status, WNOHANG) == f->keeper)
        f->keeper = 0;
}

static rank_status_t watch_signal(struct front *f, int sig, event_callback_fn fn)
{
    struct sigaction old;
    struct event *ev;

    /* What is ignored stays so (nohup, a background job of an old shell). */
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN && sig != SIGCHLD)
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

static rank_status_t watch_signals(struct front *f)
{
    static const struct {
        int sig;
        event_callback_fn fn;
    } wanted[] = {{SIGCHLD, on_child},          {SIGINT, on_end_signal},
                  {SIGTERM, on_end_signal},     {SIGHUP, on_end_signal},
                  {SIGUSR1, on_forward_signal}, {SIGUSR2, on_forward_signal},
                  {SIGTSTP, on_stop}};

    for (size_t i = 0; i < RK_ARRAY_LEN(wanted); i++) {
        rank_status_t st = watch_signal(f, wanted[i].sig, wanted[i].fn);
        if (st)
            return st;
    }
    return RANK_OK;
}

/* ------------------------------------------------------------- the agent's words */

static void show_budget(struct front *f, struct rk_unpacker *u)
{
    uint32_t n = rk_unpack_u32(u);
    uint64_t now = rk_clock_ns();
    char line[512];
    int len;

    if (!f->options->verbose)
        return;
    len = snprintf(line, sizeof(line), "xrun: start-up in ms: front end %.2f, agent %.2f",
                   (double)(f->forked_ns - f->job->started_ns) * 1e-6,
                   (double)(f->told_ns - f->forked_ns) * 1e-6);
    for (uint32_t i = 0; i < n && i < 16 && len < (int)sizeof(line); i++) {
        const char *name = rk_unpack_string(u);
        uint64_t ns = rk_unpack_u64(u);
        if (!name)
            break;
        len += snprintf(line + len, sizeof(line) - (size_t)len, ", %s %.2f", name,
                        (double)ns * 1e-6);
    }
    rk_stream_say(f->err, "%s; in all %.2f for %u ranks on %s", line,
                  (double)(now - f->job->started_ns) * 1e-6, f->job->size, f->host);
}

static bool on_refused(struct front *f, struct rk_unpacker *u)
{
    uint32_t code = rk_unpack_u32(u);
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u) || !text)
        return false;
    rk_stream_say(f->err, "xrun: error: %s", text);
    judge(f, (int)code);
    f->ending = true;
    return true;
}

static bool on_output(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), stream = rk_unpack_u32(u), flags = rk_unpack_u32(u);
    size_t len;
    const char *data = rk_unpack_bytes(u, &len);

    if (!rk_unpack_done(u) || (stream != 1 && stream != 2))
        return false;
    rk_stream_put(stream == 1 ? f->out : f->err, rank, data, len, flags & RK_OUT_PARTIAL);
    if (rk_stream_backlog(f->out) > STALL_AT || rk_stream_backlog(f->err) > STALL_AT)
        rk_wire_pause(f->wire, true);
    return true;
}

static bool on_exited(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), pid = rk_unpack_u32(u);
    int status = (int)rk_unpack_u32(u);
    uint64_t lived = rk_unpack_u64(u);
    bool unfinished = rk_unpack_u32(u) & RK_EXIT_UNFINISHED, failed;
    char how[160], time[32];

    if (!rk_unpack_done(u))
        return false;
    failed = rk_verdict_failed(status, unfinished);
    rk_verdict_how(status, unfinished, how, sizeof(how));
    rk_verdict_time(lived, time, sizeof(time));
    if (f->ending || !failed) /* what follows from an end is no news */
        return true;
    rk_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) %s after %s%s", rank, f->host,
                  pid, how, time, f->options->go_on ? "; the others go on" : "; ending the job");
    judge(f, rk_verdict_code(status, unfinished));
    if (!f->options->go_on)
        end_job(f, FAILURE_GRACE_MS);
    return true;
}

static bool on_abort(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), pid = rk_unpack_u32(u);
    int code = (int)rk_unpack_u32(u);
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u))
        return false;
    if (f->ending)
        return true;
    rk_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) aborted the job with code %d%s%s",
                  rank, f->host, pid, code, text && *text ? ": " : "", text ? text : "");
    judge(f, rk_verdict_abort_code(code));
    end_job(f, FAILURE_GRACE_MS);
    return true;
}

static bool on_log(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), stream = rk_unpack_u32(u);
    size_t len;
    const char *data = rk_unpack_bytes(u, &len);

    if (!rk_unpack_done(u) || (stream != 1 && stream != 2))
        return false;
    rk_stream_put(stream == 1 ? f->out : f->err, rank, data, len,
                  len > 0 && data[len - 1] != '\n');
    return true;
}

static bool on_warning(struct front *f, struct rk_unpacker *u)
{
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u) || !text)
        return false;
    rk_stream_say(f->err, "xrun: warning: %s", text);
    return true;
}

static bool on_message(void *arg, uint32_t kind, struct rk_unpacker *u)
{
    struct front *f = arg;
    uint32_t n;

    switch (kind) {
    case RK_MSG_STARTED:
        show_budget(f, u);
        return true;
    case RK_MSG_REFUSED:
        return on_refused(f, u);
    case RK_MSG_OUTPUT:
        return on_output(f, u);
    case RK_MSG_INPUT_TAKEN:
        n = rk_unpack_u32(u);
        rk_reader_credit(f->reader, n);
        return rk_unpack_done(u);
    case RK_MSG_INPUT_CLOSED:
        rk_reader_close(f->reader);
        f->reader = NULL;
        return true;
    case RK_MSG_EXITED:
        return on_exited(f, u);
    case RK_MSG_ABORT:
        return on_abort(f, u);
    case RK_MSG_LOG:
        return on_log(f, u);
    case RK_MSG_WARNING:
        return on_warning(f, u);
    case RK_MSG_DONE:
        f->done = true;
        return true;
    default:
        return false;
    }
}

static void on_close(void *arg, const char *why)
{
    struct front *f = arg;

    rk_wire_close(f->wire);
    f->wire = NULL;
    rk_reader_close(f->reader);
    f->reader = NULL;
    if (!f->done) {
        rk_stream_say(f->err, "xrun: error: the agent on %s died%s%s; its ranks end with it",
                      f->host, why ? ": " : "", why ? why : "");
        judge(f, 1);
    }
    leave_if_over(f);
}

static const struct rk_wire_ops wire_ops = {on_message, on_close, NULL};

/* ----------------------------------------------------------- the user's streams */

static void on_drained(void *arg)
{
    struct front *f = arg;

    if (f->wire)
        rk_wire_pause(f->wire, false);
    leave_if_over(f);
}

static void on_broken(void *arg, struct rk_stream *stream, int error)
{
    struct front *f = arg;

    if (stream == f->out && error != EPIPE)
        rk_stream_say(f->err, "xrun: error: cannot write the output: %s; ending the job",
                      strerror(error));
    judge(f, error == EPIPE ? 128 + SIGPIPE : 1);
    end_job(f, FAILURE_GRACE_MS);
}

static const struct rk_stream_ops stream_ops = {on_drained, on_broken};

static void on_input(void *arg, const void *data, size_t len)
{
    struct front *f = arg;
    struct rk_packer p = {0};

    if (!f->wire)
        return;
    /* The payload is the bytes themselves. */
    p.data = len ? malloc(len) : NULL;
    p.failed = len && !p.data;
    if (p.data)
        memcpy(p.data, data, len);
    p.len = p.cap = len;
    rk_wire_send(f->wire, RK_MSG_INPUT, &p);
}

/* -------------------------------------------------------------- start and end */

/* Before there is an event loop: the agent has its own, and one process can have only one that
 * handles signals. *fd: this end of the wire. */
static rank_status_t start_agent(struct front *f, int *fd)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        rk_error("no socket pair for the agent: %m");
        return RANK_ERR_SYSTEM;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* should keeper and agent both be killed */
    f->keeper = rk_keeper_start(ends[1], ends[0]);
    close(ends[1]);
    if (f->keeper < 0) {
        rk_error("cannot create a process for the agent: %m");
        close(ends[0]);
        return RANK_ERR_SYSTEM;
    }
    *fd = ends[0];
    return RANK_OK;
}

static rank_status_t send_job(struct front *f, int fd)
{
    struct rk_packer p = {0};
    rank_status_t st = rk_wire_open(f->base, fd, &wire_ops, f, &f->wire);

    if (st) {
        close(fd);
        return st;
    }
    f->told_ns = rk_clock_ns();
    rk_job_pack(f->job, &p);
    rk_wire_send(f->wire, RK_MSG_JOB, &p);
    return RANK_OK;
}

static rank_status_t open_front(struct front *f)
{
    struct rk_label label = {.time = f->options->timestamp, .rank = f->options->tag_output};
    rank_status_t st;

    if (gethostname(f->host, sizeof(f->host) - 1))
        snprintf(f->host, sizeof(f->host), "localhost");
    f->base = event_base_new();
    if (!f->base)
        return RANK_ERR_NO_MEMORY;
    label.host = f->options->label_host ? f->host : NULL;
    st = rk_stream_open(f->base, STDOUT_FILENO, &label, &stream_ops, f, &f->out);
    if (!st)
        st = rk_stream_open(f->base, STDERR_FILENO, &label, &stream_ops, f, &f->err);
    if (!st)
        st = watch_signals(f);
    f->silence = evtimer_new(f->base, on_silence, f);
    f->timeout = evtimer_new(f->base, on_timeout, f);
    if (!st && (!f->silence || !f->timeout))
        st = RANK_ERR_NO_MEMORY;
    return st;
}

static void start_clock(struct front *f)
{
    double s = f->options->timeout;
    struct timeval t = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};

    if (s > 0)
        event_add(f->timeout, &t);
}

/* The keeper ends when all of the job has. If it was killed itself, its orphans are ours. */
static void end_all(struct front *f, const pid_t *before, size_t nbefore)
{
    int status = 0;
    pid_t pid;

    if (f->keeper > 0) {
        do
            pid = waitpid(f->keeper, &status, 0);
        while (pid < 0 && errno == EINTR);
    }
    if (!f->done && !rk_descend_end(5000, before, nbefore))
        rk_error("some processes of the job do not end although they were killed");
}

/* An agent that died could not remove what the libraries of its ranks left. */
static void remove_leftovers(const struct front *f)
{
    struct rk_leftovers *l;

    if (f->done || rk_leftovers_create(f->job->id, &l))
        return;
    rk_leftovers_remove(l);
    rk_leftovers_destroy(l);
}

static void close_front(struct front *f)
{
    rk_wire_close(f->wire);
    rk_reader_close(f->reader);
    for (int i = 0; i < f->nsignals; i++)
        event_free(f->signals[i]);
    if (f->silence)
        event_free(f->silence);
    if (f->timeout)
        event_free(f->timeout);
    rk_stream_close(f->out);
    rk_stream_close(f->err);
    if (f->base)
        event_base_free(f->base);
}

int rk_front_run(const struct rk_options *options, const struct rk_job *job)
{
    struct front f = {.options = options, .job = job, .forked_ns = rk_clock_ns()};
    size_t nbefore = 0;
    /* Whoever replaced itself by xrun may have left it children: those are not ours to end. */
    pid_t *before = rk_descend_children(&nbefore);
    int fd = -1;
    rank_status_t st = start_agent(&f, &fd);

    signal(SIGPIPE, SIG_IGN);
    if (!st)
        st = open_front(&f);
    if (!st)
        st = send_job(&f, fd);
    else if (fd >= 0)
        close(fd);
    if (!st)
        st = rk_reader_open(f.base, STDIN_FILENO, on_input, &f, &f.reader);
    if (!st) {
        start_clock(&f);
        event_base_dispatch(f.base);
    } else {
        rk_error("xrun cannot start: %s", rank_status_string(st));
        judge(&f, 1);
    }
    rk_wire_close(f.wire); /* if it is still there: the agent ends what runs */
    f.wire = NULL;
    end_all(&f, before, nbefore);
    remove_leftovers(&f);
    close_front(&f);
    free(before);
    return f.code;
}
