/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rankfile.h: read a file in which the user places each rank.
 *
 *     # a comment
 *     rank 0=hosta slot=0-3      cores 0 to 3 of those that may be used on hosta, in the machine's order
 *     rank 1=hosta slot=1:0,2    cores 0 and 2 of its second package
 *     rank 2=+n1                 the second host of those that were named; not bound
 */
#ifndef XR_LAUNCHER_MAP_RANKFILE_H
#define XR_LAUNCHER_MAP_RANKFILE_H

#include "launcher/alloc/local_host.h"
#include "launcher/alloc/hostlist.h"
#include "launcher/map/mapper.h"

struct xr_rankfile {
    struct xr_place_pin *pin; /* by rank */
    uint32_t n, cap;
};

/*
 * Looks host names up in hosts. If no hosts are given (hosts has no source), adds them. All names of this host
 * count as one, unless here is NULL. Logs each bad line as FILE:LINE; then returns RANK_ERR_ARG with their
 * number in err. Clear the file whatever is returned.
 */
rank_status_t xr_rankfile_read(const char *path, struct xr_hostlist *hosts, struct xr_local_host *here,
                               struct xr_rankfile *out, char *err, size_t errlen);
/* No-op if NULL or zeroed. */
void xr_rankfile_clear(struct xr_rankfile *file);

#endif
