/* agent.c: an agent's loop: messages, signals, the end. See agent.h. */
#include "launcher/agent/agent.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"
#include "launcher/monitor/rundir.h"
#include "launcher/agent/rank_progress.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between TERM and KILL where nobody said otherwise. */
#define GRACE_MS 400
/* Between two rounds of KILL: what is killed may just have forked. */
#define AGAIN_MS 20
/* Output that somebody outside our tree may still write is waited for this long. */
#define QUIET_MS 200
/* But for no longer than this in all. */
#define OUTSIDE_MS 1000
/* For the parent to read what was sent last. */
#define LEAVE_S 10
/* Children that are not ranks: those that started other agents, as many as a fan-out can be. */
#define MAX_COMMANDS 4096

static struct timeval ms(uint32_t n)
{
    return (struct timeval){n / 1000, (n % 1000) * 1000};
}

/* ------------------------------------------------------------------- the end */

/* To all that came from here but the commands that started the agents below: those end with their agents. */
static void signal_ranks(struct rk_agent *agent, int sig)
{
    pid_t keep[MAX_COMMANDS];

    rk_descend_signal(sig, keep, rk_branches_pids(agent->branches, keep, MAX_COMMANDS));
}

static void kill_round(struct rk_agent *agent)
{
    struct timeval again = ms(AGAIN_MS);

    agent->phase = RK_AGENT_KILL;
    signal_ranks(agent, SIGKILL);
    event_add(agent->on_grace, &again);
}

/* Tell all that they shall end; SIGCONT, because a stopped process would not notice. */
static void ask(struct rk_agent *agent, int sig, uint32_t ms_from_now)
{
    struct timeval t = ms(ms_from_now);

    signal_ranks(agent, sig);
    signal_ranks(agent, SIGCONT); /* a stopped process would not notice */
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
    if (agent->phase != RK_AGENT_TERM) {
        rk_server_ending(agent->server);
        /* MPICH's ranks tell nobody of their files: they must not make one after they have been
         * looked at. Others go on, and may. */
        if (rk_pmi1_used(agent->pmi1))
            rk_descend_signal(SIGSTOP, NULL, 0);
        else
            rk_leftovers_expect(agent->leftovers);
        rk_leftovers_note(agent->leftovers);
    }
    if (grace_ms == 0) {
        kill_round(agent);
    } else if (agent->phase != RK_AGENT_TERM) {
        agent->phase = RK_AGENT_TERM;
        agent->second_half_ms = sig == SIGTERM ? 0 : grace_ms - grace_ms / 2;
        ask(agent, sig, grace_ms - agent->second_half_ms);
    }
    rk_ranks_reap(agent);
}

/* What the agents below have to say goes through here: they leave first. */
static void leave_if_sent(struct rk_agent *agent)
{
    const struct timeval patience = {LEAVE_S, 0};

    if (rk_tree_child_count(agent->tree) || (agent->wire && rk_wire_backlog(agent->wire)))
        return;
    if (agent->wire && agent->remote) {
        rk_wire_finish(agent->wire); /* on_parent_gone comes next */
        event_base_loopexit(agent->base, &patience);
    } else {
        event_base_loopexit(agent->base, NULL);
    }
}

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    struct rk_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->live || !rk_ranks_gone(agent) || rk_outputs_stalled(agent->outputs))
        return;
    rk_outputs_close(agent->outputs);
    agent->outputs = NULL;
    rk_agent_check_done(agent);
}

static void tell_strangers(struct rk_agent *agent, uint32_t n)
{
    struct rk_packer p = {0};

    if (n == 0 || !agent->wire)
        return;
    rk_pack_u32(&p, agent->node);
    rk_pack_u32(&p, n);
    rk_wire_send(agent->wire, RK_MSG_STRANGERS, &p);
}

