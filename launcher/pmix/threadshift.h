/*
 * threadshift.h: how PMIx's thread hands work to the agent's loop.
 *
 * An upcall copies its arguments into a struct that begins with a rk_post,
 * posts it and returns; the loop runs posts in order.
 */
#ifndef RK_LAUNCHER_PMIX_THREADSHIFT_H
#define RK_LAUNCHER_PMIX_THREADSHIFT_H

#include "lib/base/list.h"
#include "lib/rank.h"

#include <event2/event.h>

struct rk_post {
    struct rk_link link;
    /* Called in the loop; frees the post. */
    void (*run)(struct rk_post *post, void *arg);
};

struct rk_mailbox;

/* arg is given to each post. */
rank_status_t rk_mailbox_open(struct event_base *base, void *arg, struct rk_mailbox **out);
/* NULL is fine. Posts that were not run are lost: only for the end of the process. */
void rk_mailbox_close(struct rk_mailbox *mailbox);

/* From any thread. */
void rk_mailbox_post(struct rk_mailbox *mailbox, struct rk_post *post);
/* In the loop: run what is there now. */
void rk_mailbox_run(struct rk_mailbox *mailbox);

#endif
