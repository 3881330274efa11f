/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.c: an agent's loop: messages, signals, the end. See agent.h. */
#include "launcher/agent/agent.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"
#include "launcher/monitor/rundir.h"
#include "launcher/agent/progress_watch.h"
#include "launcher/iof/pty.h"
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
static void signal_ranks(struct xr_agent *agent, int sig)
{
    pid_t keep[MAX_COMMANDS];

    xr_descend_signal(sig, keep, xr_branches_pids(agent->branches, keep, MAX_COMMANDS));
}

static void kill_round(struct xr_agent *agent)
{
    struct timeval again = ms(AGAIN_MS);

    agent->phase = XR_AGENT_KILL;
    signal_ranks(agent, SIGKILL);
    event_add(agent->on_grace, &again);
}

/* Tell all that they shall end; SIGCONT, because a stopped process would not notice. */
static void agent_ask(struct xr_agent *agent, int sig, uint32_t ms_from_now)
{
    struct timeval t = ms(ms_from_now);

    signal_ranks(agent, sig);
    signal_ranks(agent, SIGCONT); /* a stopped process would not notice */
    event_add(agent->on_grace, &t);
}

/* Not everybody knows what INT or HUP may mean; TERM is clear. */
static void ask_again(struct xr_agent *agent)
{
    uint32_t left = agent->second_half_ms;

    agent->second_half_ms = 0;
    agent_ask(agent, SIGTERM, left);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == XR_AGENT_DONE)
        return;
    if (agent->second_half_ms)
        ask_again(agent);
    else
        kill_round(agent);
    xr_ranks_reap(agent);
}

void xr_agent_end(struct xr_agent *agent, uint32_t grace_ms)
{
    int sig = agent->end_signal ? agent->end_signal : SIGTERM;

    if (agent->phase == XR_AGENT_KILL || agent->phase == XR_AGENT_DONE)
        return;
    if (agent->phase != XR_AGENT_TERM) {
        xr_server_ending(agent->server);
        /* MPICH's ranks tell nobody of their files: they must not make one after they have been
         * looked at. Others go on, and may. */
        if (xr_pmi1_used(agent->pmi1))
            xr_descend_signal(SIGSTOP, NULL, 0);
        else
            xr_leftovers_expect(agent->leftovers);
        xr_leftovers_note(agent->leftovers);
    }
    if (grace_ms == 0) {
        kill_round(agent);
    } else if (agent->phase != XR_AGENT_TERM) {
        agent->phase = XR_AGENT_TERM;
        agent->second_half_ms = sig == SIGTERM ? 0 : grace_ms - grace_ms / 2;
        agent_ask(agent, sig, grace_ms - agent->second_half_ms);
    }
    xr_ranks_reap(agent);
}

/* What the agents below have to say goes through here: they leave first. */
static void leave_if_sent(struct xr_agent *agent)
{
    const struct timeval patience = {LEAVE_S, 0};

    if (xr_tree_child_count(agent->tree) || (agent->wire && xr_wire_backlog(agent->wire)))
        return;
    if (agent->wire && agent->remote) {
        xr_wire_finish(agent->wire); /* on_parent_gone comes next */
        event_base_loopexit(agent->base, &patience);
    } else {
        event_base_loopexit(agent->base, NULL);
    }
}

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->live || !xr_ranks_gone(agent) || xr_outputs_stalled(agent->outputs))
        return;
    xr_outputs_close(agent->outputs);
    agent->outputs = NULL;
    xr_agent_check_done(agent);
}

static void tell_strangers(struct xr_agent *agent, uint32_t n)
{
    struct xr_packer p = {0};

    if (n == 0 || !agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, n);
    xr_wire_send(agent->wire, XR_MSG_STRANGERS, &p);
}

/* Somebody outside has our pipes: what comes is passed on until there is silence, but not for ever. */
static void await_quiet(struct xr_agent *agent)
{
    const struct timeval quiet = ms(QUIET_MS);

    if (!agent->alone_ns) {
        agent->alone_ns = rk_clock_ns();
        xr_outputs_note_last(agent->outputs);
    } else if (rk_clock_ns() > agent->alone_ns + OUTSIDE_MS * 1000000ull) {
        xr_outputs_cut(agent->outputs);
    }
    if (!xr_outputs_stalled(agent->outputs))
        event_add(agent->on_quiet, &quiet);
}