/* Somebody outside has our pipes: what comes is passed on until there is silence, but not for ever. */
static void await_quiet(struct rk_agent *agent)
{
    const struct timeval quiet = ms(QUIET_MS);

    if (!agent->alone_ns) {
        agent->alone_ns = rk_clock_ns();
        rk_outputs_note_last(agent->outputs);
    } else if (rk_clock_ns() > agent->alone_ns + OUTSIDE_MS * 1000000ull) {
        rk_outputs_cut(agent->outputs);
    }
    if (!rk_outputs_stalled(agent->outputs))
        event_add(agent->on_quiet, &quiet);
}

void rk_agent_check_done(struct rk_agent *agent)
{
    struct rk_packer p = {0};

    if (agent->phase == RK_AGENT_IDLE || agent->phase == RK_AGENT_DONE || agent->live)
        return;
    if (agent->nused > 1 && agent->nlocal)
        rk_gone_note(agent->gone, RK_GONE_HOST, agent->node);
    if (!rk_ranks_gone(agent)) {
        /* Processes that the ranks have left behind end with the job. */
        if (agent->phase == RK_AGENT_RUNNING)
            rk_agent_end(agent, GRACE_MS);
        return;
    }
    if (rk_outputs_open_count(agent->outputs))
        await_quiet(agent);
    if (rk_outputs_open_count(agent->outputs))
        return;
    agent->phase = RK_AGENT_DONE;
    event_del(agent->on_grace);
    rk_server_end_job(agent->server);
    rk_leftovers_remove(agent->leftovers, rk_pmi1_used(agent->pmi1));
    tell_strangers(agent, rk_server_strangers());
    if (agent->wire) {
        rk_pack_u32(&p, agent->node);
        rk_wire_send(agent->wire, RK_MSG_DONE, &p);
    }
    leave_if_sent(agent);
}

/* ------------------------------------------------------------------- messages */

/* No more agents come from below. Who else came is told above. */
static void shut_door(struct rk_agent *agent)
{
    uint32_t strangers = rk_branches_strangers(agent->branches);

    rk_branches_shut_door(agent->branches);
    tell_strangers(agent, strangers);
}

static uint32_t count_seats(const struct rk_agent *agent)
{
    uint32_t n = 0;

    while (agent->seats.cpus && agent->seats.cpus[n])
        n++;
    return n;
}

static void take_end(struct rk_agent *agent, uint32_t grace_ms)
{
    if (agent->phase != RK_AGENT_IDLE) {
        rk_agent_end(agent, grace_ms);
        return;
    }
    /* Nothing runs here. */
    shut_door(agent);
    agent->phase = RK_AGENT_RUNNING;
    rk_agent_check_done(agent);
}

/* Or xrun would have this agent killed. */
static void tell_ending(struct rk_agent *agent)
{
    struct rk_packer p = {0};

    if (!agent->wire)
        return;
    rk_pack_u32(&p, agent->node);
    rk_wire_send(agent->wire, RK_MSG_ENDING, &p);
}

static bool take_died(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), by_signal = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || rank >= agent->job.size)
        return false;
    if (agent->server && agent->job.host_of[rank] != agent->node)
        rk_server_tell_death(agent->server, rank, by_signal != 0);
    rk_gone_note(agent->gone, RK_GONE_RANK, rank);
    return true;
}

static bool take_other_died(struct rk_agent *agent, struct rk_unpacker *u)
{
    const char *job = rk_unpack_string(u);
    uint32_t rank = rk_unpack_u32(u), by_signal = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || !job)
        return false;
    if (agent->server && by_signal == RK_ONLY_FORGET)
        rk_server_forget_past(agent->server, job);
    else if (agent->server)
        rk_server_tell_other(agent->server, job, rank, by_signal != 0);
    return true;
}

/* An agent is gone, and all below with it. */
static void note_lost(struct rk_agent *agent, uint32_t top)
{
    for (uint32_t node = 0; agent->gone && node < agent->setup->shape.nodes; node++) {
        if (rk_tree_below(agent->tree, top, node))
            rk_gone_note(agent->gone, RK_GONE_AGENT, node);
    }
}

