/*
 * listener.h: where agents on other hosts come in.
 *
 * A listening socket. Who connects has to say 64 bytes within a few seconds:
 * what it is, the job's secret, which node it is, and its version. A stranger
 * gets nothing but a close, and is counted. Where strangers are many, those who
 * came first go first, so that an agent gets in however many there are.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_LISTENER_H
#define XR_LAUNCHER_BOOTSTRAP_LISTENER_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>

struct xr_door;

struct xr_door_ops {
    /* An agent that knows the secret; takes fd over. */
    void (*on_agent)(void *arg, uint32_t node, int fd);
    /* An agent of another version. */
    void (*on_other_version)(void *arg, uint32_t node, const char *version);
};

/*
 * interface: a name or a network as 10.0.0.0/8 that the door opens to; NULL:
 * all. *addresses: where it can be reached, numeric, the likelier first; free with
 * xr_strings_free. On failure err says why.
 */
rank_status_t xr_door_open(struct event_base *base, const uint8_t *secret, const char *interface,
                           const struct xr_door_ops *ops, void *arg, struct xr_door **out,
                           char ***addresses, uint32_t *port, char *err, size_t errlen);
/* NULL is fine. */
void xr_door_close(struct xr_door *door);
/* How many came who were none of ours, or have not said yet that they are. */
uint32_t xr_door_strangers(const struct xr_door *door);

/*
 * The other side: connect to the parent that setup names, prove both ends.
 * Blocks for at most about ms. Returns the socket, or -1 with a text in err.
 */
int xr_door_enter(const struct xr_setup *setup, int ms, char *err, size_t errlen);

#endif
