/* launch.c: see branches.h. */
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

struct rk_branches {
    struct rk_tree *tree;
    struct rk_setup setup; /* a copy that owns only what concerns the door */
    struct rk_door *door;
    struct rk_starter *starter;
    struct rk_step *step; /* instead of it, inside Slurm */
    struct rk_usher *usher; /* with it */
    const struct rk_branch_ops *ops;
    void *arg;
    uint32_t strangers; /* who came to the door before it was closed */
};

static void on_agent(void *arg, uint32_t node, int fd)
{
    struct rk_branches *b = arg;

    if (b->usher && rk_usher_wants(b->usher, node)) {
        rk_usher_take(b->usher, node, fd);
        return;
    }
    /* One that comes twice, or is not ours, does not get in. */
    if (rk_tree_add_child(b->tree, node, fd, true) != RANK_OK)
        return;
    rk_branches_connected(b, node);
}

void rk_branches_connected(struct rk_branches *b, uint32_t node)
{
    if (!b)
        return;
    rk_starter_connected(b->starter, node);
    rk_step_connected(b->step, node);
}

static void on_other_version(void *arg, uint32_t node, const char *version)
{
    struct rk_branches *b = arg;
    char text[256];

    snprintf(text, sizeof(text), "%s is version %s there, and this is version %s; install one of them "
                                 "on both (--prefix says where xrun is on the hosts)",
             b->setup.program, version, rank_version());
    b->ops->on_failed(b->arg, node, text);
}

static const struct rk_door_ops door_ops = {on_agent, on_other_version};

static void on_failed(void *arg, uint32_t node, const char *text)
{
    struct rk_branches *b = arg;

    b->ops->on_failed(b->arg, node, text);
}

static void on_said(void *arg, uint32_t node, const char *line)
{
    struct rk_branches *b = arg;

    b->ops->on_said(b->arg, node, line);
}

static const struct rk_starter_ops starter_ops = {on_failed, on_said};

static void on_step_failed(void *arg, const char *text)
{
    on_failed(arg, RK_NODE_ALL, text);
}

static void on_step_said(void *arg, const char *line)
{
    on_said(arg, RK_NODE_ALL, line);
}

static const struct rk_step_ops step_ops = {on_step_failed, on_step_said};

static rank_status_t start_each(struct event_base *base, struct rk_branches *b, uint32_t skip, char *err,
                                size_t errlen)
{
    rank_status_t st = rk_starter_open(base, &b->setup, b->tree, &starter_ops, b, &b->starter);

    if (st)
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    for (uint32_t i = 0; !st && i < rk_tree_children(b->tree); i++) {
        uint32_t node = rk_tree_child(b->tree, i);
        if (node != skip)
            st = rk_starter_start(b->starter, node, err, errlen);
    }
    return st;
}

rank_status_t rk_branches_open(struct event_base *base, struct rk_tree *tree,
                               const struct rk_setup *setup, uint32_t skip,
                               const struct rk_branch_ops *ops, void *arg,
                               struct rk_branches **out, char *err, size_t errlen)
{
    struct rk_branches *b = calloc(1, sizeof(*b));
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
    st = rk_door_open(base, setup->secret, setup->interface, &door_ops, b, &b->door,
                      &b->setup.addresses, &b->setup.port, err, errlen);
    if (!st && setup->step && rk_tree_is_root(tree))
        st = rk_usher_open(base, &setup->shape, &b->usher);
    if (!st && b->usher)
        st = rk_step_open(base, &b->setup, skip, &step_ops, b, &b->step, err, errlen);
    else if (!st && !setup->step)
        st = start_each(base, b, skip, err, errlen);
    if (st && !err[0])
        snprintf(err, errlen, "cannot start agents: %s", rank_status_string(st));
    return st;
}

void rk_branches_close(struct rk_branches *b)
{
    if (!b)
        return;
    rk_starter_close(b->starter);
    rk_step_close(b->step);
    rk_usher_close(b->usher);
    rk_door_close(b->door);
    rk_strings_free(b->setup.addresses);
    free(b);
}

bool rk_branches_reaped(struct rk_branches *b, pid_t pid, int status)
{
    return b && (rk_starter_reaped(b->starter, pid, status) || rk_step_reaped(b->step, pid, status));
}

size_t rk_branches_pids(const struct rk_branches *b, pid_t *pids, size_t max)
{
    if (!b || rk_step_pid(b->step) == 0)
        return b ? rk_starter_pids(b->starter, pids, max) : 0;
    if (pids && max)
        pids[0] = rk_step_pid(b->step);
    return pids && !max ? 0 : 1;
}

void rk_branches_lost(struct rk_branches *b, uint32_t node)
{
    if (b)
        rk_starter_kill(b->starter, node);
}

void rk_branches_give_up(struct rk_branches *b)
{
    if (b)
        rk_starter_give_up(b->starter);
}

bool rk_branches_has(const struct rk_branches *b, pid_t pid)
{
    return b && pid > 0 && (rk_starter_has(b->starter, pid) || rk_step_pid(b->step) == pid);
}

uint32_t rk_branches_strangers(const struct rk_branches *b)
{
    return b ? b->strangers + rk_door_strangers(b->door) : 0;
}

void rk_branches_shut_door(struct rk_branches *b)
{
    if (!b)
        return;
    rk_step_shut(b->step);
    b->strangers += rk_door_strangers(b->door);
    rk_door_close(b->door);
    b->door = NULL;
    rk_usher_close(b->usher);
    b->usher = NULL;
}

bool rk_branches_hear_door(struct rk_branches *b, struct rk_unpacker *u)
{
    /* One that comes when nobody is waited for any more is late, and no fault. */
    return b && (!b->usher || rk_usher_hear(b->usher, u));
}

const char *rk_branches_words(const struct rk_branches *b)
{
    return b ? rk_step_words(b->step) : "";
}

const char *rk_branches_killed(const struct rk_branches *b)
{
    return b ? rk_step_killed(b->step) : "";
}

void rk_branches_pack_door(const struct rk_branches *b, uint32_t node, int fd, struct rk_packer *p)
{
    rk_usher_pack(b->setup.addresses, b->setup.port, node, fd, p);
}
