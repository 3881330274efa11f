/* SPDX-License-Identifier: BSD-3-Clause */
/* ssh.c: see ssh.h. */
#include "launcher/bootstrap/ssh.h"
#include "launcher/bootstrap/remote_cmd.h"
#include "launcher/exec/find_program.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct command {
    struct xr_ssh *ssh;
    uint32_t node;
    struct xr_remote_cmd *run; /* NULL: not started */
    bool connected, reported;
};

struct xr_ssh {
    struct event_base *base;
    const struct xr_setup *setup;
    const struct xr_ssh_ops *ops;
    void *arg;
    const struct xr_tree *tree;
    uint32_t n;
    struct command *commands; /* [n], of the children in the tree */
    struct xr_spawner spawner;
    char *path; /* of the command */
};

/* --------------------------------------------------------- command line */

/* Return the command for the remote shell. NULL: out of memory. */
static char *remote_command(const struct xr_setup *s)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    bool ok;

    if (!to)
        return NULL;
    fputs("exec ", to);
    if (s->library_path && *s->library_path) {
        fputs("env LD_LIBRARY_PATH=", to);
        xr_shell_words_quote(to, s->library_path);
        fputc(' ', to);
    }
    xr_shell_words_quote(to, s->program);
    fputs(" --agent-process", to);
    ok = !ferror(to);
    if (!fclose(to) && ok)
        return text;
    free(text);
    return NULL;
}

static bool is_ssh(const char *command)
{
    const char *base = strrchr(command, '/');

    return strcmp(base ? base + 1 : command, "ssh") == 0;
}

/* ----------------------------------------------------------------- ends */

static void report_failed(struct command *c, int status)
{
    const char *agent = c->ssh->setup->agent, *output = xr_remote_cmd_last(c->run), *sep = *output ? ": " : "";
    char *text;
    int n;

    if (c->reported)
        return;
    c->reported = true;
    if (WIFSIGNALED(status))
        n = asprintf(&text, "%s was killed by signal %d%s%s", agent, WTERMSIG(status), sep, output);
    else if (WEXITSTATUS(status) == 127)
        n = asprintf(&text, "%s is not there%s%s (--prefix says where xrun is on the hosts)",
                     c->ssh->setup->program, sep, output);
    else
        n = asprintf(&text, "%s ended with code %d%s%s", agent, WEXITSTATUS(status), sep, output);
    c->ssh->ops->on_failed(c->ssh->arg, c->node, n < 0 ? agent : text);
    if (n >= 0)
        free(text);
}

static void ssh_on_line(void *arg, const char *line)
{
    struct command *c = arg;

    c->ssh->ops->on_output(c->ssh->arg, c->node, line);
}

static void ssh_on_end(void *arg, int status)
{
    struct command *c = arg;

    if (!c->connected)
        report_failed(c, status);
}

static const struct xr_remote_cmd_ops command_ops = {ssh_on_line, ssh_on_end};

/* ---------------------------------------------------------------- start */

/*
 * Options after the user's own; ssh uses the first of each kind. Key exchange: since 9.0 ssh prefers a
 * post-quantum one that costs 50 ms on each side, half of a host's start-up. Only a secret of the job's lifetime
 * passes here, so fast ones come first.
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

/* Build the argument vector. Its strings belong to words and setup, which outlive it. NULL: out of memory. */
static char **make_line(const struct xr_ssh *s, uint32_t node, char **words, char *command)
{
    static char end_of_options[] = "--";
    bool ssh = is_ssh(s->path);
    char **line = calloc(xr_strv_count(words) + xr_strv_count(s->setup->ssh_args) + RK_ARRAY_LEN(ssh_words) + 4,
                         sizeof(*line));
    size_t n = 0;

    if (!line)
        return NULL;
    while (*words)
        line[n++] = *words++;
    for (char *const *a = s->setup->ssh_args; a && *a; a++)
        line[n++] = *a;
    for (size_t i = 0; ssh && i < RK_ARRAY_LEN(ssh_words); i++)
        line[n++] = (char *)ssh_words[i];
    if (ssh)
        line[n++] = end_of_options;
    line[n++] = s->setup->names[node];
    line[n] = command;
    return line;
}

