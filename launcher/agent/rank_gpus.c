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
#include "lib/topo/pair.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES"

struct gpu_choice {
    struct xr_agent *agent;
    struct rk_machine m; /* with NVIDIA's GPUs only, so that its numbers are CUDA's */
    bool *hidden;
    struct rk_pair_cores *cores; /* of each rank; NULL: none is bound */
    uint32_t *core_lists, *list;
    struct rk_pair_request rq;
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

/* Return the GPU that a word names, as a number or by the start of its UUID; or RK_TOPO_NONE. */
static uint32_t gpu_of_word(const struct rk_machine *m, const char *word, size_t len)
{
    uint32_t found = RK_TOPO_NONE;
    char *end;
    unsigned long n;

    if (len && strspn(word, "0123456789") >= len) {
        n = strtoul(word, &end, 10);
        return n < m->ngpus ? (uint32_t)n : RK_TOPO_NONE;
    }
    for (uint32_t i = 0; len > 4 && i < m->ngpus; i++) {
        if (strncasecmp(m->gpu[i].uuid, word, len) != 0)
            continue;
        if (found != RK_TOPO_NONE)
            return RK_TOPO_NONE;
        found = i;
    }
    return found;
}

/* Hide the GPUs that the inherited value does not name. */
static bool hide_others(struct gpu_choice *c)
{
    const char *value, *at;

    if (!inherited_value(c, &value))
        return false;
    if (!value)
        return true;
    c->hidden = malloc((c->m.ngpus + 1) * sizeof(*c->hidden));
    if (!c->hidden)
        return false;
    for (uint32_t i = 0; i < c->m.ngpus; i++)
        c->hidden[i] = true;
    for (at = value; *at;) {
        size_t len = strcspn(at, ",");
        uint32_t gpu = gpu_of_word(&c->m, at, len);
        if (gpu == RK_TOPO_NONE || !c->hidden[gpu]) {
            snprintf(c->text, c->len, VISIBLE " has '%.*s', which is %s of host %s with %u of NVIDIA", (int)len, at,
                     gpu == RK_TOPO_NONE ? "no GPU" : "listed twice among the GPUs", c->agent->host, c->m.ngpus);
            return false;
        }
        c->hidden[gpu] = false;
        at += len;
        at += *at == ',';
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

    if (rk_pair(&c->m, &c->rq, &p, err, sizeof(err))) {
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
    bool listed = strcmp(job->gpu_bind, "closest") != 0;

    rk_machine_keep_nvidia(&c->m);
    if (!c->m.ngpus) {
        snprintf(c->text, c->len, "host %s has no GPU of NVIDIA, which --%s needs", c->agent->host,
                 job->gpus_per_rank ? "gpus-per-rank" : "gpu-bind");
        return false;
    }
    c->rq = (struct rk_pair_request){.ranks = c->agent->nlocal,
                                     .gpus = {.bind = listed ? RK_PAIR_MAP : RK_PAIR_CLOSEST,
                                              .per_rank = job->gpus_per_rank ? job->gpus_per_rank : 1},
                                     .nics = {.bind = RK_PAIR_NONE}};
    if (listed && !rk_device_list(job->gpu_bind, &c->list, &c->rq.gpus.nmap)) {
        snprintf(c->text, c->len, "--gpu-bind map:%s is malformed", job->gpu_bind);
        return false;
    }
    if (!hide_others(c) || !find_cores(c))
        return false;
    c->rq.gpus.map = c->list;
    c->rq.gpus.hidden = c->hidden;
    c->rq.placed = c->cores;
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
    free(c.hidden);
    free(c.cores);
    free(c.core_lists);
    free(c.list);
    rk_machine_free(&c.m);
    if (ok)
        *code = 1;
    return ok ? RANK_OK : RANK_ERR_ARG;
}
