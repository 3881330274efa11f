/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c: see options.h. */
#include "launcher/cli/options.h"
#include "launcher/util/pack.h"
#include "launcher/exec/environ.h"
#include "launcher/util/errbuf.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct option {
    const char *names[XR_OPTION_NAMES]; /* the first is the one that messages use */
    const char *value;    /* what follows it, for --help; NULL: nothing does */
    const char *doc;
    /* Returns false with a text in err. NULL: sets the flag. */
    bool (*apply)(struct xr_options *o, const char *value, char *err, size_t errlen);
    size_t more; /* traits; where there is no apply: where a bool is in struct xr_options */
};

enum {
    PER_APP = 1, /* concerns one program, and may follow a ':' */
    PAIR = 2,    /* two words follow, a name and a value; apply gets NAME=VALUE */
};

#define FLAG(field) NULL, offsetof(struct xr_options, field)

static bool set_n(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    if (end == value || *end || errno == ERANGE || n < 1 || n > XR_MAX_RANKS)
        return fail(err, errlen, "-n is '%s'; give a number of ranks from 1 to %d", value,
                    XR_MAX_RANKS);
    o->app->n = (int)n;
    return true;
}

static bool check_x(const char *value, char *err, size_t errlen)
{
    if (!xr_environ_named(value))
        return fail(err, errlen,
                    "-x is '%s'; write -x NAME or -x NAME=value, with a name of letters, digits "
                    "and _",
                    value);
    if (xr_environ_own(value))
        return fail(err, errlen, "-x is '%s'; xrun itself sets that variable for each rank", value);
    return true;
}

/* XRUN_X holds any number of them, for all programs. */
static bool share_x(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    const char *wrong;
    char **words = xr_words_split(value, &wrong);

    if (!words)
        return fail(err, errlen, "-x is '%s': %s", value, wrong ? wrong : "out of memory");
    xr_strings_free(o->shared);
    o->shared = words;
    while (*words) {
        if (!check_x(*words++, err, errlen))
            return false;
    }
    return true;
}

static bool add_x(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (o->app == &o->defaults)
        return share_x(o, value, err, errlen);
    *o->next_set++ = value;
    o->app->nset++;
    return check_x(value, err, errlen);
}

/* -genv: of this program and of all that follow. */
static bool add_genv(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    *o->next_genv++ = value;
    return add_x(o, value, err, errlen);
}

static bool set_wdir(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--wdir is empty; give a directory");
    o->app->wdir = value;
    return true;
}

static bool add_env_file(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--env-file is empty; give a file with lines NAME=value");
    /* There is one default. A program that has files of its own shall not have it too. */
    if (o->app == &o->defaults && o->app->files)
        o->next_file = o->app->files;
    if (o->app->files == o->defaults.files) {
        o->app->files = o->next_file;
        o->app->nfiles = 0;
    }
    *o->next_file++ = value;
    o->app->nfiles++;
    return true;
}

static bool set_path(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--path is empty; give directories with : between them");
    o->app->path = value;
    return true;
}

static bool set_prefix(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (value[0] != '/')
        return fail(err, errlen, "--prefix is '%s'; give a path from /, for every host", value);
    o->prefix = value;
    return true;
}

static bool set_output_dir(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--output-dir is empty; give a directory");
    o->output_dir = value;
    return true;
}

static bool set_json(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--json is empty; give a file to write");
    o->json = value;
    return true;
}

/* What the option says of the rank is checked when it is known how many there are. */
static bool read_rank(const char *name, const char *also, const char *value, uint32_t *out,
                      char *err, size_t errlen)
{
    char *end;
    long n = strtol(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end || n >= XR_MAX_RANKS)
        return fail(err, errlen, "%s is '%s'; give %sa rank", name, value, also);
    *out = (uint32_t)n;
    return true;
}

static bool set_stdin(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    o->input_given = true;
    if (strcmp(value, "all") == 0)
        o->input = XR_INPUT_ALL;
    else if (strcmp(value, "none") == 0)
        o->input = XR_INPUT_NONE;
    else
        return read_rank("--stdin", "all, none or ", value, &o->input, err, errlen);
    return true;
}

static bool set_pty(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    return read_rank("--pty", "", value, &o->pty, err, errlen);
}

static bool set_env(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    o->torch = strcmp(value, "torch") == 0;
    if (!o->torch && strcmp(value, "none") != 0)
        return fail(err, errlen, "--env is '%s'; give torch or none", value);
    return true;
}

static bool set_mpi(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    o->no_mpi = strcmp(value, "none") == 0;
    if (!o->no_mpi && strcmp(value, "auto") != 0)
        return fail(err, errlen, "--mpi is '%s'; give auto or none", value);
    return true;
}

