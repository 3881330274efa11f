/*
 * setup.h: what an agent on another host is told before anything else.
 *
 * It arrives on the agent's standard input, because that is the one way that
 * neither other users of the host (as with arguments and, to root, the
 * environment) nor the network (as with a port) can read.
 *
 * Before it comes a greeting whose form never changes, whatever becomes of the
 * rest: eight letters, the number of the protocol, the version and the host of
 * who sends it, and the length of what follows. So two versions that do not
 * understand each other can say so.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SETUP_H
#define XR_LAUNCHER_BOOTSTRAP_SETUP_H

#include "launcher/util/pack.h"
#include "launcher/overlay/kary.h"
#include "lib/rank.h"

#define XR_SECRET 32 /* bytes; the first half proves a child, the second half its parent */
#define XR_PROTOCOL 7 /* one more with each change of what xrun and its agents say to each other */

struct xr_setup {
    uint8_t secret[XR_SECRET];
    uint32_t node;
    struct xr_shape shape;
    char **names;     /* [shape.nodes]; known are this one's and those below it, others are NULL */
    char **addresses; /* of the parent, numeric */
    uint32_t port;
    char *agent;    /* the command that starts agents: "ssh" or like it */
    char **ssh_args; /* what the user adds to it */
    char *program;  /* xrun's path on the hosts */
    char *library_path; /* LD_LIBRARY_PATH for it, or NULL */
    char *interface; /* --if, or NULL */
    /* not sent */
    bool step;  /* one srun starts them all, see srun.h; nobody starts those below it */
    bool go_on; /* --on-failure continue */
    uint64_t nofile; /* soft limit of open files for the commands that start agents; 0: as it is */
    struct {
        const char *job, *host; /* job NULL: it knows nothing before it is told the job */
        uint32_t ranks;
        bool no_mpi;
    } early; /* where xrun's own agent can begin before the ranks are placed; borrowed */
};

/* What node is told by its parent; for XR_NODE_ALL one for all, in which each has to find itself: setup's node is then
 * XR_NODE_ALL too. */
void xr_setup_pack(const struct xr_setup *setup, uint32_t node, struct xr_packer *p);
/* Clear the setup whatever is returned. */
rank_status_t xr_setup_unpack(struct xr_unpacker *u, struct xr_setup *out);
/* In one for all: become the node of that name. False: there is none. */
bool xr_setup_become(struct xr_setup *setup, const char *name);
void xr_setup_clear(struct xr_setup *setup);

/* The greeting and what node is told. */
void xr_setup_say(const struct xr_setup *setup, uint32_t node, struct xr_packer *p);

/* All of these bytes, waiting at most ms for each piece (-1: as long as it takes). */
bool xr_setup_read_all(int fd, int ms, uint8_t *data, size_t len);
/* Read the greeting and a setup from a descriptor. Blocks at most ms for each piece. On failure err says why. */
rank_status_t xr_setup_read(int fd, int ms, struct xr_setup *out, char *err, size_t errlen);

#endif
