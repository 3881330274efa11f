/* SPDX-License-Identifier: BSD-3-Clause */
/* go_context.c: open contexts, and queue completions. */
#include "go_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Make a context without a context of the library. */
static rank_status_t ctx_make(go_ctx **out)
{
    go_ctx *c = calloc(1, sizeof(*c));

    if (!c)
        return RANK_ERR_NO_MEMORY;
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0) {
        free(c);
        return RANK_ERR_SYSTEM;
    }
    *out = c;
    return RANK_OK;
}

/* Returns the status of the call that opened the context of the library, and *out if it did. */
static rank_status_t ctx_made(go_ctx *c, rank_status_t st, go_ctx **out)
{
    if (st) {
        close(c->fd);
        free(c);
    } else {
        *out = c;
    }
    return st;
}

rank_status_t go_ctx_open(const char *name, const char *net_devices, go_ctx **out)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    go_ctx *c;
    rank_status_t st = ctx_make(&c);

    opts.name = name;
    opts.net_devices = net_devices;
    opts.progress_thread = 1;
    opts.quiet = 1; /* an error has the reason */
    return st ? st : ctx_made(c, rank_ctx_open(&opts, &c->ctx), out);
}

rank_status_t go_ctx_join(go_ctx **out)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    go_ctx *c;
    rank_status_t st = ctx_make(&c);

    opts.thread_level = RANK_THREAD_MULTIPLE;
    opts.progress_thread = 1;
    opts.quiet = 1; /* an error has the reason */
    return st ? st : ctx_made(c, rank_init(&opts), out);
}

void go_ctx_shut(go_ctx *c)
{
    go_gate_shut(&c->gate);
}

void go_ctx_reopen(go_ctx *c)
{
    go_gate_reopen(&c->gate);
}

int64_t go_ctx_users(go_ctx *c)
{
    return go_gate_users(&c->gate);
}

int64_t go_ctx_parked(go_ctx *c)
{
    return atomic_load(&c->parked);
}

rank_status_t go_ctx_close(go_ctx *c, int64_t timeout_ns)
{
    return c->ctx ? rank_ctx_close(&c->ctx, timeout_ns) : rank_finalize();
}

/* The descriptor belongs to the dispatcher. */
void go_ctx_free(go_ctx *c)
{
    for (go_op *op = c->ops, *older; op; op = older) {
        older = op->older;
        go_op_free(op);
    }
    free(c);
}

int go_ctx_event_fd(go_ctx *c)
{
    return c->fd;
}

/* Runs in the library, on any thread. */
static void queue_completion(go_ctx *c, go_op *op)
{
    const uint64_t one = 1;

    op->next = atomic_load(&c->queue);
    while (!atomic_compare_exchange_weak(&c->queue, &op->next, op))
        ;
    if (atomic_exchange(&c->asleep, 0) && write(c->fd, &one, sizeof(one)) < 0)
        return; /* it is full, hence readable */
}

/* Complete an operation that nothing polls for. */
void go_op_completed(const rank_envelope_t *envelope, void *arg)
{
    go_op *op = arg;
    go_ctx *c = op->ctx;

    op->envelope = *envelope;
    op->status = envelope->status;
    if (op->how == GO_HOLD)
        sem_post(&op->done);
    else
        queue_completion(c, op);
}

static void take_queue(go_ctx *c)
{
    go_op *op = atomic_exchange(&c->queue, NULL), *next;

    for (; op; op = next) { /* the oldest comes first then */
        next = op->next;
        op->next = c->ordered;
        c->ordered = op;
    }
}

int go_ctx_reap(go_ctx *c, uint64_t *ids, int max)
{
    int n = 0;

    if (!c->ordered)
        take_queue(c);
    if (!c->ordered) {
        atomic_store(&c->asleep, 1);
        take_queue(c); /* what came before it was set rings no bell */
        if (c->ordered)
            atomic_store(&c->asleep, 0);
    }
    for (; n < max && c->ordered; n++) {
        go_op *op = c->ordered;
        c->ordered = op->next;
        ids[n] = op->id;
    }
    atomic_fetch_sub(&c->parked, n);
    return n;
}