static bool take_lost(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t top = rk_unpack_u32(u);

    if (!rk_unpack_string(u) || !rk_unpack_done(u))
        return false;
    note_lost(agent, top);
    return true;
}

static bool take_over(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t n = rk_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t node = rk_unpack_u32(u);
        if (u->failed || node >= agent->setup->shape.nodes)
            return false;
        rk_gone_note(agent->gone, RK_GONE_AGENT, node);
    }
    return rk_unpack_done(u);
}

static bool take_notice(struct rk_agent *agent, struct rk_unpacker *u)
{
    struct rk_notice notice;

    if (!rk_notice_unpack(u, agent->job.size, &notice))
        return false;
    if (agent->server && agent->job.host_of[notice.rank] != agent->node)
        rk_server_tell(agent->server, NULL, &notice);
    return true;
}

static bool take_other_notice(struct rk_agent *agent, struct rk_unpacker *u)
{
    const char *job = rk_unpack_string(u);
    struct rk_notice notice;

    if (!job || !rk_notice_unpack(u, UINT32_MAX, &notice))
        return false;
    if (agent->server)
        rk_server_tell(agent->server, job, &notice);
    return true;
}

static void on_stand_in(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    rk_stand_in_check(arg);
}

/* TSTP has been sent; who ignores it, or has no terminal that could continue it, still runs. */
static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct rk_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == RK_AGENT_RUNNING)
        signal_ranks(agent, SIGSTOP);
}

static void signal_all(struct rk_agent *agent, int sig)
{
    const struct timeval soon = {0, RK_STOP_MS * 1000};

    rk_watch_signal(agent->watch, sig);
    signal_ranks(agent, sig);
    if (sig == SIGTSTP)
        event_add(agent->on_stop, &soon);
    else if (sig == SIGCONT)
        event_del(agent->on_stop);
}

static bool take_number(struct rk_agent *agent, uint32_t kind, uint32_t number)
{
    if (kind == RK_MSG_OUTPUT_TAKEN) {
        rk_outputs_taken(agent->outputs, number);
        rk_agent_check_done(agent); /* reading goes on, perhaps from a pipe that somebody outside keeps open */
        return true;
    }
    if (number > 64)
        return false;
    signal_all(agent, (int)number);
    return true;
}

static bool take_targets(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t sig = rk_unpack_u32(u), n = rk_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t rank = rk_unpack_u32(u);
        struct rk_rank *r = u->failed ? NULL : rk_agent_rank(agent, rank);
        if (r && r->pid > 0 && !r->exited && agent->phase == RK_AGENT_RUNNING)
            kill(-r->pid, (int)sig); /* its process group: it may be a script */
    }
    return rk_unpack_done(u) && sig <= 64;
}

