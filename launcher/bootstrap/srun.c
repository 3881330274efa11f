/* SPDX-License-Identifier: BSD-3-Clause */
/* srun.c: see srun.h. */
#include "launcher/bootstrap/srun.h"
#include "launcher/bootstrap/remote_cmd.h"
#include "launcher/exec/find_program.h"
#include "launcher/alloc/slurm.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/conn.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NAMES 8  /* named before "and N more" */
#define OWN_ARGS 24 /* our own arguments, at most */

struct xr_srun {
    const struct xr_setup *setup;
    const struct xr_srun_ops *ops;
    void *arg;
    bool *connected; /* [setup->shape.nodes] */
    uint32_t missing;
    struct xr_remote_cmd *run;
    struct xr_spawner spawner;
    struct event *verbose_timer;
    char **user_words, *path;
    char *nodelist;
    char **env;
    char reason[1024]; /* why srun ends, from its messages */
    char killed[64];   /* text that it was killed */
    bool examining; /* its messages are not passed on */
};

/* -------------------------------------------------------------- messages */

/* Return whether a line reports only the end of a task or step, without a reason. */
static bool reports_only_end(const char *line)
{
    static const char *const ends[] = {": task", "CANCELLED", "Terminat", "step aborted"};

    for (size_t i = 0; i < RK_ARRAY_LEN(ends); i++) {
        if (strstr(line, ends[i]))
            return true;
    }
    return false;
}

static void srun_on_line(void *arg, const char *line)
{
    struct xr_srun *s = arg;

    /* Irrelevant: no binding is requested. */
    if (strstr(line, "lacks support for cpu binding"))
        return;
    if (!*s->reason || !reports_only_end(line))
        snprintf(s->reason, sizeof(s->reason), "%s", line);
    if (!s->examining)
        s->ops->on_output(s->arg, line);
}

const char *xr_srun_reason(struct xr_srun *s)
{
    if (!s)
        return "";
    s->examining = true;
    xr_remote_cmd_pass(s->run);
    return s->reason;
}

const char *xr_srun_killed(const struct xr_srun *s)
{
    return s ? s->killed : "";
}

static void name_missing(const struct xr_srun *s, char *to, size_t len)
{
    uint32_t named = 0;
    size_t at = 0;

    to[0] = '\0';
    for (uint32_t i = 0; i < s->setup->shape.nodes && named < NAMES; i++) {
        if (s->connected[i])
            continue;
        at += (size_t)snprintf(to + at, len - at, "%s%s", named++ ? ", " : "", s->setup->names[i]);
        if (at >= len)
            return;
    }
    if (s->missing > named)
        snprintf(to + at, len - at, " and %u more", s->missing - named);
}

static void srun_on_end(void *arg, int status)
{
    struct xr_srun *s = arg;
    char names[1024], how[64], text[sizeof(names) + sizeof(s->reason) + 192];

    if (!s->missing)
        return;
    xr_srun_reason(s);
    name_missing(s, names, sizeof(names));
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
    snprintf(text, sizeof(text), "srun %s before the agent%s on %s came%s%s%s", how, xr_plural(s->missing), names,
             *s->reason ? ": " : "", s->reason,
             strstr(s->reason, "execve") ? " (--prefix says where xrun is on the hosts)" : " (--agent ssh does without srun)");
    s->ops->on_failed(s->arg, text);
}

static const struct xr_remote_cmd_ops command_ops = {srun_on_line, srun_on_end};

static void on_verbose_time(evutil_socket_t fd, short what, void *arg)
{
    struct xr_srun *s = arg;

    (void)fd;
    (void)what;
    xr_remote_cmd_pass(s->run);
}

/* ----------------------------------------------------------------- start */

/* Return the names of all its hosts, with commas. */
static char *make_list(const struct xr_srun *s)
{
    size_t len = 1, at = 0;
    char *list;

    for (uint32_t i = 0; i < s->setup->shape.nodes; i++)
        len += strlen(s->setup->names[i]) + 1;
    list = malloc(len);
    if (!list)
        return NULL;
    list[0] = '\0';
    for (uint32_t i = 0; i < s->setup->shape.nodes; i++) {
        if (!s->connected[i])
            at += (size_t)snprintf(list + at, len - at, "%s%s", at ? "," : "", s->setup->names[i]);
    }
    return list;
}

