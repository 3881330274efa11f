/* agent.c: an agent's loop: messages, signals, the end. See agent.h. */
#include "launcher/agent.h"
#include "launcher/descend.h"
#include "launcher/message.h"
#include "launcher/program.h"
#include "launcher/rundir.h"
#include "launcher/watch.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Between TERM and KILL where nobody said otherwise. */
#define GRACE_MS 400
/* Between two rounds of KILL: what is killed may just have forked. */
#define AGAIN_MS 20
/* Output that somebody outside our tree may still write is waited for this long. */
#define QUIET_MS 200

static struct timeval ms(uint32_t n)
{
    return (struct timeval){n / 1000, (n % 1000) * 1000};
}

/* ------------------------------------------------------------------- the end */

static void kill_round(struct rk_agent *agent)
{
    struct timeval again = ms(AGAIN_MS);

    agent->phase = RK_AGENT_KILL;
    rk_descend_signal(SIGKILL, NULL, 0);
    event_add(agent->on_grace, &again);
}

/* Tell all that they shall end; SIGCONT, because a stopped process would not notice. */
static void ask(struct rk_agent *agent, int sig, uint32_t ms_from_now)
{
    struct timeval t = ms(ms_from_now);

    rk_descend_signal(sig, NULL, 0);
    rk_descend_signal(SIGCONT, NULL, 0);
    event_add(agent->on_grace, &t);
}

/* Not everybody knows what INT or HUP may mean; TERM is clear. */
static void ask_again(struct rk_agent *agent)
{
    uint32_t left = agent->second_half_ms;

    agent->second_half_ms = 0;
    ask(agent, SIGTERM, left);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
    struct rk_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == RK_AGENT_DONE)
        return;
    if (agent->second_half_ms)
        ask_again(agent);
    else
        kill_round(agent);
    rk_ranks_reap(agent);
}

void rk_agent_end(struct rk_agent *agent, uint32_t grace_ms)
{
    int sig = agent->end_signal ? agent->end_signal : SIGTERM;

    if (agent->phase == RK_AGENT_KILL || agent->phase == RK_AGENT_DONE)
        return;
    if (grace_ms == 0) {
        kill_round(agent);
    } else if (agent->phase != RK_AGENT_TERM) {
        agent->phase = RK_AGENT_TERM;
        agent->second_half_ms = sig == SIGTERM ? 0 : grace_ms - grace_ms / 2;
        ask(agent, sig, grace_ms - agent->second_half_ms);
    }
    rk_ranks_reap(agent);
}

static void leave_if_sent(struct rk_agent *agent)
{
    if (!agent->wire || rk_wire_backlog(agent->wire) == 0)
        event_base_loopexit(agent->base, NULL);
}

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    struct rk_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->live || !rk_ranks_gone() || rk_outputs_stalled(agent->outputs))
        return;
    rk_outputs_close(agent->outputs);
    agent->outputs = NULL;
    rk_agent_check_done(agent);
}

void rk_agent_check_done(struct rk_agent *agent)
{
    struct timeval quiet = ms(QUIET_MS);

    if (agent->phase == RK_AGENT_IDLE || agent->phase == RK_AGENT_DONE || agent->live)
        return;
    if (!rk_ranks_gone()) {
        /* Processes that the ranks have left behind end with the job. */
        if (agent->phase == RK_AGENT_RUNNING)
            rk_agent_end(agent, GRACE_MS);
        return;
    }
    if (rk_outputs_open_count(agent->outputs)) {
        if (!rk_outputs_stalled(agent->outputs))
            event_add(agent->on_quiet, &quiet);
        return;
    }
    agent->phase = RK_AGENT_DONE;
    event_del(agent->on_grace);
    if (agent->wire)
        rk_wire_send(agent->wire, RK_MSG_DONE, NULL);
    leave_if_sent(agent);
}

/* ------------------------------------------------------- what PMIx clients do */

static void on_connected(void *arg, uint32_t rank)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = &agent->ranks[rank];

    if (r->exited) /* its stand-in */
        return;
    /* A program that a rank runs after another starts anew. */
    if (!r->connected || r->finalized)
        agent->clients++;
    r->connected = true;
    r->finalized = false;
    rk_stand_in_check(agent);
}