static bool set_timeout(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);

    if (end == value || *end || !isfinite(s) || s <= 0 || s > 1e9)
        return fail(err, errlen, "--timeout is '%s'; give seconds, more than 0", value);
    o->timeout = s;
    return true;
}

static bool set_kill_grace(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);

    if (end == value || *end || !isfinite(s) || s < 0 || s > 1e6)
        return fail(err, errlen, "--kill-grace is '%s'; give seconds, 0 or more", value);
    o->kill_grace = s;
    return true;
}

static bool set_heartbeat(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char *end;
    double s = strtod(value, &end);
    bool kill = strcmp(end, ":kill") == 0;

    if (end == value || (*end && !kill) || !isfinite(s) || (s < 0.2 && (s != 0 || kill)) || s > 1e6)
        return fail(err, errlen, "--heartbeat is '%s'; give seconds, 0.2 or more, or seconds:kill, or 0 for no report",
                    value);
    o->heartbeat = s;
    o->heartbeat_kill = kill;
    return true;
}

/* policy.c reads these. */
#define WHERE(name, read)                                                                          \
    static bool name(struct xr_options *o, const char *value, char *err, size_t errlen)            \
    {                                                                                              \
        return read(&o->where, value, err, errlen);                                                \
    }
WHERE(set_map_by, xr_where_map_by)
WHERE(set_rank_by, xr_where_rank_by)
WHERE(set_cpus, xr_where_cpus)
WHERE(set_fanout, xr_where_fanout)
WHERE(set_start_timeout, xr_where_start_timeout)

/* --bind-to of other launchers has other words for two of these. */
static bool set_bind(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (strcmp(value, "socket") == 0)
        value = "package";
    else if (strcmp(value, "l3cache") == 0)
        value = "l3";
    return xr_where_bind(&o->where, value, err, errlen);
}

static bool set_ppn(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char text[64];

    if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 9 || atoi(value) < 1)
        return fail(err, errlen, "--ppn is '%s'; give the number of ranks on each host, from 1 on", value);
    snprintf(text, sizeof(text), "ppr:%s:node", value);
    return xr_where_map_by(&o->where, text, err, errlen);
}

/* Texts that are looked at later. */
#define TEXT(name, field, option)                                                                  \
    static bool name(struct xr_options *o, const char *value, char *err, size_t errlen)            \
    {                                                                                              \
        if (!*value)                                                                               \
            return fail(err, errlen, option " is empty");                                          \
        o->where.field = value;                                                                    \
        return true;                                                                               \
    }
TEXT(set_rankfile, rankfile, "--rankfile")
TEXT(set_json_map, json_map, "--json-map")
TEXT(set_agent, agent, "--agent")
TEXT(set_ssh_args, ssh_args, "--ssh-args")
TEXT(set_interface, interface, "--if")

/* Said again on one command line, it adds to what was said; but what a variable says is only a default. */
static bool options_add_host(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    const char *kept = value;
    char *both;

    if (!*value)
        return fail(err, errlen, "--host is empty");
    if (o->hosts_said) {
        if (asprintf(&both, "%s,%s", o->where.hosts, value) < 0)
            return fail(err, errlen, "out of memory");
        kept = xr_options_keep(o, both);
        free(both);
        if (!kept)
            return fail(err, errlen, "out of memory");
    }
    o->where.hosts = kept;
    o->hosts_said = o->app != &o->defaults;
    return true;
}

static bool add_hostfile(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--hostfile is empty");
    if (!o->files_said)
        o->where.nhostfiles = 0;
    o->where.hostfiles[o->where.nhostfiles++] = value;
    o->files_said = o->app != &o->defaults;
    return true;
}

static bool set_on_failure(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (strcmp(value, "kill") != 0 && strcmp(value, "continue") != 0)
        return fail(err, errlen, "--on-failure is '%s'; give kill or continue", value);
    o->go_on = value[0] == 'c';
    return true;
}

