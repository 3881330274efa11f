/* nameserver.c: what is published. See names.h. */
#include "launcher/dpm/nameserver_internal.h"

#include <stdlib.h>
#include <string.h>

/* Of all jobs: what is published is an address or the like. */
#define LIMIT (64u << 20)

/* ---------------------------------------------------------------------------- owners */

static uint32_t owner_hash(uint32_t job, uint32_t rank)
{
    return rk_table_hash(rk_table_hash(0, &job, sizeof(job)), &rank, sizeof(rank));
}

struct rk_names_owner *rk_names_owner_of(struct rk_names *n, uint32_t job, uint32_t rank)
{
    for (struct rk_table_item *i = rk_table_first(&n->owners, owner_hash(job, rank)); i; i = rk_table_next(i)) {
        struct rk_names_owner *o = rk_list_entry(i, struct rk_names_owner, item);
        if (o->job == job && o->rank == rank)
            return o;
    }
    return NULL;
}

struct rk_names_owner *rk_names_make_owner(struct rk_names *n, const struct rk_names_who *who)
{
    struct rk_names_owner *o = rk_names_owner_of(n, who->job, who->rank);

    if (o)
        return o;
    o = calloc(1, sizeof(*o));
    if (!o || !rk_table_add(&n->owners, &o->item, owner_hash(who->job, who->rank))) {
        free(o);
        return NULL;
    }
    o->job = who->job;
    o->rank = who->rank;
    rk_list_init(&o->names);
    rk_list_init(&o->waiters);
    return o;
}

void rk_names_drop_idle(struct rk_names *n, struct rk_names_owner *o)
{
    if (!rk_list_empty(&o->names) || !rk_list_empty(&o->waiters))
        return;
    rk_table_remove(&n->owners, &o->item);
    free(o);
}

/* ----------------------------------------------------------------------------- names */

/* Its owner may have nothing any more. */
static void remove_name(struct rk_names *n, struct rk_name *name)
{
    rk_table_remove(&n->names, &name->item);
    rk_list_remove(&name->link);
    rk_list_remove(&name->of_owner);
    n->bytes -= name->bytes;
    free(name);
}

void rk_names_drop(struct rk_names *n, struct rk_name *name)
{
    struct rk_names_owner *o = name->owner;

    remove_name(n, name);
    rk_names_drop_idle(n, o);
}

bool rk_names_within(uint32_t range, const struct rk_name *name, const struct rk_names_who *who)
{
    switch (range) {
    case RK_RANGE_JOB:
        return name->owner->job == who->job;
    case RK_RANGE_HOST:
        return strcmp(name->host, who->host) == 0;
    case RK_RANGE_PROCESS:
        return name->owner->job == who->job && name->owner->rank == who->rank;
    default:
        return true;
    }
}

/* What can be seen by who, of all that has this key and range. */
static uint32_t name_hash(const char *key, uint32_t range, const struct rk_names_who *who)
{
    uint32_t h = rk_table_hash(rk_table_hash(0, key, strlen(key)), &range, sizeof(range));

    if (range == RK_RANGE_HOST)
        h = rk_table_hash(h, who->host, strlen(who->host));
    if (range == RK_RANGE_JOB || range == RK_RANGE_PROCESS)
        h = rk_table_hash(h, &who->job, sizeof(who->job));
    return range == RK_RANGE_PROCESS ? rk_table_hash(h, &who->rank, sizeof(who->rank)) : h;
}

static struct rk_name *find_in(struct rk_names *n, const char *key, uint32_t range, const struct rk_names_who *who)
{
    for (struct rk_table_item *i = rk_table_first(&n->names, name_hash(key, range, who)); i; i = rk_table_next(i)) {
        struct rk_name *name = rk_list_entry(i, struct rk_name, item);
        if (name->range == range && strcmp(name->key, key) == 0 && rk_names_within(range, name, who))
            return name;
    }
    return NULL;
}

