/*
 * wait_hosts.h: wait until all agents of other hosts are there and their hosts are
 * known well enough to place ranks on them.
 */
#ifndef RK_LAUNCHER_FRONTEND_WAIT_HOSTS_H
#define RK_LAUNCHER_FRONTEND_WAIT_HOSTS_H

#include "launcher/map/plan.h"
#include "launcher/overlay/tree.h"

struct rk_muster;

struct rk_muster_ops {
    void (*on_complete)(void *arg);
    /* It takes long: a line that says who is missing. Once, and once more when time is up, which ends it. */
    void (*on_slow)(void *arg, const char *line);
    void (*on_failed)(void *arg, const char *line);
};

/* timeout_s: how long to wait for all. */
rank_status_t rk_muster_open(struct event_base *base, struct rk_tree *tree, struct rk_plan *plan,
                             double timeout_s, const struct rk_muster_ops *ops, void *arg,
                             struct rk_muster **out);
/* NULL is fine. */
void rk_muster_close(struct rk_muster *muster);

/* RK_MSG_READY or RK_MSG_TOPOLOGY. False: it makes no sense. */
bool rk_muster_take(struct rk_muster *muster, uint32_t kind, struct rk_unpacker *u);

#endif
