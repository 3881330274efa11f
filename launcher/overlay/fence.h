/*
 * fence.h: PMIx fences over several hosts.
 *
 * They go along the tree of agents. Each node joins what its own ranks and the
 * branches below it say; the first node that has all takes it back down. A
 * fence is known by its ranks: fences of the same ranks follow each other.
 * Who is gone (liveness.h) is not waited for, and the fence fails; that no rank is left on
 * a host is said to those above it.
 */
#ifndef XR_LAUNCHER_OVERLAY_FENCE_H
#define XR_LAUNCHER_OVERLAY_FENCE_H

#include "launcher/overlay/liveness.h"
#include "launcher/job/job.h"
#include "launcher/overlay/tree.h"

struct xr_fences;
struct xr_fence; /* one of them */

/* The fence of this node's ranks that came with token is over; data is everybody's. */
typedef void (*xr_fence_done_fn)(void *arg, void *token, int status, const void *data, size_t len);

/* self: this node. job must have its map and stay; so must gone, which says whom not to wait for. */
rank_status_t xr_fences_open(struct xr_tree *tree, const struct xr_job *job, struct xr_gone *gone, uint32_t self,
                             xr_fence_done_fn done, void *arg, struct xr_fences **out);
/* NULL is fine. Before gone is closed. */
void xr_fences_close(struct xr_fences *fences);

/* Fences of the same ranks that have nothing to do with each other. */
enum xr_fence_space { XR_FENCE_PMIX, XR_FENCE_PMI1 };

/* All ranks of this host that take part have come. nranks 0: all ranks of the job do. status: not 0 if it fails here,
 * and so everywhere. */
void xr_fences_enter(struct xr_fences *fences, enum xr_fence_space space, int status,
                     const uint32_t *ranks, uint32_t nranks, const void *data, size_t len,
                     void *token);
/* The ranks of this host that came with token wait no longer. To the other hosts they have come, and they need not come
 * again: when they do, they wait for the same fence. Of those that are over by then only so many of the last are kept. */
void xr_fences_abandon(struct xr_fences *fences, void *token);
/* The client of a rank of this host has died, and the rank lives: those above are to know. */
void xr_fences_say_lost(struct xr_fences *fences, uint32_t rank);
/* Are all these ranks (nranks 0: all of the job) on this host? */
bool xr_fences_local(const struct xr_fences *fences, const uint32_t *ranks, uint32_t nranks);
/* The fence in which a rank is, since all that take part have come from its host (a branch's: from all hosts of it). It is
 * good until the loop goes on. NULL: none, as far as this node knows, or several. fences NULL is fine. */
const struct xr_fence *xr_fences_of(const struct xr_fences *fences, enum xr_fence_space space, uint32_t rank);
/* Whom it waits for: "host b", "hosts b,c", or of branches of which more is not known "some of hosts b,c,d"; false, and
 * "other hosts": for none below this node. */
bool xr_fences_awaited(const struct xr_fences *fences, const struct xr_fence *fence, char *out, size_t len);
/* XR_MSG_FENCE_UP or _ENDED from a child, or _DOWN from the parent. False: it makes no sense. */
bool xr_fences_take(struct xr_fences *fences, uint32_t from, uint32_t kind, struct xr_unpacker *u);

#endif
