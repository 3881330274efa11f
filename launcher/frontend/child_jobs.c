/* SPDX-License-Identifier: BSD-3-Clause */
/* child_jobs.c: start, serve and reap spawned xruns. See child_jobs.h. */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link_internal.h"
#include "launcher/iof/line_relay.h"
#include "launcher/frontend/spawned_xrun.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EOF_S 2       /* after the end of a spawned xrun, for its last output */
#define STALL_AT (1 << 20) /* bytes queued for the user: above that no output is read */

/* A spawned xrun. */
struct child {
    struct rk_link link;
    struct front *f;
    uint32_t job;
    pid_t pid;     /* 0: it was reaped, with this status */
    int status;
    struct xr_conn *conn;       /* NULL: closed */
    struct xr_relay *output[2]; /* its standard output and error; NULL: closed */
    char *parent;  /* the job that requested it */
    uint32_t rank; /* the rank of that job */
    uint64_t start_ns; /* since 1970 */
    struct event *grace; /* its connection and output are closed when this expires */
};

static struct child *child_jobs_child_of(const struct xr_job_link *j, uint32_t job)
{
    for (struct rk_link *l = j->children.next; l != &j->children; l = l->next) {
        struct child *c = rk_list_entry(l, struct child, link);
        if (c->job == job)
            return c;
    }
    return NULL;
}