static const struct option options[] = {
    {{"-n", "-np", "--np", "--ntasks"}, "N", "Start N ranks. Default: as many as there are slots, where a resource manager, a hostfile or --host NAME:SLOTS gives "
     "them; else, and of each of several programs, 1.", set_n, PER_APP},
    {{"-x"},
     "NAME[=value]",
     "Set NAME in the environment of the ranks, or say that it shall be passed on. The ranks get "
     "xrun's environment anyway, but for what another launcher left in it.",
     add_x, PER_APP},
    {{"-env"}, "NAME VALUE", "Set NAME to VALUE in the environment of the ranks, as -x NAME=VALUE.", add_x, PER_APP | PAIR},
    {{"-genv"},
     "NAME VALUE",
     "The same for the ranks of all programs.",
     add_genv, PAIR},
    {{"--env-file"},
     "FILE",
     "Set what FILE says in its lines NAME=value; empty ones and those that begin with # are left "
     "out. -x wins.",
     add_env_file, PER_APP},
    {{"--env"},
     "torch|none",
     "torch: also give each rank what PyTorch's programs ask for: RANK, WORLD_SIZE, LOCAL_RANK, "
     "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
     set_env, 0},
    {{"--mpi"},
     "auto|none",
     "Serve the ranks by PMIx and PMI-1 (auto, the default), or start programs that use neither a little faster (none).",
     set_mpi, 0},
    {{"--wdir", "-wdir"},
     "DIR",
     "Start the ranks in DIR (default: where xrun is, by the name that PWD has for it). PWD says so there.",
     set_wdir, PER_APP},
    {{"--path"},
     "DIRS",
     "Look for the program in these directories (with : between them) before PATH.",
     set_path, PER_APP},
    {{"--prefix"},
     "DIR",
     "Put DIR/bin before PATH and DIR/lib before LD_LIBRARY_PATH for the ranks.",
     set_prefix, 0},
    {{"--tag-output", "-l", "-prepend-rank"}, NULL, "Put [rank] before each line of output.", FLAG(tag_output)},
    {{"--label-host"}, NULL, "Put [host] before each line of output; with --tag-output [host:rank].",
     FLAG(label_host)},
    {{"--timestamp"},
     NULL,
     "Put the local time before each line of output, as 2026-11-21T12:34:56.789: when xrun got the "
     "line.",
     FLAG(timestamp)},
    {{"--output-dir"},
     "DIR",
     "Write the output into files, DIR/rank.N.out and DIR/rank.N.err of each rank, and not to xrun's "
     "own. DIR is made if it is not there; files that are there are replaced.",
     set_output_dir, 0},
    {{"--json"},
     "FILE",
     "Write a report of the whole job into FILE when it is over: its programs, where each rank ran, "
     "when, how it ended, what it used, and where the start-up time went.",
     set_json, 0},
    {{"--stdin"},
     "all|none|RANK",
     "Who reads xrun's standard input: one rank (default: 0), or each rank a copy of it, as fast as "
     "the slowest of them. The others read from /dev/null.",
     set_stdin, 0},
    {{"--pty"},
     "RANK",
     "Give that rank a terminal for its standard input, output and error. It is the one who reads "
     "xrun's standard input, unless --stdin says otherwise.",
     set_pty, 0},
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
     "long; xrun's exit code is 124 then. 0 reports nothing (default: report a job once if all its "
     "ranks wait in librank and none makes progress for 20 s).",
     set_heartbeat, 0},
    {{"--status"},
     NULL,
     "Start nothing: xrun --status JOB asks a running job of yours what its ranks do, xrun --status "
     "lists the jobs. A part of a job's name will do.",
     FLAG(status)},
    {{"--host", "-H", "-host", "-hosts", "--hosts"},
     "HOSTS",
     "Run on these hosts: a,b:4,node[01-16]. Behind a colon stands how many ranks a host takes before others "
     "are used (default: one for each of its cores). "
     "Given again, it adds hosts.",
     options_add_host, 0},
    {{"--hostfile", "-hostfile", "-f", "-machinefile", "--machinefile"},
     "FILE",
     "Run on the hosts of FILE, which has a line for each: name, name:4 or name slots=4; ranges as with --host. "
     "Given again, it adds those of another file.",
     add_hostfile, 0},
    {{"--map-by"},
     "slot|node|package|numa|l3|core|hwthread|ppr:N:WHAT",
     "Where ranks go. slot (default): the hosts are filled one after the other. node: one to each host in turn. "
     "package, numa, l3, core, hwthread: hosts are filled, and on a host one rank goes to each of these in "
     "turn. ppr:N:WHAT: N ranks on each.",
     set_map_by, 0},
    {{"--ppn", "-ppn", "-N", "--npernode", "--ntasks-per-node"},
     "N",
     "Start N ranks on each host, as --map-by ppr:N:node. -N is mpirun's, not srun's, which counts hosts.",
     set_ppn, 0},
    {{"--rank-by"},
     "slot|node|fill",
     "How ranks are numbered. slot (default): as they were mapped. node: one on each host in turn. fill: host "
     "by host, and on a host object by object.",
     set_rank_by, 0},
    {{"--bind", "--bind-to", "-bind-to"},
     "share|core|hwthread|l3|numa|package|none",
     "What a rank may run on. share (default): its equal share of the cores of what it was mapped to. core, "
     "hwthread: one of these; core with --map-by hwthread: the core that its thread is of. package, numa, l3: the whole of that. "
     "none: anything. socket is package, l3cache is l3. No rank is bound on a host with more ranks than cores.",
     set_bind, 0},
    {{"--cpus-per-rank"}, "N", "Each rank gets N cores (or hardware threads, with --bind hwthread or --map-by "
     "hwthread).", set_cpus, 0},
    {{"--rankfile"},
     "FILE",
     "Put each rank where FILE says, in lines rank N=HOST slot=CORES.",
     set_rankfile, 0},
    {{"--show-map"}, NULL, "Print who runs where, as a table and a drawing of each host.", FLAG(where.show_map)},
    {{"--dry-run"}, NULL, "Print who would run where, and start no rank. Other hosts are asked for their cores "
     "by agents.", FLAG(where.dry_run)},
    {{"--json-map"}, "FILE", "Write who runs where to FILE, as JSON.", set_json_map, 0},
    {{"--agent"},
     "CMD",
     "Start what runs on other hosts with CMD HOST COMMAND (default: ssh).",
     set_agent, 0},
    {{"--ssh-args"}, "ARGS", "Give ARGS to ssh, or to what --agent names, before the host.", set_ssh_args, 0},
    {{"--fanout"},
     "N",
     "One process starts at most N of the agents on other hosts (default 32); those start the rest. Inside "
     "Slurm, where srun starts them all, they connect like this.",
     set_fanout, 0},
    {{"--if"},
     "NAME|CIDR",
     "The network that agents reach their parents by: an interface, or its addresses as 10.1.0.0/16.",
     set_interface, 0},
    {{"--start-timeout"},
     "S",
     "Give up if not all hosts have come after S seconds (default 60).",
     set_start_timeout, 0},
    {{"--on-failure"},
     "kill|continue",
     "What happens when a rank fails: kill (default) ends the job, continue lets the others live "
     "and tells them by a PMIx event.",
     set_on_failure, 0},
    {{"--oversubscribe", "--allow-run-as-root"},
     NULL,
     "Accepted from other launchers, and without effect: xrun fills hosts again when all slots are taken, and runs as root.",
     FLAG(habit)},
    {{"-q", "--quiet"}, NULL, "Say nothing of xrun's own but errors.", FLAG(quiet)},
    {{"-v", "--verbose"}, NULL, "Say where the start-up time goes.", FLAG(verbose)},
    {{"--version"}, NULL, "Print the version.", FLAG(version)},
    {{"--help", "-h"}, NULL, "Print this text.", FLAG(help)},
};

