/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nameserver.c: store published values and answer lookups, at once or later.
 *
 * MPI programs publish a handful of ports, so names and waiting lookups are plain
 * lists. See nameserver.h.
 */
#include "launcher/dpm/nameserver.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/list.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (64u << 20) /* of all names: values are addresses or the like */
#define WAITERS_MAX 10000u    /* lookups that wait */
#define KEYS_MAX 100000u      /* keys of all waiting lookups */

struct xr_name {
    struct rk_link link; /* in the order of publishing */
    uint32_t job, rank, app, range, keep;
    const char *key, *id, *host; /* these and the value are in texts */
    const void *value;
    size_t len, bytes; /* of the value; of all */
    char texts[];
};

struct xr_waiter {
    struct rk_link link;  /* in the order of arrival */
    struct rk_link ready; /* in names->ready, or in no list */
    struct xr_nameserver *names;
    struct xr_process process;
    uint32_t range, want, nkeys;
    uint32_t found; /* upper bound of the keys found: names may have gone since */
    char **keys;
    struct xr_rpc_origin asker;
    struct event *timer; /* or NULL */
};

struct xr_nameserver {
    struct event_base *base;
    xr_nameserver_answer_fn answer;
    void *arg;
    struct rk_link all, waiting, ready;
    size_t bytes;
    uint32_t nwaiters, nkeys;
};

/* ----------------------------------------------------------------------------- names */

static void name_drop(struct xr_nameserver *n, struct xr_name *name)
{
    rk_list_remove(&name->link);
    n->bytes -= name->bytes;
    free(name);
}

/* Is the process inside the range, seen from the publisher? */
static bool name_within(uint32_t range, const struct xr_name *name, const struct xr_process *process)
{
    switch (range) {
    case XR_RANGE_JOB:
        return name->job == process->job;
    case XR_RANGE_HOST:
        return strcmp(name->host, process->host) == 0;
    case XR_RANGE_PROCESS:
        return name->job == process->job && name->rank == process->rank;
    default:
        return true;
    }
}

/* The name of that key and range that the process can see. There is at most one. */
static struct xr_name *name_in_range(struct xr_nameserver *n, const char *key, uint32_t range, const struct xr_process *process)
{
    struct rk_link *l;

    rk_list_for_each(l, &n->all) {
        struct xr_name *name = rk_list_entry(l, struct xr_name, link);
        if (name->range == range && strcmp(name->key, key) == 0 && name_within(range, name, process))
            return name;
    }
    return NULL;
}

/* The publisher's range and the lookup's both apply. The narrowest range of the publisher comes first. */
static struct xr_name *name_find(struct xr_nameserver *n, const char *key, uint32_t range, const struct xr_process *process)
{
    static const uint32_t ranges[] = {XR_RANGE_PROCESS, XR_RANGE_JOB, XR_RANGE_HOST, XR_RANGE_ALL};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct xr_name *name = name_in_range(n, key, ranges[i], process);
        if (name && name_within(range, name, process))
            return name;
    }
    return NULL;
}

static const char *name_put_text(char **at, const char *text)
{
    const char *here = *at;

    *at = stpcpy(*at, text) + 1;
    return here;
}

/* NULL: it is larger than all names together may be, or there is no memory. */
static struct xr_name *name_make(const struct xr_process *process, const char *key, const void *value, size_t len)
{
    size_t bytes = sizeof(struct xr_name) + strlen(key) + strlen(process->id) + strlen(process->host) + len + 3;
    struct xr_name *name = bytes <= BYTES_MAX ? calloc(1, bytes) : NULL;
    char *at;

    if (!name)
        return NULL;
    name->job = process->job;
    name->rank = process->rank;
    name->app = process->app;
    name->bytes = bytes;
    at = name->texts;
    name->key = name_put_text(&at, key);
    name->id = name_put_text(&at, process->id);
    name->host = name_put_text(&at, process->host);
    name->value = at;
    name->len = len;
    if (len)
        memcpy(at, value, len);
    return name;
}

