/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_block.c: collect the lines of a spawn request. See pmi1_internal.h. */
#include "launcher/pmi1/pmi1_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit of all lines of a request; the protocol has none. */
#define BLOCK_MAX (1u << 20)

void xr_pmi1_forget_block(struct xr_pmi1_client *c)
{
    if (!c->block)
        return;
    xr_spawn_request_clear(&c->block->request);
    free(c->block->key);
    free(c->block);
    c->block = NULL;
}

/* The rest of the line. NULL if it does not begin with that. */
static const char *after(const char *line, const char *begin)
{
    size_t len = strlen(begin);

    return strncmp(line, begin, len) == 0 ? line + len : NULL;
}

/* The same for "arg7=..." and the like. The number is ignored: they come in order. */
static const char *after_numbered(const char *line, const char *begin)
{
    const char *rest = after(line, begin);

    if (!rest || *rest < '0' || *rest > '9')
        return NULL;
    rest += strspn(rest, "0123456789");
    return *rest == '=' ? rest + 1 : NULL;
}

static bool set_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
    return *to != NULL;
}

static bool put_key(struct xr_pmi1_block *b, const char *value)
{
    char *text;
    bool ok;

    if (!b->key)
        return false;
    if (asprintf(&text, "%s=%s", b->key, value) < 0)
        return false;
    ok = xr_strv_add(&b->request.keys, text);
    free(text);
    free(b->key);
    b->key = NULL;
    return ok;
}

static bool put_option(struct xr_pmi1_block *b, const char *option, const char *value)
{
    return xr_strv_add(&b->request.words, option) && xr_strv_add(&b->request.words, value);
}

/* MPI's reserved keys; others are hints and ignored. */
static bool put_info(struct xr_pmi1_block *b, const char *value)
{
    const char *key = b->key ? b->key : "";
    bool ok = true;

    if (strcmp(key, "wdir") == 0 || strcmp(key, "wd") == 0)
        ok = set_text(&b->app->wdir, value);
    else if (strcmp(key, "path") == 0)
        ok = set_text(&b->app->path, value);
    else if (strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0)
        ok = put_option(b, "--host", value);
    else if (strcmp(key, "hostfile") == 0)
        ok = put_option(b, "--hostfile", value);
    free(b->key);
    b->key = NULL;
    return ok;
}

static bool parse_line(struct xr_pmi1_block *b, const char *line)
{
    const char *v;
    char *end;
    long n;

    if ((v = after(line, "nprocs="))) {
        n = strtol(v, &end, 10);
        b->app->n = end != v && !*end && n > 0 && n <= XR_MAX_RANKS ? (uint32_t)n : 0;
        return b->app->n > 0;
    }
    if ((v = after(line, "execname=")))
        return !b->app->argv && xr_strv_add(&b->app->argv, v);
    if ((v = after_numbered(line, "arg")))
        return b->app->argv && xr_strv_add(&b->app->argv, v);
    if ((v = after_numbered(line, "preput_key_")) && !strchr(v, '='))
        return set_text(&b->key, v);
    if ((v = after_numbered(line, "preput_val_")))
        return put_key(b, v);
    if ((v = after_numbered(line, "info_key_")))
        return set_text(&b->key, v);
    if ((v = after_numbered(line, "info_val_")))
        return put_info(b, v);
    return true; /* counts, which are redundant */
}

void xr_pmi1_block_line(struct xr_pmi1_client *c, const char *line)
{
    struct xr_pmi1_block *b = c->block;

    if (!b)
        b = c->block = calloc(1, sizeof(*b));
    if (!b || b->bad)
        return;
    if (!line) {
        b->app = xr_spawn_request_add(&b->request);
        b->bad = !b->app;
        return;
    }
    b->bytes += strlen(line) + 16;
    b->bad = b->bytes > BLOCK_MAX || !parse_line(b, line);
}
