/* SPDX-License-Identifier: BSD-3-Clause */
/* nameserver.c: what is published. See nameserver.h. */
#include "launcher/dpm/nameserver_internal.h"

#include <stdlib.h>
#include <string.h>

/* Of all jobs: what is published is an address or the like. */
#define LIMIT (64u << 20)

/* ---------------------------------------------------------------------------- owners */

static uint32_t owner_hash(uint32_t job, uint32_t rank)
{
    return xr_table_hash(xr_table_hash(0, &job, sizeof(job)), &rank, sizeof(rank));
}

struct xr_names_owner *xr_names_owner_of(struct xr_names *n, uint32_t job, uint32_t rank)
{
    for (struct xr_table_item *i = xr_table_first(&n->owners, owner_hash(job, rank)); i; i = xr_table_next(i)) {
        struct xr_names_owner *o = rk_list_entry(i, struct xr_names_owner, item);
        if (o->job == job && o->rank == rank)
            return o;
    }
    return NULL;
}

struct xr_names_owner *xr_names_make_owner(struct xr_names *n, const struct xr_names_who *who)
{
    struct xr_names_owner *o = xr_names_owner_of(n, who->job, who->rank);

    if (o)
        return o;
    o = calloc(1, sizeof(*o));
    if (!o || !xr_table_add(&n->owners, &o->item, owner_hash(who->job, who->rank))) {
        free(o);
        return NULL;
    }
    o->job = who->job;
    o->rank = who->rank;
    rk_list_init(&o->names);
    rk_list_init(&o->waiters);
    return o;
}

void xr_names_drop_idle(struct xr_names *n, struct xr_names_owner *o)
{
    if (!rk_list_empty(&o->names) || !rk_list_empty(&o->waiters))
        return;
    xr_table_remove(&n->owners, &o->item);
    free(o);
}

/* ----------------------------------------------------------------------------- names */

/* Its owner may have nothing any more. */
static void remove_name(struct xr_names *n, struct xr_name *name)
{
    xr_table_remove(&n->names, &name->item);
    rk_list_remove(&name->link);
    rk_list_remove(&name->of_owner);
    n->bytes -= name->bytes;
    free(name);
}

void xr_names_drop(struct xr_names *n, struct xr_name *name)
{
    struct xr_names_owner *o = name->owner;

    remove_name(n, name);
    xr_names_drop_idle(n, o);
}

bool xr_names_within(uint32_t range, const struct xr_name *name, const struct xr_names_who *who)
{
    switch (range) {
    case XR_RANGE_JOB:
        return name->owner->job == who->job;
    case XR_RANGE_HOST:
        return strcmp(name->host, who->host) == 0;
    case XR_RANGE_PROCESS:
        return name->owner->job == who->job && name->owner->rank == who->rank;
    default:
        return true;
    }
}

/* What can be seen by who, of all that has this key and range. */
static uint32_t name_hash(const char *key, uint32_t range, const struct xr_names_who *who)
{
    uint32_t h = xr_table_hash(xr_table_hash(0, key, strlen(key)), &range, sizeof(range));

    if (range == XR_RANGE_HOST)
        h = xr_table_hash(h, who->host, strlen(who->host));
    if (range == XR_RANGE_JOB || range == XR_RANGE_PROCESS)
        h = xr_table_hash(h, &who->job, sizeof(who->job));
    return range == XR_RANGE_PROCESS ? xr_table_hash(h, &who->rank, sizeof(who->rank)) : h;
}

static struct xr_name *find_in(struct xr_names *n, const char *key, uint32_t range, const struct xr_names_who *who)
{
    for (struct xr_table_item *i = xr_table_first(&n->names, name_hash(key, range, who)); i; i = xr_table_next(i)) {
        struct xr_name *name = rk_list_entry(i, struct xr_name, item);
        if (name->range == range && strcmp(name->key, key) == 0 && xr_names_within(range, name, who))
            return name;
    }
    return NULL;
}

