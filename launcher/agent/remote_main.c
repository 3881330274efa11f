/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_main.c: run an agent on another host: read its parameters and connect.
 *
 * Standard input holds the parent's address and the secret (setup.h). Errors before
 * the connection go to standard error, which leads to the parent.
 */
#include "launcher/agent/agent.h"
#include "launcher/bootstrap/listener.h"
#include "launcher/agent/supervisor.h"
#include "launcher/alloc/slurm.h"
#include "launcher/bootstrap/parent_lookup.h"
#include "launcher/exec/kernel_calls.h"
#include "launcher/job/timeouts.h"
#include "lib/base/auth.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Find this host's number. One srun has started all agents with the same parameters. */
static bool find_own_node(struct xr_setup *setup)
{
    static char speaker[300]; /* srun merges the output of all agents */
    const char *node = xr_slurm_node();

    if (!node || !xr_setup_become(setup, node)) {
        rk_error("Slurm calls this host %s, which does not belong to the job (--agent ssh does without srun)",
                 node ? node : "nothing");
        return false;
    }
    snprintf(speaker, sizeof(speaker), "xrun-agent on %s", node);
    rk_log_identity(speaker, -1, NULL);
    return true;
}

int xr_agent_remote_main(void)
{
    struct xr_setup setup;
    bool step;
    char text[1024];
    int fd, null, code;

    rk_log_identity("xrun-agent", -1, NULL);
    if (isatty(STDIN_FILENO)) {
        rk_error("%s is for xrun's own use", XR_AGENT_PROCESS);
        return 2;
    }
    if (!xr_kernel_calls_check(text, sizeof(text))) {
        rk_error("%s", text);
        return 1;
    }
    if (xr_setup_read(STDIN_FILENO, XR_SETUP_MS, &setup, text, sizeof(text))) {
        rk_error("%s", text);
        xr_setup_clear(&setup);
        return 1;
    }
    step = setup.node == XR_NODE_ALL;
    if (!rk_auth_open()) {
        rk_error("agents authenticate each other: " RK_AUTH_MISSING);
        xr_setup_clear(&setup);
        return 1;
    }
    if (step && !find_own_node(&setup)) {
        xr_setup_clear(&setup);
        return 1;
    }
    setup.step = step;
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    if (chdir("/"))
        rk_error("cannot go to /: %m");
    fd = step && xr_parent_lookup_request(&setup, XR_CONNECT_MS, text, sizeof(text)) != RANK_OK
             ? -1
             : xr_connect_parent(&setup, XR_CONNECT_MS, text, sizeof(text));
    if (fd < 0) {
        rk_error("%s", text);
        xr_setup_clear(&setup);
        return 1;
    }
    code = xr_supervisor_run(fd, &setup);
    xr_setup_clear(&setup);
    /* On a failure srun would kill the other agents. xrun has been notified, and ends the job in good order. */
    return step ? 0 : code;
}
