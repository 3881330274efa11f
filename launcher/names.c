/* names.c: see names.h. */
#include "launcher/names.h"
#include "lib/base/list.h"

#include <stdlib.h>
#include <string.h>

/* Keys and values of all jobs: what is published is an address or the like. */
#define LIMIT (16u << 20)
#define WAITERS 100000u

struct name {
    struct rk_link link;
    struct rk_names_who who;
    uint32_t range, keep;
    char *key;
    void *value;
    size_t len;
};

struct waiter {
    struct rk_link link;
    struct rk_names *names;
    struct rk_names_who who;
    uint32_t range, want;
    char **keys;
    void *token;
    struct event *timer;
};

struct rk_names {
    struct event_base *base;
    rk_names_answer_fn answer;
    void *arg;
    struct rk_link all, waiters;
    size_t bytes;
    uint32_t nwaiters;
};

static void drop(struct rk_names *n, struct name *name)
{
    rk_list_remove(&name->link);
    n->bytes -= strlen(name->key) + name->len;
    free(name->key);
    free(name->value);
    free(name);
}

static void drop_waiter(struct waiter *w)
{
    rk_list_remove(&w->link);
    w->names->nwaiters--;
    if (w->timer)
        event_free(w->timer);
    rk_strings_free(w->keys);
    free(w);
}

static bool within(uint32_t range, const struct rk_names_who *a, const struct rk_names_who *b)
{
    switch (range) {
    case RK_RANGE_JOB:
        return a->job == b->job;
    case RK_RANGE_HOST:
        return strcmp(a->host, b->host) == 0;
    case RK_RANGE_PROCESS:
        return a->job == b->job && a->rank == b->rank;
    default:
        return true;
    }
}

/* The publisher says who may see it, and who looks says where. */
static struct name *find(struct rk_names *n, const char *key, uint32_t range,
                         const struct rk_names_who *who)
{
    for (struct rk_link *l = n->all.next; l != &n->all; l = l->next) {
        struct name *name = rk_list_entry(l, struct name, link);
        if (strcmp(name->key, key) == 0 && within(name->range, &name->who, who) &&
            within(range, &name->who, who))
            return name;
    }
    return NULL;
}

/* Would one who looks for the key find two? */
static bool is_there(struct rk_names *n, const char *key, uint32_t range, const struct rk_names_who *who)
{
    for (struct rk_link *l = n->all.next; l != &n->all; l = l->next) {
        struct name *name = rk_list_entry(l, struct name, link);
        if (strcmp(name->key, key) == 0 && name->range == range && within(range, &name->who, who))
            return true;
    }
    return false;
}

/* --------------------------------------------------------------------- looking up */

static uint32_t count(struct rk_names *n, const struct rk_names_who *who, uint32_t range, char **keys,
                      uint32_t *of)
{
    uint32_t found = 0;

    for (*of = 0; keys[*of]; ++*of)
        found += find(n, keys[*of], range, who) != NULL;
    return found;
}

static void give(struct rk_names *n, const struct rk_names_who *who, uint32_t range, char **keys,
                 enum rk_errand_status status, void *token)
{
    struct rk_packer p = {0};
    uint32_t of, found = count(n, who, range, keys, &of), given = 0;

    rk_pack_u32(&p, found);
    for (uint32_t i = 0; i < of && given < found; i++) {
        struct name *name = find(n, keys[i], range, who);
        if (!name)
            continue;
        rk_pack_string(&p, name->key);
        rk_pack_string(&p, name->who.id);
        rk_pack_u32(&p, name->who.rank);
        rk_pack_bytes(&p, name->value, name->len);
        given++;
    }
    /* Only now: a key can be asked for twice. */
    for (uint32_t i = 0; i < of; i++) {
        struct name *name = find(n, keys[i], range, who);
        if (name && name->keep == RK_KEEP_ONE_READ)
            drop(n, name);
    }
    if (status == RK_DONE && found < of)
        status = found ? RK_DONE_PARTLY : RK_NOT_FOUND;
    n->answer(n->arg, token, status, &p);
}

static void refuse(struct rk_names *n, enum rk_errand_status status, void *token)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, 0);
    n->answer(n->arg, token, status, &p);
}

/* A waiter that has what it wants gets it. */
static bool serve(struct waiter *w)
{
    uint32_t of, found = count(w->names, &w->who, w->range, w->keys, &of);

    if (found < (w->want == RK_LOOKUP_ALL || w->want > of ? of : w->want))
        return false;
    give(w->names, &w->who, w->range, w->keys, RK_DONE, w->token);
    drop_waiter(w);
    return true;
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct waiter *w = arg;

    (void)fd;
    (void)what;
    refuse(w->names, RK_TOO_LATE, w->token);
    drop_waiter(w);
}

static bool set_timer(struct waiter *w, uint32_t ms)
{
    struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    if (ms == 0)
        return true;
    w->timer = evtimer_new(w->names->base, on_timeout, w);
    return w->timer && event_add(w->timer, &t) == 0;
}