/* The publisher says who may see it, and who looks says where; what is meant for the fewest comes first. */
struct rk_name *rk_names_find(struct rk_names *n, const char *key, uint32_t range, const struct rk_names_who *who)
{
    static const uint32_t ranges[] = {RK_RANGE_PROCESS, RK_RANGE_JOB, RK_RANGE_HOST, RK_RANGE_ALL};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct rk_name *name = find_in(n, key, ranges[i], who);
        if (name && rk_names_within(range, name, who))
            return name;
    }
    return NULL;
}

static const char *put_text(char **at, const char *text)
{
    const char *here = *at;

    *at = stpcpy(*at, text) + 1;
    return here;
}

static struct rk_name *make(const struct rk_names_who *who, const char *key, const void *value, size_t len)
{
    size_t bytes = sizeof(struct rk_name) + strlen(key) + strlen(who->id) + strlen(who->host) + len + 3;
    struct rk_name *name = bytes <= LIMIT ? malloc(bytes) : NULL;
    char *at;

    if (!name)
        return NULL;
    memset(name, 0, sizeof(*name));
    name->bytes = bytes;
    at = name->texts;
    name->key = put_text(&at, key);
    name->id = put_text(&at, who->id);
    name->host = put_text(&at, who->host);
    name->value = at;
    name->len = len;
    if (len)
        memcpy(at, value, len);
    rk_list_init(&name->link);
    rk_list_init(&name->of_owner);
    return name;
}

/* ------------------------------------------------------------------------- publishing */

static enum rk_errand_status add(struct rk_names *n, const struct rk_names_who *who, uint32_t range,
                                 uint32_t keep, const char *key, const void *value, size_t len)
{
    struct rk_name *name;

    if (find_in(n, key, range, who))
        return RK_THERE_ALREADY;
    name = make(who, key, value, len);
    if (!name || name->bytes > LIMIT - n->bytes) {
        free(name);
        return RK_NO_ROOM;
    }
    name->app = who->app;
    name->range = range;
    name->keep = keep;
    name->owner = rk_names_make_owner(n, who);
    if (!name->owner || !rk_table_add(&n->names, &name->item, name_hash(key, range, who))) {
        if (name->owner)
            rk_names_drop_idle(n, name->owner);
        free(name);
        return RK_NO_ROOM;
    }
    n->bytes += name->bytes;
    rk_list_append(&n->all, &name->link);
    rk_list_append(&name->owner->names, &name->of_owner);
    return RK_DONE;
}

/* All of it or nothing. */
enum rk_errand_status rk_names_publish(struct rk_names *n, const struct rk_names_who *who,
                                       struct rk_unpacker *u)
{
    uint32_t range = rk_unpack_u32(u), keep = rk_unpack_u32(u), items = rk_unpack_u32(u), added = 0;
    enum rk_errand_status st = u->failed || items == 0 || range > RK_RANGE_PROCESS ? RK_REFUSED : RK_DONE;
    struct rk_link *l = &n->all;

    for (uint32_t i = 0; i < items && st == RK_DONE; i++) {
        const char *key = rk_unpack_string(u);
        size_t len;
        const void *value = rk_unpack_bytes(u, &len);
        st = u->failed || !key ? RK_REFUSED : add(n, who, range, keep, key, value, len);
        added += st == RK_DONE;
    }
    if (st == RK_DONE && !rk_unpack_done(u))
        st = RK_REFUSED;
    for (uint32_t i = 0; i < added; i++) {
        if (st != RK_DONE) {
            rk_names_drop(n, rk_list_entry(n->all.prev, struct rk_name, link));
        } else {
            l = l->prev;
            rk_names_announce(n, rk_list_entry(l, struct rk_name, link));
        }
    }
    rk_names_serve(n);
    return st;
}

static bool of_range(uint32_t wanted, uint32_t range)
{
    return wanted == RK_RANGE_ANY || wanted == range;
}

