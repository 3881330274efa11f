/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse.c: parse the command line of xrun by the table of options. See options.h.
 *
 * Options of a program precede it. A word ':' ends a program and its arguments; another program follows.
 */
#include "launcher/cli/options.h"
#include "launcher/util/pack.h"
#include "launcher/util/errbuf.h"
#include "launcher/util/shell_words.h"
#include "launcher/util/strv.h"
#include "lib/base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Find the row of the option with the first len bytes of name as a name. */
static bool parse_find(const char *name, size_t len, size_t *i, struct xr_option_row *row)
{
    for (*i = 0; xr_options_row(*i, row); ++*i) {
        for (const char *const *n = row->names; n < row->names + XR_OPTION_NAMES && *n; n++) {
            if (strlen(*n) == len && memcmp(*n, name, len) == 0)
                return true;
        }
    }
    return false;
}

/* Return false with a message for an unknown option, with the nearest name if one is near. */
static bool refuse_unknown(const char *arg, char *err, size_t errlen)
{
    struct xr_option_row row;
    const char *best = NULL;
    int best_distance = 4; /* the first that is too far */
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
    if (strcmp(name, "--mca") == 0 || strcmp(name, "-mca") == 0)
        return fail(err, errlen, "there is no option %s; programs of Open MPI take -x OMPI_MCA_NAME=VALUE", name);
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        for (const char *const *n = row.names; n < row.names + XR_OPTION_NAMES && *n; n++) {
            int d = rk_edit_distance(name, *n);
            if (d < best_distance && d < (int)strlen(*n + strspn(*n, "-"))) {
                best = *n;
                best_distance = d;
            }
        }
    }
    if (best)
        return fail(err, errlen, "there is no option %s; did you mean %s?", name, best);
    return fail(err, errlen, "there is no option %s; xrun --help lists them", name);
}

/* Find the option and the number of -n4 or -N4. */
static bool find_joined(const char *arg, size_t *which, struct xr_option_row *row, const char **number)
{
    *number = arg + 2;
    return (strncmp(arg, "-n", 2) == 0 || strncmp(arg, "-N", 2) == 0) && **number &&
           !(*number)[strspn(*number, "0123456789")] && parse_find(arg, 2, which, row);
}

/* Join NAME VALUE at argv[*i] to NAME=VALUE; move *i past them. Returns NULL with a text in err. */
static const char *join_pair(int argc, char **argv, int *i, struct xr_options *o, char *err, size_t errlen)
{
    const char *option = argv[*i - 1], *kept = NULL;
    char *both;

    if (argc - *i < 2 || strchr(argv[*i], '=')) {
        fail(err, errlen, "%s needs a name and a value: %s NAME VALUE", option, option);
        return NULL;
    }
    if (asprintf(&both, "%s=%s", argv[*i], argv[*i + 1]) >= 0) {
        kept = xr_options_keep(o, both);
        free(both);
    }
    if (!kept)
        fail(err, errlen, "out of memory");
    *i += 2;
    return kept;
}

/* Apply the option at argv[*i] with its value; move *i past them. */
static bool parse_one(int argc, char **argv, int *i, struct xr_options *o, char *err, size_t errlen)
{
    const char *arg = argv[*i], *eq = NULL, *value = NULL, *joined = NULL;
    struct xr_option_row row;
    size_t which;
    bool found = parse_find(arg, strlen(arg), &which, &row);

    if (!found && strncmp(arg, "--", 2) == 0 && (eq = strchr(arg, '=')))
        found = parse_find(arg, (size_t)(eq - arg), &which, &row);
    if (!found && find_joined(arg, &which, &row, &joined))
        found = true;
    else
        joined = NULL;
    if (!found)
        return refuse_unknown(arg, err, errlen);
    if (o->napps > 1 && !row.per_app)
        return fail(err, errlen,
                    "%s is for the whole job, not for one program; write it before the first "
                    "program",
                    row.names[0]);
    ++*i;
    if (row.pair) {
        value = join_pair(argc, argv, i, o, err, errlen);
        if (!value)
            return false;
    } else if (row.value && (eq || joined)) {
        value = joined ? joined : eq + 1;
    } else if (row.value) {
        if (*i >= argc)
            return fail(err, errlen, "%s needs a value: %s %s", arg, arg, row.value);
        value = argv[(*i)++];
    } else if (eq) {
        return fail(err, errlen, "%s takes no value", row.names[0]);
    }
    return xr_options_apply(o, which, value, err, errlen);
}

