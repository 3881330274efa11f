/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi_clients.c: handle what the ranks do as clients of PMIx and PMI-1.
 *
 * The servers call these functions. The agent updates its ranks, and sends on
 * what concerns other hosts, jobs or xrun.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/proxy_client.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Report that a rank of this program is a client here, once for each program. */
static void agent_send_joined(struct xr_agent *agent, uint32_t rank)
{
    uint32_t app = (uint32_t)(xr_job_app_of(&agent->job, rank) - agent->job.apps);
    struct xr_packer p = {0};

    xr_singletons_joined(agent->singletons, app);
    if (agent->joined[app] || (agent->nused < 2 && agent->job.napps < 2) || !agent->wire)
        return;
    agent->joined[app] = true;
    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, app);
    xr_conn_send(agent->wire, XR_MSG_JOINED, &p);
}

/* Report that a rank's client is lost while the rank, a script, lives. Other jobs and hosts may wait for it. */
static void agent_send_client_lost(struct xr_agent *agent, struct xr_rank *r, bool lost)
{
    struct xr_packer p = {0};

    if (r->lost_sent == lost || !agent->wire)
        return;
    r->lost_sent = lost;
    xr_pack_u32(&p, r->rank);
    xr_pack_u32(&p, lost);
    xr_conn_send(agent->wire, XR_MSG_CLIENT_LOST, &p);
}

/* At the first client, report ranks that ended without being one. Clients would wait for them. */
static void report_absent_ranks(struct xr_agent *agent)
{
    if (agent->had_clients)
        return; /* later ends are reported as they come */
    agent->had_clients = true;
    for (uint32_t i = 0; i < agent->nlocal; i++) {
        if (agent->ranks[i].exited && !agent->ranks[i].connected)
            xr_server_deliver_death(agent->server, agent->ranks[i].rank, false);
    }
}

static void on_connected(void *arg, uint32_t rank)
{
    struct xr_agent *agent = arg;
    struct xr_rank *r = xr_agent_rank(agent, rank);

    if (!r || r->exited) /* its proxy */
        return;
    r->clients++;
    agent_send_joined(agent, rank);
    report_absent_ranks(agent);
    /* A rank may run one program after another. */
    if (!r->connected || r->finalized)
        agent->clients++;
    r->connected = true;
    r->finalized = false;
    agent_send_client_lost(agent, r, false);
    xr_proxy_client_check(agent);
}

static void on_finalized(void *arg, uint32_t rank)
{
    struct xr_agent *agent = arg;
    struct xr_rank *r = xr_agent_rank(agent, rank);

    if (!r || r->exited)
        return;
    r->clients--;
    if (r->finalized)
        return;
    r->finalized = true;
    agent->clients--;
}

/* Return whether its client ended without finalizing, and no other has connected. */
static bool client_is_lost(const struct xr_rank *r)
{
    return r->connected && !r->finalized && r->clients <= 0;
}

static void on_lost(void *arg, uint32_t rank)
{
    struct xr_agent *agent = arg;
    struct xr_rank *r = xr_agent_rank(agent, rank);

    if (!r)
        return;
    r->clients--;
    if (r->exited || !client_is_lost(r)) /* it has been reaped already, or this was its proxy */
        return;
    /* From now on libpmix refuses another client of this rank. */
    xr_liveness_note(agent->liveness, XR_FAILED_RANK, rank);
    if (agent->nused > 1)
        xr_fence_report_lost(agent->fences, rank);
    agent_send_client_lost(agent, r, true);
}

#define ABORT_TEXT_MAX (64u << 10) /* bytes shown of an abort's text, which fills one line of xrun's output */

static void pack_abort_text(struct xr_packer *p, const char *text)
{
    size_t len = strlen(text);
    char *cut = NULL;

    if (len > ABORT_TEXT_MAX && asprintf(&cut, "%.*s [and more: %zu bytes in all]", (int)ABORT_TEXT_MAX, text, len) < 0)
        cut = NULL;
    xr_pack_string(p, cut ? cut : len > ABORT_TEXT_MAX ? "" : text);
    free(cut);
}

static void on_aborted(void *arg, uint32_t rank, int code, const char *text)
{
    struct xr_agent *agent = arg;
    struct xr_rank *r = xr_agent_rank(agent, rank);
    struct xr_packer p = {0};

    /* It may have ended when xrun's answer comes. */
    xr_shm_cleanup_note(agent->shm_cleanup);
    if (agent->wire && r) {
        xr_pack_u32(&p, rank);
        xr_pack_u32(&p, (uint32_t)r->pid);
        xr_pack_u32(&p, (uint32_t)code);
        pack_abort_text(&p, text);
        xr_conn_send(agent->wire, XR_MSG_ABORT, &p);
    }
}

#define LOG_PIECE (1u << 20) /* bytes of one message: others can be sent in between */