void xr_agent_check_done(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    if (agent->phase == XR_AGENT_IDLE || agent->phase == XR_AGENT_DONE || agent->live)
        return;
    if (agent->nused > 1 && agent->nlocal)
        xr_gone_note(agent->gone, XR_GONE_HOST, agent->node);
    if (!xr_ranks_gone(agent)) {
        /* Processes that the ranks have left behind end with the job. */
        if (agent->phase == XR_AGENT_RUNNING)
            xr_agent_end(agent, GRACE_MS);
        return;
    }
    if (xr_outputs_open_count(agent->outputs))
        await_quiet(agent);
    if (xr_outputs_open_count(agent->outputs))
        return;
    agent->phase = XR_AGENT_DONE;
    event_del(agent->on_grace);
    xr_server_end_job(agent->server);
    xr_leftovers_remove(agent->leftovers, xr_pmi1_used(agent->pmi1));
    tell_strangers(agent, xr_server_strangers());
    if (agent->wire) {
        xr_pack_u32(&p, agent->node);
        xr_wire_send(agent->wire, XR_MSG_DONE, &p);
    }
    leave_if_sent(agent);
}

/* ------------------------------------------------------------------- messages */

/* No more agents come from below. Who else came is told above. */
static void shut_door(struct xr_agent *agent)
{
    uint32_t strangers = xr_branches_strangers(agent->branches);

    xr_branches_shut_door(agent->branches);
    tell_strangers(agent, strangers);
}

static uint32_t count_seats(const struct xr_agent *agent)
{
    uint32_t n = 0;

    while (agent->seats.cpus && agent->seats.cpus[n])
        n++;
    return n;
}

static void agent_take_end(struct xr_agent *agent, uint32_t grace_ms)
{
    if (agent->phase != XR_AGENT_IDLE) {
        xr_agent_end(agent, grace_ms);
        return;
    }
    /* Nothing runs here. */
    shut_door(agent);
    agent->phase = XR_AGENT_RUNNING;
    xr_agent_check_done(agent);
}

/* Or xrun would have this agent killed. */
static void tell_ending(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_wire_send(agent->wire, XR_MSG_ENDING, &p);
}

static bool take_died(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), by_signal = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || rank >= agent->job.size)
        return false;
    if (agent->server && agent->job.host_of[rank] != agent->node)
        xr_server_tell_death(agent->server, rank, by_signal != 0);
    xr_gone_note(agent->gone, XR_GONE_RANK, rank);
    return true;
}

static bool take_other_died(struct xr_agent *agent, struct xr_unpacker *u)
{
    const char *job = xr_unpack_string(u);
    uint32_t rank = xr_unpack_u32(u), by_signal = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || !job)
        return false;
    if (agent->server && by_signal == XR_ONLY_FORGET)
        xr_server_forget_past(agent->server, job);
    else if (agent->server)
        xr_server_tell_other(agent->server, job, rank, by_signal != 0);
    return true;
}

/* An agent is gone, and all below with it. */
static void note_lost(struct xr_agent *agent, uint32_t top)
{
    for (uint32_t node = 0; agent->gone && node < agent->setup->shape.nodes; node++) {
        if (xr_tree_below(agent->tree, top, node))
            xr_gone_note(agent->gone, XR_GONE_AGENT, node);
    }
}

static bool take_lost(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t top = xr_unpack_u32(u);

    if (!xr_unpack_string(u) || !xr_unpack_done(u))
        return false;
    note_lost(agent, top);
    return true;
}

static bool take_over(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t n = xr_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t node = xr_unpack_u32(u);
        if (u->failed || node >= agent->setup->shape.nodes)
            return false;
        xr_gone_note(agent->gone, XR_GONE_AGENT, node);
    }
    return xr_unpack_done(u);
}

static bool agent_take_notice(struct xr_agent *agent, struct xr_unpacker *u)
{
    struct xr_notice notice;

    if (!xr_notice_unpack(u, agent->job.size, &notice))
        return false;
    if (agent->server && agent->job.host_of[notice.rank] != agent->node)
        xr_server_tell(agent->server, NULL, &notice);
    return true;
}

static bool take_other_notice(struct xr_agent *agent, struct xr_unpacker *u)
{
    const char *job = xr_unpack_string(u);
    struct xr_notice notice;

    if (!job || !xr_notice_unpack(u, UINT32_MAX, &notice))
        return false;
    if (agent->server)
        xr_server_tell(agent->server, job, &notice);
    return true;
}

static void on_stand_in(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_stand_in_check(arg);
}

/* TSTP has been sent; who ignores it, or has no terminal that could continue it, still runs. */
static void agent_on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == XR_AGENT_RUNNING)
        signal_ranks(agent, SIGSTOP);
}

