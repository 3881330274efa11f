/* starter.c: see starter.h. */
#include "launcher/starter.h"
#include "launcher/program.h"
#include "launcher/spawn.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LAST_WORDS 1024

struct command {
    struct rk_starter *starter;
    uint32_t node;
    pid_t pid; /* 0: does not run */
    int status;
    bool connected, ended, told;
    struct event *input, *output; /* its standard input, its standard error */
    struct evbuffer *queue;       /* for its input */
    char text[LAST_WORDS];        /* what it said, not yet passed on */
    size_t len;
};

struct rk_starter {
    struct event_base *base;
    const struct rk_setup *setup;
    const struct rk_starter_ops *ops;
    void *arg;
    uint32_t first, n;
    struct command *commands; /* [n] */
    struct rk_spawner spawner;
    char *path; /* of the command */
};

/* ------------------------------------------------------------------ what it is */

/* For a shell of the other side, whichever it is. */
static void quote(char *to, size_t len, const char *word)
{
    size_t at = strlen(to);

    if (at + 1 < len)
        to[at++] = '\'';
    for (; *word && at + 5 < len; word++) {
        if (*word == '\'')
            at += (size_t)snprintf(to + at, len - at, "'\\''");
        else
            to[at++] = *word;
    }
    if (at + 1 < len)
        to[at++] = '\'';
    to[at < len ? at : len - 1] = '\0';
}

static void remote_command(const struct rk_setup *s, char *to, size_t len)
{
    snprintf(to, len, "exec ");
    if (s->library_path && *s->library_path) {
        snprintf(to + strlen(to), len - strlen(to), "env LD_LIBRARY_PATH=");
        quote(to, len, s->library_path);
        snprintf(to + strlen(to), len - strlen(to), " ");
    }
    quote(to, len, s->program);
    snprintf(to + strlen(to), len - strlen(to), " --agent-process");
}

static bool is_ssh(const char *command)
{
    const char *base = strrchr(command, '/');

    return strcmp(base ? base + 1 : command, "ssh") == 0;
}

/* Splits at blanks, in place; returns how many words there were. */
static size_t split(char *text, char **words, size_t max)
{
    size_t n = 0;
    char *save = NULL;

    for (char *w = strtok_r(text, " \t", &save); w && n < max; w = strtok_r(NULL, " \t", &save))
        words[n++] = w;
    return n;
}

/* ------------------------------------------------------------------- its words */

static void pass_lines(struct command *c, bool all)
{
    char *nl;

    while ((nl = memchr(c->text, '\n', c->len)) || (all && c->len) || c->len == LAST_WORDS - 1) {
        size_t n = nl ? (size_t)(nl - c->text) : c->len;
        c->text[n] = '\0';
        if (n)
            c->starter->ops->on_said(c->starter->arg, c->node, c->text);
        n += nl != NULL;
        memmove(c->text, c->text + n, c->len - n);
        c->len -= n;
    }
}

/* Its last line, which is where programs put the reason. */
static const char *last_line(struct command *c)
{
    char *at;

    while (c->len && (c->text[c->len - 1] == '\n' || c->text[c->len - 1] == '\r'))
        c->len--;
    c->text[c->len] = '\0';
    at = strrchr(c->text, '\n');
    return at ? at + 1 : c->text;
}

static void tell_failed(struct command *c)
{
    char text[LAST_WORDS + 128];
    const char *said = last_line(c), *sep = *said ? ": " : "";

    if (c->told)
        return;
    c->told = true;
    if (WIFSIGNALED(c->status))
        snprintf(text, sizeof(text), "%s was killed by signal %d%s%s", c->starter->setup->agent,
                 WTERMSIG(c->status), sep, said);
    else if (WEXITSTATUS(c->status) == 127)
        snprintf(text, sizeof(text), "%s is not there%s%s (--prefix says where xrun is on the hosts)",
                 c->starter->setup->program, sep, said);
    else
        snprintf(text, sizeof(text), "%s ended with code %d%s%s", c->starter->setup->agent,
                 WEXITSTATUS(c->status), sep, said);
    c->starter->ops->on_failed(c->starter->arg, c->node, text);
}