static void on_log(void *arg, uint32_t rank, int stream, const char *text)
{
    struct xr_agent *agent = arg;
    size_t left = strlen(text), n;

    if (!agent->wire || xr_rank_output_log(agent->outputs, rank, stream, text))
        return;
    do {
        struct xr_packer p = {0};
        n = left < LOG_PIECE ? left : LOG_PIECE;
        xr_pack_u32(&p, rank);
        xr_pack_u32(&p, (uint32_t)stream);
        xr_pack_bytes(&p, text, n);
        xr_conn_send(agent->wire, XR_MSG_LOG, &p);
        text += n;
        left -= n;
    } while (left);
}

/* A client requests a signal. xrun forwards it to the agents of all hosts. */
static void on_control(void *arg, int sig, const uint32_t *ranks, uint32_t n)
{
    struct xr_agent *agent = arg;
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, (uint32_t)sig);
    xr_pack_u32(&p, n);
    for (uint32_t i = 0; i < n; i++)
        xr_pack_u32(&p, ranks[i]);
    xr_conn_send(agent->wire, XR_MSG_CONTROL, &p);
}

static void agent_send_rpc(struct xr_agent *agent, enum xr_rpc what, uint32_t rank, struct xr_packer *payload,
                           xr_rpc_done_fn done, void *token)
{
    /* The front end writes the new job's output, so that it must write ours too. */
    if (what == XR_RPC_SPAWN)
        xr_rank_output_share(agent->outputs);
    xr_rpc_table_send(agent->rpcs, what, rank, payload, done, agent, token);
}

/* PMI-1's clients do not count among PMIx's: no proxy could act for them. */
static void on_pmi1_joined(void *arg, uint32_t local)
{
    struct xr_agent *agent = arg;

    agent_send_joined(agent, agent->ranks[local].rank);
}

static void on_pmi1_aborted(void *arg, uint32_t local, int code, const char *text)
{
    struct xr_agent *agent = arg;

    on_aborted(agent, agent->ranks[local].rank, code, text);
}

static void on_pmi1_stranded(void *arg, uint32_t local)
{
    on_pmi1_aborted(arg, local, 1, "it has ended, and others wait for it in MPI_Init");
}

static void on_pmi1_answer(void *arg, void *token, struct xr_unpacker *answer)
{
    struct xr_agent *agent = arg;

    xr_pmi1_rpc_done(agent->pmi1, (uint32_t)(uintptr_t)token, answer);
}

static void on_pmi1_rpc(void *arg, uint32_t local, uint32_t id, enum xr_rpc what, struct xr_packer *payload)
{
    struct xr_agent *agent = arg;

    agent_send_rpc(agent, what, agent->ranks[local].rank, payload, on_pmi1_answer, (void *)(uintptr_t)id);
}

/* The data of PMI-1 is exchanged as a fence of all hosts that have ranks. */
static void on_pmi1_exchange(void *arg, bool lost, const void *blob, size_t len)
{
    struct xr_agent *agent = arg;

    xr_fence_enter(agent->fences, XR_FENCE_PMI1, lost, NULL, 0, blob, len, agent->pmi1);
}

/* Return whether a rank or its client has ended. It may not have been reaped yet. */
static bool has_ended(const struct xr_agent *agent, const struct xr_rank *r)
{
    siginfo_t info = {.si_pid = 0};

    return xr_liveness(agent->liveness, XR_FAILED_RANK, r->rank) || client_is_lost(r) ||
           (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid);
}

static void on_fence(void *arg, const uint32_t *ranks, uint32_t nranks, bool broken, const void *data,
                     size_t len, void *token)
{
    struct xr_agent *agent = arg;
    /* libpmix completes fences of one host itself, unless a participant has died. */
    bool lost = broken || xr_fence_local(agent->fences, ranks, nranks);

    for (uint32_t i = 0; i < agent->nlocal && nranks == 0; i++)
        lost = lost || has_ended(agent, &agent->ranks[i]);
    for (uint32_t i = 0; i < nranks; i++) {
        const struct xr_rank *r = xr_agent_rank(agent, ranks[i]);
        lost = lost || (r && has_ended(agent, r));
    }
    xr_fence_enter(agent->fences, XR_FENCE_PMIX, lost, ranks, nranks, data, len, token);
}

static void on_fence_late(void *arg, void *token)
{
    struct xr_agent *agent = arg;

    xr_fence_abandon(agent->fences, token);
}

void xr_clients_fence_done(void *arg, void *token, int status, const void *data, size_t len)
{
    struct xr_agent *agent = arg;

    /* MPICH 5's ranks end when they receive that, and leave their segments. */
    if (token == agent->pmi1 && status)
        xr_shm_cleanup_note(agent->shm_cleanup);
    if (token == agent->pmi1)
        xr_pmi1_exchanged(agent->pmi1, status != 0, data, len);
    else
        xr_server_fence_done(agent->server, token, status, data, len);
}