static void on_finalized(void *arg, uint32_t rank)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = &agent->ranks[rank];

    if (r->exited || r->finalized)
        return;
    r->finalized = true;
    agent->clients--;
}

static void on_aborted(void *arg, uint32_t rank, int code, const char *text)
{
    struct rk_agent *agent = arg;
    struct rk_packer p = {0};

    if (agent->wire) {
        rk_pack_u32(&p, rank);
        rk_pack_u32(&p, (uint32_t)agent->ranks[rank].pid);
        rk_pack_u32(&p, (uint32_t)code);
        rk_pack_string(&p, text);
        rk_wire_send(agent->wire, RK_MSG_ABORT, &p);
    }
}

static void on_log(void *arg, uint32_t rank, int stream, const char *text)
{
    struct rk_agent *agent = arg;
    struct rk_packer p = {0};

    if (!agent->wire)
        return;
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, (uint32_t)stream);
    rk_pack_bytes(&p, text, strlen(text));
    rk_wire_send(agent->wire, RK_MSG_LOG, &p);
}

static const struct rk_server_events server_events = {
    .connected = on_connected, .finalized = on_finalized, .aborted = on_aborted, .log = on_log};

/* ------------------------------------------------------------------ the start */

static void refuse(struct rk_agent *agent, int code, const char *text)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, (uint32_t)code);
    rk_pack_string(&p, text);
    rk_wire_send(agent->wire, RK_MSG_REFUSED, &p);
}

static void say_started(struct rk_agent *agent, uint64_t topology, uint64_t init, uint64_t nspace,
                        uint64_t ranks)
{
    const struct {
        const char *name;
        uint64_t ns;
    } phase[] = {{agent->plan.topology ? "topology" : "no topology", topology},
                 {"PMIx server", init},
                 {"namespace", nspace},
                 {"ranks", ranks}};
    struct rk_packer p = {0};

    rk_pack_u32(&p, 4);
    for (int i = 0; i < 4; i++) {
        rk_pack_string(&p, phase[i].name);
        rk_pack_u64(&p, phase[i].ns);
    }
    rk_wire_send(agent->wire, RK_MSG_STARTED, &p);
}

static void run_job(struct rk_agent *agent)
{
    struct rk_server_job job = {.id = agent->job.id, .host = agent->host, .size = agent->job.size};
    uint64_t t0 = rk_clock_ns(), t1, init_ns = 0, register_ns = 0, t2;
    char text[1024] = "";
    int code = 1;
    rank_status_t st;

    agent->phase = RK_AGENT_RUNNING;
    st = rk_bind_plan(agent->job.bind, agent->job.size, &agent->plan, text, sizeof(text));
    if (st == RANK_ERR_COUNT)
        code = RK_EXIT_USAGE;
    t1 = rk_clock_ns();
    if (!st) {
        job.oversubscribed = agent->plan.oversubscribed;
        job.topology = agent->plan.topology;
        st = rk_server_open(agent->base, &job, &server_events, agent, &agent->server, &init_ns,
                            &register_ns);
        if (st)
            snprintf(text, sizeof(text), "the PMIx server on %s did not start", agent->host);
    }
    t2 = rk_clock_ns();
    agent->watch = rk_watch_open(agent);
    if (!st)
        st = rk_ranks_start(agent, &code, text, sizeof(text));
    if (!st) {
        say_started(agent, t1 - t0, init_ns, register_ns, rk_clock_ns() - t2);
    } else {
        refuse(agent, code, text);
        rk_agent_end(agent, 0);
    }
    rk_ranks_reap(agent);
}

/* ------------------------------------------------------------------- messages */