static bool *flag_of(struct xr_options *o, const struct option *opt)
{
    return (bool *)((char *)o + opt->more);
}

/* XRUN_ and the first long name of the first two: --tag-output is XRUN_TAG_OUTPUT, -n is XRUN_N. Not of what two words follow. */
static void name_variable(const struct option *opt, char *out, size_t len)
{
    const char *name = opt->names[0];
    size_t at;

    out[0] = '\0';
    if (!opt->apply && (opt->more == offsetof(struct xr_options, help) || opt->more == offsetof(struct xr_options, version) ||
                        opt->more == offsetof(struct xr_options, status)))
        return;
    if (opt->apply && (opt->more & PAIR))
        return;
    if (name[1] != '-' && opt->names[1] && opt->names[1][1] == '-')
        name = opt->names[1];
    at = (size_t)snprintf(out, len, "XRUN_");
    for (name += strspn(name, "-"); *name && at + 1 < len; name++)
        out[at++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    out[at] = '\0';
}

bool xr_options_row(size_t i, struct xr_option_row *out)
{
    if (i >= RK_ARRAY_LEN(options))
        return false;
    out->names = options[i].names;
    out->value = options[i].value;
    out->doc = options[i].doc;
    out->per_app = options[i].apply && (options[i].more & PER_APP);
    out->pair = options[i].apply && (options[i].more & PAIR);
    name_variable(&options[i], out->variable, sizeof(out->variable));
    return true;
}

bool xr_options_apply(struct xr_options *o, size_t i, const char *value, char *err, size_t errlen)
{
    static const char *const on[] = {"1", "on", "yes", "true"}, *const off[] = {"0", "off", "no",
                                                                                "false"};
    const struct option *opt = &options[i];

    if (opt->apply)
        return opt->apply(o, value, err, errlen);
    if (!value) {
        *flag_of(o, opt) = true;
        return true;
    }
    for (size_t k = 0; k < RK_ARRAY_LEN(on); k++) {
        if (strcasecmp(value, on[k]) == 0 || strcasecmp(value, off[k]) == 0) {
            *flag_of(o, opt) = strcasecmp(value, on[k]) == 0;
            return true;
        }
    }
    return fail(err, errlen, "%s is '%s'; give on or off", opt->names[0], value);
}
