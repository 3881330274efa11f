/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish_spawn.c: what a PMI-1 client asks that is answered from outside this host:
 * published names, and programs to be spawned. Called like all commands; the
 * answers come through xr_pmi1_errand_done.
 */
#include "launcher/pmi1/pmi1_internal.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ asking */

static void publish_spawn_ask(struct xr_pmi1_client *c, enum xr_errand what, struct xr_packer *p)
{
    struct xr_pmi1 *s = c->server;

    if (c->asking) { /* no client does */
        xr_packer_free(p);
        xr_pmi1_refuse(c, "two modexes at once");
        return;
    }
    c->asking = what;
    c->asked = s->next_ask++;
    if (s->ops->errand) {
        s->ops->errand(s->arg, c->rank, c->asked, what, p);
    } else {
        xr_packer_free(p);
        xr_pmi1_errand_done(s, c->asked, NULL);
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
    publish_spawn_ask(c, XR_ERRAND_PUBLISH, &p);
}

static void pack_name(struct xr_packer *p, const char *name)
{
    char *names[] = {(char *)(uintptr_t)(name ? name : ""), NULL};

    xr_pack_strings(p, names);
}

void xr_pmi1_look_up(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_NOW);
    xr_pack_u32(&p, 0);
    pack_name(&p, xr_pmi1_value(cmd, "service"));
    publish_spawn_ask(c, XR_ERRAND_LOOKUP, &p);
}

void xr_pmi1_unpublish(struct xr_pmi1_client *c, const struct xr_pmi1_command *cmd)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, XR_RANGE_ANY);
    pack_name(&p, xr_pmi1_value(cmd, "service"));
    publish_spawn_ask(c, XR_ERRAND_UNPUBLISH, &p);
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
        xr_request_pack(&b->request, &p);
    xr_pmi1_forget_block(c);
    if (ok)
        publish_spawn_ask(c, XR_ERRAND_SPAWN, &p);
    else
        xr_pmi1_answer(c, "cmd=spawn_result rc=-1 msg=not_understood\n");
}

/* ----------------------------------------------------------------------- answers */

static void publish_spawn_say(struct xr_pmi1_client *c, const char *what, bool ok, const char *why)
{
    xr_pmi1_answer(c, "cmd=%s_result rc=%d info=%s msg=%s\n", what, ok ? 0 : -1, ok ? "ok" : "error",
                   ok ? "success" : why);
}

/* Of a value of PMIx's only a text can be told. */
static void say_found(struct xr_pmi1_client *c, struct xr_unpacker *u)
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

/* NULL: the program that asked has ended. */
static struct xr_pmi1_client *who_asked(struct xr_pmi1 *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->local; i++) {
        if (s->clients[i].asking && s->clients[i].asked == id)
            return &s->clients[i];
    }
    return NULL;
}

void xr_pmi1_errand_done(struct xr_pmi1 *s, uint32_t id, struct xr_unpacker *u)
{
    struct xr_pmi1_client *c = who_asked(s, id);
    uint32_t what = c ? c->asking : 0, status = u ? xr_unpack_u32(u) : XR_REFUSED;

    if (!c)
        return;
    c->asking = 0;
    switch (what) {
    case XR_ERRAND_PUBLISH:
        publish_spawn_say(c, "publish", status == XR_DONE, "cannot_publish");
        break;
    case XR_ERRAND_UNPUBLISH:
        publish_spawn_say(c, "unpublish", status == XR_DONE, "not_published");
        break;
    case XR_ERRAND_LOOKUP:
        if (status == XR_DONE)
            say_found(c, u);
        else
            xr_pmi1_answer(c, "cmd=lookup_result rc=-1 info=error msg=not_published\n");
        break;
    case XR_ERRAND_SPAWN:
        if (status == XR_DONE)
            xr_pmi1_answer(c, "cmd=spawn_result rc=0 msg=success\n");
        else
            xr_pmi1_answer(c, "cmd=spawn_result rc=-1 msg=%s\n",
                           status == XR_NO_PROGRAM ? "no_such_program" : "cannot_start");
        break;
    default: /* nothing else is asked */
        break;
    }
}
