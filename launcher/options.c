/* options.c: see options.h. */
#include "launcher/options.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct option {
    const char *names[3]; /* the first is the one that messages use */
    const char *value;    /* what follows it, for --help; NULL: nothing does */
    const char *doc;
    /* Returns false with a text in err. NULL: sets the flag. */
    bool (*apply)(struct rk_options *o, const char *value, char *err, size_t errlen);
    size_t flag; /* where a bool is in struct rk_options */
};

#define FLAG(field) NULL, offsetof(struct rk_options, field)

static bool fail(char *err, size_t errlen, const char *fmt, ...) RK_PRINTF(3, 4);

static bool fail(char *err, size_t errlen, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, errlen, fmt, ap);
    va_end(ap);
    return false;
}

static bool set_n(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    if (end == value || *end || errno == ERANGE || n < 1 || n > RK_MAX_RANKS)
        return fail(err, errlen, "-n is '%s'; give a number of ranks from 1 to %d", value,
                    RK_MAX_RANKS);
    o->n = (int)n;
    return true;
}

static bool add_x(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    size_t n = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

    if (n == 0 || (value[n] && value[n] != '=') || (value[0] >= '0' && value[0] <= '9'))
        return fail(err, errlen,
                    "-x is '%s'; write -x NAME or -x NAME=value, with a name of letters, digits "
                    "and _",
                    value);
    o->set[o->nset++] = value;
    return true;
}

static bool set_wdir(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--wdir is empty; give a directory");
    o->wdir = value;
    return true;
}

static bool set_timeout(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);

    if (end == value || *end || !isfinite(s) || s <= 0 || s > 1e9)
        return fail(err, errlen, "--timeout is '%s'; give seconds, more than 0", value);
    o->timeout = s;
    return true;
}

static bool set_kill_grace(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);

    if (end == value || *end || !isfinite(s) || s < 0 || s > 1e6)
        return fail(err, errlen, "--kill-grace is '%s'; give seconds, 0 or more", value);
    o->kill_grace = s;
    return true;
}

static bool set_heartbeat(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);
    bool kill = strcmp(end, ":kill") == 0;

    if (end == value || (*end && !kill) || !isfinite(s) || s < 0.2 || s > 1e6)
        return fail(err, errlen, "--heartbeat is '%s'; give seconds, 0.2 or more, or seconds:kill",
                    value);
    o->heartbeat = s;
    o->heartbeat_kill = kill;
    return true;
}

static bool set_bind(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    static const char *const words[] = {"share", "core", "none"};

    for (size_t i = 0; i < RK_ARRAY_LEN(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            o->bind = (enum rk_bind)i;
            return true;
        }
    }
    return fail(err, errlen, "--bind is '%s'; give core, none or share", value);
}

static bool set_on_failure(struct rk_options *o, const char *value, char *err, size_t errlen)
{
    if (strcmp(value, "kill") != 0 && strcmp(value, "continue") != 0)
        return fail(err, errlen, "--on-failure is '%s'; give kill or continue", value);
    o->go_on = value[0] == 'c';
    return true;
}

static const struct option options[] = {
    {{"-n", "-np"}, "N", "Start N ranks (default 1).", set_n, 0},
    {{"-x"},
     "NAME[=value]",
     "Set NAME in the environment of the ranks, or say that it shall be passed on. The ranks get "
     "xrun's environment anyway, but for what another launcher left in it.",
     add_x, 0},
    {{"--wdir", "-wdir"}, "DIR", "Start the ranks in DIR (default: where xrun is).", set_wdir, 0},
    {{"--tag-output"}, NULL, "Put [rank] before each line of output.", FLAG(tag_output)},
    {{"--label-host"}, NULL, "Put [host] before each line of output; with --tag-output [host:rank].",
     FLAG(label_host)},
    {{"--timestamp"},
     NULL,
     "Put the local time before each line of output, as 2026-11-21T12:34:56.789: when xrun got the "
     "line.",
     FLAG(timestamp)},
    {{"--timeout"},
     "S",
     "End the job if it still runs after S seconds; xrun's exit code is 124 then.",
     set_timeout, 0},
    {{"--timeout-traces"},
     NULL,
     "Before --timeout or --heartbeat ends the job, print a stack trace of every rank, by gdb or "
     "eu-stack.",
     FLAG(timeout_traces)},
    {{"--kill-grace"},
     "S",
     "When the job is ended, give the ranks S seconds between the signal that says so and SIGKILL; 0 "
     "kills them at once (default: 2 after a signal from the user, else 0.4).",
     set_kill_grace, 0},
    {{"--heartbeat"},
     "S[:kill]",
     "Report each rank that makes no progress for S seconds, with what it waits for, and when it goes "
     "on; nothing is killed. With :kill, end the job once no rank of it has made progress for so "
     "long; xrun's exit code is 124 then.",
     set_heartbeat, 0},
    {{"--status"},
     NULL,
     "Start nothing: xrun --status JOB asks a running job of yours what its ranks do, xrun --status "
     "lists the jobs. A part of a job's name will do.",
     FLAG(status)},
    {{"--bind"},
     "core|none|share",
     "How ranks are bound to cores. share (default): each gets an equal share of the cores that "
     "xrun may use; nobody is bound if there are more ranks than cores. core: each gets one core. "
     "none: nobody is bound.",
     set_bind, 0},
    {{"--on-failure"},
     "kill|continue",
     "What happens when a rank fails: kill (default) ends the job, continue lets the others live "
     "and tells them by a PMIx event.",
     set_on_failure, 0},
    {{"-v", "--verbose"}, NULL, "Say where the start-up time goes.", FLAG(verbose)},
    {{"--version"}, NULL, "Print the version.", FLAG(version)},
    {{"--help", "-h"}, NULL, "Print this text.", FLAG(help)},
};

