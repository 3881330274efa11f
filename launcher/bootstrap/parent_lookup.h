/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parent_lookup.h: tell agents of an srun their parents' addresses.
 *
 * All of them know only xrun's listener. An agent that is not a child of xrun
 * connects there first and waits. Its parent sends the address of its own listener
 * to xrun, along the tree. xrun passes the address to the waiting agents and
 * closes their connections. So the tree grows from its root, and each parent named
 * has a route up already. A parent that dies before its child connects is an error
 * of the child, which ends the step.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H
#define XR_LAUNCHER_BOOTSTRAP_PARENT_LOOKUP_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>

struct xr_parent_lookup;

rank_status_t xr_parent_lookup_open(struct event_base *base, const struct xr_kary *shape, struct xr_parent_lookup **out);
/* No-op if NULL. Closes the connections of waiting agents. */
void xr_parent_lookup_close(struct xr_parent_lookup *lookup);

/* Return whether the node has its parent elsewhere. */
bool xr_parent_lookup_wants(const struct xr_parent_lookup *lookup, uint32_t node);
/* Such a node connected. Takes ownership of fd. Its answer is sealed. */
void xr_parent_lookup_add(struct xr_parent_lookup *lookup, uint32_t node, int fd, const struct xr_seals *seals);
/* Handle XR_MSG_LISTENER: a node's listener is open. Returns false if the message is malformed. */
bool xr_parent_lookup_receive(struct xr_parent_lookup *lookup, struct xr_unpacker *u);

/* Pack XR_MSG_LISTENER. up: a connection to the parent, whose local address comes first. */
void xr_parent_lookup_pack(char *const *addresses, uint32_t port, uint32_t node, int up, struct xr_packer *p);

/*
 * The agent's side: replace xrun's addresses and port in setup by the parent's, which may be the same. The
 * connect takes about ms at most; the answer takes as long as xrun waits for all hosts, and at most until xrun
 * ends.
 */
rank_status_t xr_parent_lookup_request(struct xr_setup *setup, int ms, char *err, size_t errlen);

#endif
