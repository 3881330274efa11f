/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rankinfo.c: show what this librank is, how it is configured and what it detects.
 *
 * Prints everything, or the parts that options select.
 */
#include "config.h"

#include "collectives/coll.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/topo/show_topology.h"
#include "tools/rankinfo/info.h"
#include "tools/rankinfo/paths.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { PART_BUILD = 1, PART_CHANNELS = 2, PART_TOPOLOGY = 4, PART_CONF = 8, PART_COLL = 16,
       PART_MAN = 32, LOAD = 64, PART_PATHS = 128, CALIBRATE = 256, DONE = 512, PAIRS = 1024 };

static const struct option known[] = {
    {"build", no_argument, NULL, 'b'},    {"channels", no_argument, NULL, 'c'},
    {"load", no_argument, NULL, 'l'},     {"topology", no_argument, NULL, 't'},
    {"conf", no_argument, NULL, 'C'},     {"coll", no_argument, NULL, 'a'},
    {"ranks", required_argument, NULL, 'r'}, {"nodes", required_argument, NULL, 'n'},
    {"topo", no_argument, NULL, 'T'},     {"xml", required_argument, NULL, 'x'},
    {"svg", required_argument, NULL, 's'}, {"mem", required_argument, NULL, 'M'},
    {"gpus-per-rank", required_argument, NULL, 'g'}, {"nics-per-rank", required_argument, NULL, 'N'},
    {"paths", no_argument, NULL, 'p'},    {"calibrate", no_argument, NULL, 'k'},
    {"man", no_argument, NULL, 'm'},      {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},     {NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: rankinfo [--build] [--channels] [--load] [--topology] [--conf]\n"
                 "                [--topo [--xml FILE] [--ranks N] [--gpus-per-rank N] [--nics-per-rank N] [--svg FILE]]\n"
                 "                [--coll [NAME --ranks N [--nodes N] [--mem host|cuda]]] [--paths] [--calibrate]\n"
                 "  --build      version, and what was built in\n"
                 "  --channels   channels and kinds of memory found; with --load the modules are opened, and rails and driver named\n"
                 "  --topology   cores, GPUs and NICs seen, and the ways between them; of the machine in hwloc's XML with --xml\n"
                 "  --topo       the same, then the GPU, NIC and cores that each of --ranks N has, and why (default: one a GPU);\n"
                 "               --svg draws that\n"
                 "  --conf       every RANK_* variable with value, origin, default, unit, doc\n"
                 "  --coll       rules and algorithms of collectives; with a NAME: what is selected for --ranks N\n"
                 "               on --nodes N (default: 1), by size, and why; with buffers in host memory, or --mem cuda\n"
                 "  --paths      how large messages go between processes of this host, and why\n"
                 "  --calibrate  measure that, which takes a second or two and two cores, and keep it for all\n"
                 "               programs of this user; then as --paths\n"
                 "  --man        --conf as a part of a manual page\n"
                 "  --version, --help\n"
                 "Without options: all but --topo, --coll, --paths, --load, --calibrate and --man.\n");
}