static void child_jobs_drop(struct child *c)
{
    rk_list_remove(&c->link);
    xr_conn_close(c->conn);
    xr_relay_close(c->output[0]);
    xr_relay_close(c->output[1]);
    if (c->grace)
        event_free(c->grace);
    free(c->parent);
    free(c);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static uint64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* It has ended: remove it from the hub, and add it to the report. Returns whether its ranks ever started. */
static bool note_end(struct child *c)
{
    struct xr_hub *hub = c->f->link->hub;
    const char *name = xr_hub_name(hub, c->job);
    struct xr_report_spawned s = {.job = name, .parent = c->parent, .rank = c->rank, .size = xr_hub_size(hub, c->job),
                                  .start_ns = c->start_ns, .end_ns = wall_ns(), .code = code_of(c->status)};
    char *copy = c->f->report && name ? strdup(name) : NULL;

    s.job = copy;
    s.started = xr_hub_job_ended(hub, c->job, s.code);
    xr_report_spawned(c->f->report, &s);
    free(copy);
    return s.started;
}

/* Drop a spawned xrun that was reaped and whose connection and output are closed. */
static void finish_if_over(struct child *c)
{
    struct front *f = c->f;
    int status = c->status;
    const char *name = xr_hub_name(f->link->hub, c->job);

    if (c->conn || c->pid || c->output[0] || c->output[1])
        return;
    if (WIFSIGNALED(status)) {
        xr_stream_print(f->err, "xrun: error: the xrun of the spawned job %s was killed by signal %d (%s)",
                      name ? name : "", WTERMSIG(status), strsignal(WTERMSIG(status)));
        f->orphans = true;
    }
    if (note_end(c) && code_of(status))
        xr_front_set_exit_code(f, code_of(status));
    child_jobs_drop(c);
    f->link->ops->leave(f);
}

static bool child_jobs_is_full(void *arg)
{
    const struct front *f = ((struct child *)arg)->f;

    return xr_stream_backlog(f->out) > STALL_AT || xr_stream_backlog(f->err) > STALL_AT;
}

static void on_grace_over(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = {EOF_S, 0};
    struct child *c = arg;

    (void)fd;
    (void)what;
    /* Its output is queued behind other output that the user has not read. */
    if (child_jobs_is_full(c) && !xr_job_is_forced(c->f->state) && event_add(c->grace, &again) == 0)
        return;
    xr_conn_close(c->conn);
    c->conn = NULL;
    for (int i = 0; i < 2; i++) {
        xr_relay_close(c->output[i]);
        c->output[i] = NULL;
    }
    finish_if_over(c);
}

static void put_output(void *arg, struct xr_relay *relay, const void *data, size_t len)
{
    struct child *c = arg;

    xr_stream_pass(relay == c->output[0] ? c->f->out : c->f->err, data, len);
}

static void on_output_over(void *arg, struct xr_relay *relay)
{
    struct child *c = arg;

    for (int i = 0; i < 2; i++) {
        if (c->output[i] == relay)
            c->output[i] = NULL;
    }
    xr_relay_close(relay);
    finish_if_over(c);
}

static const struct xr_relay_ops relay_ops = {put_output, child_jobs_is_full, on_output_over};

void xr_child_jobs_wake(struct front *f)
{
    struct xr_job_link *j = f->link;

    for (struct rk_link *l = j ? j->children.next : NULL; j && l != &j->children; l = l->next) {
        struct child *c = rk_list_entry(l, struct child, link);
        xr_relay_wake(c->output[0]);
        xr_relay_wake(c->output[1]);
    }
}

static bool on_child_word(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *u)
{
    struct child *c = arg;

    (void)node;
    return xr_hub_handle(c->f->link->hub, c->job, kind, u);
}

static void on_child_closed(void *arg, const char *why)
{
    struct child *c = arg;

    if (why)
        xr_stream_print(c->f->err, "xrun: error: the xrun of a spawned job: %s; it ends", why);
    xr_conn_close(c->conn);
    c->conn = NULL;
    finish_if_over(c);
}

static const struct xr_conn_ops child_ops = {on_child_word, on_child_closed, NULL, NULL};

void xr_child_jobs_reap(struct front *f)
{
    const struct timeval grace = {EOF_S, 0};
    struct xr_job_link *j = f->link;

    for (struct rk_link *l = j ? j->children.next : NULL, *next; j && l != &j->children; l = next) {
        struct child *c = rk_list_entry(l, struct child, link);
        next = l->next;
        if (!c->pid || waitpid(c->pid, &c->status, WNOHANG) != c->pid)
            continue;
        c->pid = 0;
        if ((c->conn || c->output[0] || c->output[1]) && event_add(c->grace, &grace) == 0)
            continue;
        on_grace_over(-1, 0, c);
    }
}

void xr_child_jobs_send(struct front *f, uint32_t job, enum xr_hub_message word, struct xr_packer *p)
{
    struct child *c = child_jobs_child_of(f->link, job);

    if (c && c->conn)
        xr_conn_send_to(c->conn, XR_NODE_NEXT, word, p);
    else
        xr_packer_free(p);
}

/* In the forked process. */
static void child_jobs_become(int fd, const int *output, const sigset_t *mask, uint64_t nofile, char *const *env)
{
    char *argv[] = {(char *)(uintptr_t) "xrun", (char *)(uintptr_t)XR_SPAWNED_PROCESS, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit files;

    /* A process group of its own: signals of the terminal come over the connection. */
    setpgid(0, 0);
    /* Handlers of the first xrun are reset before the mask is. */
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction old;
        if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN && old.sa_handler != SIG_DFL)
            signal(sig, SIG_DFL);
    }
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(output[0], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    /* Last: one of the others may have had this number. */
    if (fd != XR_SPAWNED_FD)
        dup2(fd, XR_SPAWNED_FD);
    else
        fcntl(fd, F_SETFD, 0);
    if (nofile && getrlimit(RLIMIT_NOFILE, &files) == 0 && nofile < files.rlim_cur) {
        files.rlim_cur = nofile; /* it passes its soft limit to the ranks */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execve("/proc/self/exe", argv, env);
    _exit(1);
}

static void close_all(const int *fds, int n)
{
    int error = errno;

    for (int i = 0; i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    errno = error;
}

/*
 * Fork a spawned xrun with the environment env and the soft limit nofile. *fd is the connection, output its standard
 * output and error. Returns its pid, or -1 with errno set.
 */
static pid_t start_child_xrun(char *const *env, uint64_t nofile, int *fd, int output[2])
{
    int fds[6] = {-1, -1, -1, -1, -1, -1}, *ends = fds, *out = fds + 2, *err = fds + 4;
    int theirs[2];
    sigset_t all, old;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || pipe2(out, O_CLOEXEC) ||
        pipe2(err, O_CLOEXEC)) {
        close_all(fds, 6);
        return -1;
    }
    theirs[0] = out[1];
    theirs[1] = err[1];
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid = fork();
    if (pid == 0)
        child_jobs_become(ends[1], theirs, &old, nofile, env);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (pid < 0) {
        close_all(fds, 6);
        return -1;
    }
    close(ends[1]);
    close_all(theirs, 2);
    *fd = ends[0];
    output[0] = out[0];
    output[1] = err[0];
    return pid;
}

/* The words of the command line before the first program. NULL: out of memory. */
static char **first_words(const struct xr_options *o)
{
    char **words = calloc(1, sizeof(*words)), **argv = o->argv;

    for (int i = 1; words && argv[i] && argv[i] != o->apps[0].command[0]; i++) {
        if (strcmp(argv[i], "--") == 0 && argv[i + 1] == o->apps[0].command[0])
            break;
        if (!xr_strv_add(&words, argv[i])) {
            xr_strv_free(words);
            return NULL;
        }
    }
    return words;
}

/* The variables of -x and --env-file. Each job has its own PWD. NULL: out of memory. */
static char **first_variables(const struct xr_job *job)
{
    char **env = calloc(1, sizeof(*env));

    for (char *const *e = job->apps[0].env; env && *e; e++) {
        if (strncmp(*e, "PWD=", 4) != 0 && !xr_strv_add(&env, *e)) {
            xr_strv_free(env);
            return NULL;
        }
    }
    return env;
}

/* Pack the first message to a spawned xrun. Takes ownership of the contents of outline. */
static bool make_hello(struct front *f, const char *parent, uint32_t rank, struct xr_unpacker *request,
                       struct xr_packer *job_info, struct xr_packer *p)
{
    struct xr_spawn_hello h = {.number = f->link->nspawned + 1,
                         .parent = strdup(parent),
                         .rank = rank,
                         .options = first_words(f->options),
                         .hosts = f->plan->given ? strdup(f->plan->given) : NULL,
                         .env = first_variables(f->job),
                         .busy = xr_hub_busy(f->link->hub)};
    bool ok = xr_spawn_request_unpack(request, &h.request) && xr_unpack_done(request) && h.parent &&
              h.options && h.env && (h.hosts || !f->plan->given) && h.busy;

    h.job_info = job_info->data;
    h.job_info_len = job_info->len;
    memset(job_info, 0, sizeof(*job_info));
    if (ok)
        xr_spawn_hello_pack(&h, p);
    xr_spawn_hello_clear(&h);
    return ok && !p->failed;
}

bool xr_child_jobs_start(void *arg, uint32_t job, const char *parent, uint32_t rank, struct xr_unpacker *request,
                         struct xr_packer *job_info)
{
    struct front *f = arg;
    struct child *c;
    struct xr_packer p = {0};
    int fd = -1, output[2];

    if (xr_job_is_ending(f->state) || !f->options->environment || !make_hello(f, parent, rank, request, job_info, &p)) {
        xr_packer_free(&p);
        return false;
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        xr_packer_free(&p);
        return false;
    }
    c->f = f;
    c->job = job;
    c->parent = strdup(parent);
    c->rank = rank;
    c->start_ns = wall_ns();
    rk_list_append(&f->link->children, &c->link);
    c->grace = evtimer_new(f->base, on_grace_over, c);
    c->pid = c->grace ? start_child_xrun(f->options->environment, f->job->nofile, &fd, output) : -1;
    if (c->pid < 0) {
        xr_stream_print(f->err, "xrun: error: no process for a spawned job: %s", strerror(errno));
        c->pid = 0;
        child_jobs_drop(c);
        xr_packer_free(&p);
        return false;
    }
    f->link->nspawned++;
    for (int i = 0; i < 2; i++) {
        if (xr_relay_open(f->base, output[i], &relay_ops, c, &c->output[i]))
            close(output[i]); /* its output is lost, and it gets EPIPE */
    }
    if (xr_conn_open(f->base, fd, NULL, &child_ops, c, &c->conn)) {
        close(fd); /* it ends without its connection */
        xr_packer_free(&p);
    } else {
        xr_conn_send_to(c->conn, XR_NODE_NEXT, XR_DOWN_HELLO, &p);
    }
    return true;
}

bool xr_child_jobs_running(const struct front *f)
{
    return f->link && !rk_list_empty(&f->link->children);
}

void xr_child_jobs_signal(struct front *f, int sig)
{
    struct xr_job_link *j = f->link;

    for (struct rk_link *l = j ? j->children.next : NULL; j && l != &j->children; l = l->next) {
        struct child *c = rk_list_entry(l, struct child, link);
        struct xr_packer p = {0};
        xr_pack_u32(&p, (uint32_t)sig);
        xr_child_jobs_send(f, c->job, XR_DOWN_SIGNAL, &p);
    }
}

void xr_child_jobs_wait(struct front *f)
{
    const struct timespec tick = {0, 10000000};
    uint64_t deadline = rk_clock_ns() + XR_CHILD_LEAVE_MS * 1000000ull;
    struct xr_job_link *j = f->link;

    while (!rk_list_empty(&j->children)) {
        for (struct rk_link *l = j->children.next, *next; l != &j->children; l = next) {
            struct child *c = rk_list_entry(l, struct child, link);
            next = l->next;
            xr_conn_close(c->conn);
            c->conn = NULL;
            if (c->pid && rk_clock_ns() > deadline)
                kill(c->pid, SIGKILL);
            if (c->pid && waitpid(c->pid, &c->status, WNOHANG) != c->pid)
                continue;
            note_end(c);
            child_jobs_drop(c);
        }
        nanosleep(&tick, NULL);
    }
}
