/* SPDX-License-Identifier: BSD-3-Clause */
/* remote_cmd.c: see remote_cmd.h. */
#include "launcher/bootstrap/remote_cmd.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 1024 /* bytes of its last output that are kept */
#define LAST_READS 64 /* reads of that, after its end */

struct xr_remote_cmd {
    const struct xr_remote_cmd_ops *ops;
    void *arg;
    pid_t pid; /* 0: not running */
    int status;
    bool passing, ended;
    struct event *input, *output; /* its standard input, its standard error */
    struct evbuffer *queue;       /* for its input */
    char text[KEPT];              /* output not yet passed on */
    size_t len;
};

/* ------------------------------------------------------------------ output */

static void pass_lines(struct xr_remote_cmd *c, bool all)
{
    char *nl;

    while ((nl = memchr(c->text, '\n', c->len)) || (all && c->len) || c->len == KEPT - 1) {
        char line[KEPT];
        size_t n = nl ? (size_t)(nl - c->text) : c->len;
        memcpy(line, c->text, n);
        line[n] = '\0';
        line[strcspn(line, "\r")] = '\0';
        n += nl != NULL;
        memmove(c->text, c->text + n, c->len - n);
        c->len -= n;
        if (*line)
            c->ops->on_line(c->arg, line);
    }
}

void xr_remote_cmd_pass(struct xr_remote_cmd *c)
{
    if (!c)
        return;
    c->passing = true;
    pass_lines(c, c->ended && !c->output);
}

const char *xr_remote_cmd_last(struct xr_remote_cmd *c)
{
    char *at;

    while (c->len && (c->text[c->len - 1] == '\n' || c->text[c->len - 1] == '\r'))
        c->len--;
    c->text[c->len] = '\0';
    at = strrchr(c->text, '\n');
    return at ? at + 1 : c->text;
}

static void remote_cmd_shut(struct event **ev)
{
    if (!*ev)
        return;
    close(event_get_fd(*ev));
    event_free(*ev);
    *ev = NULL;
}

static void remote_cmd_settle(struct xr_remote_cmd *c)
{
    if (!c->ended || c->output)
        return;
    if (c->passing)
        pass_lines(c, true);
    c->ops->on_end(c->arg, c->status);
}

/* Read output once. Returns false if there is no more for now. */
static bool take_output(struct xr_remote_cmd *c)
{
    ssize_t n;

    if (c->len == KEPT - 1) { /* while it is kept only the last bytes count */
        memmove(c->text, c->text + KEPT / 2, c->len - KEPT / 2);
        c->len -= KEPT / 2;
    }
    n = read(event_get_fd(c->output), c->text + c->len, KEPT - 1 - c->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0) {
        c->len += (size_t)n;
        if (c->passing)
            pass_lines(c, false);
        return true;
    }
    remote_cmd_shut(&c->output);
    remote_cmd_settle(c);
    return false;
}

static void remote_cmd_on_output(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    take_output(arg);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct xr_remote_cmd *c = arg;
    int n = evbuffer_write(c->queue, fd);

    (void)what;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || evbuffer_get_length(c->queue) == 0)
        remote_cmd_shut(&c->input); /* all sent, or the reader is gone: its end explains why */
}

/* ---------------------------------------------------------------------- start */

static bool remote_cmd_watch(struct event_base *base, struct xr_remote_cmd *c, int input, int output)
{
    evutil_make_socket_nonblocking(input);
    evutil_make_socket_nonblocking(output);
    c->input = event_new(base, input, EV_WRITE | EV_PERSIST, on_input, c);
    if (!c->input)
        close(input);
    c->output = event_new(base, output, EV_READ | EV_PERSIST, remote_cmd_on_output, c);
    if (!c->output)
        close(output);
    return c->input && c->output && !event_add(c->input, NULL) && !event_add(c->output, NULL);
}

static bool fill_queue(struct xr_remote_cmd *c, const struct xr_setup *setup, uint32_t node)
{
    struct xr_packer words = {0};
    bool ok;

    xr_setup_send(setup, node, &words);
    c->queue = evbuffer_new();
    ok = c->queue && !words.failed && !evbuffer_add(c->queue, words.data, words.len);
    xr_packer_free(&words);
    return ok;
}

static pid_t remote_cmd_run(const struct xr_remote_cmd_start *start, struct xr_spawner *spawner, int in, int out,
                 const char **step)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), pidfd = -1;
    struct xr_spawn spec = {.program = start->path,
                            .argv = start->argv,
                            .env = start->env,
                            .wdir = "/",
                            .nofile = start->setup->nofile,
                            .fd = {in, null, out, -1}};
    pid_t pid;

    *step = "open";
    if (null < 0)
        return -1;
    pid = xr_spawn(&spec, spawner, &pidfd, step);
    if (pidfd >= 0)
        close(pidfd);
    close(null);
    return pid;
}

static void close_pair(const int *fd)
{
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
    }
}

rank_status_t xr_remote_cmd_start(struct event_base *base, struct xr_spawner *spawner,
                               const struct xr_remote_cmd_start *start, const struct xr_remote_cmd_ops *ops,
                               void *arg, struct xr_remote_cmd **out, char *err, size_t errlen)
{
    struct xr_remote_cmd *c = calloc(1, sizeof(*c));
    int in[2] = {-1, -1}, words[2] = {-1, -1};
    const char *step = "pipe";

    if (!c || !fill_queue(c, start->setup, start->node)) {
        snprintf(err, errlen, "cannot start %s: out of memory", start->path);
        xr_remote_cmd_close(c);
        return RANK_ERR_NO_MEMORY;
    }
    c->ops = ops;
    c->arg = arg;
    c->pid = pipe2(in, O_CLOEXEC) == 0 && pipe2(words, O_CLOEXEC) == 0
                 ? remote_cmd_run(start, spawner, in[0], words[1], &step)
                 : -1;
    if (c->pid < 0) {
        snprintf(err, errlen, "cannot start %s: %s: %s", start->path, step, strerror(errno));
        c->pid = 0;
        close_pair(in);
        close_pair(words);
        xr_remote_cmd_close(c);
        return RANK_ERR_SYSTEM;
    }
    close(in[0]);
    close(words[1]);
    if (remote_cmd_watch(base, c, in[1], words[0])) {
        *out = c;
        return RANK_OK;
    }
    snprintf(err, errlen, "cannot watch %s: out of memory", start->path);
    xr_remote_cmd_close(c);
    return RANK_ERR_NO_MEMORY;
}

bool xr_remote_cmd_reaped(struct xr_remote_cmd *c, pid_t pid, int status)
{
    if (!c || pid <= 0 || c->pid != pid)
        return false;
    c->pid = 0;
    c->status = status;
    /* Its last output is in the pipe. Some ssh leave a child that holds the pipe open, so do not wait for its end. */
    for (uint32_t i = 0; c->output && i < LAST_READS && take_output(c); i++)
        ;
    c->ended = true;
    remote_cmd_settle(c);
    return true;
}

pid_t xr_remote_cmd_pid(const struct xr_remote_cmd *c)
{
    return c ? c->pid : 0;
}

void xr_remote_cmd_close(struct xr_remote_cmd *c)
{
    if (!c)
        return;
    if (c->pid > 0 && kill(c->pid, SIGKILL) == 0)
        waitpid(c->pid, NULL, 0);
    remote_cmd_shut(&c->input);
    remote_cmd_shut(&c->output);
    if (c->queue)
        evbuffer_free(c->queue);
    free(c);
}
