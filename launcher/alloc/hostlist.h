/*
 * hostlist.h: the hosts that a job may use, and how many ranks each takes.
 *
 * They come from --host, from a hostfile, or from the resource manager that
 * xrun was started under. Nothing here asks a network.
 */
#ifndef XR_LAUNCHER_ALLOC_HOSTLIST_H
#define XR_LAUNCHER_ALLOC_HOSTLIST_H

#include "launcher/alloc/local_host.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XR_NO_HOST UINT32_MAX

struct xr_hostspec {
    char *name;
    uint32_t slots; /* 0: not said */
    uint32_t most;  /* it takes no more ranks than these; 0: any number */
};

struct xr_hostlist {
    struct xr_hostspec *host;
    uint32_t n, cap;
    uint32_t *table, ntable; /* places in host by name: an open hash table, 0 for none and else the place + 1 */
    uint32_t *brief; /* [ntable]: those that have a domain, by the name before it */
    const char *source; /* "--host", "the hostfile", "Slurm" ...; NULL: nobody named any */
};

/* NULL and a zeroed one are fine. */
void xr_hostlist_clear(struct xr_hostlist *list);

/* Named once more, a host gets the slots of both. RANK_ERR_NO_MEMORY. */
rank_status_t xr_hostlist_add(struct xr_hostlist *list, const char *name, size_t len,
                              uint32_t slots);
/* One that is there takes this many more ranks at most; 0: nothing is said. */
void xr_hostlist_limit(struct xr_hostlist *list, const char *name, uint32_t most);
/* Adds a name that somebody wrote, which may be an address of IPv6 in brackets. RANK_ERR_ARG: *wrong says why
 * it is none; one that ssh would take for an option or that would steer a terminal is none either. */
rank_status_t xr_hostlist_take(struct xr_hostlist *list, const char *name, size_t len, uint32_t slots,
                               const char **wrong);
/* The host of that name, or UINT32_MAX. */
uint32_t xr_hostlist_find(const struct xr_hostlist *list, const char *name);

/* Keep the first n, if there are more. */
void xr_hostlist_cut(struct xr_hostlist *list, uint32_t n);

/*
 * "a,b:4,node[01-16,20]:2": names, ranges in them, and slots behind a colon.
 * RANK_ERR_ARG: err says what is wrong with which part.
 */
rank_status_t xr_hostlist_parse(struct xr_hostlist *list, const char *text, char *err,
                                size_t errlen);

/*
 * Adds the hosts of a file. A line a host: "name", "name:4" or "name slots=4", with ranges in names and
 * # before a comment. Each bad line is logged as FILE:LINE; RANK_ERR_ARG then,
 * and err counts them.
 */
rank_status_t xr_hostlist_read(struct xr_hostlist *list, const char *path, char *err,
                               size_t errlen);

/* What Slurm, PBS or LSF say in the environment and in the files that they name there. Leaves the
 * list empty if none of them does. */
rank_status_t xr_hostlist_allocated(struct xr_hostlist *list, char *err, size_t errlen);

/* Keep those of list that are in only, in the order and with the slots (if said) of only. One that list has not is
 * an error. here as below. */
rank_status_t xr_hostlist_restrict(struct xr_hostlist *list, const struct xr_hostlist *only, struct xr_here *here,
                                   char *err, size_t errlen);

/*
 * The one of the list that somebody means by a name: that of this name; any that is this host, if the name is one of
 * its names (here; NULL: they are as others' names); or the only one that is the same but for a domain, which the one
 * has and the other has not. UINT32_MAX: there is none.
 */
uint32_t xr_hostlist_mean(const struct xr_hostlist *list, struct xr_here *here, const char *name);

#endif
