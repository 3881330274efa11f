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
#ifndef RK_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H
#define RK_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>

struct rk_usher;

rank_status_t rk_usher_open(struct event_base *base, const struct rk_shape *shape, struct rk_usher **out);
/* NULL is fine. Whoever still waits is sent away. */
void rk_usher_close(struct rk_usher *usher);

/* Is it a node that has its parent elsewhere? */
bool rk_usher_wants(const struct rk_usher *usher, uint32_t node);
/* Such a node has come; takes fd over. */
void rk_usher_take(struct rk_usher *usher, uint32_t node, int fd);
/* RK_MSG_DOOR: a node's door is open. False: it makes no sense. */
bool rk_usher_hear(struct rk_usher *usher, struct rk_unpacker *u);

/* What a node says of its door; up: a connection to its parent, whose address here is told first. */
void rk_usher_pack(char *const *addresses, uint32_t port, uint32_t node, int up, struct rk_packer *p);

/*
 * The other side: setup's addresses and port are xrun's door; on success they are
 * the parent's, which may be the same. Connecting takes at most about ms; the answer takes as
 * long as xrun waits for all hosts, and no longer than xrun lives.
 */
rank_status_t rk_usher_ask(struct rk_setup *setup, int ms, char *err, size_t errlen);

#endif
