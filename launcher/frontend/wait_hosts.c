/* SPDX-License-Identifier: BSD-3-Clause */
/* wait_hosts.c: count agents that reported. See wait_hosts.h. */
#include "launcher/frontend/wait_hosts.h"
#include "launcher/job/machine_pack.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/protocol.h"
#include "launcher/util/shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 8 /* names in a line before "and N more" */

struct host {
    bool ready;
    bool requested; /* its topology was requested and has not arrived */
    bool devices;   /* the same for its devices */
    uint64_t digest; /* of its topology; 0: not known */
};

struct xr_wait_hosts {
    struct xr_tree *tree;
    struct xr_plan *plan;
    const struct xr_wait_hosts_ops *ops;
    void *arg;
    struct host *hosts; /* [plan->hosts.n] */
    uint32_t missing, unseen; /* agents that have not reported; topologies and devices that have not arrived */
    uint32_t topologies;      /* of these, topologies */
    double timeout_s;
    bool over;
    struct event *slow, *late;
};

/* While agents are missing: whether this one is. After that: whether a reply of it is. */
static bool wait_hosts_is_awaited(const struct xr_wait_hosts *m, uint32_t i)
{
    return m->missing ? !m->hosts[i].ready : m->hosts[i].requested || m->hosts[i].devices;
}

/* Return the number of hosts that are awaited. */
static uint32_t wait_hosts_awaited(const struct xr_wait_hosts *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->plan->hosts.n; i++)
        n += wait_hosts_is_awaited(m, i);
    return n;
}

static void name_awaited(const struct xr_wait_hosts *m, char *to, size_t len)
{
    uint32_t named = 0;
    size_t at = 0;

    to[0] = '\0';
    for (uint32_t i = 0; i < m->plan->hosts.n && named < NAMES; i++) {
        if (!wait_hosts_is_awaited(m, i))
            continue;
        at += (size_t)snprintf(to + at, len - at, "%s%s", named++ ? ", " : "",
                               m->plan->hosts.host[i].name);
        if (at >= len)
            return;
    }
    if (wait_hosts_awaited(m) > named)
        snprintf(to + at, len - at, " and %u more", wait_hosts_awaited(m) - named);
}

static void wait_hosts_on_slow(evutil_socket_t fd, short what, void *arg)
{
    struct xr_wait_hosts *m = arg;
    char names[1024], line[1200];

    (void)fd;
    (void)what;
    if (m->over || !wait_hosts_awaited(m))
        return;
    name_awaited(m, names, sizeof(names));
    snprintf(line, sizeof(line), "waiting for %u of %u host%s: %s", wait_hosts_awaited(m), m->plan->hosts.n, xr_plural(m->plan->hosts.n),
             names);
    m->ops->on_slow(m->arg, line);
}

static void wait_hosts_on_late(evutil_socket_t fd, short what, void *arg)
{
    struct xr_wait_hosts *m = arg;
    char names[1024], line[1200];

    (void)fd;
    (void)what;
    if (m->over)
        return;
    m->over = true;
    name_awaited(m, names, sizeof(names));
    snprintf(line, sizeof(line), "%u of %u host%s did not %s within %g s (--start-timeout): %s", wait_hosts_awaited(m), m->plan->hosts.n,
             xr_plural(m->plan->hosts.n), m->missing ? "come" : "say what they look like", m->timeout_s, names);
    m->ops->on_failed(m->arg, line);
}

/* The topology of a host with this digest, or NULL. */
static hwloc_topology_t find_topology(const struct xr_wait_hosts *m, uint64_t digest)
{
    for (uint32_t i = 0; i < m->plan->hosts.n; i++) {
        if (m->hosts[i].digest == digest && m->plan->known[i].topology)
            return m->plan->known[i].topology;
    }
    return NULL;
}

static void wait_hosts_finish(struct xr_wait_hosts *m)
{
    if (m->over || m->missing || m->unseen)
        return;
    m->over = true;
    m->ops->on_complete(m->arg);
}

/* All agents have reported: request the topology of one host of each kind. */
static void request_topologies(struct xr_wait_hosts *m)
{
    for (uint32_t i = 0; i < m->plan->hosts.n; i++) {
        bool skip = i == m->plan->local || m->hosts[i].digest == 0 ||
                     !xr_plan_wants_topology(m->plan, 1, m->plan->known[i].units);
        for (uint32_t k = 0; k < i && !skip; k++)
            skip = k != m->plan->local && m->hosts[k].digest == m->hosts[i].digest;
        if (skip)
            continue;
        m->unseen++;
        m->topologies++;
        m->hosts[i].requested = true;
        xr_tree_send(m->tree, i, XR_MSG_GET_TOPOLOGY, NULL);
    }
}

/* GPUs differ at least by their UUIDs: request those of each host. */
static void request_devices(struct xr_wait_hosts *m)
{
    for (uint32_t i = 0; i < m->plan->hosts.n && xr_plan_wants_devices(m->plan); i++) {
        if (i == m->plan->local)
            continue;
        m->unseen++;
        m->hosts[i].devices = true;
        xr_tree_send(m->tree, i, XR_MSG_GET_MACHINE, NULL);
    }
}

