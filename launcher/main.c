/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: xrun.
 *
 * Everything that can be wrong with a command line is found out here, before
 * any process of the job is created; each is one line that says what, where and
 * what to do.
 */
#include "launcher/agent/agent.h"
#include "launcher/agent/proxy_client.h"
#include "launcher/cli/programs.h"
#include "launcher/frontend/place_job.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/frontend/frontend.h"
#include "launcher/exec/rlimits.h"
#include "launcher/cli/options.h"
#include "launcher/iof/out_files.h"
#include "launcher/exec/find_program.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/monitor/status_server.h"
#include "launcher/iof/user_tty.h"
#include "launcher/util/netif.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* On one of several hosts: each agent looks for itself whether its host can hold its ranks. */
#define RANKS_UNKNOWN 1

/* Descriptors 0 to 2 must be something, or a pipe would become one of them. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/*
 * What a parent has left to us and its ranks would be lost by: where CHLD is ignored, the kernel reaps the ranks and
 * nobody hears of their end, and blocked signals could not end the job. Ignored ones stay so (nohup).
 */
static void open_to_signals(void)
{
    struct sigaction dflt = {.sa_handler = SIG_DFL};
    sigset_t none;

    sigemptyset(&none);
    sigaction(SIGCHLD, &dflt, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int main_refuse(const char *text, int code)
{
    char *shown = strdup(text);

    if (shown)
        xr_words_show(shown); /* it may hold what files and variables say */
    rk_error("%s", shown ? shown : "out of memory");
    free(shown);
    return code;
}

static char *make_id(void)
{
    char host[64], *id;

    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "localhost");
    host[sizeof(host) - 1] = '\0';
    host[strcspn(host, ".")] = '\0';
    if (asprintf(&id, "xrun-%s-%d-%08x", host, (int)getpid(), (unsigned)(rk_clock_ns() >> 10)) < 0)
        return NULL;
    return id;
}

static void be_quiet(const struct xr_options *o)
{
    if (o->quiet)
        rk_log_threshold = RK_LOG_ERROR;
}

/* 0, or the exit code. */
static int make_job(const struct xr_options *o, const struct xr_plan *plan, struct xr_job *job)
{
    char text[4096 + 512];
    int code;

    job->report = o->json != NULL;
    job->input = o->input;
    job->pty = o->pty;
    job->window = xr_user_window();
    job->id = make_id();
    if (!job->id || (o->spawned && !xr_spawned_origin(o->spawned, &job->origin)))
        return main_refuse("out of memory", 1);
    be_quiet(o);
    code = xr_apps_make(o, plan->local != XR_NO_HOST, job, text, sizeof(text));
    be_quiet(o); /* the configuration has a threshold of its own */
    if (code && text[0])
        return main_refuse(text, code);
    return code;
}

/* Can ranks be started on this host? Also raises what xrun and the agent need. */
static int main_check_limits(const struct xr_options *o, const struct xr_plan *plan, int here)
{
    char text[1024] = "";

    if (!xr_limits_check(here, o->input == XR_INPUT_ALL ? 2 : 0, 0, text, sizeof(text)) ||
        !xr_assign_files(o, plan, 0, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    return 0;
}

/* Where all hosts are known without asking anybody: who runs where. */
static int main_place(const struct xr_options *o, struct xr_plan *plan, struct xr_job *job)
{
    char text[1024] = "";

    if (xr_assign_place(o, plan, text, sizeof(text)) ||
        xr_assign_size(o, plan, job, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    return 0;
}

/*
 * Looking at this machine takes about as long as an agent needs to begin. It may do so meanwhile where all that an
 * agent has to know before is known, and nothing is shown or written that could be wrong.
 */
static bool may_place_late(const struct xr_options *o, const struct xr_plan *plan, const struct xr_job *job)
{
    return plan->hosts.n == 1 && plan->local == 0 && !xr_plan_remote(plan) && o->n > 0 &&
           job->size == (uint32_t)o->n && !o->spawned && !o->json && !o->output_dir && !o->where.show_map &&
           !o->where.json_map && !o->where.dry_run;
}

/* For the maps. Free it. */
static struct xr_plan_program *name_programs(const struct xr_options *o, struct xr_plan *plan)
{
    struct xr_plan_program *programs = calloc((size_t)o->napps, sizeof(*programs));

    for (int i = 0; programs && i < o->napps; i++)
        programs[i] = (struct xr_plan_program){o->apps[i].command[0], (uint32_t)o->apps[i].n};
    plan->programs = programs;
    plan->nprograms = programs ? (uint32_t)o->napps : 0;
    return programs;
}

/* Can other hosts be reached, as far as that is this host's matter? */
static bool check_ways(const struct xr_options *o, const struct xr_plan *plan, char *err, size_t errlen)
{
    char *command;

    if (!xr_plan_remote(plan))
        return true;
    if (o->where.interface && !xr_netif_usable(o->where.interface, err, errlen))
        return false;
    command = xr_assign_command(o, plan, err, errlen);
    free(command);
    return command != NULL;
}

/* The hosts; and how many ranks there are, if only the lack of hosts says it. 0, or the exit code. */
static int main_make_plan(struct xr_options *o, struct xr_plan *plan)
{
    char text[1024] = "";
    uint32_t n = (uint32_t)o->n;

    if (!xr_where_check(&o->where, text, sizeof(text)) || xr_plan_make(&o->where, &n, plan, text, sizeof(text)) ||
        (n && !xr_options_check_ranks(o, n, text, sizeof(text))) || !check_ways(o, plan, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    if (o->n == 0)
        o->n = o->apps[0].n = (int)n;
    return 0;
}

static int main_run(struct xr_options *o, uint64_t started_ns)
{
    struct xr_plan_program *programs = NULL;
    struct xr_job job = {.started_ns = started_ns, .nofile = xr_limits_files()};
    struct xr_plan plan = {.local = XR_NO_HOST};
    bool late;
    int code;

    xr_ulimits_read(&job.limits);
    /* Before the environment loses what a resource manager says in it. */
    code = main_make_plan(o, &plan);
    if (!code && !(programs = name_programs(o, &plan)))
        code = main_refuse("out of memory", 1);
    if (!code)
        code = make_job(o, &plan, &job);
    late = !code && may_place_late(o, &plan, &job);
    if (!code && !late && !xr_plan_remote(&plan))
        code = main_place(o, &plan, &job);
    if (!code)
        code = main_check_limits(o, &plan, xr_plan_remote(&plan) ? RANKS_UNKNOWN : late ? o->n : (int)plan.placement.n);
    if (!code && !(o->where.dry_run && !xr_plan_remote(&plan)))
        code = xr_front_run(o, &job, &plan, late ? main_place : NULL);
    xr_plan_clear(&plan);
    free(programs);
    xr_job_clear(&job);
    rk_conf_unload();
    return code;
}

/* For a rank of another job: an xrun of the first's has started this process. */
static int run_spawned(char **environment, uint64_t started_ns)
{
    struct xr_options options;
    struct xr_spawned spawned;
    char text[512];
    int code;

    rk_log_identity("xrun", -1, NULL);
    if (xr_spawned_read(&spawned, &options, text, sizeof(text))) {
        code = main_refuse(text, XR_EXIT_USAGE);
    } else {
        options.spawned = &spawned;
        options.environment = environment;
        be_quiet(&options);
        code = main_run(&options, started_ns);
    }
    xr_options_free(&options);
    xr_spawned_clear(&spawned);
    return code;
}

/* The variables as they are now: the array itself changes. */
static char **copy_environment(void)
{
    size_t n = 0;
    char **copy;

    while (environ[n])
        n++;
    copy = malloc((n + 1) * sizeof(*copy));
    if (copy)
        memcpy(copy, environ, (n + 1) * sizeof(*copy));
    return copy;
}

/* The command line alone first: what is wrong there is said first, and help is always given. What is wrong only together
 * is known when the variables have been read, too. */
static rank_status_t read_options(int argc, char **argv, struct xr_options *o, char *err,
                                  size_t errlen)
{
    rank_status_t st = xr_options_glance(argc, argv, o, err, errlen);

    if (st || xr_options_ask(o))
        return st;
    be_quiet(o);
    xr_options_free(o);
    return xr_options_parse_over(argc, argv, xr_options_variables, o, err, errlen);
}

int main(int argc, char **argv)
{
    uint64_t started_ns = rk_clock_ns();
    struct xr_options options;
    char text[512], **environment;
    int code;

    if (argc > 0 && strcmp(argv[0], XR_STAND_IN_NAME) == 0)
        return xr_stand_in_main();
    fill_standard_fds();
    open_to_signals();
    if (argc == 2 && strcmp(argv[1], XR_AGENT_PROCESS) == 0)
        return xr_agent_remote_main();
    environment = copy_environment();
    if (argc == 2 && strcmp(argv[1], XR_SPAWNED_PROCESS) == 0) {
        code = run_spawned(environment, started_ns);
        free(environment);
        return code;
    }
    rk_log_identity("xrun", -1, NULL);
    if (read_options(argc, argv, &options, text, sizeof(text))) {
        code = main_refuse(text, XR_EXIT_USAGE);
    } else if (options.bash) {
        xr_options_bash(stdout);
        code = 0;
    } else if (options.man) {
        xr_options_man(stdout);
        code = 0;
    } else if (options.help) {
        xr_options_help(stdout);
        code = 0;
    } else if (options.version) {
        printf("xrun %s\n", rank_version());
        code = 0;
    } else if (options.status) {
        code = xr_ask(options.job);
    } else {
        options.argv = argv;
        options.environment = environment;
        code = main_run(&options, started_ns);
    }
    xr_options_free(&options);
    free(environment);
    return code;
}