/* Return the command of a node, or NULL if it is not started here. */
static struct command *command_of(const struct xr_ssh *s, uint32_t node)
{
    uint32_t i = s ? xr_tree_index(s->tree, node) : XR_NODE_FRONT;

    return i == XR_NODE_FRONT ? NULL : &s->commands[i];
}

static rank_status_t start_line(struct xr_ssh *s, uint32_t node, char **words, char *command, char *err,
                                size_t errlen)
{
    struct command *c = command_of(s, node);
    rank_status_t st;
    char **line;
    int code;

    if (!s->path)
        s->path = xr_program_find(words[0] ? words[0] : "", NULL, rk_env("PATH"), "/", err, errlen, &code);
    if (!s->path)
        return RANK_ERR_SYSTEM;
    line = make_line(s, node, words, command);
    if (!line)
        return RANK_ERR_NO_MEMORY;
    c->ssh = s;
    c->node = node;
    st = xr_remote_cmd_start(s->base, &s->spawner,
                          &(struct xr_remote_cmd_start){.path = s->path,
                                                     .argv = line,
                                                     .env = environ,
                                                     .setup = s->setup,
                                                     .node = node},
                          &command_ops, c, &c->run, err, errlen);
    free(line);
    return st;
}

rank_status_t xr_ssh_start(struct xr_ssh *s, uint32_t node, char *err, size_t errlen)
{
    const char *wrong;
    char **words = xr_shell_words_split(s->setup->agent, &wrong), *command = remote_command(s->setup);
    rank_status_t st = RANK_ERR_NO_MEMORY;

    snprintf(err, errlen, "%s", wrong ? wrong : "out of memory"); /* reported by xr_policy_check */
    if (words && command)
        st = start_line(s, node, words, command, err, errlen);
    xr_strv_free(words);
    free(command);
    return st;
}

void xr_ssh_connected(struct xr_ssh *s, uint32_t node)
{
    struct command *c = command_of(s, node);

    if (!c || !c->run)
        return;
    c->connected = true;
    xr_remote_cmd_pass(c->run);
}

bool xr_ssh_reaped(struct xr_ssh *s, pid_t pid, int status)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        if (xr_remote_cmd_reaped(s->commands[i].run, pid, status))
            return true;
    }
    return false;
}

bool xr_ssh_has(const struct xr_ssh *s, pid_t pid)
{
    for (uint32_t i = 0; s && pid > 0 && i < s->n; i++) {
        if (xr_remote_cmd_pid(s->commands[i].run) == pid)
            return true;
    }
    return false;
}

size_t xr_ssh_pids(const struct xr_ssh *s, pid_t *pids, size_t max)
{
    size_t n = 0;

    for (uint32_t i = 0; s && i < s->n; i++) {
        pid_t pid = xr_remote_cmd_pid(s->commands[i].run);
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

void xr_ssh_kill(struct xr_ssh *s, uint32_t node)
{
    struct command *c = command_of(s, node);

    if (c && xr_remote_cmd_pid(c->run) > 0)
        kill(xr_remote_cmd_pid(c->run), SIGKILL);
}

void xr_ssh_give_up(struct xr_ssh *s)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        struct command *c = &s->commands[i];
        if (!c->connected && xr_remote_cmd_pid(c->run) > 0)
            kill(xr_remote_cmd_pid(c->run), SIGKILL);
    }
}

/* ---------------------------------------------------------------- open, close */

rank_status_t xr_ssh_open(struct event_base *base, const struct xr_setup *setup, const struct xr_tree *tree,
                              const struct xr_ssh_ops *ops, void *arg, struct xr_ssh **out)
{
    struct xr_ssh *s = calloc(1, sizeof(*s));

    if (!s)
        return RANK_ERR_NO_MEMORY;
    *s = (struct xr_ssh){.base = base, .setup = setup, .ops = ops, .arg = arg, .tree = tree,
                             .n = xr_tree_children(tree)};
    s->commands = calloc(s->n ? s->n : 1, sizeof(*s->commands));
    if (!s->commands || xr_spawner_open(&s->spawner)) {
        free(s->commands);
        free(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void xr_ssh_close(struct xr_ssh *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        xr_remote_cmd_close(s->commands[i].run);
    free(s->commands);
    free(s->path);
    free(s);
}
