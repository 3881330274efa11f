/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_pair.h: start processes that connect, and check what they do.
 *
 * Each case forks its sides before any of them opens a context. A failed check prints its place and ends the process; the
 * case then fails.
 */
#ifndef TESTS_CONN_CONN_PAIR_H
#define TESTS_CONN_CONN_PAIR_H

#include "tests/mp/mp.h"

#include <sys/types.h>

#define SECOND 1000000000ll
enum { PAIR_SECRET = 24, PAIR_ADDRESS = 80 };

/* Pipes between the two sides; 0 is the side that listens. */
struct pair {
    int me;
    int in, out;
    pid_t other; /* of side 1, for side 0 */
    uint64_t seed;
    const char *name; /* of the case */
};

#define CHECK MP_CHECK
#define STATUS MP_STATUS
#define OK MP_OK

/* Run a function as two processes and wait. Returns false if one fails, or does not end in limit_s.
 * With kills SIGKILL of a side is no failure. */
bool pair_run(const char *name, void (*side)(struct pair *p), uint64_t seed, int limit_s, bool kills);

/* Between the sides: bytes through the pipe. */
void pair_put(struct pair *p, const void *data, size_t len);
void pair_get(struct pair *p, void *data, size_t len);
/* Both sides have come here. */
void pair_meet(struct pair *p);

/* Open a context, listen on the loopback interface and give the address to the other side. */
rank_ctx_t pair_context(int level, int progress_thread);
rank_listener_t pair_listen(struct pair *p, rank_ctx_t ctx, const rank_conn_opts_t *opts);
/* Connect to the address that the other side gave, or accept. Both sides call this. */
rank_team_t pair_connect(struct pair *p, rank_ctx_t ctx, rank_listener_t listener);
rank_conn_opts_t pair_opts(void);
/* Of the cases that follow: by sockets, also within the host; by UCX, with its shared memory as a stand-in for RDMA. */
extern bool pair_by_socket, pair_by_ucx;
enum { PAIR_SHARED, PAIR_SOCKET, PAIR_UCX, PAIR_WAYS };
/* Set them. Returns false if this build has no such way. */
bool pair_use(int way);
/* What carries the first connection of two contexts; further ones do not use UCX. */
const char *pair_channel(bool first);

void pair_sleep(double seconds);

#endif