/* The publisher says who may see it, and who looks says where; what is meant for the fewest comes first. */
struct xr_name *xr_names_find(struct xr_names *n, const char *key, uint32_t range, const struct xr_names_who *who)
{
    static const uint32_t ranges[] = {XR_RANGE_PROCESS, XR_RANGE_JOB, XR_RANGE_HOST, XR_RANGE_ALL};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct xr_name *name = find_in(n, key, ranges[i], who);
        if (name && xr_names_within(range, name, who))
            return name;
    }
    return NULL;
}

static const char *nameserver_put_text(char **at, const char *text)
{
    const char *here = *at;

    *at = stpcpy(*at, text) + 1;
    return here;
}

static struct xr_name *nameserver_make(const struct xr_names_who *who, const char *key, const void *value, size_t len)
{
    size_t bytes = sizeof(struct xr_name) + strlen(key) + strlen(who->id) + strlen(who->host) + len + 3;
    struct xr_name *name = bytes <= LIMIT ? malloc(bytes) : NULL;
    char *at;

    if (!name)
        return NULL;
    memset(name, 0, sizeof(*name));
    name->bytes = bytes;
    at = name->texts;
    name->key = nameserver_put_text(&at, key);
    name->id = nameserver_put_text(&at, who->id);
    name->host = nameserver_put_text(&at, who->host);
    name->value = at;
    name->len = len;
    if (len)
        memcpy(at, value, len);
    rk_list_init(&name->link);
    rk_list_init(&name->of_owner);
    return name;
}

/* ------------------------------------------------------------------------- publishing */

static enum xr_errand_status nameserver_add(struct xr_names *n, const struct xr_names_who *who, uint32_t range,
                                 uint32_t keep, const char *key, const void *value, size_t len)
{
    struct xr_name *name;

    if (find_in(n, key, range, who))
        return XR_THERE_ALREADY;
    name = nameserver_make(who, key, value, len);
    if (!name || name->bytes > LIMIT - n->bytes) {
        free(name);
        return XR_NO_ROOM;
    }
    name->app = who->app;
    name->range = range;
    name->keep = keep;
    name->owner = xr_names_make_owner(n, who);
    if (!name->owner || !xr_table_add(&n->names, &name->item, name_hash(key, range, who))) {
        if (name->owner)
            xr_names_drop_idle(n, name->owner);
        free(name);
        return XR_NO_ROOM;
    }
    n->bytes += name->bytes;
    rk_list_append(&n->all, &name->link);
    rk_list_append(&name->owner->names, &name->of_owner);
    return XR_DONE;
}

/* All of it or nothing. */
enum xr_errand_status xr_names_publish(struct xr_names *n, const struct xr_names_who *who,
                                       struct xr_unpacker *u)
{
    uint32_t range = xr_unpack_u32(u), keep = xr_unpack_u32(u), items = xr_unpack_u32(u), added = 0;
    enum xr_errand_status st = u->failed || items == 0 || range > XR_RANGE_PROCESS ? XR_REFUSED : XR_DONE;
    struct rk_link *l = &n->all;

    for (uint32_t i = 0; i < items && st == XR_DONE; i++) {
        const char *key = xr_unpack_string(u);
        size_t len;
        const void *value = xr_unpack_bytes(u, &len);
        st = u->failed || !key ? XR_REFUSED : nameserver_add(n, who, range, keep, key, value, len);
        added += st == XR_DONE;
    }
    if (st == XR_DONE && !xr_unpack_done(u))
        st = XR_REFUSED;
    for (uint32_t i = 0; i < added; i++) {
        if (st != XR_DONE) {
            xr_names_drop(n, rk_list_entry(n->all.prev, struct xr_name, link));
        } else {
            l = l->prev;
            xr_names_announce(n, rk_list_entry(l, struct xr_name, link));
        }
    }
    xr_names_serve(n);
    return st;
}

static bool of_range(uint32_t wanted, uint32_t range)
{
    return wanted == XR_RANGE_ANY || wanted == range;
}

