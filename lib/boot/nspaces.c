/* SPDX-License-Identifier: BSD-3-Clause */
/* nspaces.c: map namespaces of other jobs to numbers. */
#include "lib/boot/nspaces.h"
#include "lib/base/list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE_REPORTS_MAX = 256 }; /* reports about unregistered namespaces */

struct space {
    struct space *next;
    int first, size;
    char name[RK_NSPACE_MAX];
};

struct heard {
    struct rk_link link;
    int rank;
    char name[RK_NSPACE_MAX];
};

struct rk_nspaces {
    pthread_mutex_t lock;
    struct space *known;
    struct rk_link heard; /* oldest first */
    int nheard;
};

struct rk_nspaces *rk_nspaces_new(void)
{
    struct rk_nspaces *s = calloc(1, sizeof(*s));

    if (s) {
        pthread_mutex_init(&s->lock, NULL);
        rk_list_init(&s->heard);
    }
    return s;
}

static void nspaces_drop(struct rk_nspaces *s, struct heard *h)
{
    rk_list_remove(&h->link);
    s->nheard--;
    free(h);
}

void rk_nspaces_free(struct rk_nspaces *s)
{
    if (!s)
        return;
    while (s->known) {
        struct space *one = s->known;
        s->known = one->next;
        free(one);
    }
    while (!rk_list_empty(&s->heard))
        nspaces_drop(s, rk_list_entry(s->heard.next, struct heard, link));
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct space *nspaces_find(struct rk_nspaces *s, const char *name)
{
    for (struct space *one = s->known; one; one = one->next) {
        if (strcmp(one->name, name) == 0)
            return one;
    }
    return NULL;
}

static void nspaces_deliver(const struct space *one, int rank, rk_boot_death_fn fn, void *arg)
{
    int from = rank == RK_NSPACE_ALL ? 0 : rank, to = rank == RK_NSPACE_ALL ? one->size : rank + 1;

    for (int r = from; r < to && r < one->size; r++)
        fn(one->first + r, arg);
}

rank_status_t rk_nspaces_register(struct rk_nspaces *s, const char *name, int first, int size,
                                  rk_boot_death_fn fn, void *arg)
{
    struct space *one = NULL;
    struct rk_link *l, *next;
    rank_status_t st = RANK_OK;

    pthread_mutex_lock(&s->lock);
    if (!nspaces_find(s, name) && (one = calloc(1, sizeof(*one))) == NULL)
        st = RANK_ERR_NO_MEMORY;
    if (one) {
        snprintf(one->name, sizeof(one->name), "%s", name);
        one->first = first;
        one->size = size;
        one->next = s->known;
        s->known = one;
        rk_list_for_each_safe(l, next, &s->heard)
        {
            struct heard *h = rk_list_entry(l, struct heard, link);
            if (strcmp(h->name, name) != 0)
                continue;
            nspaces_deliver(one, h->rank, fn, arg);
            nspaces_drop(s, h);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

void rk_nspaces_unregister(struct rk_nspaces *s, int first)
{
    pthread_mutex_lock(&s->lock);
    for (struct space **at = &s->known; *at; at = &(*at)->next) {
        struct space *one = *at;
        if (one->first != first)
            continue;
        *at = one->next;
        free(one);
        break;
    }
    pthread_mutex_unlock(&s->lock);
}

bool rk_nspaces_find(struct rk_nspaces *s, int number, char name[RK_NSPACE_MAX], int *rank)
{
    bool found = false;

    pthread_mutex_lock(&s->lock);
    for (const struct space *one = s->known; one && !found; one = one->next) {
        found = number >= one->first && number - one->first < one->size;
        if (!found)
            continue;
        memcpy(name, one->name, sizeof(one->name));
        *rank = number - one->first;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void nspaces_store(struct rk_nspaces *s, const char *name, int rank)
{
    struct heard *h = calloc(1, sizeof(*h));

    if (!h)
        return;
    if (s->nheard == SPACE_REPORTS_MAX)
        nspaces_drop(s, rk_list_entry(s->heard.next, struct heard, link));
    snprintf(h->name, sizeof(h->name), "%s", name);
    h->rank = rank;
    rk_list_append(&s->heard, &h->link);
    s->nheard++;
}

void rk_nspaces_ended(struct rk_nspaces *s, const char *name, int rank, rk_boot_death_fn fn, void *arg)
{
    const struct space *one;

    pthread_mutex_lock(&s->lock);
    one = nspaces_find(s, name);
    if (one)
        nspaces_deliver(one, rank, fn, arg);
    else
        nspaces_store(s, name, rank);
    pthread_mutex_unlock(&s->lock);
}