/* --------------------------------------------------------------------------- waiters */

static void waiter_drop(struct xr_waiter *w)
{
    struct xr_nameserver *n = w->names;

    rk_list_remove(&w->link);
    rk_list_remove(&w->ready);
    n->nwaiters--;
    n->nkeys -= w->nkeys;
    if (w->timer)
        event_free(w->timer);
    xr_strv_free(w->keys);
    free(w);
}

/* Answer a lookup without values. */
static void lookup_refuse(struct xr_nameserver *n, enum xr_rpc_status status, const struct xr_rpc_origin *asker)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, 0);
    n->answer(n->arg, asker, status, &p);
}

static uint32_t lookup_count(struct xr_nameserver *n, const struct xr_process *process, uint32_t range, char **keys)
{
    uint32_t found = 0;

    for (; *keys; keys++)
        found += name_find(n, *keys, range, process) != NULL;
    return found;
}

static void lookup_answer(struct xr_nameserver *n, const struct xr_process *process, uint32_t range, char **keys,
                          const struct xr_rpc_origin *asker)
{
    uint32_t found = lookup_count(n, process, range, keys), of = 0;
    struct xr_packer p = {0};

    xr_pack_u32(&p, found);
    for (; keys[of]; of++) {
        const struct xr_name *name = name_find(n, keys[of], range, process);
        if (!name)
            continue;
        xr_pack_string(&p, name->key);
        xr_pack_string(&p, name->id);
        xr_pack_u32(&p, name->rank);
        xr_pack_bytes(&p, name->value, name->len);
    }
    if (p.failed || p.len > XR_MESSAGE_MAX / 2) { /* a longer message would close the connection */
        xr_packer_free(&p);
        lookup_refuse(n, XR_NO_ROOM, asker);
        return;
    }
    /* Only after all keys are packed: a key can be listed twice. */
    for (uint32_t i = 0; i < of; i++) {
        struct xr_name *name = name_find(n, keys[i], range, process);
        if (name && name->keep == XR_KEEP_ONE_READ)
            name_drop(n, name);
    }
    n->answer(n->arg, asker, found == of ? XR_DONE : found ? XR_DONE_PARTLY : XR_NOT_FOUND, &p);
}

/* Answer a waiting lookup if it has found enough. Returns true if it is answered and gone. */
static bool waiter_serve(struct xr_waiter *w)
{
    w->found = lookup_count(w->names, &w->process, w->range, w->keys);
    if (w->found < w->want)
        return false;
    lookup_answer(w->names, &w->process, w->range, w->keys, &w->asker);
    waiter_drop(w);
    return true;
}

/* Mark the lookups that may have found enough with this name. */
static void waiters_mark(struct xr_nameserver *n, const struct xr_name *name)
{
    struct rk_link *l;

    rk_list_for_each(l, &n->waiting) {
        struct xr_waiter *w = rk_list_entry(l, struct xr_waiter, link);
        if (!name_within(name->range, name, &w->process) || !name_within(w->range, name, &w->process))
            continue;
        for (uint32_t i = 0; i < w->nkeys; i++)
            w->found += strcmp(w->keys[i], name->key) == 0;
        if (w->found >= w->want && rk_list_empty(&w->ready))
            rk_list_append(&n->ready, &w->ready);
    }
}

static void waiters_serve(struct xr_nameserver *n)
{
    while (!rk_list_empty(&n->ready)) {
        struct xr_waiter *w = rk_list_entry(n->ready.next, struct xr_waiter, ready);
        rk_list_remove(&w->ready);
        waiter_serve(w);
    }
}

static void waiter_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct xr_waiter *w = arg;

    (void)fd;
    (void)what;
    lookup_refuse(w->names, XR_TOO_LATE, &w->asker);
    waiter_drop(w);
}

static bool waiter_set_timer(struct xr_waiter *w, uint32_t ms)
{
    struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    if (ms == 0)
        return true;
    w->timer = evtimer_new(w->names->base, waiter_on_timeout, w);
    return w->timer && event_add(w->timer, &t) == 0;
}

