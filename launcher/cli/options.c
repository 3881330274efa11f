/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c: define the table of options and set their values. See options.h. */
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

enum option_group { PROGRAMS, HOSTS, PLACEMENT, STREAMS, FAILURES, REPORTS };

static const char *const group_titles[] = {
    [PROGRAMS] = "Programs and environment",
    [HOSTS] = "Hosts",
    [PLACEMENT] = "Placement",
    [STREAMS] = "Input and output",
    [FAILURES] = "Failures and time limits",
    [REPORTS] = "Reports",
};

struct option {
    enum option_group group;            /* rows of a group stand together */
    const char *names[XR_OPTION_NAMES]; /* messages use the first */
    const char *value;                  /* name of its value in --help, or NULL for a flag */
    const char *help;                   /* one sentence: "Verb object (default: X)." */
    const char *detail;                 /* more sentences, for xrun.1 only; or NULL */
    /* Sets the value. Returns false with a text in err if it is malformed. NULL: a flag. */
    bool (*apply)(struct xr_options *o, const char *value, char *err, size_t errlen);
    size_t more; /* traits; of a flag the offset of its bool in struct xr_options */
};

enum {
    PER_APP = 1, /* trait: applies to one program, and may follow a ':' */
    PAIR = 2,    /* trait: two words follow, a name and a value; apply gets NAME=VALUE */
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

/* Set the variables of XRUN_X, any number of words, for all programs. */
static bool share_x(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    const char *wrong;
    char **words = xr_shell_words_split(value, &wrong);

    if (!words)
        return fail(err, errlen, "-x is '%s': %s", value, wrong ? wrong : "out of memory");
    xr_strv_free(o->shared);
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

/* Set a variable for this program and all that follow. */
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
    /* XRUN_ENV_FILE is a default: the first --env-file of a program replaces it. */
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

/* Parse a rank. xr_options_check_ranks compares it with the number of ranks. */
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

/* policy.c parses these. */
#define WHERE(name, read)                                                                          \
    static bool name(struct xr_options *o, const char *value, char *err, size_t errlen)            \
    {                                                                                              \
        return read(&o->where, value, err, errlen);                                                \
    }
WHERE(set_map_by, xr_policy_map_by)
WHERE(set_rank_by, xr_policy_rank_by)
WHERE(set_cpus, xr_policy_cpus)
WHERE(set_gpus, xr_policy_gpus)
WHERE(set_gpu_bind, xr_policy_gpu_bind)
WHERE(set_nics, xr_policy_nics)
WHERE(set_nic_bind, xr_policy_nic_bind)
WHERE(set_fanout, xr_policy_fanout)
WHERE(set_start_timeout, xr_policy_start_timeout)

/* Accept the two words of --bind-to that other launchers have. */
static bool set_bind(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (strcmp(value, "socket") == 0)
        value = "package";
    else if (strcmp(value, "l3cache") == 0)
        value = "l3";
    return xr_policy_bind(&o->where, value, err, errlen);
}

static bool set_ppn(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    char text[64];

    if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 9 || atoi(value) < 1)
        return fail(err, errlen, "--ppn is '%s'; give the number of ranks on each host, from 1 on", value);
    snprintf(text, sizeof(text), "ppr:%s:node", value);
    return xr_policy_map_by(&o->where, text, err, errlen);
}

/* Options with a text that is parsed later. */
#define TEXT(name, field, option)                                                                  \
    static bool name(struct xr_options *o, const char *value, char *err, size_t errlen)            \
    {                                                                                              \
        if (!*value)                                                                               \
            return fail(err, errlen, option " is empty");                                          \
        o->where.field = value;                                                                    \
        return true;                                                                               \
    }
TEXT(set_rankfile, rankfile, "--rankfile")
TEXT(set_machine_xml, xml, "--xml")
TEXT(set_json_map, json_map, "--json-map")
TEXT(set_agent, agent, "--agent")
TEXT(set_ssh_args, ssh_args, "--ssh-args")
TEXT(set_interface, interface, "--if")

/* Add hosts. The first --host of a command line replaces those of XRUN_HOST. */
static bool add_host(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    const char *kept = value;
    char *both;

    if (!*value)
        return fail(err, errlen, "--host is empty");
    if (o->hosts_given) {
        if (asprintf(&both, "%s,%s", o->where.hosts, value) < 0)
            return fail(err, errlen, "out of memory");
        kept = xr_options_keep(o, both);
        free(both);
        if (!kept)
            return fail(err, errlen, "out of memory");
    }
    o->where.hosts = kept;
    o->hosts_given = o->app != &o->defaults;
    return true;
}

static bool add_hostfile(struct xr_options *o, const char *value, char *err, size_t errlen)
{
    if (!*value)
        return fail(err, errlen, "--hostfile is empty");
    if (!o->hostfiles_given)
        o->where.nhostfiles = 0;
    o->where.hostfiles[o->where.nhostfiles++] = value;
    o->hostfiles_given = o->app != &o->defaults;
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
    {PROGRAMS, {"-n", "-np", "--np", "--ntasks"}, "N", "Start N ranks (default: one for each given slot, else 1).",
     "A resource manager, a hostfile or --host NAME:SLOTS gives slots. Each of several programs has 1 rank by default.",
     set_n, PER_APP},
    {PROGRAMS, {"-x"}, "NAME[=value]", "Set NAME in the environment of the ranks, or pass it on.",
     "The ranks get xrun's environment without the variables of other launchers, such as SLURM_PROCID. -x NAME passes "
     "one of these on.", add_x, PER_APP},
    {PROGRAMS, {"-env"}, "NAME VALUE", "Set NAME to VALUE in the environment of the ranks.", NULL, add_x,
     PER_APP | PAIR},
    {PROGRAMS, {"-genv"}, "NAME VALUE", "Set NAME to VALUE for the ranks of all programs.", NULL, add_genv, PAIR},
    {PROGRAMS, {"--env-file"}, "FILE", "Set the variables of FILE, a line NAME=value each.",
     "A later file replaces values of an earlier one, -x those of all files.", add_env_file, PER_APP},
    {PROGRAMS, {"--env"}, "torch|none", "Set the variables that PyTorch reads (default: none).",
     "torch sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR (the host of rank 0) and MASTER_PORT (a "
     "free port). A MASTER_ADDR or MASTER_PORT of the user stays.", set_env, 0},
    {PROGRAMS, {"--mpi"}, "auto|none", "Serve PMIx and PMI-1 to the ranks, or neither (default: auto).",
     "none starts programs that use neither a little faster.", set_mpi, 0},
    {PROGRAMS, {"--wdir", "-wdir"}, "DIR", "Start the ranks in DIR (default: the current directory).",
     "PWD of the ranks is set to it.", set_wdir, PER_APP},
    {PROGRAMS, {"--path"}, "DIRS", "Search DIRS, joined by :, for the program before PATH.", NULL, set_path, PER_APP},
    {PROGRAMS, {"--prefix"}, "DIR", "Put DIR/bin before PATH and DIR/lib before LD_LIBRARY_PATH.",
     "DIR/bin/xrun is then the agent on other hosts.", set_prefix, 0},

    {HOSTS, {"--host", "-H", "-host", "-hosts", "--hosts"}, "HOSTS",
     "Run on HOSTS, as a,b:4,node[01-16] (default slots: the cores).",
     "A number after a colon is the slots: the ranks that the host takes before others are used. Given again, it adds "
     "hosts. With a hostfile or an allocation it chooses among their hosts. An address of IPv6 stands in brackets.", add_host, 0},
    {HOSTS, {"--hostfile", "-hostfile", "-f", "-machinefile", "--machinefile"}, "FILE",
     "Run on the hosts of FILE, one a line: name, name:4 or name slots=4.",
     "max_slots=N limits the ranks of a host; a job that needs more is refused. cpu=, cpus= and count= mean slots=; "
     "sockets=, cores=, boards=, binding= and ifhn= have no effect. Given again, it adds the hosts of another file.", add_hostfile, 0},
    {HOSTS, {"--agent"}, "CMD", "Start agents on other hosts by CMD HOST COMMAND (default: ssh).",
     "CMD is split into words as by a shell. Inside Slurm the default is srun: CMD may give it options, and --agent "
     "ssh does without it.", set_agent, 0},
    {HOSTS, {"--ssh-args"}, "ARGS", "Pass ARGS to ssh, or to CMD of --agent, before the host.",
     "They are split as CMD is, and win over xrun's own, as in --ssh-args=-oConnectTimeout=60.", set_ssh_args, 0},
    {HOSTS, {"--fanout"}, "N", "Start at most N agents from one process (default: 32).",
     "These agents start the rest.", set_fanout, 0},
    {HOSTS, {"--if"}, "NAME|CIDR", "Connect agents by interface NAME or network CIDR.",
     "The default is the network by which the agent was reached. Ranks do not use it.",
     set_interface, 0},
    {HOSTS, {"--start-timeout"}, "S", "End the job if a host is not connected after S seconds (default: 60).", NULL,
     set_start_timeout, 0},

    {PLACEMENT, {"--map-by"}, "slot|node|package|numa|l3|core|hwthread|ppr:N:WHAT",
     "Assign ranks to hosts and their parts (default: slot).",
     "slot fills one host after the other. node gives one rank to each host in turn. package, numa, l3, core and hwthread "
     "fill hosts, and give one rank to each such part of a host in turn. ppr:N:WHAT places N ranks on each and ignores "
     "slots. socket means package, l3cache l3, host node.", set_map_by, 0},
    {PLACEMENT, {"--ppn", "-ppn", "-N", "--npernode", "--ntasks-per-node"}, "N", "Start N ranks on each host.",
     "It means --map-by ppr:N:node. -N is that of mpirun; srun counts hosts by it.", set_ppn, 0},
    {PLACEMENT, {"--rank-by"}, "slot|node|fill", "Number the ranks (default: slot).",
     "slot: as they were mapped. node: one on each host in turn. fill: host by host, and on a host part by part.",
     set_rank_by, 0},
    {PLACEMENT, {"--bind", "--bind-to", "-bind-to"}, "share|core|hwthread|l3|numa|package|none",
     "Bind each rank to cores (default: share).",
     "share: an equal share of the cores of the part that the rank was mapped to. core, hwthread: one of these; core with "
     "--map-by hwthread is the core of the thread. package, numa, l3: the whole part. none: every core. socket means package, "
     "l3cache l3. No rank is bound on a host with more ranks than cores.", set_bind, 0},
    {PLACEMENT, {"--cpus-per-rank"}, "N", "Give each rank N cores.",
     "They are hardware threads with --bind hwthread or --map-by hwthread. If a host has too few, its ranks share them "
     "equally.", set_cpus, 0},
    {PLACEMENT, {"--gpus-per-rank"}, "N", "Give each rank N GPUs of NVIDIA by CUDA_VISIBLE_DEVICES.",
     "They are the nearest to its cores at equal loads, or follow in PCI order if the ranks are not bound. More ranks "
     "than GPUs share these. A CUDA_VISIBLE_DEVICES of the user limits the choice. doc/topology.md has the rules.", set_gpus, 0},
    {PLACEMENT, {"--gpu-bind"}, "closest|none|map:LIST", "Choose the GPUs of ranks (default: closest with --gpus-per-rank).",
     "map:0,2-3 gives them to the ranks of each host in turn, by nvidia-smi's numbers. none leaves GPUs to the "
     "program. Without --gpus-per-rank a rank gets one.", set_gpu_bind, 0},
    {PLACEMENT, {"--nics-per-rank"}, "N", "Give each rank N NICs for messages between hosts by RANK_NICS.",
     "RDMA precedes Ethernet, then the nearest to its GPU counts, or to its cores without one; equals share the ranks.", set_nics, 0},
    {PLACEMENT, {"--nic-bind"}, "closest|none|map:LIST", "Choose the NICs of ranks (default: closest with --nics-per-rank).",
     "map:0,2-3 gives them to the ranks of each host in turn. --topo prints the numbers. Without --nics-per-rank a "
     "rank gets one.", set_nic_bind, 0},
    {PLACEMENT, {"--rankfile"}, "FILE", "Place ranks by FILE, in lines rank N=HOST slot=CORES.",
     "HOST may be +n1, the second host. Cores are numbered from 0 among those that xrun may use there; 1:0,2 is cores "
     "0 and 2 of package 1. Ranks that share cores stay bound.", set_rankfile, 0},
    {PLACEMENT, {"--show-map"}, NULL, "Print the placement as a table and a drawing.",
     "On hosts with GPUs the GPU and NIC that suit each rank follow.", FLAG(where.show_map)},
    {PLACEMENT, {"--dry-run"}, NULL, "Print the placement and start no rank.",
     "Agents report cores and devices of other hosts.", FLAG(where.dry_run)},
    {PLACEMENT, {"--topo"}, NULL, "Print this machine, and the GPU, NIC and cores of N ranks on it; start none.",
     "It prints devices, the ways between them, the devices of each rank and the reason, without --map-by and --bind. "
     "The default of -n is one rank a GPU. A program may be left out.", FLAG(where.topo)},
    {PLACEMENT, {"--xml"}, "FILE", "Plan for the machine in FILE, of hwloc's XML; with --dry-run or --topo.",
     "lstopo machine.xml writes such a file. No host is asked.", set_machine_xml, 0},
    {PLACEMENT, {"--json-map"}, "FILE", "Write the placement to FILE as JSON.",
     "It holds programs, hosts, and for each rank its program and host (counted from 0), cpus, gpus and nics.", set_json_map, 0},
    {PLACEMENT, {"--oversubscribe", "--allow-run-as-root"}, NULL, "Accept a habit of other launchers, without effect.",
     "xrun fills hosts again when all slots are taken, and runs as root.", FLAG(no_effect)},

    {STREAMS, {"--tag-output", "-l", "-prepend-rank"}, NULL, "Put [rank] before each line of output.", NULL,
     FLAG(tag_output)},
    {STREAMS, {"--label-host"}, NULL, "Put [host] before each line of output.",
     "With --tag-output it is [host:rank].", FLAG(label_host)},
    {STREAMS, {"--timestamp"}, NULL, "Put the local time before each line of output.",
     "It is when xrun received the line, as 2026-11-21T12:34:56.789.", FLAG(timestamp)},
    {STREAMS, {"--output-dir"}, "DIR", "Write output to DIR/rank.N.out and DIR/rank.N.err.",
     "DIR is created; files are emptied before the job starts. N has the width of the last rank. xrun's own messages "
     "stay on standard error.", set_output_dir, 0},
    {STREAMS, {"--stdin"}, "all|none|RANK", "Send standard input to one rank, all or none (default: 0).",
     "With all each rank gets a copy, as fast as the slowest reads. Other ranks read from /dev/null.", set_stdin, 0},
    {STREAMS, {"--pty"}, "RANK", "Connect RANK to a terminal.",
     "xrun's standard input goes there unless --stdin names another rank. If that is a terminal, every key goes to the "
     "rank, ^C and ^Z too.", set_pty, 0},

    {FAILURES, {"--on-failure"}, "kill|continue", "End the job when a rank fails, or continue (default: kill).",
     "With continue the other ranks get a PMIx event that names the rank, and calls of librank that need it return "
     "RANK_ERR_PEER_DEAD.", set_on_failure, 0},
    {FAILURES, {"--timeout"}, "S", "End the job with exit code 124 after S seconds (default: no limit).", NULL,
     set_timeout, 0},
    {FAILURES, {"--timeout-traces"}, NULL, "Print stack traces before --timeout or --heartbeat ends the job.",
     "gdb or eu-stack makes them, for every rank.", FLAG(timeout_traces)},
    {FAILURES, {"--kill-grace"}, "S", "Send SIGKILL S seconds after the first signal (default: 0.4, or 2).",
     "The default is 2 after a signal to xrun, else 0.4. 0 kills at once.", set_kill_grace, 0},
    {FAILURES, {"--heartbeat"}, "S[:kill]", "Report ranks without progress for S seconds (default: a job that hangs for 20 s).",
     "The report gives what a rank waits for. With :kill the job ends with exit code 124 once no rank has made "
     "progress for S seconds. By default a job is reported once if all ranks wait in librank and none has made "
     "progress for 20 s. 0 turns this off.", set_heartbeat, 0},

    {REPORTS, {"--status"}, NULL, "Print what the ranks of a job do: xrun --status [JOB].",
     "Without JOB it lists the user's jobs on this host. JOB is a name of that list (XRUN_JOB in the ranks) or a part of it "
     "that fits no other.", FLAG(status)},
    {REPORTS, {"--json"}, "FILE", "Write a report of the job to FILE at its end.",
     "It holds job, versions, size, start and end (seconds since 1970), exit_code, cause, output_lost, startup_ms, "
     "programs, hosts, ranks and spawned. Values that are not known are null or missing.", set_json, 0},
    {REPORTS, {"-q", "--quiet"}, NULL, "Print no message of xrun but errors.", NULL, FLAG(quiet)},
    {REPORTS, {"-v", "--verbose"}, NULL, "Print where the start-up time goes.", NULL, FLAG(verbose)},
    {REPORTS, {"--version"}, NULL, "Print the version.", NULL, FLAG(version)},
    {REPORTS, {"--help", "-h"}, NULL, "Print this help.", NULL, FLAG(help)},
};

static bool *flag_of(struct xr_options *o, const struct option *opt)
{
    return (bool *)((char *)o + opt->more);
}

/*
 * Make the variable's name: XRUN_ and a long name among the first two names, else the first name. --tag-output is
 * XRUN_TAG_OUTPUT, -n is XRUN_N. It is empty for pairs and for options that only print.
 */
static void name_variable(const struct option *opt, char *out, size_t len)
{
    const char *name = opt->names[0];
    size_t at;

    out[0] = '\0';
    if (!opt->apply && (opt->more == offsetof(struct xr_options, help) || opt->more == offsetof(struct xr_options, version) ||
                        opt->more == offsetof(struct xr_options, status) ||
                        opt->more == offsetof(struct xr_options, where.topo)))
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
    out->group = group_titles[options[i].group];
    out->help = options[i].help;
    out->detail = options[i].detail;
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
