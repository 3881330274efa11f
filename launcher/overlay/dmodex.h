/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmodex.h: fetch what a rank of another host committed (direct modex).
 *
 * The request goes to the agent of that host. It answers when the rank has
 * committed, or when the rank can no longer commit. A request to a dead agent
 * (liveness.h) fails at once.
 */
#ifndef XR_LAUNCHER_OVERLAY_DMODEX_H
#define XR_LAUNCHER_OVERLAY_DMODEX_H

#include "launcher/overlay/liveness.h"
#include "launcher/overlay/tree.h"

/* Result of a request for what a rank committed. */
enum xr_found { XR_FOUND, XR_FOUND_NEVER, XR_FOUND_LATE /* the request timed out */ };

struct xr_dmodex_table;

struct xr_dmodex_ops {
    /* The answer to xr_dmodex_request, or that there is none. */
    void (*on_answer)(void *arg, void *token, enum xr_found found, const void *data, size_t len);
    /* A remote rank requests the data of a rank of this host. Call xr_dmodex_found with the id, now or later. */
    void (*on_asked)(void *arg, uint32_t rank, uint32_t id);
    /* The rank will not commit any more. Call xr_dmodex_found now, or soon. */
    void (*on_ended)(void *arg, uint32_t id);
};

/* liveness reports dead agents. It must outlive the object. */
rank_status_t xr_dmodex_open(struct event_base *base, struct xr_tree *tree, struct xr_liveness *liveness, uint32_t self,
                              const struct xr_dmodex_ops *ops, void *arg, struct xr_dmodex_table **out);
/* No-op if NULL. Call before liveness is closed. */
void xr_dmodex_close(struct xr_dmodex_table *m);

/* Request from node what rank committed. It times out after timeout_s seconds (0: never). */
void xr_dmodex_request(struct xr_dmodex_table *m, uint32_t node, uint32_t rank, uint32_t timeout_s, void *token);
/* Answer an incoming request. A second answer is dropped. */
void xr_dmodex_found(struct xr_dmodex_table *m, uint32_t id, bool found, const void *data, size_t len);
/* A rank of this host lives but will not commit any more: calls on_ended for each request for it. */
void xr_dmodex_ended(struct xr_dmodex_table *m, uint32_t rank);
/* Handle XR_MSG_DMODEX_REQUEST or _ANSWER. Returns false if the message is malformed. */
bool xr_dmodex_receive(struct xr_dmodex_table *m, uint32_t kind, struct xr_unpacker *u);

#endif
