/* SPDX-License-Identifier: BSD-3-Clause */
/* nameserver_wait.c: look-ups, and who waits until what he looks for is published. See nameserver.h. */
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/nameserver_internal.h"

#include <stdlib.h>
#include <string.h>

#define WAITERS 100000u
#define KEYS 1000000u /* that are waited for */

static void drop_wish(struct xr_names *n, struct xr_wish *w)
{
    if (!w->wanted)
        return;
    rk_list_remove(&w->link);
    if (rk_list_empty(&w->wanted->wishes)) {
        xr_table_remove(&n->wanted, &w->wanted->item);
        free(w->wanted);
    }
}

/* As remove_name. */
void xr_names_remove_waiter(struct xr_waiter *w)
{
    struct xr_names *n = w->names;

    for (uint32_t i = 0; w->wishes && i < w->nkeys; i++)
        drop_wish(n, &w->wishes[i]);
    rk_list_remove(&w->link);
    rk_list_remove(&w->of_owner);
    rk_list_remove(&w->ready);
    n->nwaiters--;
    n->nkeys -= w->nkeys;
    if (w->timer)
        event_free(w->timer);
    xr_strings_free(w->keys);
    free(w->wishes);
    free(w);
}

void xr_names_drop_waiter(struct xr_waiter *w)
{
    struct xr_names *n = w->names;
    struct xr_names_owner *o = w->owner;

    xr_names_remove_waiter(w);
    xr_names_drop_idle(n, o);
}

static struct xr_wanted *wanted_of(struct xr_names *n, const char *key, uint32_t hash)
{
    for (struct xr_table_item *i = xr_table_first(&n->wanted, hash); i; i = xr_table_next(i)) {
        struct xr_wanted *w = rk_list_entry(i, struct xr_wanted, item);
        if (strcmp(w->key, key) == 0)
            return w;
    }
    return NULL;
}

