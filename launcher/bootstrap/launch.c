/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c: see launch.h. */
#include "launcher/bootstrap/launch.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/ssh.h"
#include "launcher/bootstrap/srun.h"
#include "launcher/bootstrap/parent_lookup.h"
#include "lib/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct xr_branches {
    struct xr_tree *tree;
    struct xr_setup setup; /* a copy that owns only the parent's addresses */
    struct xr_door *door;
    struct xr_starter *starter;
    struct xr_step *step; /* replaces starter inside Slurm */
    struct xr_usher *usher; /* present with step */
    const struct xr_branch_ops *ops;
    void *arg;
    uint32_t unauthenticated; /* peers of the closed listener */
};

static void on_agent(void *arg, uint32_t node, int fd)
{
    struct xr_branches *b = arg;

    if (b->usher && xr_usher_wants(b->usher, node)) {
        xr_usher_take(b->usher, node, fd);
        return;
    }
    /* Reject a second connection of a node, or one that is not a child. */
    if (xr_tree_add_child(b->tree, node, fd, true) != RANK_OK)
        return;
    xr_branches_connected(b, node);
}

void xr_branches_connected(struct xr_branches *b, uint32_t node)
{
    if (!b)
        return;
    xr_starter_connected(b->starter, node);
    xr_step_connected(b->step, node);
}

static void on_other_version(void *arg, uint32_t node, const char *version)
{
    struct xr_branches *b = arg;
    char text[256];

    snprintf(text, sizeof(text), "%s is version %s there, and this is version %s; install one of them "
                                 "on both (--prefix says where xrun is on the hosts)",
             b->setup.program, version, rank_version());
    b->ops->on_failed(b->arg, node, text);
}

static const struct xr_door_ops door_ops = {on_agent, on_other_version};

static void on_failed(void *arg, uint32_t node, const char *text)
{
    struct xr_branches *b = arg;

    b->ops->on_failed(b->arg, node, text);
}

static void on_command_output(void *arg, uint32_t node, const char *line)
{
    struct xr_branches *b = arg;

    b->ops->on_output(b->arg, node, line);
}

static const struct xr_starter_ops starter_ops = {on_failed, on_command_output};

static void on_srun_failed(void *arg, const char *text)
{
    on_failed(arg, XR_NODE_ALL, text);
}

static void on_srun_output(void *arg, const char *line)
{
    on_command_output(arg, XR_NODE_ALL, line);
}

static const struct xr_step_ops step_ops = {on_srun_failed, on_srun_output};

static rank_status_t start_each(struct event_base *base, struct xr_branches *b, uint32_t skip, char *err,
                                size_t errlen)
{
    rank_status_t st = xr_starter_open(base, &b->setup, b->tree, &starter_ops, b, &b->starter);

    if (st)
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    for (uint32_t i = 0; !st && i < xr_tree_children(b->tree); i++) {
        uint32_t node = xr_tree_child(b->tree, i);
        if (node != skip)
            st = xr_starter_start(b->starter, node, err, errlen);
    }
    return st;
}

rank_status_t xr_branches_open(struct event_base *base, struct xr_tree *tree,
                               const struct xr_setup *setup, uint32_t skip,
                               const struct xr_branch_ops *ops, void *arg,
                               struct xr_branches **out, char *err, size_t errlen)
{
    struct xr_branches *b = calloc(1, sizeof(*b));
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
    st = xr_door_open(base, setup->secret, setup->interface, &door_ops, b, &b->door,
                      &b->setup.addresses, &b->setup.port, err, errlen);
    if (!st && setup->step && xr_tree_is_root(tree))
        st = xr_usher_open(base, &setup->shape, &b->usher);
    if (!st && b->usher)
        st = xr_step_open(base, &b->setup, skip, &step_ops, b, &b->step, err, errlen);
    else if (!st && !setup->step)
        st = start_each(base, b, skip, err, errlen);
    if (st && !err[0])
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    return st;
}

void xr_branches_close(struct xr_branches *b)
{
    if (!b)
        return;
    xr_starter_close(b->starter);
    xr_step_close(b->step);
    xr_usher_close(b->usher);
    xr_door_close(b->door);
    xr_strings_free(b->setup.addresses);
    free(b);
}

bool xr_branches_reaped(struct xr_branches *b, pid_t pid, int status)
{
    return b && (xr_starter_reaped(b->starter, pid, status) || xr_step_reaped(b->step, pid, status));
}

size_t xr_branches_pids(const struct xr_branches *b, pid_t *pids, size_t max)
{
    if (!b || xr_step_pid(b->step) == 0)
        return b ? xr_starter_pids(b->starter, pids, max) : 0;
    if (pids && max)
        pids[0] = xr_step_pid(b->step);
    return pids && !max ? 0 : 1;
}

void xr_branches_lost(struct xr_branches *b, uint32_t node)
{
    if (b)
        xr_starter_kill(b->starter, node);
}

void xr_branches_give_up(struct xr_branches *b)
{
    if (b)
        xr_starter_give_up(b->starter);
}

bool xr_branches_has(const struct xr_branches *b, pid_t pid)
{
    return b && pid > 0 && (xr_starter_has(b->starter, pid) || xr_step_pid(b->step) == pid);
}

uint32_t xr_branches_strangers(const struct xr_branches *b)
{
    return b ? b->unauthenticated + xr_door_strangers(b->door) : 0;
}

void xr_branches_shut_door(struct xr_branches *b)
{
    if (!b)
        return;
    xr_step_shut(b->step);
    b->unauthenticated += xr_door_strangers(b->door);
    xr_door_close(b->door);
    b->door = NULL;
    xr_usher_close(b->usher);
    b->usher = NULL;
}

bool xr_branches_hear_door(struct xr_branches *b, struct xr_unpacker *u)
{
    /* A message that arrives after all agents connected is late, and no error. */
    return b && (!b->usher || xr_usher_hear(b->usher, u));
}

const char *xr_branches_words(const struct xr_branches *b)
{
    return b ? xr_step_words(b->step) : "";
}

const char *xr_branches_killed(const struct xr_branches *b)
{
    return b ? xr_step_killed(b->step) : "";
}

void xr_branches_pack_door(const struct xr_branches *b, uint32_t node, int fd, struct xr_packer *p)
{
    xr_usher_pack(b->setup.addresses, b->setup.port, node, fd, p);
}
