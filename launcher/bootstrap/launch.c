/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c: see launch.h. */
#include "launcher/bootstrap/launch.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/ssh.h"
#include "launcher/bootstrap/srun.h"
#include "launcher/bootstrap/parent_lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct xr_launch {
    struct xr_tree *tree;
    struct xr_setup setup; /* a copy that owns only the parent's addresses */
    struct xr_listener *listener;
    struct xr_ssh *ssh;
    struct xr_srun *srun; /* replaces ssh inside Slurm */
    struct xr_parent_lookup *lookup; /* present with srun */
    const struct xr_launch_ops *ops;
    void *arg;
    uint32_t unauthenticated; /* peers of the closed listener */
};

static void on_agent(void *arg, uint32_t node, int fd, const struct xr_seals *seals)
{
    struct xr_launch *b = arg;

    if (b->lookup && xr_parent_lookup_wants(b->lookup, node)) {
        xr_parent_lookup_add(b->lookup, node, fd, seals);
        return;
    }
    /* Reject a second connection of a node, or one that is not a child. */
    if (xr_tree_add_child(b->tree, node, fd, seals) != RANK_OK)
        return;
    xr_launch_connected(b, node);
}

void xr_launch_connected(struct xr_launch *b, uint32_t node)
{
    if (!b)
        return;
    xr_ssh_connected(b->ssh, node);
    xr_srun_connected(b->srun, node);
}

static void on_other_version(void *arg, uint32_t node, const char *version)
{
    struct xr_launch *b = arg;
    char text[256];

    snprintf(text, sizeof(text), "%s is version %s there, and this is version %s; install one of them "
                                 "on both (--prefix says where xrun is on the hosts)",
             b->setup.program, version, rank_version());
    b->ops->on_failed(b->arg, node, text);
}

static const struct xr_listener_ops listener_ops = {on_agent, on_other_version};

static void on_failed(void *arg, uint32_t node, const char *text)
{
    struct xr_launch *b = arg;

    b->ops->on_failed(b->arg, node, text);
}

static void on_command_output(void *arg, uint32_t node, const char *line)
{
    struct xr_launch *b = arg;

    b->ops->on_output(b->arg, node, line);
}

static const struct xr_ssh_ops starter_ops = {on_failed, on_command_output};

static void on_srun_failed(void *arg, const char *text)
{
    on_failed(arg, XR_NODE_ALL, text);
}

static void on_srun_output(void *arg, const char *line)
{
    on_command_output(arg, XR_NODE_ALL, line);
}

static const struct xr_srun_ops step_ops = {on_srun_failed, on_srun_output};

static rank_status_t start_each(struct event_base *base, struct xr_launch *b, uint32_t skip, char *err,
                                size_t errlen)
{
    rank_status_t st = xr_ssh_open(base, &b->setup, b->tree, &starter_ops, b, &b->ssh);

    if (st)
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    for (uint32_t i = 0; !st && i < xr_tree_children(b->tree); i++) {
        uint32_t node = xr_tree_child(b->tree, i);
        if (node != skip)
            st = xr_ssh_start(b->ssh, node, err, errlen);
    }
    return st;
}

rank_status_t xr_launch_open(struct event_base *base, struct xr_tree *tree,
                               const struct xr_setup *setup, uint32_t skip,
                               const struct xr_launch_ops *ops, void *arg,
                               struct xr_launch **out, char *err, size_t errlen)
{
    struct xr_launch *b = calloc(1, sizeof(*b));
    rank_status_t st;

    if (!b) {
        snprintf(err, errlen, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    b->tree = tree;
    b->ops = ops;
    b->arg = arg;
    b->setup = *setup;
    b->setup.addresses = NULL;
    *out = b;
    st = xr_listener_open(base, &b->setup, &listener_ops, b, &b->listener, &b->setup.addresses, &b->setup.port, err, errlen);
    if (!st && setup->step && xr_tree_is_root(tree))
        st = xr_parent_lookup_open(base, &setup->shape, &b->lookup);
    if (!st && b->lookup)
        st = xr_srun_open(base, &b->setup, skip, &step_ops, b, &b->srun, err, errlen);
    else if (!st && !setup->step)
        st = start_each(base, b, skip, err, errlen);
    if (st && !err[0])
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    return st;
}

void xr_launch_close(struct xr_launch *b)
{
    if (!b)
        return;
    xr_ssh_close(b->ssh);
    xr_srun_close(b->srun);
    xr_parent_lookup_close(b->lookup);
    xr_listener_close(b->listener);
    xr_strv_free(b->setup.addresses);
    free(b);
}

bool xr_launch_reaped(struct xr_launch *b, pid_t pid, int status)
{
    return b && (xr_ssh_reaped(b->ssh, pid, status) || xr_srun_reaped(b->srun, pid, status));
}

size_t xr_launch_pids(const struct xr_launch *b, pid_t *pids, size_t max)
{
    if (!b || xr_srun_pid(b->srun) == 0)
        return b ? xr_ssh_pids(b->ssh, pids, max) : 0;
    if (pids && max)
        pids[0] = xr_srun_pid(b->srun);
    return pids && !max ? 0 : 1;
}

void xr_launch_lost(struct xr_launch *b, uint32_t node)
{
    if (b)
        xr_ssh_kill(b->ssh, node);
}

void xr_launch_give_up(struct xr_launch *b)
{
    if (b)
        xr_ssh_give_up(b->ssh);
}

bool xr_launch_has(const struct xr_launch *b, pid_t pid)
{
    return b && pid > 0 && (xr_ssh_has(b->ssh, pid) || xr_srun_pid(b->srun) == pid);
}

uint32_t xr_launch_unauthenticated(const struct xr_launch *b)
{
    return b ? b->unauthenticated + xr_listener_unauthenticated(b->listener) : 0;
}

void xr_launch_close_listener(struct xr_launch *b)
{
    if (!b)
        return;
    xr_srun_shut(b->srun);
    b->unauthenticated += xr_listener_unauthenticated(b->listener);
    xr_listener_close(b->listener);
    b->listener = NULL;
    xr_parent_lookup_close(b->lookup);
    b->lookup = NULL;
}

bool xr_launch_take_listener(struct xr_launch *b, struct xr_unpacker *u)
{
    /* A message that arrives after all agents connected is late, and no error. */
    return b && (!b->lookup || xr_parent_lookup_receive(b->lookup, u));
}

const char *xr_launch_reason(const struct xr_launch *b)
{
    return b ? xr_srun_reason(b->srun) : "";
}

const char *xr_launch_killed(const struct xr_launch *b)
{
    return b ? xr_srun_killed(b->srun) : "";
}

void xr_launch_pack_listener(const struct xr_launch *b, uint32_t node, int fd, struct xr_packer *p)
{
    xr_parent_lookup_pack(b->setup.addresses, b->setup.port, node, fd, p);
}