static void shut(struct event **ev)
{
    if (!*ev)
        return;
    close(event_get_fd(*ev));
    event_free(*ev);
    *ev = NULL;
}

static void settle(struct command *c)
{
    if (!c->ended || c->output)
        return;
    if (c->connected)
        pass_lines(c, true);
    else
        tell_failed(c);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    struct command *c = arg;
    ssize_t n;

    (void)what;
    if (c->len == LAST_WORDS - 1) { /* before it is connected only the last counts */
        memmove(c->text, c->text + LAST_WORDS / 2, c->len - LAST_WORDS / 2);
        c->len -= LAST_WORDS / 2;
    }
    n = read(fd, c->text + c->len, LAST_WORDS - 1 - c->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        c->len += (size_t)n;
        if (c->connected)
            pass_lines(c, false);
        return;
    }
    shut(&c->output);
    settle(c);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct command *c = arg;
    int n = evbuffer_write(c->queue, fd);

    (void)what;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || evbuffer_get_length(c->queue) == 0)
        shut(&c->input); /* all said, or nobody listens, which its end will explain */
}

/* ---------------------------------------------------------------------- start */

static bool watch(struct command *c, int input, int output)
{
    struct event_base *base = c->starter->base;

    evutil_make_socket_nonblocking(input);
    evutil_make_socket_nonblocking(output);
    c->input = event_new(base, input, EV_WRITE | EV_PERSIST, on_input, c);
    if (!c->input)
        close(input);
    c->output = event_new(base, output, EV_READ | EV_PERSIST, on_output, c);
    if (!c->output)
        close(output);
    return c->input && c->output && !event_add(c->input, NULL) && !event_add(c->output, NULL);
}

static bool fill_queue(struct command *c)
{
    struct rk_packer setup = {0}, head = {0};
    bool ok;

    rk_setup_pack(c->starter->setup, c->node, &setup);
    rk_pack_u32(&head, (uint32_t)setup.len);
    c->queue = evbuffer_new();
    ok = c->queue && !setup.failed && !head.failed && !evbuffer_add(c->queue, head.data, head.len) &&
         !evbuffer_add(c->queue, setup.data, setup.len);
    rk_packer_free(&setup);
    rk_packer_free(&head);
    return ok;
}

static pid_t run(struct command *c, char **argv, int in, int out, const char **step)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), pidfd = -1;
    struct rk_spawn spec = {.program = c->starter->path,
                            .argv = argv,
                            .env = environ,
                            .wdir = "/",
                            .fd = {in, null, out}};
    pid_t pid;

    *step = "open";
    if (null < 0)
        return -1;
    pid = rk_spawn(&spec, &c->starter->spawner, &pidfd, step);
    if (pidfd >= 0)
        close(pidfd);
    close(null);
    return pid;
}

/*
 * What ssh is told after the user's own words, of which it heeds the first on each matter. The key exchange: since 9.0
 * ssh prefers one that withstands quantum computers and costs 50 ms of each side's time, half of what a host takes
 * to start. All that passes here is a secret that dies with the job, so the quick ones come first.
 */
static const char *const ssh_words[] = {
    "-x",
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oKexAlgorithms=curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,"
    "diffie-hellman-group14-sha256",
};

