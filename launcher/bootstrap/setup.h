/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup.h: pass the launch parameters to an agent on another host.
 *
 * They arrive on the agent's standard input. Neither other users of the host
 * (arguments; for root, the environment) nor the network (a port) can read them
 * there.
 *
 * A version header of fixed form precedes them: eight letters, the number of the
 * protocol, the version and the host of the sender, and the length of the rest. So
 * two incompatible versions can report that.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SETUP_H
#define XR_LAUNCHER_BOOTSTRAP_SETUP_H

#include "launcher/util/pack.h"
#include "launcher/overlay/kary.h"
#include "lib/rank.h"

#define XR_PROTOCOL 9 /* increment with each change of the messages between xrun and agents */

struct xr_setup {
    uint8_t secret[RK_AUTH_KEY]; /* see handshake.h: the key of secret_node, from which those of its descendants follow */
    uint32_t node;
    struct xr_kary shape;
    char **names;     /* [shape.nodes]; this node and its descendants, others are NULL */
    char **addresses; /* of the parent, numeric */
    uint32_t port;
    char *agent;    /* the launcher command: "ssh" or similar */
    char **ssh_args; /* the user's additional arguments */
    char *program;  /* xrun's path on the hosts */
    char *library_path; /* LD_LIBRARY_PATH for it, or NULL */
    char *interface; /* --if, or NULL */
    /* not sent */
    uint32_t secret_node;  /* the front end, or node */
    struct xr_seals seals; /* of the connection to the parent, once that is authenticated */
    bool step;  /* one srun starts all agents, see srun.h; agents start none */
    bool go_on; /* --on-failure continue */
    uint64_t nofile; /* soft limit of open files for launcher commands; 0: unchanged */
    struct {
        const char *job, *host; /* job NULL: the agent has nothing to do before it receives the job */
        uint32_t ranks;
        bool no_mpi;
    } early; /* lets xrun's own agent begin before the ranks are placed; borrowed */
};

/*
 * Pack the parameters of node, with its own key. XR_NODE_ALL: one for all, in which each node finds itself; its node is
 * XR_NODE_ALL too, and its key is that of the front end.
 */
void xr_setup_pack(const struct xr_setup *setup, uint32_t node, struct xr_packer *p);
/* Clear the setup whatever is returned. */
rank_status_t xr_setup_unpack(struct xr_unpacker *u, struct xr_setup *out);
/* In a setup for all: select the node of that name, and keep its key only. Returns false if there is none. */
bool xr_setup_become(struct xr_setup *setup, const char *name);
void xr_setup_clear(struct xr_setup *setup);

/* Pack the version header and the parameters of node. */
void xr_setup_send(const struct xr_setup *setup, uint32_t node, struct xr_packer *p);

/* Read exactly len bytes, waiting at most ms for each piece (-1: without limit). */
bool xr_setup_read_all(int fd, int ms, uint8_t *data, size_t len);
/*
 * Read a version header and a setup from a descriptor. Blocks at most ms for each piece. On failure err holds a
 * text.
 */
rank_status_t xr_setup_read(int fd, int ms, struct xr_setup *out, char *err, size_t errlen);

#endif