static bool wish_for(struct xr_names *n, struct xr_wish *w, const char *key)
{
    size_t len = strlen(key);
    uint32_t hash = xr_table_hash(0, key, len);
    struct xr_wanted *wanted = wanted_of(n, key, hash);

    if (!wanted) {
        wanted = malloc(sizeof(*wanted) + len + 1);
        if (!wanted || !xr_table_add(&n->wanted, &wanted->item, hash)) {
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

static uint32_t nameserver_wait_count(struct xr_names *n, const struct xr_names_who *who, uint32_t range, char **keys,
                      uint32_t *of)
{
    uint32_t found = 0;

    for (*of = 0; keys[*of]; ++*of)
        found += xr_names_find(n, keys[*of], range, who) != NULL;
    return found;
}

static void nameserver_wait_give(struct xr_names *n, const struct xr_names_who *who, uint32_t range, char **keys,
                 const struct xr_asker *asker)
{
    struct xr_packer p = {0};
    uint32_t of, found = nameserver_wait_count(n, who, range, keys, &of);

    xr_pack_u32(&p, found);
    for (uint32_t i = 0; i < of; i++) {
        struct xr_name *name = xr_names_find(n, keys[i], range, who);
        if (!name)
            continue;
        xr_pack_string(&p, name->key);
        xr_pack_string(&p, name->id);
        xr_pack_u32(&p, name->owner->rank);
        xr_pack_bytes(&p, name->value, name->len);
    }
    if (p.failed || p.len > XR_MESSAGE_MAX / 2) { /* more than a message holds would break the link */
        xr_packer_free(&p);
        xr_names_refuse(n, XR_NO_ROOM, asker);
        return;
    }
    /* Only now: a key can be asked for twice. */
    for (uint32_t i = 0; i < of; i++) {
        struct xr_name *name = xr_names_find(n, keys[i], range, who);
        if (name && name->keep == XR_KEEP_ONE_READ)
            xr_names_drop(n, name);
    }
    n->answer(n->arg, asker, found == of ? XR_DONE : found ? XR_DONE_PARTLY : XR_NOT_FOUND, &p);
}

void xr_names_refuse(struct xr_names *n, enum xr_errand_status status, const struct xr_asker *asker)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, 0);
    n->answer(n->arg, asker, status, &p);
}

/* A waiter that has what it wants gets it. */
static bool nameserver_wait_serve(struct xr_waiter *w)
{
    uint32_t of;

    w->found = nameserver_wait_count(w->names, &w->who, w->range, w->keys, &of);
    if (w->found < w->want)
        return false;
    nameserver_wait_give(w->names, &w->who, w->range, w->keys, &w->asker);
    xr_names_drop_waiter(w);
    return true;
}

/* Somebody may wait for it. */
void xr_names_announce(struct xr_names *n, const struct xr_name *name)
{
    const struct xr_wanted *wanted = wanted_of(n, name->key, xr_table_hash(0, name->key, strlen(name->key)));

    for (struct rk_link *l = wanted ? wanted->wishes.next : NULL; l && l != &wanted->wishes; l = l->next) {
        struct xr_waiter *w = rk_list_entry(l, struct xr_wish, link)->waiter;
        if (!xr_names_within(name->range, name, &w->who) || !xr_names_within(w->range, name, &w->who))
            continue;
        if (++w->found >= w->want && rk_list_empty(&w->ready))
            rk_list_append(&n->ready, &w->ready);
    }
}

void xr_names_serve(struct xr_names *n)
{
    while (!rk_list_empty(&n->ready)) {
        struct xr_waiter *w = rk_list_entry(n->ready.next, struct xr_waiter, ready);
        rk_list_remove(&w->ready);
        nameserver_wait_serve(w);
    }
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct xr_waiter *w = arg;

    (void)fd;
    (void)what;
    xr_names_refuse(w->names, XR_TOO_LATE, &w->asker);
    xr_names_drop_waiter(w);
}

static bool nameserver_wait_set_timer(struct xr_waiter *w, uint32_t ms)
{
    struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    if (ms == 0)
        return true;
    w->timer = evtimer_new(w->names->base, on_timeout, w);
    return w->timer && event_add(w->timer, &t) == 0;
}

/* Takes keys over. NULL: no room. */
static struct xr_waiter *add_waiter(struct xr_names *n, const struct xr_names_who *who, char **keys, uint32_t nkeys)
{
    bool room = n->nwaiters < WAITERS && nkeys <= KEYS - n->nkeys;
    struct xr_waiter *w = room ? calloc(1, sizeof(*w)) : NULL;
    struct xr_names_owner *o = w ? xr_names_make_owner(n, who) : NULL;

    if (!o) {
        xr_strings_free(keys);
        free(w);
        return NULL;
    }
    *w = (struct xr_waiter){.names = n, .who = *who, .keys = keys, .nkeys = nkeys, .owner = o};
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
        xr_names_drop_waiter(w);
        return NULL;
    }
    if (w->wishes)
        return w;
    xr_names_drop_waiter(w);
    return NULL;
}

void xr_names_look_up(struct xr_names *n, const struct xr_names_who *who, struct xr_unpacker *u,
                      const struct xr_asker *asker)
{
    uint32_t range = xr_unpack_u32(u), want = xr_unpack_u32(u), ms = xr_unpack_u32(u), nkeys = 0;
    char **keys = xr_unpack_strings(u);
    struct xr_waiter *w;

    if (!xr_unpack_done(u) || !keys || !keys[0]) {
        xr_strings_free(keys);
        xr_names_refuse(n, XR_REFUSED, asker);
        return;
    }
    if (want == XR_LOOKUP_NOW) {
        nameserver_wait_give(n, who, range, keys, asker);
        xr_strings_free(keys);
        return;
    }
    while (keys[nkeys])
        nkeys++;
    w = add_waiter(n, who, keys, nkeys);
    if (!w) {
        xr_names_refuse(n, XR_NO_ROOM, asker);
        return;
    }
    w->range = range;
    w->want = want == XR_LOOKUP_ALL || want > nkeys ? nkeys : want;
    w->asker = *asker;
    if (nameserver_wait_serve(w))
        return;
    if (!nameserver_wait_set_timer(w, ms)) {
        xr_names_drop_waiter(w);
        xr_names_refuse(n, XR_NO_ROOM, asker);
    }
}
