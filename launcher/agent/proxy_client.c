/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_client.c: see agent.h. */
#include "launcher/agent/proxy_client.h"
#include "launcher/agent/agent_internal.h"
#include "launcher/exec/spawn_proc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 3, LEFT_S = 1, TRIES = 3 };

static pid_t proxy_client_start(struct xr_agent *agent, uint32_t rank)
{
    char *argv[] = {(char *)(uintptr_t)XR_STAND_IN_NAME, NULL};
    char **env = xr_server_rank_env(agent->server, rank);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct xr_spawn spec = {.program = "/proc/self/exe",
                            .argv = argv,
                            .env = env,
                            .wdir = "/",
                            .fd = {null, null, null, -1}};
    static struct xr_spawner spawner; /* kept for the next */
    const char *step;
    int pidfd = -1;
    pid_t pid = -1;

    if (env && null >= 0 && (spawner.stack || xr_spawner_open(&spawner) == 0))
        pid = xr_spawn(&spec, &spawner, &pidfd, &step);
    if (pid < 0 && agent->probing)
        rk_warn("rank %u ended without PMIx and others may wait for it in vain: %m", rank);
    if (pidfd >= 0)
        close(pidfd);
    if (null >= 0)
        close(null);
    xr_strings_free(env);
    return pid < 0 ? 0 : pid;
}

/* It never was a client. Where nobody is one nobody waits; but one that was killed may have been connecting. */
static bool never_came(const struct xr_agent *agent, const struct xr_rank *r)
{
    return !r->connected && (agent->clients > 0 || (WIFSIGNALED(r->status) && agent->live > 0));
}

/* It has finalized, and others go on. Most do not for long. */
static bool left_them(const struct xr_agent *agent, const struct xr_rank *r)
{
    return r->connected && r->finalized && agent->clients > 0;
}

/*
 * It has ended without finalizing, and PMIx does not see it: a process that it had forked has the connection, too. As long as
 * that one lives others would wait in fences for who is dead. What such a process was there for has ended; it is of the rank's
 * own group, or it has gone a way of its own and is left alone.
 */
static bool is_held(const struct xr_rank *r)
{
    return r->connected && !r->finalized && r->clients > 0;
}

static void end_holders(const struct xr_agent *agent, struct xr_rank *r)
{
    r->stood_in = true;
    if (kill(-r->pid, SIGKILL) == 0)
        rk_warn("rank %u (host %s, pid %d) has ended and left processes that have its connection to PMIx: they are killed, or "
                "others would wait for it",
                r->rank, agent->host, (int)r->pid);
}

void xr_proxy_client_check(struct xr_agent *agent)
{
    const struct timeval later = {LEFT_S, 0};
    uint64_t now = rk_clock_ns();

    if (agent->state != XR_AGENT_RUNNING || agent->stand_in || !agent->server)
        return;
    for (uint32_t i = 0; i < agent->nlocal; i++) {
        struct xr_rank *r = &agent->ranks[i];
        if (!r->exited || r->stood_in)
            continue;
        agent->probing = never_came(agent, r);
        if (!agent->probing && !left_them(agent, r) && !is_held(r))
            continue;
        if (!agent->probing && now - r->exit_ns < LEFT_S * 1000000000ull) {
            if (!event_pending(agent->on_stand_in, EV_TIMEOUT, NULL))
                event_add(agent->on_stand_in, &later);
            continue;
        }
        if (is_held(r)) {
            end_holders(agent, r);
            continue;
        }
        r->stood_in = true;
        agent->stood_for = r;
        agent->stand_in = proxy_client_start(agent, r->rank);
        if (agent->stand_in)
            return;
        r->connected = r->finalized = true;
    }
}

bool xr_proxy_client_reaped(struct xr_agent *agent, pid_t pid, int status)
{
    bool running = agent->state == XR_AGENT_RUNNING;

    if (!pid || agent->stand_in != pid)
        return true;
    agent->stand_in = 0;
    /* The host may be too busy, or a signal meant for ranks has ended it. That the server is silent one try shows. */
    if (status && running && ++agent->stood_for->stood < TRIES &&
        !(agent->probing && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
        agent->stood_for->stood_in = false;
        return true;
    }
    agent->stood_for->connected = agent->stood_for->finalized = true;
    return !(running && agent->probing && WIFSIGNALED(status));
}

static void on_stand_in(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_proxy_client_check(arg);
}

rank_status_t xr_proxy_client_open(struct xr_agent *agent)
{
    agent->on_stand_in = evtimer_new(agent->base, on_stand_in, agent);
    return agent->on_stand_in ? RANK_OK : RANK_ERR_NO_MEMORY;
}

/* The process itself: connect, say that there is nothing that the rank has to tell those who asked for it, and go. */
int xr_stand_in_main(void)
{
    static const int users[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP}; /* they are meant for the ranks */
    pmix_proc_t me;

    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
        signal(users[i], SIG_IGN);
    alarm(PATIENCE_S);
    if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return 1;
    PMIx_Commit();
    _exit(0);
}