/* Without keys: all that the asker has published. */
static uint32_t drop_own(struct rk_names *n, const struct rk_names_who *who, uint32_t range, bool all)
{
    struct rk_names_owner *o = rk_names_owner_of(n, who->job, who->rank);
    struct rk_link *l, *next;
    uint32_t gone = 0;

    if (!o)
        return 0;
    rk_list_for_each_safe(l, next, &o->names) {
        struct rk_name *name = rk_list_entry(l, struct rk_name, of_owner);
        if ((!all && name->keep != RK_KEEP_PROCESS) || !of_range(range, name->range))
            continue;
        remove_name(n, name);
        gone++;
    }
    rk_names_drop_idle(n, o);
    return gone;
}

/* Only what the asker's own job has published, and he can see. */
static uint32_t drop_key(struct rk_names *n, const struct rk_names_who *who, uint32_t wanted, const char *key)
{
    uint32_t gone = 0;

    for (uint32_t range = RK_RANGE_ALL; range <= RK_RANGE_PROCESS; range++) {
        struct rk_name *name = of_range(wanted, range) ? find_in(n, key, range, who) : NULL;
        if (!name || name->owner->job != who->job)
            continue;
        rk_names_drop(n, name);
        gone++;
    }
    return gone;
}

enum rk_errand_status rk_names_unpublish(struct rk_names *n, const struct rk_names_who *who,
                                         struct rk_unpacker *u)
{
    uint32_t range = rk_unpack_u32(u), gone = 0;
    char **keys = rk_unpack_strings(u);

    if (!rk_unpack_done(u) || !keys || range > RK_RANGE_ANY) {
        rk_strings_free(keys);
        return RK_REFUSED;
    }
    for (char **k = keys; *k; k++)
        gone += drop_key(n, who, range, *k);
    if (!keys[0])
        gone = drop_own(n, who, range, true);
    rk_strings_free(keys);
    return gone ? RK_DONE : RK_NOT_FOUND;
}

/* ------------------------------------------------------------------------------- ends */

void rk_names_ended(struct rk_names *n, uint32_t job, uint32_t rank, bool failed)
{
    const struct rk_names_who who = {.job = job, .rank = rank};
    struct rk_names_owner *o = rk_names_owner_of(n, job, rank);
    struct rk_link *l, *next;

    if (!o)
        return;
    drop_own(n, &who, RK_RANGE_ANY, failed);
    o = rk_names_owner_of(n, job, rank);
    if (!o)
        return;
    rk_list_for_each_safe(l, next, &o->waiters) {
        struct rk_waiter *w = rk_list_entry(l, struct rk_waiter, of_owner);
        rk_names_refuse(n, RK_SOMEBODY_LOST, &w->asker);
        rk_names_remove_waiter(w);
    }
    rk_names_drop_idle(n, o);
}

void rk_names_app_ended(struct rk_names *n, uint32_t job, uint32_t app)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &n->all) {
        struct rk_name *name = rk_list_entry(l, struct rk_name, link);
        if (name->owner->job == job && (app == RK_ALL_RANKS || name->app == app) && name->keep != RK_KEEP_ALWAYS)
            rk_names_drop(n, name);
    }
}

rank_status_t rk_names_open(struct event_base *base, rk_names_answer_fn answer, void *arg,
                            struct rk_names **out)
{
    struct rk_names *n = calloc(1, sizeof(*n));

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

void rk_names_close(struct rk_names *n)
{
    if (!n)
        return;
    while (!rk_list_empty(&n->waiting))
        rk_names_drop_waiter(rk_list_entry(n->waiting.next, struct rk_waiter, link));
    while (!rk_list_empty(&n->all))
        rk_names_drop(n, rk_list_entry(n->all.next, struct rk_name, link));
    rk_table_clear(&n->names);
    rk_table_clear(&n->wanted);
    rk_table_clear(&n->owners);
    free(n);
}