/* Takes ownership of keys. NULL: a limit is reached, or there is no memory. */
static struct xr_waiter *waiter_add(struct xr_nameserver *n, const struct xr_process *process, char **keys, uint32_t nkeys)
{
    bool room = n->nwaiters < WAITERS_MAX && nkeys <= KEYS_MAX - n->nkeys;
    struct xr_waiter *w = room ? calloc(1, sizeof(*w)) : NULL;

    if (!w) {
        xr_strv_free(keys);
        return NULL;
    }
    *w = (struct xr_waiter){.names = n, .process = *process, .keys = keys, .nkeys = nkeys};
    rk_list_append(&n->waiting, &w->link);
    rk_list_init(&w->ready);
    n->nwaiters++;
    n->nkeys += nkeys;
    return w;
}

void xr_nameserver_lookup(struct xr_nameserver *n, const struct xr_process *process, struct xr_unpacker *u,
                      const struct xr_rpc_origin *asker)
{
    uint32_t range = xr_unpack_u32(u), want = xr_unpack_u32(u), ms = xr_unpack_u32(u), nkeys = 0;
    char **keys = xr_unpack_strings(u);
    struct xr_waiter *w;

    if (!xr_unpack_done(u) || !keys || !keys[0]) {
        xr_strv_free(keys);
        lookup_refuse(n, XR_REFUSED, asker);
        return;
    }
    if (want == XR_LOOKUP_NOW) {
        lookup_answer(n, process, range, keys, asker);
        xr_strv_free(keys);
        return;
    }
    while (keys[nkeys])
        nkeys++;
    w = waiter_add(n, process, keys, nkeys);
    if (!w) {
        lookup_refuse(n, XR_NO_ROOM, asker);
        return;
    }
    w->range = range;
    w->want = want == XR_LOOKUP_ALL || want > nkeys ? nkeys : want;
    w->asker = *asker;
    if (waiter_serve(w))
        return;
    if (!waiter_set_timer(w, ms)) {
        waiter_drop(w);
        lookup_refuse(n, XR_NO_ROOM, asker);
    }
}

/* ------------------------------------------------------------------------- publishing */

static enum xr_rpc_status name_add(struct xr_nameserver *n, const struct xr_process *process, uint32_t range,
                                      uint32_t keep, const char *key, const void *value, size_t len)
{
    struct xr_name *name;

    if (name_in_range(n, key, range, process))
        return XR_EXISTS_ALREADY;
    name = name_make(process, key, value, len);
    if (!name || name->bytes > BYTES_MAX - n->bytes) {
        free(name);
        return XR_NO_ROOM;
    }
    name->range = range;
    name->keep = keep;
    n->bytes += name->bytes;
    rk_list_append(&n->all, &name->link);
    return XR_DONE;
}

enum xr_rpc_status xr_nameserver_publish(struct xr_nameserver *n, const struct xr_process *process,
                                       struct xr_unpacker *u)
{
    uint32_t range = xr_unpack_u32(u), keep = xr_unpack_u32(u), items = xr_unpack_u32(u), added = 0;
    enum xr_rpc_status st = u->failed || items == 0 || range > XR_RANGE_PROCESS ? XR_REFUSED : XR_DONE;
    struct rk_link *l = &n->all;

    for (uint32_t i = 0; i < items && st == XR_DONE; i++) {
        const char *key = xr_unpack_string(u);
        size_t len;
        const void *value = xr_unpack_bytes(u, &len);
        st = u->failed || !key ? XR_REFUSED : name_add(n, process, range, keep, key, value, len);
        added += st == XR_DONE;
    }
    if (st == XR_DONE && !xr_unpack_done(u))
        st = XR_REFUSED;
    for (uint32_t i = 0; i < added; i++) {
        if (st != XR_DONE) {
            name_drop(n, rk_list_entry(n->all.prev, struct xr_name, link));
        } else {
            l = l->prev;
            waiters_mark(n, rk_list_entry(l, struct xr_name, link));
        }
    }
    waiters_serve(n);
    return st;
}