rank_status_t rk_starter_start(struct rk_starter *s, uint32_t node, char *err, size_t errlen)
{
    struct command *c = &s->commands[node - s->first];
    char command[2048], words[512], *argv[128];
    size_t n;
    int in[2] = {-1, -1}, out[2] = {-1, -1}, code;
    const char *step = "pipe";

    snprintf(words, sizeof(words), "%s", s->setup->agent);
    n = split(words, argv, 32);
    if (!s->path)
        s->path = rk_program_find(n ? argv[0] : "", NULL, rk_env("PATH"), "/", err, errlen, &code);
    if (!s->path)
        return RANK_ERR_SYSTEM;
    for (char *const *a = s->setup->ssh_args; a && *a && n < 100; a++)
        argv[n++] = *a;
    for (size_t i = 0; is_ssh(s->path) && i < RK_ARRAY_LEN(ssh_words); i++)
        argv[n++] = (char *)ssh_words[i];
    argv[n++] = s->setup->names[node];
    remote_command(s->setup, command, sizeof(command));
    argv[n++] = command;
    argv[n] = NULL;
    c->starter = s;
    c->node = node;
    if (fill_queue(c) && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0)
        c->pid = run(c, argv, in[0], out[1], &step);
    else
        c->pid = -1;
    if (c->pid < 0) {
        snprintf(err, errlen, "cannot start %s: %s: %s", s->path, step, strerror(errno));
        c->pid = 0;
        for (int i = 0; i < 2; i++) {
            if (in[i] >= 0)
                close(in[i]);
            if (out[i] >= 0)
                close(out[i]);
        }
        return RANK_ERR_SYSTEM;
    }
    close(in[0]);
    close(out[1]);
    if (watch(c, in[1], out[0]))
        return RANK_OK;
    snprintf(err, errlen, "cannot watch %s: out of memory", s->path);
    return RANK_ERR_NO_MEMORY;
}

void rk_starter_connected(struct rk_starter *s, uint32_t node)
{
    struct command *c = s && node >= s->first && node - s->first < s->n ? &s->commands[node - s->first] : NULL;

    if (!c || !c->starter)
        return;
    c->connected = true;
    pass_lines(c, false);
}

bool rk_starter_reaped(struct rk_starter *s, pid_t pid, int status)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        struct command *c = &s->commands[i];
        if (c->pid != pid)
            continue;
        c->pid = 0;
        c->status = status;
        c->ended = true;
        settle(c);
        return true;
    }
    return false;
}

bool rk_starter_has(const struct rk_starter *s, pid_t pid)
{
    for (uint32_t i = 0; s && pid > 0 && i < s->n; i++) {
        if (s->commands[i].pid == pid)
            return true;
    }
    return false;
}

size_t rk_starter_pids(const struct rk_starter *s, pid_t *pids, size_t max)
{
    size_t n = 0;

    for (uint32_t i = 0; s && i < s->n; i++) {
        if (s->commands[i].pid <= 0)
            continue;
        if (pids && n == max)
            break;
        if (pids)
            pids[n] = s->commands[i].pid;
        n++;
    }
    return n;
}

void rk_starter_kill(struct rk_starter *s, uint32_t node)
{
    struct command *c = s && node >= s->first && node - s->first < s->n ? &s->commands[node - s->first] : NULL;

    if (c && c->pid > 0)
        kill(c->pid, SIGKILL);
}

/* ---------------------------------------------------------------- open, close */

rank_status_t rk_starter_open(struct event_base *base, const struct rk_setup *setup, uint32_t first,
                              uint32_t n, const struct rk_starter_ops *ops, void *arg,
                              struct rk_starter **out)
{
    struct rk_starter *s = calloc(1, sizeof(*s));

    if (!s)
        return RANK_ERR_NO_MEMORY;
    *s = (struct rk_starter){.base = base, .setup = setup, .ops = ops, .arg = arg, .first = first, .n = n};
    s->commands = calloc(n ? n : 1, sizeof(*s->commands));
    if (!s->commands || rk_spawner_open(&s->spawner)) {
        free(s->commands);
        free(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void rk_starter_close(struct rk_starter *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        struct command *c = &s->commands[i];
        if (c->pid > 0 && kill(c->pid, SIGKILL) == 0)
            waitpid(c->pid, NULL, 0);
        shut(&c->input);
        shut(&c->output);
        if (c->queue)
            evbuffer_free(c->queue);
    }
    free(s->commands);
    free(s->path);
    free(s);
}