bool xr_options_prints_only(const struct xr_options *o)
{
    return o->help || o->version || o->man || o->status;
}

/* Parse the options before a program. */
static bool parse_options(int argc, char **argv, int *i, struct xr_options *o, char *err,
                          size_t errlen)
{
    while (*i < argc && argv[*i][0] == '-' && argv[*i][1]) {
        if (strcmp(argv[*i], "--") == 0) {
            ++*i;
            break;
        }
        /* For doc/xrun-options.sh. */
        if (strcmp(argv[*i], "--help=man") == 0) {
            o->man = true;
            return true;
        }
        /* For spawned_xrun.c. */
        if (strcmp(argv[*i], XR_OPTIONS_ANEW) == 0) {
            o->hosts_given = o->hostfiles_given = false;
            ++*i;
            continue;
        }
        if (!parse_one(argc, argv, i, o, err, errlen))
            return false;
    }
    return true;
}

/* Parse what follows --status: a job or nothing. */
static bool parse_status(int argc, char **argv, int *i, struct xr_options *o, char *err,
                         size_t errlen)
{
    if (*i + 1 < argc)
        return fail(err, errlen, "--status takes one job, not %d; xrun --status lists them",
                    argc - *i);
    o->job = *i < argc ? argv[(*i)++] : NULL;
    return true;
}

/* Parse one program, from its options to the next ':'. */
static bool parse_app(int argc, char **argv, int *i, struct xr_options *o, char *err,
                      size_t errlen)
{
    o->app = &o->apps[o->napps++];
    *o->app = o->defaults;
    o->app->set = o->next_set;
    for (char **x = o->shared; x && *x; x++, o->app->nset++)
        *o->next_set++ = *x;
    for (const char **x = o->genv; x < o->next_genv; x++, o->app->nset++)
        *o->next_set++ = *x;
    if (!parse_options(argc, argv, i, o, err, errlen))
        return false;
    if (o->status)
        return parse_status(argc, argv, i, o, err, errlen);
    if (xr_options_prints_only(o))
        return true;
    o->app->command = o->next;
    while (*i < argc && strcmp(argv[*i], ":") != 0)
        *o->next++ = argv[(*i)++];
    *o->next++ = NULL;
    if (!o->where.topo && (!o->app->command[0] || !o->app->command[0][0]))
        return fail(err, errlen, "no program given; usage: xrun [options] program [arguments] "
                    "[: [options] program [arguments]]...");
    if (o->app->n > XR_MAX_RANKS - o->n)
        return fail(err, errlen, "-n is %d, which makes more than %d ranks in all", o->app->n,
                    XR_MAX_RANKS);
    o->n += o->app->n;
    return true;
}

/* Set defaults, and allocate room for everything that argv can hold. */
static bool parse_begin(int argc, char **argv, struct xr_options *o)
{
    size_t colons = 0, words = (size_t)argc + 1;

    memset(o, 0, sizeof(*o));
    for (int k = 1; k < argc; k++)
        colons += strcmp(argv[k], ":") == 0;
    words += colons;
    o->apps = calloc(colons + 1, sizeof(*o->apps));
    /* --env-file and --hostfile: those of argv, and one of a variable. */
    o->words = calloc(words + 2 * ((size_t)argc + 1), sizeof(*o->words));
    if (!o->apps || !o->words) {
        xr_options_free(o);
        return false;
    }
    o->next = o->words;
    o->next_file = o->words + words;
    o->where.hostfiles = o->words + words + argc + 1;
    o->kill_grace = -1;
    o->heartbeat = XR_HEARTBEAT_DEFAULT;
    o->pty = XR_PTY_NONE;
    o->app = &o->defaults;
    return true;
}

