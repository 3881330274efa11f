/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_jobs.c: keep the hub's jobs and their relations. See hub_internal.h.
 *
 * A job that has ended is dropped. The jobs that were tied to it are tied to each
 * other instead: a team may hold ranks of all of them. So memory is bounded by the
 * running jobs.
 */
#include "launcher/dpm/hub_internal.h"
#include "launcher/dpm/job_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 100000u /* at a time */

/* The index of the job in h->jobs, or where it would be inserted. */
static uint32_t hub_jobs_place_of(const struct xr_hub *h, uint32_t number)
{
    uint32_t low = 0, high = h->njobs;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (h->jobs[mid]->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct xr_hub_job *xr_hub_job_of(const struct xr_hub *h, uint32_t number)
{
    uint32_t i = hub_jobs_place_of(h, number);

    return i < h->njobs && h->jobs[i]->number == number ? h->jobs[i] : NULL;
}

uint32_t xr_hub_find_job(const struct xr_hub *h, const char *id)
{
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (h->jobs[i]->has_info && strcmp(h->jobs[i]->info.id, id) == 0)
            return h->jobs[i]->number;
    }
    return XR_NO_JOB;
}

bool xr_hub_is_past(const struct xr_hub *h, const char *id)
{
    for (uint32_t i = 0; i < XR_HUB_PAST; i++) {
        if (h->past[i] && strcmp(h->past[i], id) == 0)
            return true;
    }
    return false;
}

uint32_t xr_hub_jobs(const struct xr_hub *h)
{
    return h->njobs;
}

const char *xr_hub_name(const struct xr_hub *h, uint32_t job)
{
    const struct xr_hub_job *j = xr_hub_job_of(h, job);

    return j && j->has_info ? j->info.id : NULL;
}

uint32_t xr_hub_size(const struct xr_hub *h, uint32_t job)
{
    const struct xr_hub_job *j = xr_hub_job_of(h, job);

    return j && j->has_info ? j->info.size : 0;
}

/* ------------------------------------------------------------------- add and free */

struct xr_hub_job *xr_hub_add_job(struct xr_hub *h)
{
    struct xr_hub_job **longer, *j;

    if (h->njobs >= MAX_JOBS || h->next_job == XR_NO_JOB)
        return NULL;
    longer = realloc(h->jobs, (h->njobs + 1) * sizeof(*longer));
    if (!longer)
        return NULL;
    h->jobs = longer;
    j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->number = h->next_job++;
    j->parent = XR_NO_JOB;
    rk_list_init(&j->sent);
    h->jobs[h->njobs++] = j;
    return j;
}

static void drop_sent_info(struct xr_hub_sent_info *t)
{
    rk_list_remove(&t->link);
    free(t);
}

static void free_job(struct xr_hub_job *j)
{
    xr_job_clear(&j->info);
    while (!rk_list_empty(&j->sent))
        drop_sent_info(rk_list_entry(j->sent.next, struct xr_hub_sent_info, link));
    free(j->fate);
    free(j->left);
    free(j->on_host);
    free(j->ties);
    free(j);
}

void xr_hub_free_jobs(struct xr_hub *h)
{
    for (uint32_t i = 0; i < h->njobs; i++)
        free_job(h->jobs[i]);
    free(h->jobs);
    for (uint32_t i = 0; i < XR_HUB_PAST; i++)
        free(h->past[i]);
}

bool xr_hub_on_job_info(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    struct xr_job *o = &j->info;

    if (j->has_info || o->id || !xr_job_info_unpack(u, o) || !xr_unpack_done(u) ||
        xr_hub_find_job(h, o->id) != XR_NO_JOB)
        return false;
    j->fate = calloc(o->size, sizeof(*j->fate));
    j->left = calloc(o->napps, sizeof(*j->left));
    j->on_host = calloc(o->nhosts, sizeof(*j->on_host));
    if (!j->fate || !j->left || !j->on_host)
        return false;
    for (uint32_t i = 0; i < o->napps; i++)
        j->left[i] = o->apps[i].n;
    for (uint32_t r = 0; r < o->size; r++)
        j->on_host[o->host_of[r]]++;
    j->has_info = true;
    return true;
}

/* ------------------------------------------------------------------------- ties */

static struct xr_hub_tie *tie_of(const struct xr_hub_job *j, uint32_t other)
{
    for (uint32_t i = 0; i < j->nties; i++) {
        if (j->ties[i].job == other)
            return &j->ties[i];
    }
    return NULL;
}

bool xr_hub_connected(const struct xr_hub_job *j, uint32_t other)
{
    const struct xr_hub_tie *t = tie_of(j, other);

    return t && t->connected;
}

static void untie(struct xr_hub_job *j, uint32_t other)
{
    struct xr_hub_tie *t = tie_of(j, other);

    if (t)
        *t = j->ties[--j->nties];
}

static bool tie_one(struct xr_hub_job *j, uint32_t other, bool connected)
{
    struct xr_hub_tie *t = tie_of(j, other), *longer;

    if (t) {
        t->connected = t->connected || connected;
        return true;
    }
    longer = realloc(j->ties, (j->nties + 1) * sizeof(*longer));
    if (!longer)
        return false;
    j->ties = longer;
    j->ties[j->nties++] = (struct xr_hub_tie){other, connected};
    return true;
}

static void tie(struct xr_hub_job *a, struct xr_hub_job *b, bool connected)
{
    if (!a || !b || a == b || !tie_one(a, b->number, connected))
        return; /* without memory the failure of one does not end the other */
    if (!tie_one(b, a->number, connected))
        untie(a, b->number);
}

void xr_hub_connect(struct xr_hub *h, uint32_t a, uint32_t b)
{
    tie(xr_hub_job_of(h, a), xr_hub_job_of(h, b), true);
}

void xr_hub_disconnect(struct xr_hub *h, uint32_t a, uint32_t b)
{
    struct xr_hub_job *one = xr_hub_job_of(h, a), *other = xr_hub_job_of(h, b);

    if (one && other) {
        untie(one, b);
        untie(other, a);
    }
}

bool *xr_hub_related(const struct xr_hub *h, const struct xr_hub_job *j)
{
    bool *near = calloc(h->njobs, sizeof(*near));
    uint32_t *next = calloc(h->njobs, sizeof(*next)), n = 0, self = hub_jobs_place_of(h, j->number);

    if (near && next) {
        near[self] = true;
        next[n++] = self;
    }
    while (n > 0) {
        j = h->jobs[next[--n]];
        for (uint32_t i = 0; i < j->nties; i++) {
            uint32_t at = hub_jobs_place_of(h, j->ties[i].job);
            if (!near[at])
                next[n++] = at;
            near[at] = true;
        }
    }
    free(next);
    return near;
}

/* ---------------------------------------------------------------------- dropping */

/* Is the job tied to one that is still starting? That one must get its end later. */
static bool tied_to_starting_job(const struct xr_hub *h, const struct xr_hub_job *j)
{
    for (uint32_t i = 0; i < j->nties; i++) {
        const struct xr_hub_job *other = xr_hub_job_of(h, j->ties[i].job);
        if (!other->up && !other->gone)
            return true;
    }
    return false;
}

static void hub_jobs_drop(struct xr_hub *h, uint32_t at)
{
    struct xr_hub_job *j = h->jobs[at], *first = j->nties ? xr_hub_job_of(h, j->ties[0].job) : NULL;

    for (uint32_t i = 0; i < j->nties; i++) {
        struct xr_hub_job *other = xr_hub_job_of(h, j->ties[i].job);
        untie(other, j->number);
        tie(first, other, false);
    }
    for (uint32_t i = 0; i < h->njobs; i++) {
        struct rk_link *l, *next;
        rk_list_for_each_safe(l, next, &h->jobs[i]->sent) {
            struct xr_hub_sent_info *t = rk_list_entry(l, struct xr_hub_sent_info, link);
            if (t->about == j->number)
                drop_sent_info(t);
        }
    }
    if (j->has_info) {
        char **past = &h->past[h->npast++ % XR_HUB_PAST];
        free(*past);
        *past = j->info.id;
        j->info.id = NULL;
    }
    free_job(j);
    memmove(&h->jobs[at], &h->jobs[at + 1], (--h->njobs - at) * sizeof(struct xr_hub_job *));
}

void xr_hub_enter(struct xr_hub *h)
{
    h->depth++;
}

void xr_hub_leave(struct xr_hub *h)
{
    if (--h->depth || !h->has_gone)
        return;
    h->has_gone = false;
    for (uint32_t i = h->njobs; i-- > 0;) {
        if (!h->jobs[i]->gone)
            continue;
        if (tied_to_starting_job(h, h->jobs[i]))
            h->has_gone = true; /* check again later */
        else
            hub_jobs_drop(h, i);
    }
}

/* --------------------------------------------------------------------- job info */

/* The record of one job about another, made if needed. NULL without memory. */
static struct xr_hub_sent_info *sent_info_of(struct xr_hub_job *j, uint32_t about)
{
    struct xr_hub_sent_info *t;

    for (struct rk_link *l = j->sent.next; l != &j->sent; l = l->next) {
        t = rk_list_entry(l, struct xr_hub_sent_info, link);
        if (t->about == about)
            return t;
    }
    t = calloc(1, sizeof(*t) + j->info.nhosts * sizeof(t->node[0]));
    if (!t)
        return NULL;
    t->about = about;
    rk_list_append(&j->sent, &t->link);
    return t;
}

void xr_hub_pack_job_info(struct xr_hub *h, const struct xr_rpc_origin *from, const struct xr_hub_job *about, struct xr_packer *p)
{
    struct xr_hub_job *to = xr_hub_job_of(h, from->job);
    struct xr_hub_sent_info *t = NULL;
    bool new;

    if (to && to->has_info && from->node < to->info.nhosts)
        t = sent_info_of(to, about->number);
    new = !t || !t->node[from->node];
    xr_pack_u32(p, new);
    if (new)
        xr_job_info_pack(&about->info, p);
    if (t)
        t->node[from->node] = true;
}

/* ------------------------------------------------------------------------ hosts */

struct busy {
    const char *host;
    uint32_t n;
};

static int hub_jobs_by_host(const void *a, const void *b)
{
    return strcmp(((const struct busy *)a)->host, ((const struct busy *)b)->host);
}

/* As "ranks host"; n of them, sorted by host. */
static char **format_busy_hosts(struct busy *busy, uint32_t n)
{
    char **words = calloc(n + 1u, sizeof(*words));
    uint32_t used = 0;

    for (uint32_t i = 0, k; words && i < n; i = k) {
        uint32_t ranks = 0;
        for (k = i; k < n && strcmp(busy[k].host, busy[i].host) == 0; k++)
            ranks += busy[k].n;
        if (asprintf(&words[used], "%u %s", ranks, busy[i].host) < 0) {
            words[used] = NULL;
            xr_strv_free(words);
            return NULL;
        }
        used++;
    }
    return words;
}

char **xr_hub_busy(const struct xr_hub *h)
{
    struct busy *all;
    uint32_t n = 0;
    char **words;

    for (uint32_t i = 0; i < h->njobs; i++)
        n += h->jobs[i]->has_info ? h->jobs[i]->info.nhosts : 0;
    all = calloc(n + 1u, sizeof(*all));
    if (!all)
        return NULL;
    n = 0;
    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct xr_hub_job *j = h->jobs[i];
        for (uint32_t k = 0; j->has_info && !j->gone && k < j->info.nhosts; k++) {
            if (j->on_host[k])
                all[n++] = (struct busy){j->info.hosts[k], j->on_host[k]};
        }
    }
    qsort(all, n, sizeof(*all), hub_jobs_by_host);
    words = format_busy_hosts(all, n);
    free(all);
    return words;
}
