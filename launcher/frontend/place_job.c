/* SPDX-License-Identifier: BSD-3-Clause */
/* place_job.c: see place_job.h. */
#include "launcher/frontend/place_job.h"
#include "launcher/exec/rlimits.h"
#include "launcher/iof/out_files.h"
#include "launcher/exec/find_program.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/frontend/torch_master.h"
#include "launcher/util/shell_words.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

rank_status_t xr_assign_place(const struct xr_options *o, struct xr_plan *plan, char *err,
                              size_t errlen)
{
    rank_status_t st = xr_plan_place(plan, (uint32_t)o->n, err, errlen);

    if (!st && o->spawned)
        xr_spawned_share(o->spawned, plan);
    if (!st && o->where.json_map)
        st = xr_plan_json(plan, o->where.json_map, err, errlen);
    if (!st && (o->where.show_map || o->where.dry_run)) {
        xr_plan_show(plan, stdout);
        if (fflush(stdout)) {
            snprintf(err, errlen, "cannot write the map: %s", strerror(errno));
            st = RANK_ERR_SYSTEM;
        }
    }
    return st;
}

static uint32_t fanout_of(const struct xr_options *o)
{
    return o->where.fanout ? o->where.fanout : XR_FANOUT;
}

bool xr_assign_files(const struct xr_options *o, const struct xr_plan *plan, uint32_t n, char *err, size_t errlen)
{
    uint32_t fanout = fanout_of(o), hosts = xr_plan_remote(plan) ? plan->hosts.n : 0;
    uint64_t need = XR_FDS_OWN + (uint64_t)XR_FDS_PER_AGENT * (hosts < fanout ? hosts : fanout);
    char whose[128];

    if (plan->step)
        need += 2ull * hosts; /* all come to its door */
    if (n && o->output_dir)
        need += 2ull * n;
    if (n && o->output_dir)
        snprintf(whose, sizeof(whose), "--output-dir for %u rank%s needs", n, xr_plural(n));
    else
        snprintf(whose, sizeof(whose), "starting agents on %u host%s needs", hosts, xr_plural(hosts));
    return xr_limits_raise_files(need, whose, err, errlen);
}

rank_status_t xr_assign_size(const struct xr_options *o, const struct xr_plan *plan, struct xr_job *job, char *err,
                             size_t errlen)
{
    uint32_t n = plan->placement.n;

    if (job->size != n)
        xr_job_set_size(job, n);
    if (!xr_options_check_ranks(o, n, err, errlen))
        return RANK_ERR_ARG;
    if (o->output_dir && !o->where.dry_run &&
        (!xr_assign_files(o, plan, n, err, errlen) || !xr_output_dir_make(o->output_dir, n, err, errlen)))
        return RANK_ERR_SYSTEM;
    return RANK_OK;
}

/* ------------------------------------------------------------------------ setup */

/* Where xrun is on the hosts. */
static char *program_path(const struct xr_options *o)
{
    char own[4096], *path;
    ssize_t n;

    if (o->prefix)
        return asprintf(&path, "%s/bin/xrun", o->prefix) < 0 ? NULL : path;
    n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0)
        return NULL;
    own[n] = '\0';
    return strdup(own);
}

static char *library_path(const struct xr_options *o)
{
    const char *have = rk_env("LD_LIBRARY_PATH");
    char *path;

    if (!o->prefix)
        return have ? strdup(have) : NULL;
    return asprintf(&path, "%s/lib%s%s", o->prefix, have && *have ? ":" : "", have ? have : "") < 0
               ? NULL
               : path;
}

/* In front of a program that is named as seen from here: an agent starts others from elsewhere. */
static char *from_here(const char *command)
{
    char *cwd = getcwd(NULL, 0), *text = NULL;
    size_t len = 0;
    FILE *to = cwd ? open_memstream(&text, &len) : NULL;
    bool ok;

    if (to) {
        if (strpbrk(cwd, " \t\r\n\\\"'"))
            xr_words_quote(to, cwd);
        else
            fputs(cwd, to);
        fprintf(to, "/%s", command + strspn(command, " \t\r\n"));
        ok = !ferror(to);
        if (fclose(to) || !ok) {
            free(text);
            text = NULL;
        }
    }
    free(cwd);
    return text;
}

char *xr_assign_command(const struct xr_options *o, const struct xr_plan *plan, char *err, size_t errlen)
{
    const char *given = o->where.agent ? o->where.agent : plan->step ? "srun" : "ssh", *wrong;
    char **words = xr_words_split(given, &wrong), *command = NULL, *path = NULL, why[1024];
    int code;

    snprintf(err, errlen, "%s", wrong ? wrong : "out of memory"); /* xr_where_check has told */
    if (words && words[0])
        command = strchr(words[0], '/') && words[0][0] != '/' ? from_here(given) : strdup(given);
    xr_strings_free(words);
    words = command ? xr_words_split(command, &wrong) : NULL;
    if (words && !(path = xr_program_find(words[0], NULL, rk_env("PATH"), "/", why, sizeof(why), &code))) {
        if (strchr(words[0], '/'))
            snprintf(err, errlen, "%s%s", o->where.agent ? "--agent: " : "", why);
        else
            snprintf(err, errlen, "there is no program %s in PATH%s", words[0],
                     o->where.agent ? " (--agent)" : ", by which other hosts are reached; --agent names another");
    }
    if (!path) {
        free(command);
        command = NULL;
    }
    xr_strings_free(words);
    free(path);
    return command;
}