static rank_status_t srun_run(struct xr_srun *s, struct event_base *base, char *err, size_t errlen)
{
    /* Request all memory, cores and devices of the job. No binding: the agent binds the ranks. */
    static char one_each[] = "--ntasks-per-node=1", memory[] = "--mem=0", cores[] = "--cpu-bind=none",
                no_mpi[] = "--mpi=none", export[] = "--export=ALL", dir[] = "--chdir=/", input[] = "--input=all",
                distribution[] = "--distribution=block", process[] = "--agent-process";
    /*
     * srun's end shows that an agent did not connect. With --on-failure continue a killed agent must not end the
     * others.
     */
    static char all_end[] = "--kill-on-bad-exit=1", go_on[] = "--kill-on-bad-exit=0", no_kill[] = "--no-kill";
    char nodes[32], tasks[32], *list, **argv;
    size_t n = 0;
    int code;

    s->path = xr_program_find(s->user_words[0] ? s->user_words[0] : "", NULL, rk_env("PATH"), "/", err, errlen, &code);
    if (!s->path)
        return RANK_ERR_SYSTEM;
    argv = calloc(xr_strv_count(s->user_words) + OWN_ARGS, sizeof(*argv));
    if (!argv || asprintf(&list, "--nodelist=%s", s->nodelist) < 0) {
        free(argv);
        return RANK_ERR_NO_MEMORY;
    }
    for (char **w = s->user_words; *w; w++)
        argv[n++] = *w;
    snprintf(nodes, sizeof(nodes), "--nodes=%u", s->missing);
    snprintf(tasks, sizeof(tasks), "--ntasks=%u", s->missing);
    argv[n++] = nodes;
    argv[n++] = tasks;
    argv[n++] = one_each;
    argv[n++] = list;
    argv[n++] = distribution;
    argv[n++] = memory;
    argv[n++] = cores;
    argv[n++] = no_mpi;
    argv[n++] = export;
    argv[n++] = dir;
    argv[n++] = input;
    argv[n++] = s->setup->go_on ? go_on : all_end;
    if (s->setup->go_on)
        argv[n++] = no_kill;
    argv[n++] = s->setup->program;
    argv[n++] = process;
    argv[n] = NULL;
    code = xr_remote_cmd_start(base, &s->spawner,
                            &(struct xr_remote_cmd_start){.path = s->path,
                                                       .argv = argv,
                                                       .env = s->env,
                                                       .setup = s->setup,
                                                       .node = XR_NODE_ALL},
                            &command_ops, s, &s->run, err, errlen);
    free(list);
    free(argv);
    return (rank_status_t)code;
}

rank_status_t xr_srun_open(struct event_base *base, const struct xr_setup *setup, uint32_t skip,
                           const struct xr_srun_ops *ops, void *arg, struct xr_srun **out, char *err,
                           size_t errlen)
{
    const struct timeval verbose = {XR_START_SLOW_S, 0};
    const char *wrong; /* reported by xr_policy_check */
    struct xr_srun *s = calloc(1, sizeof(*s));

    *out = s;
    snprintf(err, errlen, "cannot start srun: out of memory");
    if (!s)
        return RANK_ERR_NO_MEMORY;
    *s = (struct xr_srun){.setup = setup, .ops = ops, .arg = arg, .missing = setup->shape.nodes};
    s->connected = calloc(setup->shape.nodes, sizeof(*s->connected));
    if (s->connected && skip < setup->shape.nodes) {
        s->connected[skip] = true;
        s->missing--;
    }
    s->nodelist = s->connected ? make_list(s) : NULL;
    s->user_words = xr_shell_words_split(setup->agent, &wrong);
    s->env = xr_slurm_environ(setup->library_path);
    s->verbose_timer = evtimer_new(base, on_verbose_time, s);
    if (!s->nodelist || !s->user_words || !s->env || !s->verbose_timer || event_add(s->verbose_timer, &verbose) ||
        xr_spawner_open(&s->spawner))
        return RANK_ERR_NO_MEMORY;
    return srun_run(s, base, err, errlen);
}

void xr_srun_close(struct xr_srun *s)
{
    if (!s)
        return;
    if (s->verbose_timer)
        event_free(s->verbose_timer);
    xr_remote_cmd_close(s->run);
    xr_strv_free(s->env);
    free(s->connected);
    free(s->nodelist);
    xr_strv_free(s->user_words);
    free(s->path);
    free(s);
}

void xr_srun_connected(struct xr_srun *s, uint32_t node)
{
    if (!s || node >= s->setup->shape.nodes || s->connected[node])
        return;
    s->connected[node] = true;
    if (--s->missing)
        return;
    event_del(s->verbose_timer);
    xr_remote_cmd_pass(s->run);
}

void xr_srun_shut(struct xr_srun *s)
{
    if (s && s->missing && xr_remote_cmd_pid(s->run) > 0)
        kill(xr_remote_cmd_pid(s->run), SIGTERM);
}

bool xr_srun_reaped(struct xr_srun *s, pid_t pid, int status)
{
    if (!s || !xr_remote_cmd_reaped(s->run, pid, status))
        return false;
    /* srun's helper holds its output back until the agents are killed. */
    if (WIFSIGNALED(status))
        snprintf(s->killed, sizeof(s->killed), "srun was killed by signal %d", WTERMSIG(status));
    return true;
}

pid_t xr_srun_pid(const struct xr_srun *s)
{
    return s ? xr_remote_cmd_pid(s->run) : 0;
}
