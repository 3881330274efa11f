/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish_spawn.c: forward names and spawn requests to the first xrun.
 *
 * Called as other commands; the answers come by xr_pmi1_rpc_done.
 */
#include "launcher/pmi1/pmi1_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------- requests */

static void send_request(struct xr_pmi1_client *c, enum xr_rpc what, struct xr_packer *p)
{
    struct xr_pmi1 *s = c->server;

    if (c->request) { /* no correct client does that */
        xr_packer_free(p);
        xr_pmi1_refuse(c, "two modexes at once");
        return;
    }
    c->request = what;
    c->request_id = s->next_request++;
    if (s->ops->rpc) {
        s->ops->rpc(s->arg, c->rank, c->request_id, what, p);
    } else {
        xr_packer_free(p);
        xr_pmi1_rpc_done(s, c->request_id, NULL);
    }
}

void xr_pmi1_publish(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    const char *service = xr_pmi1_value(cmd, "service"), *port = xr_pmi1_value(cmd, "port");
    char kind = XR_VALUE_TEXT;
    struct xr_packer p = {0}, value = {0};

    if (!service || !port) {
        xr_pmi1_answer(c, "cmd=publish_result rc=-1 info=error msg=cannot_publish\n");
        return;
    }
    xr_pack_raw(&value, &kind, 1);
    xr_pack_raw(&value, port, strlen(port));
    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_KEEP_APP);
    xr_pack_u32(&p, 1);
    xr_pack_string(&p, service);
    xr_pack_bytes(&p, value.data, value.len);
    p.failed = p.failed || value.failed;
    xr_packer_free(&value);
    send_request(c, XR_RPC_PUBLISH, &p);
}

static void pack_name(struct xr_packer *p, const char *name)
{
    char *names[] = {(char *)(uintptr_t)(name ? name : ""), NULL};

    xr_pack_strings(p, names);
}

void xr_pmi1_lookup(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_NOW);
    xr_pack_u32(&p, 0);
    pack_name(&p, xr_pmi1_value(cmd, "service"));
    send_request(c, XR_RPC_LOOKUP, &p);
}

void xr_pmi1_unpublish(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, XR_RANGE_ANY);
    pack_name(&p, xr_pmi1_value(cmd, "service"));
    send_request(c, XR_RPC_UNPUBLISH, &p);
}

/* ---------------------------------------------------------------------- spawning */

void xr_pmi1_spawn(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    struct xr_pmi1_block *b = c->block;
    struct xr_packer p = {0};
    bool ok = b && !b->bad;

    if (!cmd->last)
        return;
    for (uint32_t i = 0; ok && i < b->request.napps; i++)
        ok = b->request.apps[i].argv && b->request.apps[i].n;
    if (ok)
        xr_spawn_request_pack(&b->request, &p);
    xr_pmi1_forget_block(c);
    if (ok)
        send_request(c, XR_RPC_SPAWN, &p);
    else
        xr_pmi1_answer(c, "cmd=spawn_result rc=-1 msg=not_understood\n");
}

/* ----------------------------------------------------------------------- answers */

static void answer_status(struct xr_pmi1_client *c, const char *what, bool ok, const char *why)
{
    xr_pmi1_answer(c, "cmd=%s_result rc=%d info=%s msg=%s\n", what, ok ? 0 : -1, ok ? "ok" : "error",
                   ok ? "success" : why);
}

/* A PMI-1 client can receive text only. */
static void answer_lookup(struct xr_pmi1_client *c, struct xr_unpacker *u)
{
    uint32_t n = xr_unpack_u32(u);
    const char *value;
    size_t len;

    if (n >= 1) {
        xr_unpack_string(u);
        xr_unpack_string(u);
        xr_unpack_u32(u);
        value = xr_unpack_bytes(u, &len);
        if (!u->failed && len >= 1 && len <= XR_PMI1_VALUE_MAX && *value == XR_VALUE_TEXT &&
            !memchr(value, '\n', len)) {
            xr_pmi1_answer(c, "cmd=lookup_result rc=0 info=ok msg=success port=%.*s\n", (int)len - 1, value + 1);
            return;
        }
    }
    xr_pmi1_answer(c, "cmd=lookup_result rc=-1 info=error msg=not_published\n");
}

/* NULL if the program that sent the request has ended. */
static struct xr_pmi1_client *client_of_request(struct xr_pmi1 *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->local; i++) {
        if (s->clients[i].request && s->clients[i].request_id == id)
            return &s->clients[i];
    }
    return NULL;
}

void xr_pmi1_rpc_done(struct xr_pmi1 *s, uint32_t id, struct xr_unpacker *u)
{
    struct xr_pmi1_client *c = client_of_request(s, id);
    uint32_t what = c ? c->request : 0, status = u ? xr_unpack_u32(u) : XR_REFUSED;

    if (!c)
        return;
    c->request = 0;
    switch (what) {
    case XR_RPC_PUBLISH:
        answer_status(c, "publish", status == XR_DONE, "cannot_publish");
        break;
    case XR_RPC_UNPUBLISH:
        answer_status(c, "unpublish", status == XR_DONE, "not_published");
        break;
    case XR_RPC_LOOKUP:
        if (status == XR_DONE)
            answer_lookup(c, u);
        else
            xr_pmi1_answer(c, "cmd=lookup_result rc=-1 info=error msg=not_published\n");
        break;
    case XR_RPC_SPAWN:
        if (status == XR_DONE)
            xr_pmi1_answer(c, "cmd=spawn_result rc=0 msg=success\n");
        else
            xr_pmi1_answer(c, "cmd=spawn_result rc=-1 msg=%s\n",
                           status == XR_NO_PROGRAM ? "no_such_program" : "cannot_start");
        break;
    default: /* no other kind is sent */
        break;
    }
}
