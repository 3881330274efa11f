/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_gpus.c: choose the GPUs of the ranks of this host, for --gpus-per-rank.
 *
 * The ranks get CUDA_VISIBLE_DEVICES. A control group would hide the GPUs of the other ranks from the driver, which
 * breaks CUDA's IPC between them.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/exec/environ.h"
#include "launcher/util/exit_code.h"
#include "launcher/util/shell_words.h"
#include "lib/topo/pair_request.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES"

struct gpu_choice {
    struct xr_agent *agent;
    struct rk_machine m; /* with NVIDIA's GPUs only, so that its numbers are CUDA's */
    struct rk_pair_cores *cores; /* of each rank; NULL: none is bound */
    uint32_t *core_lists;
    struct rk_pair_prepared prepared;
    char *text; /* for errors */
    size_t len;
};

/* --------------------------------------------------------------- inherited */

static const char *program_value(const struct xr_agent *agent, const struct xr_app *app)
{
    const char *own = xr_environ_value(app->env, VISIBLE);

    return own ? own : xr_environ_value(agent->job.env, VISIBLE);
}

/* Find the value that all programs of this host have. Returns false if they differ. */
static bool inherited_value(const struct gpu_choice *c, const char **value)
{
    *value = program_value(c->agent, xr_job_app_of(&c->agent->job, c->agent->ranks[0].rank));
    for (uint32_t i = 1; i < c->agent->nlocal; i++) {
        const char *other = program_value(c->agent, xr_job_app_of(&c->agent->job, c->agent->ranks[i].rank));
        if (!*value != !other || (other && strcmp(*value, other) != 0)) {
            snprintf(c->text, c->len, VISIBLE " is not the same for all programs; --gpus-per-rank needs one value");
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ cores */

/* List the cores of a rank: each of its hardware threads belongs to one. Unknown ones are ignored. */
static struct rk_pair_cores cores_of_list(const struct rk_machine *m, const char *cpus, hwloc_bitmap_t set, uint32_t *list)
{
    struct rk_pair_cores cores = {list, 0};
    unsigned cpu;

    if (!*cpus || hwloc_bitmap_list_sscanf(set, cpus))
        return cores;
    hwloc_bitmap_foreach_begin(cpu, set)
        uint32_t core = cpu < m->ncpus ? m->core_of_cpu[cpu] : RK_TOPO_NONE;
        bool known = core == RK_TOPO_NONE;
        for (uint32_t i = 0; i < cores.n && !known; i++)
            known = list[i] == core;
        if (!known)
            list[cores.n++] = core;
    hwloc_bitmap_foreach_end();
    return cores;
}

static bool find_cores(struct gpu_choice *c)
{
    uint32_t n = c->agent->nlocal;
    hwloc_bitmap_t set;

    if (!c->agent->sets)
        return true;
    set = hwloc_bitmap_alloc();
    c->cores = calloc(n, sizeof(*c->cores));
    c->core_lists = calloc((size_t)n * c->m.ncores, sizeof(*c->core_lists));
    for (uint32_t i = 0; set && c->cores && c->core_lists && i < n; i++)
        c->cores[i] = cores_of_list(&c->m, c->agent->local_ranks.cpus[i], set, c->core_lists + (size_t)i * c->m.ncores);
    hwloc_bitmap_free(set);
    return set && c->cores && c->core_lists;
}

/* -------------------------------------------------------------- variables */

/* Remove a variable from a list, so that each rank has it once. */
static void drop_variable(char **env, const char *name)
{
    size_t len = strlen(name), kept = 0;

    for (size_t i = 0; env && env[i]; i++) {
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            free(env[i]);
        else
            env[kept++] = env[i];
    }
    if (env)
        env[kept] = NULL;
}

static void drop_inherited(struct xr_job *job, const char *name)
{
    drop_variable(job->env, name);
    for (uint32_t i = 0; i < job->napps; i++)
        drop_variable(job->apps[i].env, name);
}

/* Return whether each GPU that a rank has is known by UUID. */
static bool all_uuids(const struct gpu_choice *c, const struct rk_pairing *p)
{
    for (uint32_t r = 0; r < p->ranks; r++) {
        for (uint32_t i = 0; i < p->rank[r].ngpus; i++) {
            if (!*c->m.gpu[p->rank[r].gpu[i].device].uuid)
                return false;
        }
    }
    return true;
}

static char *make_variable(const struct gpu_choice *c, const struct rk_pair_rank *rank)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    if (!to)
        return NULL;
    fprintf(to, VISIBLE "=");
    for (uint32_t i = 0; i < rank->ngpus; i++) {
        fprintf(to, "%s", i ? "," : "");
        if (c->agent->gpu_numbers)
            fprintf(to, "%u", rank->gpu[i].device);
        else
            fprintf(to, "%s", c->m.gpu[rank->gpu[i].device].uuid);
    }
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}

static bool make_variables(struct gpu_choice *c)
{
    char err[256];
    struct rk_pairing p;
    bool ok;

    if (rk_pair(&c->m, &c->prepared.rq, &p, err, sizeof(err))) {
        snprintf(c->text, c->len, "host %s: %s", c->agent->host, err);
        return false;
    }
    c->agent->gpu_numbers = !all_uuids(c, &p);
    c->agent->gpu_vars = calloc((size_t)p.ranks + 1, sizeof(*c->agent->gpu_vars));
    ok = c->agent->gpu_vars != NULL;
    for (uint32_t r = 0; ok && r < p.ranks; r++) {
        c->agent->gpu_vars[r] = make_variable(c, &p.rank[r]);
        ok = c->agent->gpu_vars[r] != NULL;
    }
    rk_pair_free(&p);
    drop_inherited(&c->agent->job, VISIBLE);
    if (c->agent->gpu_numbers)
        drop_inherited(&c->agent->job, "CUDA_DEVICE_ORDER");
    return ok;
}

static bool choose_gpus(struct gpu_choice *c)
{
    const struct xr_job *job = &c->agent->job;
    struct rk_pair_words words = {.gpus = job->gpu_bind, .gpus_per_rank = job->gpus_per_rank, .nics = "none"};
    char where[300];

    snprintf(where, sizeof(where), "host %s", c->agent->host);
    if (!inherited_value(c, &words.visible) || rk_pair_request_make(&words, where, &c->m, &c->prepared, c->text, c->len) ||
        !find_cores(c))
        return false;
    c->prepared.rq.ranks = c->agent->nlocal;
    c->prepared.rq.placed = c->cores;
    return make_variables(c);
}

rank_status_t xr_rank_gpus_choose(struct xr_agent *agent, int *code, char *text, size_t len)
{
    struct gpu_choice c = {.agent = agent, .text = text, .len = len};
    char err[512];
    bool ok;

    if (!agent->job.gpu_bind[0])
        return RANK_OK;
    *code = XR_EXIT_USAGE;
    if (rk_machine_load(NULL, &c.m, err, sizeof(err))) {
        snprintf(text, len, "host %s: %s", agent->host, err);
        return RANK_ERR_SYSTEM;
    }
    ok = choose_gpus(&c);
    xr_shell_words_show(text); /* the variable may hold anything */
    if (!ok && !*text)
        snprintf(text, len, "out of memory for the GPUs of the ranks on %s", agent->host);
    rk_pair_request_clear(&c.prepared);
    free(c.cores);
    free(c.core_lists);
    rk_machine_free(&c.m);
    if (ok)
        *code = 1;
    return ok ? RANK_OK : RANK_ERR_ARG;
}
