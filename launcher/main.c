/*
 * main.c: xrun.
 *
 * Everything that can be wrong with a command line is found out here, before
 * any process is created; each is one line that says what, where and what to
 * do.
 */
#include "launcher/agent.h"
#include "launcher/environ.h"
#include "launcher/front.h"
#include "launcher/limits.h"
#include "launcher/options.h"
#include "launcher/program.h"
#include "launcher/status.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

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

static int refuse(const char *text, int code)
{
    rk_error("%s", text);
    return code;
}

static char **copy_strings(char *const *v)
{
    size_t n = 0;
    char **copy;

    while (v[n])
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(v[i]);
        if (!copy[i]) {
            rk_strings_free(copy);
            return NULL;
        }
    }
    return copy;
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

/* Set the environment up as ranks will see it, and check what it says about the library. */
static int check_environment(const struct rk_options *o)
{
    char text[512];
    rank_status_t st;

    rk_environ_scrub();
    for (int i = 0; i < o->nset; i++) {
        if (!rk_environ_export(o->set[i])) {
            snprintf(text, sizeof(text),
                     "-x %s: %s is not set where xrun runs; write -x %s=value", o->set[i],
                     o->set[i], o->set[i]);
            return refuse(text, RK_EXIT_USAGE);
        }
    }
    st = rk_conf_load();
    if (st == RANK_ERR_CONFIG)
        return RK_EXIT_USAGE; /* it has said what and where */
    if (st)
        return refuse(rank_status_string(st), 1);
    return 0;
}

/* 0, or the exit code. */
static int make_job(const struct rk_options *o, struct rk_job *job)
{
    char text[4096 + 512];
    int code = RK_EXIT_USAGE;

    job->size = (uint32_t)o->n;
    job->bind = o->bind;
    job->wdir = rk_program_wdir(o->wdir, text, sizeof(text));
    if (!job->wdir)
        return refuse(text, RK_EXIT_USAGE);
    job->program = rk_program_find(o->command[0], job->wdir, text, sizeof(text), &code);
    if (!job->program)
        return refuse(text, code);
    if (!rk_limits_check(o->n, &job->nofile, text, sizeof(text)))
        return refuse(text, RK_EXIT_USAGE);
    job->id = make_id();
    job->argv = copy_strings(o->command);
    job->env = copy_strings(environ);
    if (!job->id || !job->argv || !job->env)
        return refuse("out of memory", 1);
    return 0;
}

static int run(const struct rk_options *o, uint64_t started_ns)
{
    struct rk_job job = {.started_ns = started_ns};
    int code = check_environment(o);

    if (!code)
        code = make_job(o, &job);
    if (!code)
        code = rk_front_run(o, &job);
    rk_job_clear(&job);
    rk_conf_unload();
    return code;
}

int main(int argc, char **argv)
{
    uint64_t started_ns = rk_clock_ns();
    struct rk_options options;
    char text[512];
    int code;

    if (argc > 0 && strcmp(argv[0], RK_STAND_IN_NAME) == 0)
        return rk_stand_in_main();
    fill_standard_fds();
    rk_log_identity("xrun", -1, NULL);
    if (rk_options_parse(argc, argv, &options, text, sizeof(text))) {
        code = refuse(text, RK_EXIT_USAGE);
    } else if (options.man) {
        rk_options_man(stdout);
        code = 0;
    } else if (options.help) {
        rk_options_help(stdout);
        code = 0;
    } else if (options.version) {
        printf("xrun %s\n", rank_version());
        code = 0;
    } else if (options.status) {
        code = rk_ask(options.command[0]);
    } else {
        code = run(&options, started_ns);
    }
    rk_options_free(&options);
    return code;
}
