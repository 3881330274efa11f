/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostlist.h: keep the hosts that a job may use, and their slots.
 *
 * Room: the allocation: --host, hostfiles, Slurm, PBS and LSF; names of this host.
 * Called by: agent, bootstrap, map.
 * Never: starts a process; places ranks.
 * Tests: tests/launcher/unit/{habits,local_host}_test.c, tests/fuzz/fuzz_files.c.
 */
#ifndef XR_LAUNCHER_ALLOC_HOSTLIST_H
#define XR_LAUNCHER_ALLOC_HOSTLIST_H

#include "launcher/alloc/local_host.h"
#include "launcher/util/hash.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XR_NO_HOST UINT32_MAX

struct xr_hostspec {
    char *name;
    uint32_t slots; /* 0: not given */
    uint32_t most;  /* limit of its ranks; 0: none */
    struct xr_hash_item by_name, by_short; /* of the list's tables */
};

struct xr_hostlist {
    struct xr_hostspec *host;
    uint32_t n, cap;
    struct xr_hash names;       /* hosts by name */
    struct xr_hash short_names; /* hosts with a domain, by the name before it */
    const char *source; /* "--host", "the hostfile", "Slurm" ...; NULL: no hosts given */
};

/* No-op if NULL or zeroed. */
void xr_hostlist_clear(struct xr_hostlist *list);

/* Add a host. A repeated name gets the slots of both. Returns RANK_ERR_NO_MEMORY on failure. */
rank_status_t xr_hostlist_add(struct xr_hostlist *list, const char *name, size_t len,
                              uint32_t slots);
/* Add to the limit of a host in the list; 0: no change. */
void xr_hostlist_limit(struct xr_hostlist *list, const char *name, uint32_t most);
/*
 * Add a name from the user, perhaps an IPv6 address in brackets. RANK_ERR_ARG: *wrong is the reason. Rejects
 * names that ssh would take for an option or that would steer a terminal.
 */
rank_status_t xr_hostlist_take(struct xr_hostlist *list, const char *name, size_t len, uint32_t slots,
                               const char **wrong);
/* Return the index of the host of that name, or UINT32_MAX. */
uint32_t xr_hostlist_find(const struct xr_hostlist *list, const char *name);

/* Keep at most the first n hosts. */
void xr_hostlist_cut(struct xr_hostlist *list, uint32_t n);

/*
 * Parse "a,b:4,node[01-16,20]:2": names, ranges in them, and slots after a colon. RANK_ERR_ARG: err names the
 * bad part.
 */
rank_status_t xr_hostlist_parse(struct xr_hostlist *list, const char *text, char *err,
                                size_t errlen);

/*
 * Add the hosts of a file, one a line: "name", "name:4" or "name slots=4", with ranges in names and # before a
 * comment. Logs each bad line as FILE:LINE; then returns RANK_ERR_ARG with their number in err.
 */
rank_status_t xr_hostlist_read(struct xr_hostlist *list, const char *path, char *err,
                               size_t errlen);

/*
 * Add what Slurm, PBS or LSF give in the environment and in the files named there. Leaves the list empty without
 * them.
 */
rank_status_t xr_hostlist_allocated(struct xr_hostlist *list, char *err, size_t errlen);

/*
 * Keep the hosts of list that are in only, in the order and with the slots (if given) of only. A host that is
 * not in list is an error. here as below.
 */
rank_status_t xr_hostlist_restrict(struct xr_hostlist *list, const struct xr_hostlist *only, struct xr_local_host *here,
                                   char *err, size_t errlen);

/*
 * Return the host that a name means, or UINT32_MAX. It is the first of these that exists:
 * - the host of that name;
 * - any that is this host, if the name is one of its names (here; NULL: skipped);
 * - the only one that equals it except for a domain that one of them lacks.
 */
uint32_t xr_hostlist_mean(const struct xr_hostlist *list, struct xr_local_host *here, const char *name);

#endif