void rk_names_look_up(struct rk_names *n, const struct rk_names_who *who, struct rk_unpacker *u,
                      void *token)
{
    uint32_t range = rk_unpack_u32(u), want = rk_unpack_u32(u), ms = rk_unpack_u32(u);
    char **keys = rk_unpack_strings(u);
    struct waiter *w;

    if (!rk_unpack_done(u) || !keys || !keys[0]) {
        rk_strings_free(keys);
        refuse(n, RK_REFUSED, token);
        return;
    }
    if (want == RK_LOOKUP_NOW) {
        give(n, who, range, keys, RK_DONE, token);
        rk_strings_free(keys);
        return;
    }
    w = n->nwaiters < WAITERS ? calloc(1, sizeof(*w)) : NULL;
    if (!w) {
        rk_strings_free(keys);
        refuse(n, RK_NO_ROOM, token);
        return;
    }
    *w = (struct waiter){.names = n, .who = *who, .range = range, .want = want, .keys = keys, .token = token};
    n->nwaiters++;
    rk_list_append(&n->waiters, &w->link);
    if (serve(w))
        return;
    if (!set_timer(w, ms)) {
        drop_waiter(w);
        refuse(n, RK_NO_ROOM, token);
    }
}

/* ------------------------------------------------------------------------- publishing */

static enum rk_errand_status add(struct rk_names *n, const struct rk_names_who *who, uint32_t range,
                                 uint32_t keep, const char *key, const void *value, size_t len)
{
    struct name *name;

    if (is_there(n, key, range, who))
        return RK_THERE_ALREADY;
    if (len > LIMIT || strlen(key) > LIMIT || n->bytes + strlen(key) + len > LIMIT)
        return RK_NO_ROOM;
    name = calloc(1, sizeof(*name));
    if (!name)
        return RK_NO_ROOM;
    *name = (struct name){.who = *who, .range = range, .keep = keep, .key = strdup(key), .len = len,
                          .value = malloc(len ? len : 1)};
    if (!name->key || !name->value) {
        free(name->key);
        free(name->value);
        free(name);
        return RK_NO_ROOM;
    }
    memcpy(name->value, value, len);
    n->bytes += strlen(key) + len;
    rk_list_append(&n->all, &name->link);
    return RK_DONE;
}

static void serve_all(struct rk_names *n)
{
    for (struct rk_link *l = n->waiters.next, *next; l != &n->waiters; l = next) {
        next = l->next;
        serve(rk_list_entry(l, struct waiter, link));
    }
}

enum rk_errand_status rk_names_publish(struct rk_names *n, const struct rk_names_who *who,
                                       struct rk_unpacker *u)
{
    uint32_t range = rk_unpack_u32(u), keep = rk_unpack_u32(u), items = rk_unpack_u32(u);
    enum rk_errand_status st = u->failed || items == 0 ? RK_REFUSED : RK_DONE;

    for (uint32_t i = 0; i < items && st == RK_DONE; i++) {
        const char *key = rk_unpack_string(u);
        size_t len;
        const void *value = rk_unpack_bytes(u, &len);
        st = u->failed || !key ? RK_REFUSED : add(n, who, range, keep, key, value, len);
    }
    serve_all(n);
    return st;
}

enum rk_errand_status rk_names_unpublish(struct rk_names *n, const struct rk_names_who *who,
                                         struct rk_unpacker *u)
{
    char **keys = rk_unpack_strings(u);
    uint32_t gone = 0;

    if (!rk_unpack_done(u) || !keys) {
        rk_strings_free(keys);
        return RK_REFUSED;
    }
    /* Only what the asker's own job has published; without keys, only what he himself has. */
    for (struct rk_link *l = n->all.next, *next; l != &n->all; l = next) {
        struct name *name = rk_list_entry(l, struct name, link);
        bool wanted = !keys[0] && name->who.rank == who->rank;
        next = l->next;
        for (char **k = keys; *k && !wanted; k++)
            wanted = strcmp(*k, name->key) == 0;
        if (wanted && name->who.job == who->job) {
            drop(n, name);
            gone++;
        }
    }
    rk_strings_free(keys);
    return gone ? RK_DONE : RK_NOT_FOUND;
}

/* ------------------------------------------------------------------------------- ends */

void rk_names_ended(struct rk_names *n, uint32_t job, uint32_t rank, bool failed)
{
    for (struct rk_link *l = n->all.next, *next; l != &n->all; l = next) {
        struct name *name = rk_list_entry(l, struct name, link);
        next = l->next;
        if (name->who.job == job && name->who.rank == rank &&
            (failed || name->keep == RK_KEEP_PROCESS))
            drop(n, name);
    }
    for (struct rk_link *l = n->waiters.next, *next; l != &n->waiters; l = next) {
        struct waiter *w = rk_list_entry(l, struct waiter, link);
        next = l->next;
        if (w->who.job == job && w->who.rank == rank) {
            refuse(n, RK_SOMEBODY_LOST, w->token);
            drop_waiter(w);
        }
    }
}

void rk_names_app_ended(struct rk_names *n, uint32_t job, uint32_t app)
{
    for (struct rk_link *l = n->all.next, *next; l != &n->all; l = next) {
        struct name *name = rk_list_entry(l, struct name, link);
        next = l->next;
        if (name->who.job == job && (app == RK_ALL_RANKS || name->who.app == app) &&
            name->keep != RK_KEEP_ALWAYS)
            drop(n, name);
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
    rk_list_init(&n->waiters);
    *out = n;
    return RANK_OK;
}

void rk_names_close(struct rk_names *n)
{
    if (!n)
        return;
    while (!rk_list_empty(&n->waiters))
        drop_waiter(rk_list_entry(n->waiters.next, struct waiter, link));
    while (!rk_list_empty(&n->all))
        drop(n, rk_list_entry(n->all.next, struct name, link));
    free(n);
}
