/* nameserver_wait.c: look-ups, and who waits until what he looks for is published. See names.h. */
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/nameserver_internal.h"

#include <stdlib.h>
#include <string.h>

#define WAITERS 100000u
#define KEYS 1000000u /* that are waited for */

static void drop_wish(struct rk_names *n, struct rk_wish *w)
{
    if (!w->wanted)
        return;
    rk_list_remove(&w->link);
    if (rk_list_empty(&w->wanted->wishes)) {
        rk_table_remove(&n->wanted, &w->wanted->item);
        free(w->wanted);
    }
}

/* As remove_name. */
void rk_names_remove_waiter(struct rk_waiter *w)
{
    struct rk_names *n = w->names;

    for (uint32_t i = 0; w->wishes && i < w->nkeys; i++)
        drop_wish(n, &w->wishes[i]);
    rk_list_remove(&w->link);
    rk_list_remove(&w->of_owner);
    rk_list_remove(&w->ready);
    n->nwaiters--;
    n->nkeys -= w->nkeys;
    if (w->timer)
        event_free(w->timer);
    rk_strings_free(w->keys);
    free(w->wishes);
    free(w);
}

void rk_names_drop_waiter(struct rk_waiter *w)
{
    struct rk_names *n = w->names;
    struct rk_names_owner *o = w->owner;

    rk_names_remove_waiter(w);
    rk_names_drop_idle(n, o);
}

static struct rk_wanted *wanted_of(struct rk_names *n, const char *key, uint32_t hash)
{
    for (struct rk_table_item *i = rk_table_first(&n->wanted, hash); i; i = rk_table_next(i)) {
        struct rk_wanted *w = rk_list_entry(i, struct rk_wanted, item);
        if (strcmp(w->key, key) == 0)
            return w;
    }
    return NULL;
}

static bool wish_for(struct rk_names *n, struct rk_wish *w, const char *key)
{
    size_t len = strlen(key);
    uint32_t hash = rk_table_hash(0, key, len);
    struct rk_wanted *wanted = wanted_of(n, key, hash);

    if (!wanted) {
        wanted = malloc(sizeof(*wanted) + len + 1);
        if (!wanted || !rk_table_add(&n->wanted, &wanted->item, hash)) {
            free(wanted);
            return false;
        }
        memcpy(wanted->key, key, len + 1);
        rk_list_init(&wanted->wishes);
    }
    w->wanted = wanted;
    rk_list_append(&wanted->wishes, &w->link);
    return true;
}

static uint32_t count(struct rk_names *n, const struct rk_names_who *who, uint32_t range, char **keys,
                      uint32_t *of)
{
    uint32_t found = 0;

    for (*of = 0; keys[*of]; ++*of)
        found += rk_names_find(n, keys[*of], range, who) != NULL;
    return found;
}

static void give(struct rk_names *n, const struct rk_names_who *who, uint32_t range, char **keys,
                 const struct rk_asker *asker)
{
    struct rk_packer p = {0};
    uint32_t of, found = count(n, who, range, keys, &of);

    rk_pack_u32(&p, found);
    for (uint32_t i = 0; i < of; i++) {
        struct rk_name *name = rk_names_find(n, keys[i], range, who);
        if (!name)
            continue;
        rk_pack_string(&p, name->key);
        rk_pack_string(&p, name->id);
        rk_pack_u32(&p, name->owner->rank);
        rk_pack_bytes(&p, name->value, name->len);
    }
    if (p.failed || p.len > RK_MESSAGE_MAX / 2) { /* more than a message holds would break the link */
        rk_packer_free(&p);
        rk_names_refuse(n, RK_NO_ROOM, asker);
        return;
    }
    /* Only now: a key can be asked for twice. */
    for (uint32_t i = 0; i < of; i++) {
        struct rk_name *name = rk_names_find(n, keys[i], range, who);
        if (name && name->keep == RK_KEEP_ONE_READ)
            rk_names_drop(n, name);
    }
    n->answer(n->arg, asker, found == of ? RK_DONE : found ? RK_DONE_PARTLY : RK_NOT_FOUND, &p);
}

void rk_names_refuse(struct rk_names *n, enum rk_errand_status status, const struct rk_asker *asker)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, 0);
    n->answer(n->arg, asker, status, &p);
}