static bool range_matches(uint32_t wanted, uint32_t range)
{
    return wanted == XR_RANGE_ANY || wanted == range;
}

/* Drop what the process has published; all: whatever its persistence. Returns how many. */
static uint32_t names_drop_own(struct xr_nameserver *n, uint32_t job, uint32_t rank, uint32_t range, bool all)
{
    struct rk_link *l, *next;
    uint32_t gone = 0;

    rk_list_for_each_safe(l, next, &n->all) {
        struct xr_name *name = rk_list_entry(l, struct xr_name, link);
        if (name->job != job || name->rank != rank || (!all && name->keep != XR_KEEP_PROCESS) ||
            !range_matches(range, name->range))
            continue;
        name_drop(n, name);
        gone++;
    }
    return gone;
}

/* Drop what the process's own job has published and the process can see. Returns how many. */
static uint32_t names_drop_key(struct xr_nameserver *n, const struct xr_process *process, uint32_t wanted, const char *key)
{
    uint32_t gone = 0;

    for (uint32_t range = XR_RANGE_ALL; range <= XR_RANGE_PROCESS; range++) {
        struct xr_name *name = range_matches(wanted, range) ? name_in_range(n, key, range, process) : NULL;
        if (!name || name->job != process->job)
            continue;
        name_drop(n, name);
        gone++;
    }
    return gone;
}

enum xr_rpc_status xr_nameserver_unpublish(struct xr_nameserver *n, const struct xr_process *process,
                                         struct xr_unpacker *u)
{
    uint32_t range = xr_unpack_u32(u), gone = 0;
    char **keys = xr_unpack_strings(u);

    if (!xr_unpack_done(u) || !keys || range > XR_RANGE_ANY) {
        xr_strv_free(keys);
        return XR_REFUSED;
    }
    for (char **k = keys; *k; k++)
        gone += names_drop_key(n, process, range, *k);
    if (!keys[0])
        gone = names_drop_own(n, process->job, process->rank, range, true);
    xr_strv_free(keys);
    return gone ? XR_DONE : XR_NOT_FOUND;
}

/* ------------------------------------------------------------------------------- ends */

static struct xr_waiter *waiter_of(struct xr_nameserver *n, uint32_t job, uint32_t rank)
{
    struct rk_link *l;

    rk_list_for_each(l, &n->waiting) {
        struct xr_waiter *w = rk_list_entry(l, struct xr_waiter, link);
        if (w->process.job == job && w->process.rank == rank)
            return w;
    }
    return NULL;
}

void xr_nameserver_ended(struct xr_nameserver *n, uint32_t job, uint32_t rank, bool failed)
{
    struct xr_waiter *w;

    names_drop_own(n, job, rank, XR_RANGE_ANY, failed);
    while ((w = waiter_of(n, job, rank))) {
        struct xr_rpc_origin asker = w->asker;
        waiter_drop(w);
        lookup_refuse(n, XR_PARTICIPANT_LOST, &asker);
    }
}

void xr_nameserver_app_ended(struct xr_nameserver *n, uint32_t job, uint32_t app)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &n->all) {
        struct xr_name *name = rk_list_entry(l, struct xr_name, link);
        if (name->job == job && (app == XR_ALL_RANKS || name->app == app) && name->keep != XR_KEEP_ALWAYS)
            name_drop(n, name);
    }
}

rank_status_t xr_nameserver_open(struct event_base *base, xr_nameserver_answer_fn answer, void *arg,
                            struct xr_nameserver **out)
{
    struct xr_nameserver *n = calloc(1, sizeof(*n));

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

void xr_nameserver_close(struct xr_nameserver *n)
{
    if (!n)
        return;
    while (!rk_list_empty(&n->waiting))
        waiter_drop(rk_list_entry(n->waiting.next, struct xr_waiter, link));
    while (!rk_list_empty(&n->all))
        name_drop(n, rk_list_entry(n->all.next, struct xr_name, link));
    free(n);
}
