/* starter.c: see starter.h. */
#include "launcher/starter.h"
#include "launcher/command.h"
#include "launcher/program.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

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
    struct rk_command *run; /* NULL: it has not been started */
    bool connected, told;
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

/* -------------------------------------------------------------------- its end */

static void tell_failed(struct command *c, int status)
{
    const char *agent = c->starter->setup->agent, *said = rk_command_last(c->run), *sep = *said ? ": " : "";
    char text[LAST_WORDS + 128];

    if (c->told)
        return;
    c->told = true;
    if (WIFSIGNALED(status))
        snprintf(text, sizeof(text), "%s was killed by signal %d%s%s", agent, WTERMSIG(status), sep, said);
    else if (WEXITSTATUS(status) == 127)
        snprintf(text, sizeof(text), "%s is not there%s%s (--prefix says where xrun is on the hosts)",
                 c->starter->setup->program, sep, said);
    else
        snprintf(text, sizeof(text), "%s ended with code %d%s%s", agent, WEXITSTATUS(status), sep, said);
    c->starter->ops->on_failed(c->starter->arg, c->node, text);
}

static void on_line(void *arg, const char *line)
{
    struct command *c = arg;

    c->starter->ops->on_said(c->starter->arg, c->node, line);
}

static void on_end(void *arg, int status)
{
    struct command *c = arg;

    if (!c->connected)
        tell_failed(c, status);
}

static const struct rk_command_ops command_ops = {on_line, on_end};

/* ---------------------------------------------------------------------- start */

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
    int code;

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
    return rk_command_start(s->base, &s->spawner,
                            &(struct rk_command_start){.path = s->path,
                                                       .argv = argv,
                                                       .env = environ,
                                                       .setup = s->setup,
                                                       .node = node},
                            &command_ops, c, &c->run, err, errlen);
}

static struct command *command_of(const struct rk_starter *s, uint32_t node)
{
    return s && node >= s->first && node - s->first < s->n ? &s->commands[node - s->first] : NULL;
}

void rk_starter_connected(struct rk_starter *s, uint32_t node)
{
    struct command *c = command_of(s, node);

    if (!c || !c->run)
        return;
    c->connected = true;
    rk_command_pass(c->run);
}

bool rk_starter_reaped(struct rk_starter *s, pid_t pid, int status)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        if (rk_command_reaped(s->commands[i].run, pid, status))
            return true;
    }
    return false;
}

bool rk_starter_has(const struct rk_starter *s, pid_t pid)
{
    for (uint32_t i = 0; s && pid > 0 && i < s->n; i++) {
        if (rk_command_pid(s->commands[i].run) == pid)
            return true;
    }
    return false;
}

size_t rk_starter_pids(const struct rk_starter *s, pid_t *pids, size_t max)
{
    size_t n = 0;

    for (uint32_t i = 0; s && i < s->n; i++) {
        pid_t pid = rk_command_pid(s->commands[i].run);
        if (pid <= 0)
            continue;
        if (pids && n == max)
            break;
        if (pids)
            pids[n] = pid;
        n++;
    }
    return n;
}

void rk_starter_kill(struct rk_starter *s, uint32_t node)
{
    struct command *c = command_of(s, node);

    if (c && rk_command_pid(c->run) > 0)
        kill(rk_command_pid(c->run), SIGKILL);
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
    for (uint32_t i = 0; i < s->n; i++)
        rk_command_close(s->commands[i].run);
    free(s->commands);
    free(s->path);
    free(s);
}