/* Without keys: all that the asker has published. */
static uint32_t drop_own(struct xr_names *n, const struct xr_names_who *who, uint32_t range, bool all)
{
    struct xr_names_owner *o = xr_names_owner_of(n, who->job, who->rank);
    struct rk_link *l, *next;
    uint32_t gone = 0;

    if (!o)
        return 0;
    rk_list_for_each_safe(l, next, &o->names) {
        struct xr_name *name = rk_list_entry(l, struct xr_name, of_owner);
        if ((!all && name->keep != XR_KEEP_PROCESS) || !of_range(range, name->range))
            continue;
        remove_name(n, name);
        gone++;
    }
    xr_names_drop_idle(n, o);
    return gone;
}

/* Only what the asker's own job has published, and he can see. */
static uint32_t drop_key(struct xr_names *n, const struct xr_names_who *who, uint32_t wanted, const char *key)
{
    uint32_t gone = 0;

    for (uint32_t range = XR_RANGE_ALL; range <= XR_RANGE_PROCESS; range++) {
        struct xr_name *name = of_range(wanted, range) ? find_in(n, key, range, who) : NULL;
        if (!name || name->owner->job != who->job)
            continue;
        xr_names_drop(n, name);
        gone++;
    }
    return gone;
}

enum xr_errand_status xr_names_unpublish(struct xr_names *n, const struct xr_names_who *who,
                                         struct xr_unpacker *u)
{
    uint32_t range = xr_unpack_u32(u), gone = 0;
    char **keys = xr_unpack_strings(u);

    if (!xr_unpack_done(u) || !keys || range > XR_RANGE_ANY) {
        xr_strings_free(keys);
        return XR_REFUSED;
    }
    for (char **k = keys; *k; k++)
        gone += drop_key(n, who, range, *k);
    if (!keys[0])
        gone = drop_own(n, who, range, true);
    xr_strings_free(keys);
    return gone ? XR_DONE : XR_NOT_FOUND;
}

/* ------------------------------------------------------------------------------- ends */

void xr_names_ended(struct xr_names *n, uint32_t job, uint32_t rank, bool failed)
{
    const struct xr_names_who who = {.job = job, .rank = rank};
    struct xr_names_owner *o = xr_names_owner_of(n, job, rank);
    struct rk_link *l, *next;

    if (!o)
        return;
    drop_own(n, &who, XR_RANGE_ANY, failed);
    o = xr_names_owner_of(n, job, rank);
    if (!o)
        return;
    rk_list_for_each_safe(l, next, &o->waiters) {
        struct xr_waiter *w = rk_list_entry(l, struct xr_waiter, of_owner);
        xr_names_refuse(n, XR_SOMEBODY_LOST, &w->asker);
        xr_names_remove_waiter(w);
    }
    xr_names_drop_idle(n, o);
}

void xr_names_app_ended(struct xr_names *n, uint32_t job, uint32_t app)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &n->all) {
        struct xr_name *name = rk_list_entry(l, struct xr_name, link);
        if (name->owner->job == job && (app == XR_ALL_RANKS || name->app == app) && name->keep != XR_KEEP_ALWAYS)
            xr_names_drop(n, name);
    }
}

rank_status_t xr_names_open(struct event_base *base, xr_names_answer_fn answer, void *arg,
                            struct xr_names **out)
{
    struct xr_names *n = calloc(1, sizeof(*n));

    if (!n)
        return RANK_ERR_NO_MEMORY;
    n->base = base;
    n->answer = answer;
    n->arg = arg;
    rk_list_init(&n->all);
    rk_list_init(&n->waiting);
    rk_list_init(&n->ready);
    *out = n;
    return RANK_OK;
}

void xr_names_close(struct xr_names *n)
{
    if (!n)
        return;
    while (!rk_list_empty(&n->waiting))
        xr_names_drop_waiter(rk_list_entry(n->waiting.next, struct xr_waiter, link));
    while (!rk_list_empty(&n->all))
        xr_names_drop(n, rk_list_entry(n->all.next, struct xr_name, link));
    xr_table_clear(&n->names);
    xr_table_clear(&n->wanted);
    xr_table_clear(&n->owners);
    free(n);
}