/* A waiter that has what it wants gets it. */
static bool serve(struct rk_waiter *w)
{
    uint32_t of;

    w->found = count(w->names, &w->who, w->range, w->keys, &of);
    if (w->found < w->want)
        return false;
    give(w->names, &w->who, w->range, w->keys, &w->asker);
    rk_names_drop_waiter(w);
    return true;
}

/* Somebody may wait for it. */
void rk_names_announce(struct rk_names *n, const struct rk_name *name)
{
    const struct rk_wanted *wanted = wanted_of(n, name->key, rk_table_hash(0, name->key, strlen(name->key)));

    for (struct rk_link *l = wanted ? wanted->wishes.next : NULL; l && l != &wanted->wishes; l = l->next) {
        struct rk_waiter *w = rk_list_entry(l, struct rk_wish, link)->waiter;
        if (!rk_names_within(name->range, name, &w->who) || !rk_names_within(w->range, name, &w->who))
            continue;
        if (++w->found >= w->want && rk_list_empty(&w->ready))
            rk_list_append(&n->ready, &w->ready);
    }
}

void rk_names_serve(struct rk_names *n)
{
    while (!rk_list_empty(&n->ready)) {
        struct rk_waiter *w = rk_list_entry(n->ready.next, struct rk_waiter, ready);
        rk_list_remove(&w->ready);
        serve(w);
    }
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct rk_waiter *w = arg;

    (void)fd;
    (void)what;
    rk_names_refuse(w->names, RK_TOO_LATE, &w->asker);
    rk_names_drop_waiter(w);
}

static bool set_timer(struct rk_waiter *w, uint32_t ms)
{
    struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    if (ms == 0)
        return true;
    w->timer = evtimer_new(w->names->base, on_timeout, w);
    return w->timer && event_add(w->timer, &t) == 0;
}

/* Takes keys over. NULL: no room. */
static struct rk_waiter *add_waiter(struct rk_names *n, const struct rk_names_who *who, char **keys, uint32_t nkeys)
{
    bool room = n->nwaiters < WAITERS && nkeys <= KEYS - n->nkeys;
    struct rk_waiter *w = room ? calloc(1, sizeof(*w)) : NULL;
    struct rk_names_owner *o = w ? rk_names_make_owner(n, who) : NULL;

    if (!o) {
        rk_strings_free(keys);
        free(w);
        return NULL;
    }
    *w = (struct rk_waiter){.names = n, .who = *who, .keys = keys, .nkeys = nkeys, .owner = o};
    w->wishes = calloc(nkeys, sizeof(*w->wishes));
    rk_list_append(&n->waiting, &w->link);
    rk_list_append(&o->waiters, &w->of_owner);
    rk_list_init(&w->ready);
    n->nwaiters++;
    n->nkeys += nkeys;
    for (uint32_t i = 0; w->wishes && i < nkeys; i++) {
        w->wishes[i].waiter = w;
        if (wish_for(n, &w->wishes[i], keys[i]))
            continue;
        rk_names_drop_waiter(w);
        return NULL;
    }
    if (w->wishes)
        return w;
    rk_names_drop_waiter(w);
    return NULL;
}

void rk_names_look_up(struct rk_names *n, const struct rk_names_who *who, struct rk_unpacker *u,
                      const struct rk_asker *asker)
{
    uint32_t range = rk_unpack_u32(u), want = rk_unpack_u32(u), ms = rk_unpack_u32(u), nkeys = 0;
    char **keys = rk_unpack_strings(u);
    struct rk_waiter *w;

    if (!rk_unpack_done(u) || !keys || !keys[0]) {
        rk_strings_free(keys);
        rk_names_refuse(n, RK_REFUSED, asker);
        return;
    }
    if (want == RK_LOOKUP_NOW) {
        give(n, who, range, keys, asker);
        rk_strings_free(keys);
        return;
    }
    while (keys[nkeys])
        nkeys++;
    w = add_waiter(n, who, keys, nkeys);
    if (!w) {
        rk_names_refuse(n, RK_NO_ROOM, asker);
        return;
    }
    w->range = range;
    w->want = want == RK_LOOKUP_ALL || want > nkeys ? nkeys : want;
    w->asker = *asker;
    if (serve(w))
        return;
    if (!set_timer(w, ms)) {
        rk_names_drop_waiter(w);
        rk_names_refuse(n, RK_NO_ROOM, asker);
    }
}
