/*
 * dmodex.h: what a rank committed, asked for by a rank of another host.
 *
 * The question goes to the agent of the host, which answers when the rank has
 * committed, or when it is clear that it never will. Who asks an agent that is gone
 * (liveness.h) is told so at once.
 */
#ifndef XR_LAUNCHER_OVERLAY_DMODEX_H
#define XR_LAUNCHER_OVERLAY_DMODEX_H

#include "launcher/overlay/liveness.h"
#include "launcher/overlay/tree.h"

/* What becomes of a question for what a rank has committed. */
enum xr_found { XR_FOUND, XR_FOUND_NEVER, XR_FOUND_LATE /* the time-out of the question has passed */ };

struct xr_modexes;

struct xr_modex_ops {
    /* The answer to xr_modexes_ask, or that there is none. */
    void (*on_answer)(void *arg, void *token, enum xr_found found, const void *data, size_t len);
    /* Somebody asks for a rank of this host: look it up and call xr_modexes_found with the id, now or later. */
    void (*on_asked)(void *arg, uint32_t rank, uint32_t id);
    /* The same rank commits no more: call xr_modexes_found now, or soon. */
    void (*on_ended)(void *arg, uint32_t id);
};

/* gone says who answers no more; it must stay. */
rank_status_t xr_modexes_open(struct event_base *base, struct xr_tree *tree, struct xr_gone *gone, uint32_t self,
                              const struct xr_modex_ops *ops, void *arg, struct xr_modexes **out);
/* NULL is fine. Before gone is closed. */
void xr_modexes_close(struct xr_modexes *m);

/* Ask node for what rank committed; there is no answer after timeout_s (0: that can wait). */
void xr_modexes_ask(struct xr_modexes *m, uint32_t node, uint32_t rank, uint32_t timeout_s, void *token);
/* The answer to a question that was asked here. A second one is dropped. */
void xr_modexes_found(struct xr_modexes *m, uint32_t id, bool found, const void *data, size_t len);
/* A rank of this host will commit no more, though it lives: on_ended for all who ask for it. */
void xr_modexes_ended(struct xr_modexes *m, uint32_t rank);
/* XR_MSG_MODEX_ASK or _ANSWER. False: it makes no sense. */
bool xr_modexes_take(struct xr_modexes *m, uint32_t kind, struct xr_unpacker *u);

#endif