static bool on_message(void *arg, uint32_t kind, struct rk_unpacker *u)
{
    struct rk_agent *agent = arg;
    struct rk_window window;
    uint32_t number, sig;

    switch (kind) {
    case RK_MSG_SEATS:
        return agent->phase == RK_AGENT_IDLE && rk_agent_take_seats(agent, u);
    case RK_MSG_JOB:
        if (agent->phase != RK_AGENT_IDLE || !rk_agent_take_job(agent, u) ||
            count_seats(agent) != agent->nlocal)
            return false;
        shut_door(agent);
        rk_agent_run_job(agent);
        return true;
    case RK_MSG_ASK_TOPOLOGY:
        rk_agent_report_topology(agent);
        return true;
    case RK_MSG_INPUT:
        rk_inputs_put(agent->inputs, u->at, u->left);
        return true;
    case RK_MSG_DIED:
        return take_died(agent, u);
    case RK_MSG_LOST:
        return take_lost(agent, u);
    case RK_MSG_OVER:
        return take_over(agent, u);
    case RK_MSG_NOTICE:
        return take_notice(agent, u);
    case RK_MSG_OTHER_NOTICE:
        return take_other_notice(agent, u);
    case RK_MSG_END:
        number = rk_unpack_u32(u);
        sig = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || sig > 64)
            return false;
        agent->end_signal = (int)sig;
        tell_ending(agent);
        take_end(agent, number);
        return true;
    case RK_MSG_SIGNAL:
    case RK_MSG_OUTPUT_TAKEN:
        number = rk_unpack_u32(u);
        return rk_unpack_done(u) && take_number(agent, kind, number);
    case RK_MSG_TARGETS:
        return take_targets(agent, u);
    case RK_MSG_MODEX_ASK:
    case RK_MSG_MODEX_ANSWER:
        return agent->modexes && rk_modexes_take(agent->modexes, kind, u);
    case RK_MSG_ERRAND_DONE:
        return agent->errands && rk_errands_take(agent->errands, u);
    case RK_MSG_OTHER_DIED:
        return take_other_died(agent, u);
    case RK_MSG_WINDOW:
        window.rows = (uint16_t)rk_unpack_u32(u);
        window.cols = (uint16_t)rk_unpack_u32(u);
        rk_terminal_resize(agent->terminal, &window);
        return rk_unpack_done(u);
    default:
        return rk_watch_message(agent->watch, kind, u);
    }
}

static bool on_step(void *arg, uint32_t from, uint32_t kind, struct rk_unpacker *u)
{
    struct rk_agent *agent = arg;

    return kind >= RK_MSG_FENCE_UP && kind <= RK_MSG_FENCE_ENDED && agent->fences &&
           rk_fences_take(agent->fences, from, kind, u);
}

static void on_parent_gone(void *arg, const char *why)
{
    struct rk_agent *agent = arg;

    if (why && agent->phase != RK_AGENT_DONE)
        rk_error("the agent on %s lost xrun: %s", agent->host, why);
    agent->wire = NULL;
    if (agent->phase == RK_AGENT_IDLE || agent->phase == RK_AGENT_DONE) {
        event_base_loopexit(agent->base, NULL);
        return;
    }
    rk_outputs_let_go(agent->outputs);
    rk_agent_end(agent, GRACE_MS);
}

/* ------------------------------------------------------------ agents below */

static void tell_of_node(struct rk_agent *agent, uint32_t kind, uint32_t node, const char *text)
{
    struct rk_packer p = {0};

    if (!agent->wire)
        return;
    rk_pack_u32(&p, node);
    rk_pack_string(&p, text ? text : "");
    rk_wire_send(agent->wire, kind, &p);
}

static void on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct rk_agent *agent = arg;

    note_lost(agent, node);
    /* xrun knows whether it was done. */
    tell_of_node(agent, RK_MSG_LOST, node, why);
    if (why && *why) /* else its keeper is there, which may say more */
        rk_branches_lost(agent->branches, node);
    if (agent->phase == RK_AGENT_DONE)
        leave_if_sent(agent);
}

static void on_lost_ended(void *arg, uint32_t node, bool seen)
{
    struct rk_agent *agent = arg;

    if (!seen)
        rk_error("nothing shows that the agent on %s has ended; its ranks, if any, are left there",
                 agent->setup->names[node]);
    if (agent->phase == RK_AGENT_DONE)
        leave_if_sent(agent);
}

static void on_branch_failed(void *arg, uint32_t node, const char *text)
{
    tell_of_node(arg, RK_MSG_FAILED, node, text);
}

static void on_branch_said(void *arg, uint32_t node, const char *line)
{
    struct rk_agent *agent = arg;

    fprintf(stderr, "%s: %s\n", agent->setup->names[node], line);
}

static const struct rk_branch_ops branch_ops = {on_branch_failed, on_branch_said};

/* Those below have been started by others, and ask xrun for us. */
static void tell_door(struct rk_agent *agent)
{
    struct rk_packer p = {0};

    rk_branches_pack_door(agent->branches, agent->node, rk_wire_fd(agent->wire), &p);
    rk_wire_send(agent->wire, RK_MSG_DOOR, &p);
}