static void signal_all(struct xr_agent *agent, int sig)
{
    const struct timeval soon = {0, XR_STOP_MS * 1000};

    xr_watch_signal(agent->watch, sig);
    signal_ranks(agent, sig);
    if (sig == SIGTSTP)
        event_add(agent->on_stop, &soon);
    else if (sig == SIGCONT)
        event_del(agent->on_stop);
}

static bool agent_take_number(struct xr_agent *agent, uint32_t kind, uint32_t number)
{
    if (kind == XR_MSG_OUTPUT_TAKEN) {
        xr_outputs_taken(agent->outputs, number);
        xr_agent_check_done(agent); /* reading goes on, perhaps from a pipe that somebody outside keeps open */
        return true;
    }
    if (number > 64)
        return false;
    signal_all(agent, (int)number);
    return true;
}

static bool take_targets(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t sig = xr_unpack_u32(u), n = xr_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t rank = xr_unpack_u32(u);
        struct xr_rank *r = u->failed ? NULL : xr_agent_rank(agent, rank);
        if (r && r->pid > 0 && !r->exited && agent->phase == XR_AGENT_RUNNING)
            kill(-r->pid, (int)sig); /* its process group: it may be a script */
    }
    return xr_unpack_done(u) && sig <= 64;
}

static bool agent_on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_agent *agent = arg;
    struct xr_window window;
    uint32_t number, sig;

    switch (kind) {
    case XR_MSG_SEATS:
        return agent->phase == XR_AGENT_IDLE && xr_agent_take_seats(agent, u);
    case XR_MSG_JOB:
        if (agent->phase != XR_AGENT_IDLE || !xr_agent_take_job(agent, u) ||
            count_seats(agent) != agent->nlocal)
            return false;
        shut_door(agent);
        xr_agent_run_job(agent);
        return true;
    case XR_MSG_ASK_TOPOLOGY:
        xr_agent_report_topology(agent);
        return true;
    case XR_MSG_INPUT:
        xr_inputs_put(agent->inputs, u->at, u->left);
        return true;
    case XR_MSG_DIED:
        return take_died(agent, u);
    case XR_MSG_LOST:
        return take_lost(agent, u);
    case XR_MSG_OVER:
        return take_over(agent, u);
    case XR_MSG_NOTICE:
        return agent_take_notice(agent, u);
    case XR_MSG_OTHER_NOTICE:
        return take_other_notice(agent, u);
    case XR_MSG_END:
        number = xr_unpack_u32(u);
        sig = xr_unpack_u32(u);
        if (!xr_unpack_done(u) || sig > 64)
            return false;
        agent->end_signal = (int)sig;
        tell_ending(agent);
        agent_take_end(agent, number);
        return true;
    case XR_MSG_SIGNAL:
    case XR_MSG_OUTPUT_TAKEN:
        number = xr_unpack_u32(u);
        return xr_unpack_done(u) && agent_take_number(agent, kind, number);
    case XR_MSG_TARGETS:
        return take_targets(agent, u);
    case XR_MSG_MODEX_ASK:
    case XR_MSG_MODEX_ANSWER:
        return agent->modexes && xr_modexes_take(agent->modexes, kind, u);
    case XR_MSG_ERRAND_DONE:
        return agent->errands && xr_errands_take(agent->errands, u);
    case XR_MSG_OTHER_DIED:
        return take_other_died(agent, u);
    case XR_MSG_WINDOW:
        window.rows = (uint16_t)xr_unpack_u32(u);
        window.cols = (uint16_t)xr_unpack_u32(u);
        xr_terminal_resize(agent->terminal, &window);
        return xr_unpack_done(u);
    default:
        return xr_watch_message(agent->watch, kind, u);
    }
}

static bool agent_on_step(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_agent *agent = arg;

    return kind >= XR_MSG_FENCE_UP && kind <= XR_MSG_FENCE_ENDED && agent->fences &&
           xr_fences_take(agent->fences, from, kind, u);
}

static void agent_on_parent_gone(void *arg, const char *why)
{
    struct xr_agent *agent = arg;

    if (why && agent->phase != XR_AGENT_DONE)
        rk_error("the agent on %s lost xrun: %s", agent->host, why);
    agent->wire = NULL;
    if (agent->phase == XR_AGENT_IDLE || agent->phase == XR_AGENT_DONE) {
        event_base_loopexit(agent->base, NULL);
        return;
    }
    xr_outputs_let_go(agent->outputs);
    xr_agent_end(agent, GRACE_MS);
}

/* ------------------------------------------------------------ agents below */

static void tell_of_node(struct xr_agent *agent, uint32_t kind, uint32_t node, const char *text)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, node);
    xr_pack_string(&p, text ? text : "");
    xr_wire_send(agent->wire, kind, &p);
}

