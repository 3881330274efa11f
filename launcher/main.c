/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: read xrun's command line, check it, and run the job.
 *
 * Errors of options, programs and limits are found here, before any process of the job is created. Each is one line
 * with the value, its place and the remedy.
 */
#include "launcher/agent/agent.h"
#include "launcher/agent/proxy_client.h"
#include "launcher/cli/programs.h"
#include "launcher/frontend/agent_setup.h"
#include "launcher/frontend/place_job.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/frontend/frontend.h"
#include "launcher/exec/environ.h"
#include "launcher/exec/kernel_calls.h"
#include "launcher/exec/rlimits.h"
#include "launcher/cli/options.h"
#include "launcher/iof/out_files.h"
#include "launcher/exec/find_program.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/monitor/status_server.h"
#include "launcher/iof/user_tty.h"
#include "launcher/util/netif.h"
#include "launcher/util/shell_words.h"
#include "lib/base/auth.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES" /* of the GPUs of a program */

extern char **environ;

/* The number of ranks on this host is not known yet: check the limits for one. */
#define RANKS_UNKNOWN 1

/*
 * Open descriptors 0 to 2 where they are closed: else a pipe would get one of these numbers. A closed standard output is
 * opened for reading, so that each write fails and is reported as on a full disk.
 */
static void fill_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return;
    }
}

/*
 * Undo what the parent process left. With CHLD ignored, the kernel would discard the exit status of ranks. Blocked
 * signals could not end the job. Other ignored signals stay ignored (nohup).
 */
