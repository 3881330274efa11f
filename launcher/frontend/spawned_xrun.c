/* SPDX-License-Identifier: BSD-3-Clause */
/* spawned_xrun.c: read what to run and make options of it. See spawned_xrun.h. */
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/exec/environ.h"
#include "launcher/dpm/hub.h"
#include "launcher/overlay/protocol.h"
#include "launcher/job/torch_env.h"
#include "launcher/util/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HEADER 12 /* bytes before the payload of a message; see conn.c */

static int held = -1; /* the connection: forked processes close it */

static bool read_all(int fd, void *to, size_t len)
{
    char *at = to;

    while (len) {
        ssize_t n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* The first message. If the first xrun has ended, the read fails. */
static bool read_hello(int fd, struct xr_spawn_hello *out)
{
    uint8_t head[HEADER];
    struct xr_unpacker h = {head, HEADER, false}, body;
    uint32_t len, kind;
    uint8_t *data;
    bool ok;

    if (!read_all(fd, head, HEADER))
        return false;
    len = xr_unpack_u32(&h);
    kind = xr_unpack_u32(&h);
    data = len <= XR_MESSAGE_MAX && kind == XR_DOWN_HELLO ? malloc(len ? len : 1) : NULL;
    ok = data && read_all(fd, data, len);
    body = (struct xr_unpacker){data, len, false};
    ok = ok && xr_spawn_hello_unpack(&body, out);
    free(data);
    return ok;
}

/* Parse the options of the first xrun and of the request as one command line; programs follow separately. */
static rank_status_t spawned_xrun_parse(struct xr_spawned *s, struct xr_options *o, char *err, size_t errlen)
{
    const struct xr_spawn_hello *h = &s->hello;
    size_t nfirst = xr_strv_count(h->options), nmore = xr_strv_count(h->request.words);
    int argc = 0;

    s->argv = calloc(nfirst + nmore + 7, sizeof(*s->argv));
    if (!s->argv) {
        snprintf(err, errlen, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    s->argv[argc++] = (char *)(uintptr_t) "xrun";
    for (size_t i = 0; i < nfirst; i++)
        s->argv[argc++] = h->options[i];
    s->argv[argc++] = (char *)(uintptr_t)XR_OPTIONS_ANEW; /* from here on: hosts of the request replace those of the first job */
    for (size_t i = 0; i < nmore; i++)
        s->argv[argc++] = h->request.words[i];
    /* No rank that the options of the first job name may be too high. */
    s->argv[argc++] = (char *)(uintptr_t) "-n";
    s->argv[argc++] = (char *)(uintptr_t) "1048576";
    s->argv[argc++] = (char *)(uintptr_t) "--";
    s->argv[argc++] = h->request.apps[0].argv[0];
    return xr_options_parse_over(argc, s->argv, xr_options_from_env, o, err, errlen);
}

/* Replace the first xrun's programs by those of the request. Its -x and --env-file apply to all of them. */
static rank_status_t put_programs(struct xr_spawned *s, struct xr_options *o)
{
    const struct xr_spawn_request *r = &s->hello.request;
    struct xr_app_options first = o->apps[0], *apps = calloc(r->napps, sizeof(*apps));
    size_t words = 0;
    const char **at;

    for (uint32_t i = 0; i < r->napps; i++)
        words += xr_strv_count(s->hello.env) + xr_strv_count(r->apps[i].env);
    s->words = calloc(words + 1, sizeof(*s->words));
    if (!apps || !s->words) {
        free(apps);
        return RANK_ERR_NO_MEMORY;
    }
    at = s->words;
    o->n = 0;
    for (uint32_t i = 0; i < r->napps; i++) {
        apps[i] = first;
        apps[i].n = (int)r->apps[i].n;
        apps[i].set = at;
        apps[i].nfiles = 0;
        for (char **e = s->hello.env; *e; e++) {
            if (!o->torch || !xr_torch_own(*e)) /* a file may set what xrun sets for each rank */
                *at++ = *e;
        }
        for (char **e = r->apps[i].env; *e; e++) {
            if (strchr(*e, '=') && xr_environ_named(*e) && !xr_environ_own(*e))
                *at++ = *e;
        }
        apps[i].nset = (int)(at - apps[i].set);
        apps[i].path = r->apps[i].path ? r->apps[i].path : first.path;
        apps[i].wdir = r->apps[i].wdir ? r->apps[i].wdir : first.wdir;
        apps[i].command = (const char **)r->apps[i].argv;
        o->n += apps[i].n;
    }
    free(o->apps);
    o->apps = apps;
    o->napps = (int)r->napps;
    return RANK_OK;
}

/* Return whether the request has this option. */
static bool request_has(const struct xr_spawn_request *r, const char *option)
{
    for (char *const *w = r->words; w && *w; w++) {
        if (strcmp(*w, option) == 0)
            return true;
    }
    return false;
}

/* Without hosts in the request, use those of the first job. Its hostfile is not read again. */
static void put_hosts(const struct xr_spawned *s, struct xr_options *o)
{
    const struct xr_spawn_hello *h = &s->hello;
    bool chooses = request_has(&h->request, "--host");

    if (!h->hosts || request_has(&h->request, "--hostfile") || (chooses && !o->where.nhostfiles))
        return;
    o->where.given = h->hosts;
    o->where.nhostfiles = 0;
    if (!chooses)
        o->where.hosts = NULL;
}

/* Remove the options that apply to the first job only. */
static bool leave_out(struct xr_spawned *s, struct xr_options *o)
{
    char *dir;

    o->json = NULL;
    o->pty = XR_PTY_NONE;
    o->input = XR_INPUT_NONE;
    o->timeout = 0;
    o->timeout_traces = false;
    o->where.json_map = o->where.rankfile = NULL;
    o->where.show_map = o->where.dry_run = false;
    put_hosts(s, o);
    if (!request_has(&s->hello.request, "--map-by"))
        o->where.request.ppr = 0;
    /* The hosts are shared with its parent job, whose ranks may be bound to any core. */
    o->where.request.bind = XR_BIND_NONE;
    if (!o->output_dir)
        return true;
    if (asprintf(&dir, "%s/job%u", o->output_dir, s->hello.number) < 0)
        return false;
    o->output_dir = dir;
    s->output_dir = dir;
    return true;
}

rank_status_t xr_spawned_read(struct xr_spawned *s, struct xr_options *o, char *err, size_t errlen)
{
    rank_status_t st;

    memset(s, 0, sizeof(*s));
    memset(o, 0, sizeof(*o));
    s->link = held = XR_SPAWNED_FD;
    prctl(PR_SET_NAME, "xrun"); /* execve of /proc/self/exe set "exe" */
    fcntl(s->link, F_SETFD, FD_CLOEXEC);
    if (!read_hello(s->link, &s->hello)) {
        snprintf(err, errlen, "%s is for xrun itself", XR_SPAWNED_PROCESS);
        return RANK_ERR_ARG;
    }
    st = spawned_xrun_parse(s, o, err, errlen);
    if (!st && (put_programs(s, o) || !leave_out(s, o))) {
        snprintf(err, errlen, "out of memory");
        st = RANK_ERR_NO_MEMORY;
    }
    return st;
}

bool xr_spawned_origin(const struct xr_spawned *s, struct xr_origin *out)
{
    const struct xr_spawn_hello *h = &s->hello;

    out->job = strdup(h->parent);
    out->rank = h->rank;
    out->job_info = malloc(h->job_info_len + 1);
    out->keys = calloc(1, sizeof(*out->keys));
    if (!out->job || !out->job_info || !out->keys)
        return false;
    memcpy(out->job_info, h->job_info, h->job_info_len);
    out->len = h->job_info_len;
    for (char **k = h->request.keys; *k; k++) {
        if (!xr_strv_add(&out->keys, *k))
            return false;
    }
    return true;
}

void xr_spawned_clear(struct xr_spawned *s)
{
    if (!s)
        return;
    xr_spawn_hello_clear(&s->hello);
    free(s->argv);
    free(s->words);
    free(s->output_dir);
    memset(s, 0, sizeof(*s));
}

int xr_spawned_fd(void)
{
    return held;
}