static bool take_ready(struct xr_wait_hosts *m, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *name = xr_unpack_string(u);
    uint32_t units = xr_unpack_u32(u);
    uint64_t digest = xr_unpack_u64(u), machine = xr_unpack_u64(u);
    uint32_t port = xr_unpack_u32(u);
    struct xr_plan_host *k;

    if (!xr_unpack_done(u) || !name || node >= m->plan->hosts.n || node == m->plan->local ||
        m->hosts[node].ready || port > UINT16_MAX)
        return false;
    k = &m->plan->known[node];
    k->real_name = strdup(name);
    k->units = units;
    k->machine = machine;
    k->port = (uint16_t)port;
    m->hosts[node] = (struct host){.ready = true, .digest = digest};
    if (--m->missing == 0) {
        request_topologies(m);
        request_devices(m);
    }
    wait_hosts_finish(m);
    return k->real_name != NULL;
}

/* Returns NULL if that is no topology. */
static hwloc_topology_t read_xml(const char *xml)
{
    hwloc_topology_t t;

    if (!*xml || hwloc_topology_init(&t))
        return NULL;
    if (hwloc_topology_set_xmlbuffer(t, xml, (int)strlen(xml) + 1) || hwloc_topology_load(t)) {
        hwloc_topology_destroy(t);
        return NULL;
    }
    return t;
}

static bool take_topology(struct xr_wait_hosts *m, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *xml = xr_unpack_string(u);
    hwloc_topology_t t;

    if (!xr_unpack_done(u) || !xml || node >= m->plan->hosts.n || !m->hosts[node].requested)
        return false;
    m->hosts[node].requested = false;
    t = read_xml(xml);
    if (t && xr_plan_keep(m->plan, t) == RANK_OK)
        m->plan->known[node].topology = t;
    m->unseen--;
    if (--m->topologies == 0) {
        for (uint32_t i = 0; i < m->plan->hosts.n; i++) {
            if (m->hosts[i].digest && !m->plan->known[i].topology)
                m->plan->known[i].topology = find_topology(m, m->hosts[i].digest);
        }
    }
    wait_hosts_finish(m);
    return true;
}

static bool take_machine(struct xr_wait_hosts *m, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *why = xr_unpack_string(u);
    struct rk_machine machine;
    struct xr_plan_host *k;

    if (!why || node >= m->plan->hosts.n || !m->hosts[node].devices)
        return false;
    k = &m->plan->known[node];
    m->hosts[node].devices = false;
    if (*why) {
        k->no_devices = strdup(why);
    } else if (xr_machine_unpack(u, &machine)) {
        rk_machine_free(&machine);
        return false;
    } else {
        k->devices = xr_plan_keep_machine(m->plan, &machine);
    }
    m->unseen--;
    wait_hosts_finish(m);
    return true;
}

bool xr_wait_hosts_take(struct xr_wait_hosts *m, uint32_t kind, struct xr_unpacker *u)
{
    return kind == XR_MSG_READY ? take_ready(m, u) : kind == XR_MSG_MACHINE ? take_machine(m, u) : take_topology(m, u);
}

rank_status_t xr_wait_hosts_open(struct event_base *base, struct xr_tree *tree, struct xr_plan *plan,
                             double timeout_s, const struct xr_wait_hosts_ops *ops, void *arg,
                             struct xr_wait_hosts **out)
{
    const struct timeval slow = {XR_START_SLOW_S, 0};
    struct timeval late = {(time_t)timeout_s, (suseconds_t)((timeout_s - (double)(time_t)timeout_s) * 1e6)};
    struct xr_wait_hosts *m = calloc(1, sizeof(*m));

    if (!m)
        return RANK_ERR_NO_MEMORY;
    *m = (struct xr_wait_hosts){.tree = tree, .plan = plan, .ops = ops, .arg = arg, .timeout_s = timeout_s};
    m->hosts = calloc(plan->hosts.n, sizeof(*m->hosts));
    m->slow = evtimer_new(base, wait_hosts_on_slow, m);
    m->late = evtimer_new(base, wait_hosts_on_late, m);
    if (!m->hosts || !m->slow || !m->late || event_add(m->slow, &slow) || event_add(m->late, &late)) {
        xr_wait_hosts_close(m);
        return RANK_ERR_NO_MEMORY;
    }
    m->missing = plan->hosts.n;
    if (plan->local != XR_NO_HOST) {
        m->hosts[plan->local].ready = true;
        m->missing--;
    }
    *out = m;
    return RANK_OK;
}

void xr_wait_hosts_close(struct xr_wait_hosts *m)
{
    if (!m)
        return;
    if (m->slow)
        event_free(m->slow);
    if (m->late)
        event_free(m->late);
    free(m->hosts);
    free(m);
}