static void open_branches(struct rk_agent *agent)
{
    uint32_t n = rk_tree_children(agent->tree);
    char text[1024] = "";

    if (n && rk_branches_open(agent->base, agent->tree, agent->setup, RK_NODE_FRONT, &branch_ops, agent,
                              &agent->branches, text, sizeof(text)))
        tell_of_node(agent, RK_MSG_FAILED, rk_tree_child(agent->tree, 0), text);
    else if (n && agent->setup->step)
        tell_door(agent);
}

static void on_drained(void *arg)
{
    struct rk_agent *agent = arg;

    if (agent->phase == RK_AGENT_DONE)
        leave_if_sent(agent);
    rk_agent_check_done(agent);
}

static const struct rk_tree_ops tree_ops = {on_message, on_step, on_child_gone, on_lost_ended, on_parent_gone,
                                            on_drained};

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

static rank_status_t open_agent(struct rk_agent *agent, int fd, bool remote)
{
    const struct rk_setup *setup = agent->setup;

    if (gethostname(agent->host, sizeof(agent->host) - 1) || !agent->host[0])
        snprintf(agent->host, sizeof(agent->host), "localhost");
    agent->node = setup->node;
    agent->exits = epoll_create1(EPOLL_CLOEXEC);
    agent->base = event_base_new();
    if (!agent->base || rk_tree_open(agent->base, setup->node, &setup->shape, &tree_ops, agent, &agent->tree))
        return RANK_ERR_NO_MEMORY;
    if (rk_tree_add_parent(agent->tree, fd, remote))
        return RANK_ERR_NO_MEMORY;
    agent->wire = rk_tree_parent(agent->tree);
    agent->on_child = evsignal_new(agent->base, SIGCHLD, on_exits, agent);
    agent->on_term = evsignal_new(agent->base, SIGTERM, on_term, agent);
    agent->on_grace = evtimer_new(agent->base, on_grace, agent);
    agent->on_quiet = evtimer_new(agent->base, on_quiet, agent);
    agent->on_stop = evtimer_new(agent->base, on_stop, agent);
    agent->on_stand_in = evtimer_new(agent->base, on_stand_in, agent);
    if (agent->exits >= 0)
        agent->on_exits =
            event_new(agent->base, agent->exits, EV_READ | EV_PERSIST, on_exits, agent);
    if (!agent->on_child || !agent->on_term || !agent->on_grace || !agent->on_quiet || !agent->on_stop || !agent->on_stand_in ||
        event_add(agent->on_child, NULL) || event_add(agent->on_term, NULL))
        return RANK_ERR_NO_MEMORY;
    if (agent->on_exits)
        event_add(agent->on_exits, NULL);
    return RANK_OK;
}

int rk_agent_main(int fd, const struct rk_setup *setup, bool remote, struct rk_direct *direct)
{
    struct rk_agent agent = {.exits = -1, .terminal = -1, .setup = setup, .remote = remote,
                             .direct = direct};
    pid_t keeper = getppid();

    /* hwloc shall not load its plugins (X11, OpenCL) here; ranks get their environment from the
     * job, not from this process. */
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (open_agent(&agent, fd, remote)) {
        rk_error("the agent has no memory for its loop");
        return 1;
    }
    open_branches(&agent);
    if (remote)
        rk_agent_report(&agent);
    rk_agent_begin(&agent);
    event_base_dispatch(agent.base);
    rk_watch_close(agent.watch);
    /* Should neither front end nor keeper have come to it. */
    if (agent.job.id && (!agent.wire || getppid() != keeper))
        rk_rundir_remove(agent.job.id);
    /* PMIx's server is not finalized: it owns nothing but memory of this process, and its end
     * must not depend on clients that were killed in mid-sentence. */
    return 0;
}