static void reset_signals(void)
{
    struct sigaction dflt = {.sa_handler = SIG_DFL};
    sigset_t none;

    sigemptyset(&none);
    sigaction(SIGCHLD, &dflt, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Report an error. Returns code. */
static int main_refuse(const char *text, int code)
{
    char *shown = strdup(text);

    if (shown)
        xr_shell_words_show(shown); /* it may quote files and variables */
    rk_error("%s", shown ? shown : "out of memory");
    free(shown);
    return code;
}

/* Draw the job's id, which names its PMIx namespace: other users cannot guess it. Caller frees. */
static char *make_id(void)
{
    char host[64], *id;
    uint64_t bits;

    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "localhost");
    host[sizeof(host) - 1] = '\0';
    host[strcspn(host, ".")] = '\0';
    if (!rk_random_secret(&bits, sizeof(bits))) {
        rk_error("no random bytes (getrandom, /dev/urandom) for the job's id: %m%s", rk_refusal_remedy(errno));
        return NULL;
    }
    return asprintf(&id, "xrun-%s-%d-%012" PRIx64, host, (int)getpid(), bits >> 16) < 0 ? NULL : id;
}

static void be_quiet(const struct xr_options *o)
{
    if (o->quiet)
        rk_log_threshold = RK_LOG_ERROR;
}

/* Fill in what the options give. Returns 0 or the exit code. */
static int make_job(const struct xr_options *o, const struct xr_plan *plan, struct xr_job *job)
{
    char text[4096 + 512];
    int code;

    job->report = o->json != NULL;
    job->input = o->input;
    job->pty = o->pty;
    job->window = xr_user_tty_window();
    job->id = make_id();
    if (!job->id)
        return 1;
    if (o->spawned && !xr_spawned_origin(o->spawned, &job->origin))
        return main_refuse("out of memory", 1);
    be_quiet(o);
    code = xr_programs_make(o, plan->local != XR_NO_HOST && !o->where.xml, job, text, sizeof(text));
    be_quiet(o); /* reading the configuration has set the threshold */
    if (code && text[0])
        return main_refuse(text, code);
    return code;
}

/* Raise the limit of open files as far as it goes, for any number of ranks. Ranks get the user's limit back. */
static void raise_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/*
 * Check whether xrun and ranks can run on this host, and raise the limits that xrun and its own agent need. Where other hosts
 * take part, each agent checks its own host. Returns 0 or the exit code.
 */
static int check_limits(const struct xr_options *o, const struct xr_plan *plan)
{
    int here = o->n && !xr_plan_remote(plan) ? o->n : RANKS_UNKNOWN;
    char text[1024] = "";

    if (o->where.xml) /* no rank starts */
        return 0;
    if (!xr_kernel_calls_check(text, sizeof(text)))
        return main_refuse(text, 1);
    if (!xr_rlimits_check(here, o->input == XR_INPUT_ALL ? 2 : 0, 0, text, sizeof(text)) ||
        !xr_place_files(o, plan, 0, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    if (o->n == 0)
        raise_files();
    return 0;
}

/* Name the programs for the maps of ranks. Caller frees. */
static struct xr_plan_program *name_programs(const struct xr_options *o, struct xr_plan *plan)
{
    struct xr_plan_program *programs = calloc((size_t)o->napps, sizeof(*programs));

    for (int i = 0; programs && i < o->napps; i++)
        programs[i] = (struct xr_plan_program){.name = o->apps[i].command[0], .n = (uint32_t)o->apps[i].n};
    plan->programs = programs;
    plan->nprograms = programs ? (uint32_t)o->napps : 0;
    return programs;
}

/* Keep the GPUs that the environment leaves each program, for the pairing. */
static void name_visible(const struct xr_job *job, struct xr_plan_program *programs)
{
    for (uint32_t i = 0; i < job->napps; i++)
        programs[i].visible = xr_environ_value_of(job->apps[i].env, job->env, VISIBLE);
}

/* Check what this host needs to reach others. Returns false with the reason in err. */
static bool check_reach(const struct xr_options *o, const struct xr_plan *plan, char *err, size_t errlen)
{
    char *command;

    if (!xr_plan_remote(plan))
        return true;
    if (o->where.interface && !xr_netif_usable(o->where.interface, err, errlen))
        return false;
    if (!rk_auth_open()) {
        snprintf(err, errlen, "agents on other hosts are authenticated: " RK_AUTH_MISSING);
        return false;
    }
    command = xr_setup_command(o, plan, err, errlen);
    free(command);
    return command != NULL;
}

/* Find the hosts. Without -n and without hosts there is one rank. Returns 0 or the exit code. */
static int make_plan(struct xr_options *o, struct xr_plan *plan)
{
    char text[1024] = "";
    uint32_t n = (uint32_t)o->n;

    if (!xr_policy_check(&o->where, text, sizeof(text)) || xr_plan_make(&o->where, &n, plan, text, sizeof(text)) ||
        (n && !xr_options_check_ranks(o, n, text, sizeof(text))) || !check_reach(o, plan, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    if (o->n == 0)
        o->n = o->apps[0].n = (int)n;
    return 0;
}

/* Print the machine and the pairs of the ranks of a job. Returns the exit code. */
static int show_topology_of(const struct xr_options *o, const struct xr_job *job)
{
    const char **visible = calloc((size_t)job->napps + 1, sizeof(*visible));
    char text[1024] = "out of memory";
    rank_status_t st = RANK_ERR_NO_MEMORY;

    for (uint32_t i = 0; visible && i < job->napps; i++)
        visible[i] = xr_environ_value_of(job->apps[i].env, job->env, VISIBLE);
    if (visible)
        st = xr_policy_show_topology(&o->where, (uint32_t)o->n, visible, job->napps, stdout, text, sizeof(text));
    free(visible);
    if (st)
        return main_refuse(text, XR_EXIT_USAGE);
    return fflush(stdout) ? main_refuse("cannot write the topology", 1) : 0;
}

static int show_topology(const struct xr_options *o)
{
    struct xr_job job = {.size = 0};
    char text[4096 + 512];
    int code;

    if (!xr_policy_check(&o->where, text, sizeof(text)))
        return main_refuse(text, XR_EXIT_USAGE);
    code = xr_programs_make_env(o, &job, text, sizeof(text));
    code = code ? main_refuse(text, code) : show_topology_of(o, &job);
    xr_job_clear(&job);
    return code;
}

static int main_run(struct xr_options *o, uint64_t started_ns)
{
    struct xr_plan_program *programs = NULL;
    struct xr_job job = {.started_ns = started_ns, .nofile = xr_rlimits_files()};
    struct xr_plan plan = {.local = XR_NO_HOST};
    int code;

    xr_rlimits_read(&job.limits);
    /* First: the next step removes variables of the resource manager. */
    code = make_plan(o, &plan);
    if (!code && !(programs = name_programs(o, &plan)))
        code = main_refuse("out of memory", 1);
    if (!code)
        code = make_job(o, &plan, &job);
    if (!code)
        name_visible(&job, programs);
    if (!code)
        code = check_limits(o, &plan);
    if (!code)
        code = xr_front_run(o, &job, &plan);
    xr_plan_clear(&plan);
    free(programs);
    xr_job_clear(&job);
    rk_conf_unload();
    return code;
}

/* The first xrun has started this process, for a job that a rank spawned. */
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

/* Copy the array of variables, which changes later. The texts are borrowed. NULL: out of memory. */
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

/*
 * Parse the command line alone first: its errors come first, and --help works whatever the variables hold. Then parse
 * it over the variables, to check both together.
 */
static rank_status_t read_options(int argc, char **argv, struct xr_options *o, char *err,
                                  size_t errlen)
{
    rank_status_t st = xr_options_parse_words(argc, argv, o, err, errlen);

    if (st || xr_options_prints_only(o))
        return st;
    be_quiet(o);
    xr_options_free(o);
    return xr_options_parse_over(argc, argv, xr_options_from_env, o, err, errlen);
}

int main(int argc, char **argv)
{
    uint64_t started_ns = rk_clock_ns();
    struct xr_options options;
    char text[512], **environment;
    int code;

    if (argc > 0 && strcmp(argv[0], XR_PROXY_CLIENT_NAME) == 0)
        return xr_proxy_client_main();
    fill_standard_fds();
    reset_signals();
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
        code = xr_status_main(options.job);
    } else if (options.where.topo) {
        code = show_topology(&options);
    } else {
        options.argv = argv;
        options.environment = environment;
        code = main_run(&options, started_ns);
    }
    xr_options_free(&options);
    free(environment);
    return code;
}
