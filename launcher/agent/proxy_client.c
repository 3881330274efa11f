/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_client.c: start proxies for ended ranks, and be one. See proxy_client.h. */
#include "launcher/agent/proxy_client.h"
#include "launcher/agent/agent_internal.h"
#include "launcher/exec/spawn_proc.h"
#include "lib/base/clock.h"
#include "lib/base/companion.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REPLY_S = 3, /* for the server to answer a proxy */
    LEFT_S = 1,     /* after a finalized rank has ended */
    TRIES = 3       /* proxies for one rank */
};

static pid_t proxy_client_start(struct xr_agent *agent, uint32_t rank)
{
    char *argv[] = {(char *)(uintptr_t)XR_PROXY_CLIENT_NAME, NULL};
    char **env = xr_server_rank_env(agent->server, rank);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct xr_spawn spec = {.program = "/proc/self/exe",
                            .argv = argv,
                            .env = env,
                            .wdir = "/",
                            .fd = {null, null, null, -1}};
    static struct xr_spawner spawner; /* kept for the next proxy */
    const char *step;
    int pidfd = -1;
    pid_t pid = -1;

    if (env && null >= 0 && (spawner.stack || xr_spawner_open(&spawner) == 0))
        pid = xr_spawn(&spec, &spawner, &pidfd, &step);
    if (pid < 0 && agent->proxy_probes)
        rk_warn("rank %u ended without PMIx and others may wait for it in vain: %m", rank);
    if (pidfd >= 0)
        close(pidfd);
    if (null >= 0)
        close(null);
    xr_strv_free(env);
    return pid < 0 ? 0 : pid;
}

/* Return whether it never was a client, and others may wait for it. A killed rank may have been connecting. */
static bool never_connected(const struct xr_agent *agent, const struct xr_rank *r)
{
    return !r->connected && (agent->clients > 0 || (WIFSIGNALED(r->status) && agent->live > 0));
}

/* Return whether it finalized while others go on. */
static bool left_early(const struct xr_agent *agent, const struct xr_rank *r)
{
    return r->connected && r->finalized && agent->clients > 0;
}

/*
 * Return whether a process that it forked holds its connection beyond its end. libpmix does not detect the end then,
 * and others would wait in fences. Such a process is killed if it is in the rank's process group.
 */
static bool connection_is_held(const struct xr_rank *r)
{
    return r->connected && !r->finalized && r->clients > 0;
}

static void kill_holders(const struct xr_agent *agent, struct xr_rank *r)
{
    r->proxied = true;
    if (kill(-r->pid, SIGKILL) == 0)
        rk_warn("rank %u (host %s, pid %d) has ended and left processes that have its connection to PMIx: they are "
                "killed, or others would wait for it",
                r->rank, agent->host, (int)r->pid);
}

void xr_proxy_client_check(struct xr_agent *agent)
{
    const struct timeval later = {LEFT_S, 0};
    uint64_t now = rk_clock_ns();

    if (agent->state != XR_AGENT_RUNNING || agent->proxy_pid || !agent->server)
        return;
    for (uint32_t i = 0; i < agent->nlocal; i++) {
        struct xr_rank *r = &agent->ranks[i];
        if (!r->exited || r->proxied)
            continue;
        agent->proxy_probes = never_connected(agent, r);
        if (!agent->proxy_probes && !left_early(agent, r) && !connection_is_held(r))
            continue;
        if (!agent->proxy_probes && now - r->exit_ns < LEFT_S * 1000000000ull) {
            if (!event_pending(agent->on_proxy, EV_TIMEOUT, NULL))
                event_add(agent->on_proxy, &later);
            continue;
        }
        if (connection_is_held(r)) {
            kill_holders(agent, r);
            continue;
        }
        r->proxied = true;
        agent->proxy_rank = r;
        agent->proxy_pid = proxy_client_start(agent, r->rank);
        if (agent->proxy_pid)
            return;
        r->connected = r->finalized = true;
    }
}

bool xr_proxy_client_reaped(struct xr_agent *agent, pid_t pid, int status)
{
    bool running = agent->state == XR_AGENT_RUNNING;

    if (!pid || agent->proxy_pid != pid)
        return true;
    agent->proxy_pid = 0;
    /* The host may be too busy, or a signal meant for ranks has ended it. That the server is silent one try shows. */
    if (status && running && ++agent->proxy_rank->proxy_tries < TRIES &&
        !(agent->proxy_probes && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
        agent->proxy_rank->proxied = false;
        return true;
    }
    agent->proxy_rank->connected = agent->proxy_rank->finalized = true;
    return !(running && agent->proxy_probes && WIFSIGNALED(status));
}

static void on_proxy_due(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_proxy_client_check(arg);
}

rank_status_t xr_proxy_client_open(struct xr_agent *agent)
{
    agent->on_proxy = evtimer_new(agent->base, on_proxy_due, agent);
    return agent->on_proxy ? RANK_OK : RANK_ERR_NO_MEMORY;
}

/* Connect in the rank's name, commit nothing, and exit. That answers pending requests for its data. */
int xr_proxy_client_main(void)
{
    static const int users[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP}; /* sent to all ranks */
    pmix_proc_t me;

    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
        signal(users[i], SIG_IGN);
    alarm(REPLY_S);
    rk_companion_pmix_begin();
    if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return 1;
    PMIx_Commit();
    _exit(0);
}
