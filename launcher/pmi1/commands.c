/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands.c: execute the commands of PMI-1 clients. See pmi1_internal.h.
 *
 * Every answer has rc: MPICH 5 requires it in all, MPICH 4 in some.
 */
#include "launcher/pmi1/pmi1_internal.h"

#include <limits.h>
#include <string.h>

#define UNKNOWN_SPACE "no_such_space"

static void on_init(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    long version;

    if (!xr_pmi1_number(cmd, "pmi_version", 0, INT_MAX, &version) || version != 1) {
        xr_pmi1_answer(c, "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n");
        return;
    }
    /* A rank can run several programs, one after the other. */
    c->state = XR_PMI1_JOINED;
    c->request = 0; /* a request of the previous program */
    xr_pmi1_note_joined(c);
    xr_pmi1_answer(c, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
}

static void on_maxes(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    xr_pmi1_answer(c, "cmd=maxes rc=0 kvsname_max=256 keylen_max=%d vallen_max=%d\n",
                   XR_PMI1_KEY_MAX, XR_PMI1_VALUE_MAX);
}

static void on_appnum(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    xr_pmi1_answer(c, "cmd=appnum rc=0 appnum=%u\n", c->app);
}

static void on_name(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    xr_pmi1_answer(c, "cmd=my_kvsname rc=0 kvsname=%s\n", c->server->name);
}

/* Without slots the number of ranks is unlimited. */
static void on_universe(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    if (c->server->universe)
        xr_pmi1_answer(c, "cmd=universe_size rc=0 size=%u\n", c->server->universe);
    else
        xr_pmi1_answer(c, "cmd=universe_size rc=0 size=-1\n");
}

static bool own_space(const struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    const char *name = xr_pmi1_value(cmd, "kvsname");

    return name && strcmp(name, c->server->name) == 0;
}

static void on_put(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    const char *key = xr_pmi1_value(cmd, "key"), *value = xr_pmi1_value(cmd, "value");
    const char *why = "success";

    if (!own_space(c, cmd)) {
        why = UNKNOWN_SPACE;
    } else if (!key || !value) {
        why = "key_or_value_missing";
    } else {
        rank_status_t st = xr_pmi1_kvs_put(c->server->space, key, value);
        if (st)
            why = st == RANK_ERR_ARG ? "too_long" : "no_room";
    }
    xr_pmi1_answer(c, "cmd=put_result rc=%d msg=%s\n", strcmp(why, "success") ? -1 : 0, why);
}

static void on_get(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    const char *key = xr_pmi1_value(cmd, "key"), *value = NULL;

    if (key && own_space(c, cmd))
        value = xr_pmi1_kvs_get(c->server->space, key);
    if (value)
        xr_pmi1_answer(c, "cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        xr_pmi1_answer(c, "cmd=get_result rc=-1 msg=%s value=unknown\n",
                       own_space(c, cmd) ? "key_not_found" : UNKNOWN_SPACE);
}

static void on_barrier(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    if (c->waiting)
        xr_pmi1_refuse(c, "a barrier inside a barrier");
    else
        xr_pmi1_enter_barrier(c);
}

static void on_finalize(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    (void)cmd;
    c->state = XR_PMI1_FINALIZED;
    xr_pmi1_answer(c, "cmd=finalize_ack rc=0\n");
}

/* There is no answer; the client ends by itself. */
static void on_abort(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    const char *text = xr_pmi1_value(cmd, "error_msg");
    long code = 1;

    xr_pmi1_number(cmd, "exitcode", INT_MIN, INT_MAX, &code);
    c->server->ops->aborted(c->server->arg, c->rank, (int)code, text ? text : "");
}

static const struct {
    const char *name;
    void (*execute)(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd);
    bool any_time; /* also before init */
} commands[] = {
    {"init", on_init, true},
    {"get_maxes", on_maxes, false},
    {"get_appnum", on_appnum, false},
    {"get_my_kvsname", on_name, false},
    {"get_universe_size", on_universe, false},
    {"put", on_put, false},
    {"get", on_get, false},
    {"barrier_in", on_barrier, false},
    {"finalize", on_finalize, false},
    {"abort", on_abort, true},
    {"publish_name", xr_pmi1_publish, false},
    {"lookup_name", xr_pmi1_lookup, false},
    {"unpublish_name", xr_pmi1_unpublish, false},
    {"spawn", xr_pmi1_spawn, false},
};

void xr_pmi1_execute(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(commands); i++) {
        if (strcmp(cmd->name, commands[i].name) != 0 ||
            cmd->block != (commands[i].execute == xr_pmi1_spawn))
            continue;
        if (c->state != XR_PMI1_JOINED && !commands[i].any_time)
            xr_pmi1_refuse(c, "a command before init");
        else
            commands[i].execute(c, cmd);
        return;
    }
    xr_pmi1_refuse(c, "an unknown command");
}