static rank_status_t make_secret(uint8_t *secret)
{
    if (getrandom(secret, XR_SECRET, 0) == XR_SECRET)
        return RANK_OK;
    rk_error("no random bytes for the job's secret: %m");
    return RANK_ERR_SYSTEM;
}

rank_status_t xr_assign_setup(const struct xr_options *o, const struct xr_plan *plan,
                              struct xr_setup *out)
{
    const char *wrong; /* xr_where_check has told */
    char text[1024];

    memset(out, 0, sizeof(*out));
    out->shape.nodes = plan->hosts.n;
    out->shape.fanout = fanout_of(o);
    out->step = plan->step;
    out->go_on = o->go_on;
    out->names = calloc(out->shape.nodes, sizeof(*out->names));
    for (uint32_t i = 0; out->names && i < out->shape.nodes; i++) {
        out->names[i] = strdup(plan->hosts.host[i].name);
        if (!out->names[i])
            return RANK_ERR_NO_MEMORY;
    }
    /* This host's agent is xrun's own child. */
    if (plan->local != XR_NO_HOST)
        out->node = out->shape.head = plan->local;
    if (!out->names)
        return RANK_ERR_NO_MEMORY;
    if (!xr_plan_remote(plan))
        return RANK_OK;
    out->agent = xr_assign_command(o, plan, text, sizeof(text)); /* it was there a moment ago */
    out->ssh_args = xr_words_split(o->where.ssh_args ? o->where.ssh_args : "", &wrong);
    out->program = program_path(o);
    out->library_path = library_path(o);
    out->interface = o->where.interface ? strdup(o->where.interface) : NULL;
    if (!out->agent || !out->ssh_args || !out->program)
        return RANK_ERR_NO_MEMORY;
    return make_secret(out->secret);
}

/* -------------------------------------------------------------------------- map */

/* Two hosts that call themselves the same are told apart by what the user calls them. */
static bool names_differ(const struct xr_plan *plan)
{
    struct xr_hostlist seen = {.n = 0};
    bool differ = true;

    for (uint32_t i = 0; i < plan->hosts.n && differ; i++) {
        const char *name = xr_plan_name(plan, i);
        differ = xr_hostlist_find(&seen, name) == UINT32_MAX &&
                 xr_hostlist_add(&seen, name, strlen(name), 0) == RANK_OK;
    }
    xr_hostlist_clear(&seen);
    return differ;
}

rank_status_t xr_assign_map(const struct xr_plan *plan, uint32_t fanout, struct xr_job *job)
{
    const struct xr_placement *placed = &plan->placement;
    bool differ = names_differ(plan);

    job->nhosts = plan->hosts.n;
    job->fanout = fanout;
    job->universe = xr_plan_universe(plan);
    job->slots_given = plan->slots_given;
    job->hosts = calloc((size_t)job->nhosts + 1, sizeof(*job->hosts));
    job->host_of = calloc(placed->n, sizeof(*job->host_of));
    if (!job->hosts || !job->host_of)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < job->nhosts; i++) {
        job->hosts[i] = strdup(differ ? xr_plan_name(plan, i) : plan->hosts.host[i].name);
        if (!job->hosts[i])
            return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < placed->n; r++)
        job->host_of[r] = placed->rank[r].host;
    return !job->torch || xr_torch_place(&job->env, plan) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

rank_status_t xr_assign_seats(const struct xr_plan *plan, uint32_t host,
                              const struct xr_by_host *ranks, struct xr_packer *p)
{
    const struct xr_placement *placed = &plan->placement;
    uint32_t first = ranks->first[host], n = ranks->first[host + 1] - first;
    struct xr_seats seats = {.units = placed->host[host].units,
                             .oversubscribed = placed->host[host].oversubscribed,
                             .cpus = calloc((size_t)n + 1, sizeof(*seats.cpus))};
    bool ok = seats.cpus != NULL;

    for (uint32_t i = 0; ok && i < n; i++) {
        const struct xr_place *place = &placed->rank[ranks->ranks[first + i]];
        if (!place->cpus)
            seats.cpus[i] = strdup("");
        else if (hwloc_bitmap_list_asprintf(&seats.cpus[i], place->cpus) < 0)
            seats.cpus[i] = NULL;
        ok = seats.cpus[i] != NULL;
    }
    if (ok)
        xr_seats_pack(&seats, p);
    ok = ok && !p->failed;
    xr_seats_clear(&seats);
    return ok ? RANK_OK : RANK_ERR_NO_MEMORY;
}
