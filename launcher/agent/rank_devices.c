/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_devices.c: choose GPUs and NICs of the ranks of this host.
 *
 * The ranks get CUDA_VISIBLE_DEVICES and RANK_NICS, and XRUN_DEVICES for rank_device_query. A control group would hide
 * the GPUs of the other ranks from the driver, which breaks CUDA's IPC between them.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/exec/environ.h"
#include "launcher/util/exit_code.h"
#include "launcher/util/shell_words.h"
#include "lib/topo/core_list.h"
#include "lib/topo/pair_request.h"
#include "lib/topo/pair_text.h"
#include "lib/topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES"
#define NICS "RANK_NICS"

struct device_choice {
    struct xr_agent *agent;
    struct rk_machine *m; /* if GPUs are given, with NVIDIA's only, so that its numbers are CUDA's */
    struct rk_pair_cores *cores; /* of each rank; NULL: none is bound */
    uint32_t *core_lists;
    struct rk_pair_prepared prepared;
    char *text; /* for errors */
    size_t len;
};

/* --------------------------------------------------------------- inherited */

/* Find the value that all programs of this host have. Returns false if they differ, and GPUs are given. */
static bool inherited_value(const struct device_choice *c, struct rk_pair_words *words)
{
    const struct xr_job *job = &c->agent->job;
    const char **value = calloc((size_t)c->agent->nlocal + 1, sizeof(*value));
    bool ok = false;

    for (uint32_t i = 0; value && i < c->agent->nlocal; i++)
        value[i] = xr_environ_value_of(xr_job_app_of(job, c->agent->ranks[i].rank)->env, job->env, VISIBLE);
    if (value)
        ok = rk_pair_set_visible(words, value, c->agent->nlocal, c->text, c->len);
    free(value);
    return ok;
}

/* ------------------------------------------------------------------ cores */

static bool find_cores(struct device_choice *c)
{
    uint32_t n = c->agent->nlocal;
    hwloc_bitmap_t set;

    if (!c->agent->sets)
        return true;
    set = hwloc_bitmap_alloc();
    c->cores = calloc(n, sizeof(*c->cores));
    c->core_lists = calloc((size_t)n * c->m->ncores, sizeof(*c->core_lists));
    for (uint32_t i = 0; set && c->cores && c->core_lists && i < n; i++) {
        const char *cpus = c->agent->local_ranks.cpus[i];
        if (*cpus && hwloc_bitmap_list_sscanf(set, cpus) == 0)
            c->cores[i] = rk_core_list_of_cpus(c->m, rk_topo_has_cpu, set, c->core_lists + (size_t)i * c->m->ncores);
    }
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
static bool all_uuids(const struct device_choice *c, const struct rk_pairing *p)
{
    for (uint32_t r = 0; r < p->ranks; r++) {
        for (uint32_t i = 0; i < p->rank[r].ngpus; i++) {
            if (!*c->m->gpu[p->rank[r].gpu[i].device].uuid)
                return false;
        }
    }
    return true;
}

static void print_gpus(const struct device_choice *c, const struct rk_pair_rank *rank, FILE *to)
{
    fprintf(to, VISIBLE "=");
    for (uint32_t i = 0; i < rank->ngpus; i++) {
        fprintf(to, "%s", i ? "," : "");
        if (c->agent->gpu_numbers)
            fprintf(to, "%u", rank->gpu[i].device);
        else
            fprintf(to, "%s", c->m->gpu[rank->gpu[i].device].uuid);
    }
}

/* UCX uses the RDMA device of a NIC, or else its interface. */
static void print_nics(const struct device_choice *c, const struct rk_pair_rank *rank, FILE *to)
{
    fprintf(to, NICS "=");
    for (uint32_t i = 0; i < rank->nnics; i++) {
        const struct rk_device *d = &c->m->nic[rank->nic[i].device];
        fprintf(to, "%s%s", i ? "," : "", d->name);
        if (*d->netdev && strcmp(d->netdev, d->name) != 0)
            fprintf(to, ",%s", d->netdev);
    }
}

static char *make_text(const struct device_choice *c, const struct rk_pair_rank *rank)
{
    char *devices = rk_pair_text(c->m, rank), *text = NULL;

    if (devices && asprintf(&text, RK_PAIR_VARIABLE "=%s", devices) < 0)
        text = NULL;
    free(devices);
    return text;
}

static char *make_variable(const struct device_choice *c, const struct rk_pair_rank *rank,
                           void (*print)(const struct device_choice *c, const struct rk_pair_rank *rank, FILE *to))
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    if (!to)
        return NULL;
    print(c, rank, to);
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}

