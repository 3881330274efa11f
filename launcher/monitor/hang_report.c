/* SPDX-License-Identifier: BSD-3-Clause */
/* hang_report.c: see hang_report.h. */
#include "launcher/monitor/hang_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CYCLE_SHOWN 16 /* ranks of a longer cycle are left out */

/* The wait of several ranks. Freed with the last of them. */
struct shared_wait {
    struct xr_hang_wait wait;
    uint32_t refs;
};

struct xr_hang {
    uint32_t size, waiting;
    struct shared_wait **of; /* [size]; NULL: does not wait */
};

struct xr_hang *xr_hang_open(uint32_t size)
{
    struct xr_hang *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->size = size;
    h->of = calloc(size, sizeof(struct shared_wait *));
    if (!h->of) {
        free(h);
        return NULL;
    }
    return h;
}

static void release_wait(struct shared_wait *s)
{
    if (--s->refs)
        return;
    free((char *)(uintptr_t)s->wait.text);
    free(s);
}

void xr_hang_drop(struct xr_hang *h, uint32_t rank)
{
    if (rank >= h->size || !h->of[rank])
        return;
    release_wait(h->of[rank]);
    h->of[rank] = NULL;
    h->waiting--;
}

void xr_hang_close(struct xr_hang *h)
{
    if (!h)
        return;
    for (uint32_t i = 0; i < h->size; i++)
        xr_hang_drop(h, i);
    free(h->of);
    free(h);
}

void xr_hang_add(struct xr_hang *h, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait)
{
    struct shared_wait *s = malloc(sizeof(*s));
    char *text = strdup(wait->text);

    if (!s || !text) {
        free(s);
        free(text);
        return;
    }
    *s = (struct shared_wait){.wait = *wait, .refs = 1};
    s->wait.text = text;
    if (s->wait.npeers > RK_BOARD_PEERS)
        s->wait.npeers = RK_BOARD_PEERS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = (uint32_t)ranks[i];
        if (rank >= h->size)
            continue;
        xr_hang_drop(h, rank);
        h->of[rank] = s;
        h->waiting++;
        s->refs++;
    }
    release_wait(s);
}

uint32_t xr_hang_count(const struct xr_hang *h)
{
    return h->waiting;
}

/* ------------------------------------------------------------------------- lines */

static bool hang_report_is_alike(const struct shared_wait *a, const struct shared_wait *b)
{
    return a == b || (a->wait.unnamed == b->wait.unnamed && strcmp(a->wait.text, b->wait.text) == 0);
}

uint32_t xr_hang_lines(const struct xr_hang *h,
                       void (*line)(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *wait),
                       void *arg)
{
    bool *printed = calloc(h->size, sizeof(*printed));
    int32_t *alike = malloc(h->size * sizeof(*alike));
    uint32_t left = h->waiting;

    for (uint32_t i = 0, lines = 0; printed && alike && i < h->size && lines < XR_HANG_LINES; i++) {
        uint32_t n = 0;
        if (!h->of[i] || printed[i])
            continue;
        for (uint32_t k = i; k < h->size; k++) {
            if (!h->of[k] || printed[k] || !hang_report_is_alike(h->of[i], h->of[k]))
                continue;
            printed[k] = true;
            alike[n++] = (int32_t)k;
        }
        line(arg, alike, n, &h->of[i]->wait);
        left -= n;
        lines++;
    }
    free(printed);
    free(alike);
    return left;
}

/* ------------------------------------------------------------------------- cycle */

struct cycle_search {
    const struct xr_hang *hang;
    uint32_t *path; /* ranks, each of which waits for the next */
    uint32_t *next; /* [size]: index of the peer to follow next */
    bool *on_path, *finished; /* [size] */
    uint32_t depth;
};

static void push_rank(struct cycle_search *s, uint32_t rank)
{
    s->path[s->depth++] = rank;
    s->on_path[rank] = true;
}

/* Return the next peer of a rank that waits itself, or -1. */
static int64_t next_waiting(struct cycle_search *s, uint32_t rank)
{
    const struct xr_hang_wait *w = &s->hang->of[rank]->wait;

    while (s->next[rank] < w->npeers) {
        int32_t peer = w->peers[s->next[rank]++];
        if (peer >= 0 && (uint32_t)peer < s->hang->size && s->hang->of[peer] && !s->finished[peer])
            return peer;
    }
    return -1;
}

/* Search depth first from a rank. Returns the index in the path where a cycle begins, or -1. */
static int64_t find_cycle(struct cycle_search *s, uint32_t first)
{
    push_rank(s, first);
    while (s->depth) {
        uint32_t at = s->path[s->depth - 1];
        int64_t peer = next_waiting(s, at);
        if (peer < 0) {
            s->on_path[at] = false;
            s->finished[at] = true;
            s->depth--;
        } else if (s->on_path[peer]) {
            uint32_t begin = 0;
            while (s->path[begin] != (uint32_t)peer)
                begin++;
            return begin;
        } else {
            push_rank(s, (uint32_t)peer);
        }
    }
    return -1;
}

static void write_cycle(const uint32_t *ring, uint32_t n, char *out, size_t len)
{
    uint32_t lowest = 0, shown = n > CYCLE_SHOWN ? CYCLE_SHOWN : n;
    size_t at = 0;

    for (uint32_t i = 1; i < n; i++)
        lowest = ring[i] < ring[lowest] ? i : lowest;
    for (uint32_t i = 0; i < shown && at < len; i++)
        at += (size_t)snprintf(out + at, len - at, "%u -> ", ring[(lowest + i) % n]);
    if (at < len && shown < n)
        at += (size_t)snprintf(out + at, len - at, "... (%u more) -> ", n - shown);
    if (at < len)
        snprintf(out + at, len - at, "%u", ring[lowest]);
}

bool xr_hang_cycle(const struct xr_hang *h, char *out, size_t len)
{
    struct cycle_search s = {.hang = h,
                       .path = calloc(h->size, sizeof(uint32_t)),
                       .next = calloc(h->size, sizeof(uint32_t)),
                       .on_path = calloc(h->size, 1),
                       .finished = calloc(h->size, 1)};
    int64_t begin = -1;

    for (uint32_t i = 0; s.path && s.next && s.on_path && s.finished && begin < 0 && i < h->size; i++) {
        if (h->of[i] && !s.finished[i])
            begin = find_cycle(&s, i);
    }
    if (begin >= 0)
        write_cycle(s.path + begin, s.depth - (uint32_t)begin, out, len);
    free(s.path);
    free(s.next);
    free(s.on_path);
    free(s.finished);
    return begin >= 0;
}
