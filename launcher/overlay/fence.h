/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h: run PMIx fences over several hosts, along the tree of agents.
 *
 * Each node joins the contributions of its own ranks and of the branches below it.
 * The first node that has all of them sends the result down. A fence is identified
 * by its ranks; fences of the same ranks follow each other. A failed rank
 * (liveness.h) is not waited for, and its fence fails. When the last rank of a
 * host ends, the nodes above are notified.
 */
#ifndef XR_LAUNCHER_OVERLAY_FENCE_H
#define XR_LAUNCHER_OVERLAY_FENCE_H

#include "launcher/overlay/liveness.h"
#include "launcher/job/job.h"
#include "launcher/overlay/tree.h"

struct xr_fence_table;
struct xr_fence; /* one fence */

/*
 * The fence that this node's ranks entered with token is complete; data holds the contributions of all
 * participants.
 */
typedef void (*xr_fence_done_fn)(void *arg, void *token, int status, const void *data, size_t len);

/* self: this node. job must have its map. job and liveness must outlive the object. */
rank_status_t xr_fence_open(struct xr_tree *tree, const struct xr_job *job, struct xr_liveness *liveness, uint32_t self,
                             xr_fence_done_fn done, void *arg, struct xr_fence_table **out);
/* No-op if NULL. Call before liveness is closed. */
void xr_fence_close(struct xr_fence_table *fences);

/* Independent spaces: fences of the same ranks in different spaces do not match. */
enum xr_fence_space { XR_FENCE_PMIX, XR_FENCE_PMI1 };

/*
 * Enter with all participating ranks of this host. nranks 0: all ranks of the job. status: nonzero if it failed
 * here, and so everywhere.
 */
void xr_fence_enter(struct xr_fence_table *fences, enum xr_fence_space space, int status,
                     const uint32_t *ranks, uint32_t nranks, const void *data, size_t len,
                     void *token);
/*
 * The ranks of this host that entered with token wait no longer. For other hosts they have arrived. If they
 * enter again they wait for the same fence. Only the last 256 results of abandoned fences are kept.
 */
void xr_fence_abandon(struct xr_fence_table *fences, void *token);
/* The PMIx client of a rank of this host died, and the rank lives: notify the nodes above. */
void xr_fence_report_lost(struct xr_fence_table *fences, uint32_t rank);
/* Return whether all these ranks (nranks 0: all of the job) are on this host. */
bool xr_fence_local(const struct xr_fence_table *fences, const uint32_t *ranks, uint32_t nranks);
/*
 * Return the fence that a rank is in, once all participants of its host have arrived (below a branch: of all its
 * hosts). NULL: none known to this node, or several. Valid until the loop runs again. Returns NULL if fences is
 * NULL.
 */
const struct xr_fence *xr_fence_of(const struct xr_fence_table *fences, enum xr_fence_space space, uint32_t rank);
/*
 * Name the missing participants: "host b", "hosts b,c", or "some of hosts b,c,d" of a branch whose state is
 * unknown. Returns false, with "other hosts", if none is below this node.
 */
bool xr_fence_awaited(const struct xr_fence_table *fences, const struct xr_fence *fence, char *out, size_t len);
/*
 * Handle XR_MSG_FENCE_UP or _ENDED from a child, or _DOWN from the parent. Returns false if the message is
 * malformed.
 */
bool xr_fence_take(struct xr_fence_table *fences, uint32_t from, uint32_t kind, struct xr_unpacker *u);

#endif