/* Allocate room for -x of argv, and in each program for XRUN_X and -genv. */
static bool make_sets(int argc, char **argv, struct xr_options *o)
{
    size_t programs = 1, genv = 0, shared = o->shared ? xr_strv_count(o->shared) : 0;

    for (int k = 1; k < argc; k++) {
        programs += strcmp(argv[k], ":") == 0;
        genv += strcmp(argv[k], "-genv") == 0;
    }
    o->sets = calloc((size_t)argc + 1 + programs * (shared + genv), sizeof(*o->sets));
    o->genv = calloc(genv + 1, sizeof(*o->genv));
    o->next_set = o->sets;
    o->next_genv = o->genv;
    return o->sets != NULL && o->genv != NULL;
}

bool xr_options_check_ranks(const struct xr_options *o, uint32_t n, char *err, size_t errlen)
{
    const bool one = o->input != XR_INPUT_ALL && o->input != XR_INPUT_NONE;

    if (o->pty != XR_PTY_NONE && o->pty >= n)
        return fail(err, errlen, "--pty is %u, but the ranks are 0 to %u", o->pty, n - 1);
    if (one && o->input >= n)
        return fail(err, errlen, "--stdin is %u, but the ranks are 0 to %u", o->input, n - 1);
    return true;
}

/* Give each of several programs without -n one rank. The slots decide for one program: see xr_plan_make. */
static void set_default_n(struct xr_options *o)
{
    if (o->napps == 1)
        return;
    for (int i = 0; i < o->napps; i++) {
        if (o->apps[i].n == 0) {
            o->apps[i].n = 1;
            o->n++;
        }
    }
}

/* Check options against each other, and set defaults that depend on others. */
static bool parse_settle(struct xr_options *o, char *err, size_t errlen)
{
    set_default_n(o);
    if (o->pty != XR_PTY_NONE && !o->input_given)
        o->input = o->pty;
    if (o->timeout_traces && o->timeout <= 0 && !o->heartbeat_kill)
        return fail(err, errlen, "--timeout-traces needs --timeout S, or --heartbeat S:kill");
    return o->n == 0 || xr_options_check_ranks(o, (uint32_t)o->n, err, errlen);
}

/* Parse each word of argv by itself. */
static rank_status_t parse_words(int argc, char **argv,
                                 bool (*before)(struct xr_options *o, char *err, size_t errlen),
                                 struct xr_options *out, char *err, size_t errlen)
{
    int i = 1;

    if (!parse_begin(argc, argv, out)) {
        snprintf(err, errlen, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    if (before && !before(out, err, errlen))
        return RANK_ERR_ARG;
    if (!make_sets(argc, argv, out)) {
        snprintf(err, errlen, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    do {
        char text[512];
        if (!parse_app(argc, argv, &i, out, text, sizeof(text))) {
            if (out->napps > 1)
                snprintf(err, errlen, "program %d: %s", out->napps, text);
            else
                snprintf(err, errlen, "%s", text);
            return RANK_ERR_ARG;
        }
        if (xr_options_prints_only(out))
            break;
    } while (i++ < argc);
    return RANK_OK;
}

rank_status_t xr_options_parse_words(int argc, char **argv, struct xr_options *out, char *err, size_t errlen)
{
    return parse_words(argc, argv, NULL, out, err, errlen);
}

rank_status_t xr_options_parse(int argc, char **argv, struct xr_options *out, char *err,
                               size_t errlen)
{
    return xr_options_parse_over(argc, argv, NULL, out, err, errlen);
}

rank_status_t xr_options_parse_over(int argc, char **argv,
                                    bool (*before)(struct xr_options *o, char *err, size_t errlen),
                                    struct xr_options *out, char *err, size_t errlen)
{
    rank_status_t st = parse_words(argc, argv, before, out, err, errlen);

    if (st)
        return st;
    return xr_options_prints_only(out) || parse_settle(out, err, errlen) ? RANK_OK : RANK_ERR_ARG;
}

const char *xr_options_keep(struct xr_options *o, const char *value)
{
    char **kept = realloc(o->kept, ((size_t)o->nkept + 1) * sizeof(*kept));

    if (!kept)
        return NULL;
    o->kept = kept;
    o->kept[o->nkept] = strdup(value);
    return o->kept[o->nkept] ? o->kept[o->nkept++] : NULL;
}

void xr_options_free(struct xr_options *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->nkept; i++)
        free(o->kept[i]);
    free(o->kept);
    free(o->apps);
    free(o->words);
    free(o->sets);
    free(o->genv);
    xr_strv_free(o->shared);
    memset(o, 0, sizeof(*o));
}
