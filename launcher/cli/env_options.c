/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env_options.c: set options from the variables XRUN_... See options.h.
 *
 * Order: the system's configuration file, the user's, the environment, the command line; the last one wins.
 * Variables that xrun sets for a rank (XRUN_RANK) are not options. Ranks do not inherit option variables, so neither
 * does an xrun in a rank, except by -x.
 */
#include "launcher/exec/environ.h"
#include "launcher/cli/options.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* State of one pass over files and environment. */
struct reading {
    struct xr_options *options;
    char *err;
    size_t errlen;
    bool bad;
};

/* Warn of an unknown variable, with the nearest name if one is near. where: as in set_from_variable. */
static void warn_unknown(const char *where, const char *name)
{
    struct xr_option_row row;
    const char *best = NULL;
    char near[sizeof(row.variable)];
    int best_distance = 4; /* the first that is too far */

    for (size_t i = 0; xr_options_row(i, &row); i++) {
        int d = row.variable[0] ? rk_edit_distance(name, row.variable) : best_distance;
        if (d < best_distance) {
            best_distance = d;
            best = strcpy(near, row.variable);
        }
    }
    if (best)
        rk_warn("%s%s%s is not a variable of xrun; did you mean %s?", where ? where : "",
                where ? ": " : "", name, best);
    else
        rk_warn("%s%s%s is not a variable of xrun; they are XRUN_ and an option's name, as "
                "XRUN_TIMEOUT", where ? where : "", where ? ": " : "", name);
}

/* Set the option of variable name. where: a file's line, or NULL for the environment. */
static void set_from_variable(void *arg, const char *where, const char *name, const char *value)
{
    struct reading *r = arg;
    struct xr_option_row row;
    const char *kept;
    char text[512];
    size_t i = 0;

    if (r->bad || xr_environ_own(name))
        return;
    while (xr_options_row(i, &row) && strcmp(row.variable, name) != 0)
        i++;
    if (!xr_options_row(i, &row)) {
        warn_unknown(where, name);
        return;
    }
    kept = xr_options_keep(r->options, value);
    if (!kept)
        snprintf(text, sizeof(text), "out of memory");
    else if (xr_options_apply(r->options, i, kept, text, sizeof(text)))
        return;
    snprintf(r->err, r->errlen, "%s%s%s: %s", where ? where : "", where ? ": " : "", name, text);
    r->bad = true;
}

bool xr_options_from_env(struct xr_options *o, char *err, size_t errlen)
{
    struct reading r = {o, err, errlen, false};

    rk_conf_others("XRUN_", set_from_variable, &r);
    for (char **e = environ; *e; e++) {
        const char *eq = strchr(*e, '=');
        char name[128];
        if (strncmp(*e, "XRUN_", 5) != 0 || !eq || (size_t)(eq - *e) >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(eq - *e), *e);
        set_from_variable(&r, NULL, name, eq + 1);
    }
    return !r.bad;
}