static void pmi_clients_on_modex(void *arg, uint32_t rank, uint32_t timeout_s, void *token)
{
    struct xr_agent *agent = arg;

    /* libpmix finds the data of this host's ranks itself. */
    if (agent->job.host_of[rank] == agent->node)
        xr_server_dmodex_done(agent->server, token, XR_FOUND_NEVER, NULL, 0);
    else
        xr_dmodex_request(agent->dmodex, agent->job.host_of[rank], rank, timeout_s, token);
}

static void on_modex_answer(void *arg, void *token, enum xr_found found, const void *data, size_t len)
{
    struct xr_agent *agent = arg;

    xr_server_dmodex_done(agent->server, token, found, data, len);
}

static void pmi_clients_on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct xr_agent *agent = arg;
    const struct xr_rank *r = xr_agent_rank(agent, rank);

    if (!r || !agent->server || (r->exited && !r->connected))
        xr_dmodex_found(agent->dmodex, id, false, NULL, 0);
    else
        xr_server_lookup(agent->server, rank, id);
    if (r && agent->server && has_ended(agent, r))
        xr_server_settle(agent->server, id);
}

/* The rank of a request has ended; its data may already be on the way. */
static void on_modex_ended(void *arg, uint32_t id)
{
    struct xr_agent *agent = arg;

    xr_server_settle(agent->server, id);
}

static void on_looked_up(void *arg, uint32_t id, bool found, const void *data, size_t len)
{
    struct xr_agent *agent = arg;

    xr_dmodex_found(agent->dmodex, id, found, data, len);
}

/* A client raises an event. xrun forwards it to all hosts and to other jobs. */
static void on_raised(void *arg, const struct xr_event *notice)
{
    struct xr_agent *agent = arg;
    struct xr_packer p = {0};

    if ((agent->nused < 2 && !notice->wide) || !agent->wire)
        return;
    xr_event_pack(notice, &p);
    xr_conn_send(agent->wire, XR_MSG_EVENT, &p);
}

static void on_rpc_done(void *arg, void *token, struct xr_unpacker *answer)
{
    struct xr_agent *agent = arg;

    xr_server_rpc_done(agent->server, token, answer);
}

static void on_rpc(void *arg, enum xr_rpc what, uint32_t rank, struct xr_packer *payload, void *token)
{
    struct xr_agent *agent = arg;

    agent_send_rpc(agent, what, rank, payload, on_rpc_done, token);
}

static void on_process(void *arg, uint32_t rank, struct xr_server_process *out)
{
    struct xr_agent *agent = arg;
    const struct xr_rank *r = xr_agent_rank(agent, rank);
    siginfo_t info = {.si_pid = 0};

    if (!r)
        return;
    *out = (struct xr_server_process){.host = agent->host,
                                      .program = xr_job_app_of(&agent->job, rank)->argv[0],
                                      .pid = r->pid,
                                      .connected = r->connected,
                                      .ended = r->exited,
                                      .unfinished = r->connected && !r->finalized,
                                      .status = r->status};
    /* It may not have been reaped yet. */
    if (r->pid && !r->exited && waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid) {
        out->ended = true;
        out->status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
    }
}

static bool on_ended(void *arg, uint32_t rank)
{
    struct xr_agent *agent = arg;
    const struct xr_rank *r = xr_agent_rank(agent, rank);

    return r && has_ended(agent, r);
}

static void on_busy(void *arg)
{
    struct xr_agent *agent = arg;

    xr_tree_suspend_keepalive(agent->tree);
}

const struct xr_server_events xr_clients_server_events = {
    .connected = on_connected,
    .finalized = on_finalized,
    .lost = on_lost,
    .aborted = on_aborted,
    .log = on_log,
    .fence = on_fence,
    .fence_late = on_fence_late,
    .modex = pmi_clients_on_modex,
    .looked_up = on_looked_up,
    .raised = on_raised,
    .rpc = on_rpc,
    .control = on_control,
    .process = on_process,
    .ended = on_ended,
    .busy = on_busy};
const struct xr_dmodex_ops xr_clients_dmodex_ops = {on_modex_answer, pmi_clients_on_asked, on_modex_ended};

/* On one host nothing is exchanged. */
const struct xr_pmi1_ops xr_clients_pmi1_ops[2] = {
    {.joined = on_pmi1_joined,
     .aborted = on_pmi1_aborted,
     .stranded = on_pmi1_stranded,
     .rpc = on_pmi1_rpc},
    {.joined = on_pmi1_joined,
     .aborted = on_pmi1_aborted,
     .exchange = on_pmi1_exchange,
     .stranded = on_pmi1_stranded,
     .rpc = on_pmi1_rpc},
};
