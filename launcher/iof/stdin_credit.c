/* SPDX-License-Identifier: BSD-3-Clause */
/* stdin_credit.c: see stdin_credit.h. */
#include "launcher/iof/stdin_credit.h"

#include <stdlib.h>

struct xr_stdin_credit {
    uint32_t n, reading;
    uint64_t sent, credited;
    uint64_t *taken; /* by host; UINT64_MAX: it reads no more */
};

struct xr_stdin_credit *xr_stdin_credit_open(uint32_t n)
{
    struct xr_stdin_credit *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->taken = calloc(n, sizeof(*f->taken));
    if (!f->taken) {
        free(f);
        return NULL;
    }
    f->n = f->reading = n;
    return f;
}

void xr_stdin_credit_close(struct xr_stdin_credit *f)
{
    if (!f)
        return;
    free(f->taken);
    free(f);
}

void xr_stdin_credit_sent(struct xr_stdin_credit *f, uint32_t bytes)
{
    f->sent += bytes;
}

static uint32_t credit(struct xr_stdin_credit *f)
{
    uint64_t least = f->sent, before = f->credited;

    for (uint32_t i = 0; i < f->n; i++) {
        if (f->taken[i] < least)
            least = f->taken[i];
    }
    f->credited = least;
    return (uint32_t)(least - before);
}

uint32_t xr_stdin_credit_taken(struct xr_stdin_credit *f, uint32_t host, uint32_t bytes)
{
    bool slowest;

    if (!xr_stdin_credit_reads(f, host))
        return 0;
    slowest = f->taken[host] == f->credited;
    /* A host cannot take more than was sent; do not trust its number. */
    if (bytes > f->sent - f->taken[host])
        bytes = (uint32_t)(f->sent - f->taken[host]);
    f->taken[host] += bytes;
    return slowest ? credit(f) : 0;
}

uint32_t xr_stdin_credit_end(struct xr_stdin_credit *f, uint32_t host)
{
    if (!xr_stdin_credit_reads(f, host))
        return 0;
    f->taken[host] = UINT64_MAX;
    f->reading--;
    return credit(f);
}

bool xr_stdin_credit_reads(const struct xr_stdin_credit *f, uint32_t host)
{
    return host < f->n && f->taken[host] != UINT64_MAX;
}

bool xr_stdin_credit_any(const struct xr_stdin_credit *f)
{
    return f->reading > 0;
}