static bool make_variables(struct device_choice *c, const struct rk_pairing *p)
{
    struct xr_job *job = &c->agent->job;
    bool gpus = rk_pair_gives(job->gpu_bind), nics = rk_pair_gives(job->nic_bind), ok;

    c->agent->gpu_numbers = !all_uuids(c, p);
    c->agent->devices = calloc((size_t)p->ranks + 1, sizeof(*c->agent->devices));
    ok = c->agent->devices != NULL;
    for (uint32_t r = 0; ok && r < p->ranks; r++) {
        struct xr_rank_devices *d = &c->agent->devices[r];
        d->gpus = gpus ? make_variable(c, &p->rank[r], print_gpus) : NULL;
        d->nics = nics ? make_variable(c, &p->rank[r], print_nics) : NULL;
        d->text = make_text(c, &p->rank[r]);
        ok = (d->gpus || !gpus) && (d->nics || !nics) && d->text;
    }
    if (gpus)
        drop_inherited(job, VISIBLE);
    if (gpus && c->agent->gpu_numbers)
        drop_inherited(job, "CUDA_DEVICE_ORDER");
    if (nics)
        drop_inherited(job, NICS);
    return ok;
}

static bool choose_devices(struct device_choice *c)
{
    const struct xr_job *job = &c->agent->job;
    struct rk_pair_words words = {.gpus = job->gpu_bind,
                                  .gpus_per_rank = job->gpus_per_rank,
                                  .nics = job->nic_bind,
                                  .nics_per_rank = job->nics_per_rank};
    struct rk_pairing pairs;
    char where[300], err[256];
    bool ok;

    snprintf(where, sizeof(where), "host %s", c->agent->host);
    if (!inherited_value(c, &words) || rk_pair_request_make(&words, where, c->m, &c->prepared, c->text, c->len) ||
        !find_cores(c))
        return false;
    c->prepared.rq.ranks = c->agent->nlocal;
    c->prepared.rq.placed = c->cores;
    if (rk_pair(c->m, &c->prepared.rq, &pairs, err, sizeof(err))) {
        snprintf(c->text, c->len, "%s: %s", where, err);
        return false;
    }
    ok = make_variables(c, &pairs);
    rk_pair_free(&pairs);
    return ok;
}

rank_status_t xr_rank_devices_choose(struct xr_agent *agent, int *code, char *text, size_t len)
{
    struct device_choice c = {.agent = agent, .m = &agent->machine, .text = text, .len = len};
    char err[512];
    bool ok;

    if (!rk_pair_gives(agent->job.gpu_bind) && !rk_pair_gives(agent->job.nic_bind))
        return RANK_OK;
    *code = XR_EXIT_USAGE;
    if (xr_agent_load_machine(agent, err, sizeof(err))) {
        snprintf(text, len, "host %s: %s", agent->host, err);
        return RANK_ERR_SYSTEM;
    }
    ok = choose_devices(&c);
    xr_shell_words_show(text); /* the variable may hold anything */
    if (!ok && !*text)
        snprintf(text, len, "out of memory for the devices of the ranks on %s", agent->host);
    rk_pair_request_clear(&c.prepared);
    free(c.cores);
    free(c.core_lists);
    rk_machine_free(&agent->machine); /* it is needed no more */
    if (ok)
        *code = 1;
    return ok ? RANK_OK : RANK_ERR_ARG;
}
