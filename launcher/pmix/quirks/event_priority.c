/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_priority.c: make libpmix finish one client's message before the next.
 *
 * libpmix:  4.2.2.
 * Symptom:  libpmix reads from all clients that have sent, then acts, and reports a lost client by a timer. It counts a
 *           lost client out of the fences that exist at that moment. A fence of some ranks that begins before
 *           xrun deregisters the client (dead_clients.c) waits for ever: 12 of 12 runs, 0 of 60 with this file.
 * Upstream: none known; openpmix/openpmix#3934, merged in July 2026, tracks the participants of fences by identity.
 * Retire:   together with dead_clients.c.
 *
 * Events of sockets get the last priority of libpmix's event loop, and after each one all others have their turn.
 * The loop and its events come from two functions of libevent, which the dynamic linker takes from the program
 * first. They act as libevent's for all other loops.
 *
 * A library that makes its loop in another way is not changed. With a static libevent its own functions go before
 * these weak ones.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <dlfcn.h>

/* libevent gives new events the middle one. */
enum { PRIORITIES = 3, LAST = 2 };

#define SEEN __attribute__((weak, visibility("default")))

static _Thread_local bool opening; /* this thread is in PMIx_server_init */
static _Atomic(struct event_base *) ordered;

void xr_event_priority_begin(void)
{
    opening = true;
}

void xr_event_priority_end(void)
{
    opening = false;
    if (!atomic_load(&ordered))
        rk_debug("PMIx's event loop was not made by event_base_new: clients' messages have no order");
}

static struct event_base *make_event_base(bool in_order)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config && (!in_order || event_config_set_max_dispatch_interval(config, NULL, 1, LAST) == 0))
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    if (base && in_order && event_base_priority_init(base, PRIORITIES) == 0)
        atomic_store(&ordered, base);
    return base;
}

SEEN struct event_base *event_base_new(void)
{
    return make_event_base(opening && !atomic_load(&ordered));
}

SEEN int event_assign(struct event *ev, struct event_base *base, evutil_socket_t fd, short what,
                      event_callback_fn call, void *arg)
{
    static int (*_Atomic real)(struct event *, struct event_base *, evutil_socket_t, short, event_callback_fn, void *);
    int (*libevents)(struct event *, struct event_base *, evutil_socket_t, short, event_callback_fn, void *);
    int rc;

    libevents = atomic_load_explicit(&real, memory_order_relaxed);
    if (!libevents) {
        *(void **)&libevents = dlsym(RTLD_NEXT, "event_assign");
        if (!libevents)
            return -1;
        atomic_store_explicit(&real, libevents, memory_order_relaxed);
    }
    rc = libevents(ev, base, fd, what, call, arg);
    if (rc == 0 && fd >= 0 && !(what & EV_SIGNAL) && base && base == atomic_load_explicit(&ordered, memory_order_relaxed))
        event_priority_set(ev, LAST);
    return rc;
}
