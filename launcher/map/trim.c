/*
 * trim.c: hosts that get no ranks need no agents. See plan.h.
 *
 * How many ranks a host takes may be known only when its agent has looked at
 * it. But none takes fewer than this, and hosts are taken in their order.
 */
#include "launcher/map/plan.h"

/* The fewest ranks that a host takes before the next one gets any. */
static uint32_t least(const struct xr_place_request *rq, const struct xr_hostspec *host)
{
    if (rq->map == XR_LEVEL_NODE)
        return 1; /* in turn */
    if (rq->ppr)
        return rq->ppr; /* on each of its objects, of which it has at least one */
    if (host->most && host->most < host->slots)
        return host->most;
    return host->slots ? host->slots : 1;
}

uint32_t xr_plan_needed(const struct xr_plan *p, uint32_t n)
{
    const struct xr_place_request *rq = &p->where->request;
    uint32_t pins = n && n < p->file.n ? n : p->file.n, last = 0;
    uint64_t seats = 0;

    if (p->file.n) {
        for (uint32_t i = 0; i < pins; i++)
            last = p->file.pin[i].host > last ? p->file.pin[i].host : last;
        return last + 1;
    }
    if (n == 0 && (rq->ppr || p->fill))
        return p->hosts.n;
    for (uint32_t i = 0; i < p->hosts.n; i++) {
        seats += least(rq, &p->hosts.host[i]);
        if (seats >= (n ? n : 1))
            return i + 1;
    }
    return p->hosts.n;
}