static void agent_on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct xr_agent *agent = arg;

    note_lost(agent, node);
    /* xrun knows whether it was done. */
    tell_of_node(agent, XR_MSG_LOST, node, why);
    if (why && *why) /* else its keeper is there, which may say more */
        xr_branches_lost(agent->branches, node);
    if (agent->phase == XR_AGENT_DONE)
        leave_if_sent(agent);
}

static void agent_on_lost_ended(void *arg, uint32_t node, bool seen)
{
    struct xr_agent *agent = arg;

    if (!seen)
        rk_error("nothing shows that the agent on %s has ended; its ranks, if any, are left there",
                 agent->setup->names[node]);
    if (agent->phase == XR_AGENT_DONE)
        leave_if_sent(agent);
}

static void on_branch_failed(void *arg, uint32_t node, const char *text)
{
    tell_of_node(arg, XR_MSG_FAILED, node, text);
}

static void agent_on_branch_said(void *arg, uint32_t node, const char *line)
{
    struct xr_agent *agent = arg;

    fprintf(stderr, "%s: %s\n", agent->setup->names[node], line);
}

static const struct xr_branch_ops branch_ops = {on_branch_failed, agent_on_branch_said};

/* Those below have been started by others, and ask xrun for us. */
static void tell_door(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    xr_branches_pack_door(agent->branches, agent->node, xr_wire_fd(agent->wire), &p);
    xr_wire_send(agent->wire, XR_MSG_DOOR, &p);
}

static void open_branches(struct xr_agent *agent)
{
    uint32_t n = xr_tree_children(agent->tree);
    char text[1024] = "";

    if (n && xr_branches_open(agent->base, agent->tree, agent->setup, XR_NODE_FRONT, &branch_ops, agent,
                              &agent->branches, text, sizeof(text)))
        tell_of_node(agent, XR_MSG_FAILED, xr_tree_child(agent->tree, 0), text);
    else if (n && agent->setup->step)
        tell_door(agent);
}

static void agent_on_drained(void *arg)
{
    struct xr_agent *agent = arg;

    if (agent->phase == XR_AGENT_DONE)
        leave_if_sent(agent);
    xr_agent_check_done(agent);
}

static const struct xr_tree_ops tree_ops = {agent_on_message, agent_on_step, agent_on_child_gone, agent_on_lost_ended, agent_on_parent_gone,
                                            agent_on_drained};

static void on_exits(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_ranks_reap(arg);
}

/* The keeper died, or somebody wants this agent to end. */
static void on_term(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->phase == XR_AGENT_IDLE)
        event_base_loopexit(agent->base, NULL);
    else
        xr_agent_end(agent, GRACE_MS);
}

static rank_status_t open_agent(struct xr_agent *agent, int fd, bool remote)
{
    const struct xr_setup *setup = agent->setup;

    if (gethostname(agent->host, sizeof(agent->host) - 1) || !agent->host[0])
        snprintf(agent->host, sizeof(agent->host), "localhost");
    agent->node = setup->node;
    agent->exits = epoll_create1(EPOLL_CLOEXEC);
    agent->base = event_base_new();
    if (!agent->base || xr_tree_open(agent->base, setup->node, &setup->shape, &tree_ops, agent, &agent->tree))
        return RANK_ERR_NO_MEMORY;
    if (xr_tree_add_parent(agent->tree, fd, remote))
        return RANK_ERR_NO_MEMORY;
    agent->wire = xr_tree_parent(agent->tree);
    agent->on_child = evsignal_new(agent->base, SIGCHLD, on_exits, agent);
    agent->on_term = evsignal_new(agent->base, SIGTERM, on_term, agent);
    agent->on_grace = evtimer_new(agent->base, on_grace, agent);
    agent->on_quiet = evtimer_new(agent->base, on_quiet, agent);
    agent->on_stop = evtimer_new(agent->base, agent_on_stop, agent);
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

int xr_agent_main(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct)
{
    struct xr_agent agent = {.exits = -1, .terminal = -1, .setup = setup, .remote = remote,
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
        xr_agent_report(&agent);
    xr_agent_begin(&agent);
    event_base_dispatch(agent.base);
    xr_watch_close(agent.watch);
    /* Should neither front end nor keeper have come to it. */
    if (agent.job.id && (!agent.wire || getppid() != keeper))
        xr_rundir_remove(agent.job.id);
    /* PMIx's server is not finalized: it owns nothing but memory of this process, and its end
     * must not depend on clients that were killed in mid-sentence. */
    return 0;
}
