/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_order.c: the library does all that follows from what one client has said, or from its end, before it hears the next.
 *
 * libpmix 4.2.2 reads from all clients that have spoken and acts on it then, and says by a timer that one is lost. It counts the
 * lost out in the fences that there are just then, and counts on them until it has been told to forget them (lost_client.c): in a
 * fence of some ranks that others begin in between it would wait for ever, and nothing ends such a fence and no other.
 *
 * libevent can keep the order: what comes from sockets has the last turn, and after each all else has its own. The loop
 * and its events are the library's; it has them from two functions of libevent, which xrun has, too, and the dynamic linker
 * takes the program's first. They do what libevent's do, but for this one loop. A library that comes by its loop in another
 * way goes on as it would, and so it does where libevent is linked in statically, whose own functions go before these weak ones.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <dlfcn.h>

/* What is not said otherwise has the middle one of these. */
enum { PRIORITIES = 3, LAST = 2 };

#define SEEN __attribute__((weak, visibility("default")))

static _Thread_local bool opening; /* the library, on this thread */
static _Atomic(struct event_base *) ordered;

void xr_order_begin(void)
{
    opening = true;
}

void xr_order_end(void)
{
    opening = false;
    if (!atomic_load(&ordered))
        rk_debug("PMIx's loop was not made by event_base_new: it hears clients as it likes");
}

static struct event_base *event_order_make(bool in_order)
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
    return event_order_make(opening && !atomic_load(&ordered));
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
