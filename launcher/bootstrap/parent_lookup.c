/* SPDX-License-Identifier: BSD-3-Clause */
/* parent_lookup.c: see parent_lookup.h. */
#include "launcher/bootstrap/parent_lookup.h"
#include "launcher/overlay/keepalive.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/overlay/tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ANSWER 65536

struct waiting_agent {
    struct event *ev; /* NULL: not connected */
    struct rk_seal seal;
    char **addresses; /* of its own listener; NULL: not known */
    uint32_t port;
};

struct xr_parent_lookup {
    struct event_base *base;
    struct xr_kary shape;
    struct waiting_agent *agents; /* [shape.nodes] */
};

/* ------------------------------------------------------------ xrun's side */

static void close_agent(struct waiting_agent *g)
{
    if (!g->ev)
        return;
    close(event_get_fd(g->ev));
    event_free(g->ev);
    g->ev = NULL;
}

/* An agent sends nothing here: it closed the connection, or it is malformed. */
static void on_agent_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    close_agent(arg);
}

/* The answer is short and the connection new, so the kernel accepts it at once. */
static void send_parent(struct waiting_agent *g, const struct waiting_agent *parent)
{
    struct xr_packer p = {0}, framed = {0};
    uint8_t mac[RK_SEAL_MAC] = {0};

    xr_pack_strings(&p, parent->addresses);
    xr_pack_u32(&p, parent->port);
    xr_pack_bytes(&framed, p.data, p.len);
    if (!framed.failed)
        rk_seal_next(&g->seal, framed.data, framed.len, NULL, 0, mac);
    xr_pack_raw(&framed, mac, sizeof(mac));
    if (!p.failed && !framed.failed && p.len <= MAX_ANSWER &&
        send(event_get_fd(g->ev), framed.data, framed.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)framed.len)
        errno = 0; /* the agent sees the end of the connection */
    xr_packer_free(&p);
    xr_packer_free(&framed);
    close_agent(g);
}

bool xr_parent_lookup_wants(const struct xr_parent_lookup *s, uint32_t node)
{
    return node < s->shape.nodes && xr_kary_above(&s->shape, node) != XR_NODE_FRONT;
}

void xr_parent_lookup_add(struct xr_parent_lookup *s, uint32_t node, int fd, const struct xr_seals *seals)
{
    struct waiting_agent *g = &s->agents[node], *parent = &s->agents[xr_kary_above(&s->shape, node)];

    close_agent(g); /* a second connection replaces the first */
    xr_keepalive_enable(fd);
    g->seal = seals->out;
    g->ev = event_new(s->base, fd, EV_READ, on_agent_readable, g);
    if (!g->ev)
        close(fd);
    else if (parent->addresses)
        send_parent(g, parent);
    else if (event_add(g->ev, NULL))
        close_agent(g);
}

bool xr_parent_lookup_receive(struct xr_parent_lookup *s, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    char **addresses = xr_unpack_strings(u);
    uint32_t port = xr_unpack_u32(u);
    struct waiting_agent *parent;

    if (!xr_unpack_done(u) || !addresses || node >= s->shape.nodes || port > 65535 || s->agents[node].addresses) {
        xr_strv_free(addresses);
        return false;
    }
    parent = &s->agents[node];
    parent->addresses = addresses;
    parent->port = port;
    for (uint32_t i = 0; i < xr_kary_children(&s->shape, node); i++) {
        struct waiting_agent *child = &s->agents[xr_kary_child(&s->shape, node, i)];
        if (child->ev)
            send_parent(child, parent);
    }
    return true;
}

rank_status_t xr_parent_lookup_open(struct event_base *base, const struct xr_kary *shape, struct xr_parent_lookup **out)
{
    struct xr_parent_lookup *s = calloc(1, sizeof(*s));

    if (!s)
        return RANK_ERR_NO_MEMORY;
    *s = (struct xr_parent_lookup){.base = base, .shape = *shape};
    s->agents = calloc(shape->nodes ? shape->nodes : 1, sizeof(*s->agents));
    if (!s->agents) {
        free(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void xr_parent_lookup_close(struct xr_parent_lookup *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->shape.nodes; i++) {
        close_agent(&s->agents[i]);
        xr_strv_free(s->agents[i].addresses);
    }
    free(s->agents);
    free(s);
}

/* ----------------------------------------------------------- agent's side */

/* Store the local address of a socket as text, or "". */
static void own_address(int fd, char *to, socklen_t len)
{
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof(at);

    to[0] = '\0';
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&at, &n))
        return;
    if (at.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)&at)->sin_addr, to, len);
    else if (at.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)&at)->sin6_addr, to, len);
}

void xr_parent_lookup_pack(char *const *addresses, uint32_t port, uint32_t node, int up, struct xr_packer *p)
{
    char first[INET6_ADDRSTRLEN], **list;
    size_t n = 0, at = 0;

    own_address(up, first, sizeof(first));
    while (addresses[n])
        n++;
    list = calloc(n + 1, sizeof(*list));
    for (int likely = 1; list && likely >= 0; likely--) {
        for (size_t i = 0; i < n; i++) {
            if ((strcmp(addresses[i], first) == 0) == likely)
                list[at++] = addresses[i];
        }
    }
    xr_pack_u32(p, node);
    xr_pack_strings(p, list ? list : addresses);
    xr_pack_u32(p, port);
    free(list);
}

static rank_status_t take_answer(int fd, struct xr_setup *s)
{
    uint8_t head[4], mac[RK_SEAL_MAC], *data = NULL;
    struct xr_unpacker u = {head, sizeof(head), false};
    char **addresses = NULL;
    rank_status_t st = RANK_ERR_SYSTEM;
    uint32_t len, port;

    if (!xr_setup_read_all(fd, -1, head, sizeof(head)))
        return st;
    len = xr_unpack_u32(&u);
    if (len == 0 || len > MAX_ANSWER || !(data = malloc(len)))
        return st;
    if (xr_setup_read_all(fd, -1, data, len) && xr_setup_read_all(fd, -1, mac, sizeof(mac)) &&
        rk_seal_check(&s->seals.in, head, sizeof(head), data, len, mac)) {
        u = (struct xr_unpacker){data, len, false};
        addresses = xr_unpack_strings(&u);
        port = xr_unpack_u32(&u);
        if (xr_unpack_done(&u) && addresses && port <= 65535) {
            xr_strv_free(s->addresses);
            s->addresses = addresses;
            s->port = port;
            addresses = NULL;
            st = RANK_OK;
        }
    }
    xr_strv_free(addresses);
    free(data);
    return st;
}

rank_status_t xr_parent_lookup_request(struct xr_setup *s, int ms, char *err, size_t errlen)
{
    rank_status_t st;
    int fd;

    if (xr_kary_above(&s->shape, s->node) == XR_NODE_FRONT)
        return RANK_OK;
    fd = xr_connect_parent(s, ms, err, errlen);
    if (fd < 0)
        return RANK_ERR_SYSTEM;
    xr_keepalive_enable(fd);
    st = take_answer(fd, s);
    close(fd);
    if (st)
        snprintf(err, errlen, "xrun sent no address of its parent %s",
                 s->names[xr_kary_above(&s->shape, s->node)]);
    return st;
}
