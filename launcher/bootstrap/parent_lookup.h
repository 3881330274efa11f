/*
 * parent_lookup.h: where agents that one srun started find their parents.
 *
 * They all know xrun's door and no other. One that is not xrun's own child in
 * the tree comes to that door first and waits; its parent tells xrun, along the
 * tree, where its own door is; xrun passes that on to those who wait and closes
 * their connections. So the tree grows from its root, and each node that is
 * named as a parent has a way up already. A parent that dies before it is
 * connected to is an error of the child's, which ends the step.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H
#define XR_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>

struct xr_usher;

rank_status_t xr_usher_open(struct event_base *base, const struct xr_shape *shape, struct xr_usher **out);
/* NULL is fine. Whoever still waits is sent away. */
void xr_usher_close(struct xr_usher *usher);

/* Is it a node that has its parent elsewhere? */
bool xr_usher_wants(const struct xr_usher *usher, uint32_t node);
/* Such a node has come; takes fd over. */
void xr_usher_take(struct xr_usher *usher, uint32_t node, int fd);
/* XR_MSG_DOOR: a node's door is open. False: it makes no sense. */
bool xr_usher_hear(struct xr_usher *usher, struct xr_unpacker *u);

/* What a node says of its door; up: a connection to its parent, whose address here is told first. */
void xr_usher_pack(char *const *addresses, uint32_t port, uint32_t node, int up, struct xr_packer *p);

/*
 * The other side: setup's addresses and port are xrun's door; on success they are
 * the parent's, which may be the same. Connecting takes at most about ms; the answer takes as
 * long as xrun waits for all hosts, and no longer than xrun lives.
 */
rank_status_t xr_usher_ask(struct xr_setup *setup, int ms, char *err, size_t errlen);

#endif
