/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_setup.c: make what agents receive before the job. See agent_setup.h. */
#include "launcher/frontend/agent_setup.h"
#include "launcher/exec/find_program.h"
#include "launcher/util/shell_words.h"
#include "lib/base/auth.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t xr_setup_fanout(const struct xr_options *o)
{
    return o->where.fanout ? o->where.fanout : XR_FANOUT;
}

/* The path of xrun on other hosts. */
static char *program_path(const struct xr_options *o)
{
    char own[4096], *path;
    ssize_t n;

    if (o->prefix)
        return asprintf(&path, "%s/bin/xrun", o->prefix) < 0 ? NULL : path;
    n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0)
        return NULL;
    own[n] = '\0';
    return strdup(own);
}

static char *library_path(const struct xr_options *o)
{
    const char *have = rk_env("LD_LIBRARY_PATH");
    char *path;

    if (!o->prefix)
        return have ? strdup(have) : NULL;
    return asprintf(&path, "%s/lib%s%s", o->prefix, have && *have ? ":" : "", have ? have : "") < 0
               ? NULL
               : path;
}

/* Make the path of a command absolute: agents start others from another working directory. */
static char *from_here(const char *command)
{
    char *cwd = getcwd(NULL, 0), *text = NULL;
    size_t len = 0;
    FILE *to = cwd ? open_memstream(&text, &len) : NULL;
    bool ok;

    if (to) {
        if (strpbrk(cwd, " \t\r\n\\\"'"))
            xr_shell_words_quote(to, cwd);
        else
            fputs(cwd, to);
        fprintf(to, "/%s", command + strspn(command, " \t\r\n"));
        ok = !ferror(to);
        if (fclose(to) || !ok) {
            free(text);
            text = NULL;
        }
    }
    free(cwd);
    return text;
}

char *xr_setup_command(const struct xr_options *o, const struct xr_plan *plan, char *err, size_t errlen)
{
    const char *given = o->where.agent ? o->where.agent : plan->step ? "srun" : "ssh", *wrong;
    char **words = xr_shell_words_split(given, &wrong), *command = NULL, *path = NULL, why[1024];
    int code;

    snprintf(err, errlen, "%s", wrong ? wrong : "out of memory"); /* xr_policy_check has checked it */
    if (words && words[0])
        command = strchr(words[0], '/') && words[0][0] != '/' ? from_here(given) : strdup(given);
    xr_strv_free(words);
    words = command ? xr_shell_words_split(command, &wrong) : NULL;
    if (words && !(path = xr_program_find(words[0], NULL, rk_env("PATH"), "/", why, sizeof(why), &code))) {
        if (strchr(words[0], '/'))
            snprintf(err, errlen, "%s%s", o->where.agent ? "--agent: " : "", why);
        else
            snprintf(err, errlen, "there is no program %s in PATH%s", words[0],
                     o->where.agent ? " (--agent)" : ", by which other hosts are reached; --agent names another");
    }
    if (!path) {
        free(command);
        command = NULL;
    }
    xr_strv_free(words);
    free(path);
    return command;
}

static rank_status_t make_secret(uint8_t *secret)
{
    if (rk_random_secret(secret, RK_AUTH_KEY))
        return RANK_OK;
    rk_error("no random bytes (getrandom, /dev/urandom) for the job's secret: %m%s", rk_refusal_remedy(errno));
    return RANK_ERR_SYSTEM;
}

rank_status_t xr_setup_make(const struct xr_options *o, const struct xr_plan *plan,
                              struct xr_setup *out)
{
    const char *wrong; /* xr_policy_check has checked it */
    char text[1024];

    memset(out, 0, sizeof(*out));
    out->shape.nodes = plan->hosts.n;
    out->shape.fanout = xr_setup_fanout(o);
    out->secret_node = XR_NODE_FRONT;
    out->step = plan->step;
    out->go_on = o->go_on;
    out->names = calloc(out->shape.nodes, sizeof(*out->names));
    for (uint32_t i = 0; out->names && i < out->shape.nodes; i++) {
        out->names[i] = strdup(plan->hosts.host[i].name);
        if (!out->names[i])
            return RANK_ERR_NO_MEMORY;
    }
    /* The agent of this host is a child process of xrun, and the head of the tree. */
    if (plan->local != XR_NO_HOST)
        out->node = out->shape.head = plan->local;
    if (!out->names)
        return RANK_ERR_NO_MEMORY;
    if (!xr_plan_remote(plan))
        return RANK_OK;
    out->agent = xr_setup_command(o, plan, text, sizeof(text)); /* main.c has checked it */
    out->ssh_args = xr_shell_words_split(o->where.ssh_args ? o->where.ssh_args : "", &wrong);
    out->program = program_path(o);
    out->library_path = library_path(o);
    out->interface = o->where.interface ? strdup(o->where.interface) : NULL;
    if (!out->agent || !out->ssh_args || !out->program)
        return RANK_ERR_NO_MEMORY;
    return make_secret(out->secret);
}