static bool on_message(void *arg, uint32_t kind, struct rk_unpacker *u)
{
    struct rk_agent *agent = arg;
    uint32_t number, sig;

    switch (kind) {
    case RK_MSG_JOB:
        if (agent->phase != RK_AGENT_IDLE || rk_job_unpack(u, &agent->job))
            return false;
        run_job(agent);
        return true;
    case RK_MSG_INPUT:
        rk_inputs_put(agent->inputs, u->at, u->left);
        return true;
    case RK_MSG_END:
        number = rk_unpack_u32(u);
        sig = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || agent->phase == RK_AGENT_IDLE || sig > 64)
            return false;
        agent->end_signal = (int)sig;
        rk_agent_end(agent, number);
        return true;
    case RK_MSG_SIGNAL:
        number = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || number > 64)
            return false;
        rk_watch_signal(agent->watch, (int)number);
        rk_descend_signal((int)number, NULL, 0);
        return true;
    default:
        return rk_watch_message(agent->watch, kind, u);
    }
}

static void on_close(void *arg, const char *why)
{
    struct rk_agent *agent = arg;

    if (why && agent->phase != RK_AGENT_DONE)
        rk_error("the agent on %s lost xrun: %s", agent->host, why);
    rk_wire_close(agent->wire);
    agent->wire = NULL;
    if (agent->phase == RK_AGENT_IDLE || agent->phase == RK_AGENT_DONE) {
        event_base_loopexit(agent->base, NULL);
        return;
    }
    rk_outputs_resume(agent->outputs); /* nobody reads it any more: it goes nowhere */
    rk_agent_end(agent, GRACE_MS);
}

static void on_drained(void *arg)
{
    struct rk_agent *agent = arg;

    if (agent->phase == RK_AGENT_DONE)
        leave_if_sent(agent);
    else
        rk_outputs_resume(agent->outputs);
    rk_agent_check_done(agent);
}

static const struct rk_wire_ops wire_ops = {on_message, on_close, on_drained};

static void on_exits(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    rk_ranks_reap(arg);
}

/* The keeper died, or somebody wants this agent to end. */
static void on_term(evutil_socket_t fd, short what, void *arg)
{
    struct rk_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == RK_AGENT_IDLE)
        event_base_loopexit(agent->base, NULL);
    else
        rk_agent_end(agent, GRACE_MS);
}

static rank_status_t open_agent(struct rk_agent *agent, int fd)
{
    if (gethostname(agent->host, sizeof(agent->host) - 1) || !agent->host[0])
        snprintf(agent->host, sizeof(agent->host), "localhost");
    agent->exits = epoll_create1(EPOLL_CLOEXEC);
    agent->base = event_base_new();
    if (!agent->base || rk_wire_open(agent->base, fd, &wire_ops, agent, &agent->wire))
        return RANK_ERR_NO_MEMORY;
    agent->on_child = evsignal_new(agent->base, SIGCHLD, on_exits, agent);
    agent->on_term = evsignal_new(agent->base, SIGTERM, on_term, agent);
    agent->on_grace = evtimer_new(agent->base, on_grace, agent);
    agent->on_quiet = evtimer_new(agent->base, on_quiet, agent);
    if (agent->exits >= 0)
        agent->on_exits =
            event_new(agent->base, agent->exits, EV_READ | EV_PERSIST, on_exits, agent);
    if (!agent->on_child || !agent->on_term || !agent->on_grace || !agent->on_quiet ||
        event_add(agent->on_child, NULL) || event_add(agent->on_term, NULL))
        return RANK_ERR_NO_MEMORY;
    if (agent->on_exits)
        event_add(agent->on_exits, NULL);
    return RANK_OK;
}

int rk_agent_main(int fd)
{
    struct rk_agent agent = {.exits = -1};
    pid_t keeper = getppid();

    /* hwloc shall not load its plugins (X11, OpenCL) here; ranks get their environment from the
     * job, not from this process. */
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (open_agent(&agent, fd)) {
        rk_error("the agent has no memory for its loop");
        return 1;
    }
    event_base_dispatch(agent.base);
    rk_watch_close(agent.watch);
    /* Should neither front end nor keeper have come to it. */
    if (agent.job.id && (!agent.wire || getppid() != keeper))
        rk_rundir_remove(agent.job.id);
    /* PMIx's server is not finalized: it owns nothing but memory of this process, and its end
     * must not depend on clients that were killed in mid-sentence. */
    return 0;
}