static const struct option *find(const char *name, size_t len)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(options); i++) {
        for (const char *const *n = options[i].names; n < options[i].names + 3 && *n; n++) {
            if (strlen(*n) == len && memcmp(*n, name, len) == 0)
                return &options[i];
        }
    }
    return NULL;
}

static bool unknown(const char *arg, char *err, size_t errlen)
{
    const char *best = NULL;
    int best_distance = 4; /* further is no likeness */
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
    for (size_t i = 0; i < RK_ARRAY_LEN(options); i++) {
        for (const char *const *n = options[i].names; n < options[i].names + 3 && *n; n++) {
            int d = rk_edit_distance(name, *n);
            if (d < best_distance && d < (int)strlen(*n)) {
                best = *n;
                best_distance = d;
            }
        }
    }
    if (best)
        return fail(err, errlen, "there is no option %s; did you mean %s?", name, best);
    return fail(err, errlen, "there is no option %s; xrun --help lists them", name);
}

/* One option at argv[*i], and its value; moves *i past them. */
static bool parse_one(int argc, char **argv, int *i, struct rk_options *o, char *err,
                      size_t errlen)
{
    const char *arg = argv[*i], *eq = NULL, *value = NULL;
    const struct option *opt = find(arg, strlen(arg));

    if (!opt && strncmp(arg, "--", 2) == 0 && (eq = strchr(arg, '=')))
        opt = find(arg, (size_t)(eq - arg));
    if (!opt)
        return unknown(arg, err, errlen);
    ++*i;
    if (opt->value && eq) {
        value = eq + 1;
    } else if (opt->value) {
        if (*i >= argc)
            return fail(err, errlen, "%s needs a value: %s %s", arg, arg, opt->value);
        value = argv[(*i)++];
    } else if (eq) {
        return fail(err, errlen, "%s takes no value", opt->names[0]);
    }
    if (opt->apply)
        return opt->apply(o, value, err, errlen);
    *(bool *)((char *)o + opt->flag) = true;
    return true;
}

rank_status_t rk_options_parse(int argc, char **argv, struct rk_options *out, char *err,
                               size_t errlen)
{
    int i = 1;

    memset(out, 0, sizeof(*out));
    out->n = 1;
    out->kill_grace = -1;
    out->set = calloc((size_t)argc + 1, sizeof(*out->set));
    if (!out->set) {
        snprintf(err, errlen, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        /* What --help is made from can also be printed for the man page; not for users. */
        if (strcmp(argv[i], "--help=man") == 0) {
            out->man = true;
            return RANK_OK;
        }
        if (!parse_one(argc, argv, &i, out, err, errlen))
            return RANK_ERR_ARG;
    }
    out->command = argv + i;
    if (out->help || out->version)
        return RANK_OK;
    if (out->status) {
        if (i + 1 >= argc)
            return RANK_OK;
        snprintf(err, errlen, "--status takes one job, not %d; xrun --status lists them", argc - i);
        return RANK_ERR_ARG;
    }
    if (out->timeout_traces && out->timeout <= 0 && !out->heartbeat_kill) {
        snprintf(err, errlen, "--timeout-traces needs --timeout S, or --heartbeat S:kill");
        return RANK_ERR_ARG;
    }
    if (i >= argc || !argv[i][0]) {
        snprintf(err, errlen, "no program given; usage: xrun [options] program [arguments]");
        return RANK_ERR_ARG;
    }
    return RANK_OK;
}

void rk_options_free(struct rk_options *o)
{
    if (!o)
        return;
    free(o->set);
    o->set = NULL;
}

/* A text for troff: a plain - would be typeset as a hyphen. */
static void troff(FILE *to, const char *text, int len)
{
    for (int i = 0; i < len; i++)
        fprintf(to, text[i] == '-' ? "\\-" : "%c", text[i]);
}

/* Words of text, folded at column 78 behind an indent. */
static void fold(FILE *to, const char *text, int indent)
{
    int column = indent;

    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column > indent && column + 1 + n > 78) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", n, text);
        column += n;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}


void rk_options_help(FILE *to)
{
    fprintf(to, "usage: xrun [options] program [arguments]\n\n"
                "Starts N copies of a program, the ranks of a job, and carries their output.\n\n");
    for (size_t i = 0; i < RK_ARRAY_LEN(options); i++) {
        for (int k = 0; k < 3 && options[i].names[k]; k++)
            fprintf(to, "%s%s", k ? ", " : "  ", options[i].names[k]);
        fprintf(to, "%s%s\n        ", options[i].value ? " " : "",
                options[i].value ? options[i].value : "");
        fold(to, options[i].doc, 8);
    }
    fprintf(to, "\nVariables of the library (RANK_*): rankinfo lists them.\n"
                "Exit code: the first failing rank's; 128 + signal if it was killed by one; 124\n"
                "after --timeout; 126 and 127 for a program that cannot be executed or found;\n"
                "2 for bad usage.\n");
}

void rk_options_man(FILE *to)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(options); i++) {
        fprintf(to, ".TP\n");
        for (int k = 0; k < 3 && options[i].names[k]; k++) {
            fprintf(to, "%s\\fB", k ? ", " : "");
            troff(to, options[i].names[k], (int)strlen(options[i].names[k]));
            fprintf(to, "\\fR");
        }
        fprintf(to, "%s%s%s\n", options[i].value ? " \\fI" : "",
                options[i].value ? options[i].value : "", options[i].value ? "\\fR" : "");
        troff(to, options[i].doc, (int)strlen(options[i].doc));
        fputc('\n', to);
    }
}