static const char *rankinfo_nearest(const char *name)
{
    const char *best = NULL;
    int least = 4;

    for (const struct option *o = known; o->name; o++) {
        int d = rk_edit_distance(o->name, name);

        if (d < least) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

/* Of --coll NAME: NULL for the whole table. */
static struct {
    const char *collective;
    int ranks, nodes;
    rank_mem_kind_t mem;
} asked = {.nodes = 1, .mem = RANK_MEM_HOST};

/* Of --topology and --topo. */
static struct rk_topo_view topology = {.words = {.gpus = "", .nics = ""}};

/* Parse a number from 1 upwards; -1 after a message. */
static int rankinfo_number(const char *option, const char *text)
{
    char *end;
    long v = strtol(text, &end, 10);

    if (end == text || *end || v < 1 || v > 1 << 24) {
        rk_error("--%s is '%s'; allowed is a whole number from 1 to %d", option, text, 1 << 24);
        return -1;
    }
    return (int)v;
}

/* The options of --coll fit together? */
static bool rankinfo_asked(int parts)
{
    if (!(parts & PART_TOPOLOGY) && topology.xml) {
        rk_error("--xml needs --topo or --topology: rankinfo --topo --xml %s", topology.xml);
        return false;
    }
    if (!(parts & PAIRS) && (topology.words.gpus_per_rank || topology.words.nics_per_rank || topology.svg)) {
        rk_error("--%s needs --topo", topology.svg ? "svg" : topology.words.gpus_per_rank ? "gpus-per-rank" : "nics-per-rank");
        return false;
    }
    if (!asked.collective && ((asked.ranks && !(parts & PAIRS)) || asked.nodes > 1 || asked.mem != RANK_MEM_HOST)) {
        rk_error("--ranks, --nodes and --mem need the name of a collective: rankinfo --coll allreduce --ranks 64 --nodes 4");
        return false;
    }
    if (asked.collective && asked.ranks < 1) {
        rk_error("--coll %s needs a number of ranks: rankinfo --coll %s --ranks 64 --nodes 4", asked.collective, asked.collective);
        return false;
    }
    if (asked.collective && asked.ranks < asked.nodes) {
        rk_error("%d nodes for %d ranks: a node has at least one", asked.nodes, asked.ranks);
        return false;
    }
    return true;
}

/* Parse options: the selected parts; DONE: nothing left to do; or -1 after a message. */
static int rankinfo_parse(int argc, char **argv)
{
    int c, n, parts = 0;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+h", known, NULL)) != -1) {
        switch (c) {
        case 'b':
            parts |= PART_BUILD;
            break;
        case 'c':
            parts |= PART_CHANNELS;
            break;
        case 'l':
            parts |= PART_CHANNELS | LOAD;
            break;
        case 't':
            parts |= PART_TOPOLOGY;
            break;
        case 'T':
            parts |= PART_TOPOLOGY | PAIRS;
            break;
        case 'x':
            topology.xml = optarg;
            break;
        case 's':
            topology.svg = optarg;
            break;
        case 'g':
        case 'N':
            if ((n = rankinfo_number(c == 'g' ? "gpus-per-rank" : "nics-per-rank", optarg)) < 0)
                return -1;
            *(c == 'g' ? &topology.words.gpus_per_rank : &topology.words.nics_per_rank) = (uint32_t)n;
            break;
        case 'C':
            parts |= PART_CONF;
            break;
        case 'a':
            parts |= PART_COLL;
            if (optind < argc && *argv[optind] != '-')
                asked.collective = argv[optind++];
            break;
        case 'r':
            if ((asked.ranks = rankinfo_number("ranks", optarg)) < 0)
                return -1;
            break;
        case 'n':
            if ((asked.nodes = rankinfo_number("nodes", optarg)) < 0)
                return -1;
            break;
        case 'M':
            if (strcmp(optarg, "host") != 0 && strcmp(optarg, "cuda") != 0) {
                rk_error("--mem is '%s'; allowed are host and cuda", optarg);
                return -1;
            }
            asked.mem = *optarg == 'c' ? RANK_MEM_CUDA : RANK_MEM_HOST;
            break;
        case 'p':
            parts |= PART_PATHS;
            break;
        case 'k':
            parts |= PART_PATHS | CALIBRATE;
            break;
        case 'm':
            parts |= PART_MAN;
            break;
        case 'V':
            printf("rankinfo %s\n", rank_version());
            return DONE;
        case 'h':
            usage(stdout);
            return DONE;
        default: {
            const char *bad = argv[optind - 1], *near = rankinfo_nearest(bad + strspn(bad, "-"));

            if (near)
                rk_error("unknown option %s; did you mean --%s?", bad, near);
            else
                rk_error("unknown option %s; rankinfo --help lists them", bad);
            return -1;
        }
        }
    }
    if (optind < argc) {
        rk_error("unexpected argument '%s'; rankinfo takes options only", argv[optind]);
        return -1;
    }
    if (!rankinfo_asked(parts))
        return -1;
    return parts ? parts : PART_BUILD | PART_CHANNELS | PART_TOPOLOGY | PART_CONF;
}

void info_print_build(FILE *out)
{
    fprintf(out, "librank %s\n", rank_version());
    fprintf(out, "  compiler   %s\n", RK_COMPILER);
    fprintf(out, "  pmix       %s\n", RK_FROM_PMIX);
    fprintf(out, "  hwloc      %s\n", RK_FROM_HWLOC);
    fprintf(out, "  libevent   %s\n", RK_FROM_EVENT);
    fprintf(out, "  ucx        %s\n", RK_FROM_UCX);
    fprintf(out, "  verbs      %s\n", RK_FROM_VERBS);
    fprintf(out, "  cuda       %s\n", RK_FROM_CUDA);
    fprintf(out, "  modules in %s\n", RK_MODULEDIR);
    fprintf(out, "  rank.conf  %s/rank.conf, then ~/.rank.conf; or the file that RANK_CONF names\n",
            RK_SYSCONFDIR);
}

/* An empty line between parts. */
static void rankinfo_next_part(int *printed)
{
    if ((*printed)++)
        putchar('\n');
}

static bool rankinfo_topology(void)
{
    char err[512];

    if (!topology.xml) /* a program's GPUs on this machine, as xrun --topo has them */
        topology.words.visible = rk_env("CUDA_VISIBLE_DEVICES");
    if (rk_topo_show(stdout, &topology, err, sizeof(err)) == RANK_OK)
        return true;
    rk_error("%s", err);
    return false;
}

static bool print_parts(int parts)
{
    int printed = 0;
    bool ok = true;

    if (parts & PART_BUILD) {
        rankinfo_next_part(&printed);
        info_print_build(stdout);
    }
    if (parts & PART_CHANNELS) {
        rankinfo_next_part(&printed);
        info_print_channels(stdout, parts & LOAD);
    }
    if (parts & PART_TOPOLOGY) {
        rankinfo_next_part(&printed);
        topology.pairs = parts & PAIRS;
        topology.ranks = (uint32_t)asked.ranks;
        ok = rankinfo_topology();
    }
    if (parts & PART_CONF) {
        rankinfo_next_part(&printed);
        info_print_conf(stdout);
    }
    if (parts & PART_COLL) {
        rankinfo_next_part(&printed);
        if (asked.collective)
            ok = rk_coll_print_choice(stdout, asked.collective, asked.ranks, asked.nodes, asked.mem) == RANK_OK && ok;
        else
            rk_coll_print_table(stdout);
    }
    if (parts & PART_PATHS) {
        rankinfo_next_part(&printed);
        ok = (!(parts & CALIBRATE) || info_calibrate(stdout)) && ok;
        info_print_paths(stdout);
    }
    return ok;
}

int main(int argc, char **argv)
{
    bool ok = true;
    int parts;

    rk_log_identity("rankinfo", -1, NULL);
    parts = rankinfo_parse(argc, argv);
    if (parts < 0)
        return 2;
    if (parts & PART_MAN) {
        info_print_conf_man(stdout);
    } else if (parts != DONE) {
        /* A bad value was reported on stderr; the rest is still useful. */
        ok = rk_conf_load() == RANK_OK;
        ok = print_parts(parts) && ok;
        rk_conf_unload();
    }
    if (fflush(stdout) || ferror(stdout)) {
        rk_error("cannot write: %m");
        ok = false;
    }
    return ok ? 0 : 1;
}
