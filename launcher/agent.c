/* agent.c: an agent's loop: messages, signals, the end. See agent.h. */
#include "launcher/agent.h"
#include "launcher/descend.h"
#include "launcher/keeper.h"
#include "launcher/limits.h"
#include "launcher/message.h"
#include "launcher/notice.h"
#include "launcher/program.h"
#include "launcher/rundir.h"
#include "launcher/watch.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between TERM and KILL where nobody said otherwise. */
#define GRACE_MS 400
/* Between two rounds of KILL: what is killed may just have forked. */
#define AGAIN_MS 20
/* Output that somebody outside our tree may still write is waited for this long. */
#define QUIET_MS 200
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
        /* MPICH's ranks tell nobody of their files: they must not make one after they have been
         * looked at. */
        if (rk_pmi1_used(agent->pmi1))
            rk_descend_signal(SIGSTOP, NULL, 0);
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

void rk_agent_check_done(struct rk_agent *agent)
{
    struct timeval quiet = ms(QUIET_MS);
    struct rk_packer p = {0};

    if (agent->phase == RK_AGENT_IDLE || agent->phase == RK_AGENT_DONE || agent->live)
        return;
    if (agent->nused > 1 && agent->nlocal)
        rk_fences_ended(agent->fences, agent->node);
    if (!rk_ranks_gone(agent)) {
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
    rk_leftovers_remove(agent->leftovers);
    if (agent->wire) {
        rk_pack_u32(&p, agent->node);
        rk_wire_send(agent->wire, RK_MSG_DONE, &p);
    }
    leave_if_sent(agent);
}

/* ------------------------------------------------------- what PMIx clients do */

/* One of the ranks here is a client. Another host's may not have come so far, or be done. */
static void tell_joined(struct rk_agent *agent)
{
    struct rk_packer p = {0};

    rk_singletons_joined(agent->singletons);
    if (agent->joined || agent->nused < 2 || !agent->wire)
        return;
    agent->joined = true;
    rk_pack_u32(&p, agent->node);
    rk_wire_send(agent->wire, RK_MSG_JOINED, &p);
}

/* A script may live on where its client is gone: who waits for it in other jobs, or on other hosts, must know. */
static void tell_lost(struct rk_agent *agent, struct rk_rank *r, bool lost)
{
    struct rk_packer p = {0};

    if (r->told_lost == lost || !agent->wire)
        return;
    r->told_lost = lost;
    rk_pack_u32(&p, r->rank);
    rk_pack_u32(&p, lost);
    rk_wire_send(agent->wire, RK_MSG_CLIENT_LOST, &p);
}

static void on_connected(void *arg, uint32_t rank)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = rk_agent_rank(agent, rank);

    if (!r || r->exited) /* its stand-in */
        return;
    r->clients++;
    tell_joined(agent);
    /* A program that a rank runs after another starts anew. */
    if (!r->connected || r->finalized)
        agent->clients++;
    r->connected = true;
    r->finalized = false;
    tell_lost(agent, r, false);
    rk_stand_in_check(agent);
}

static void on_finalized(void *arg, uint32_t rank)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = rk_agent_rank(agent, rank);

    if (!r || r->exited || r->finalized)
        return;
    r->clients--;
    r->finalized = true;
    agent->clients--;
}

/* Its client has ended without finalizing, and no other has come after it. */
static bool is_broken(const struct rk_rank *r)
{
    return r->connected && !r->finalized && r->clients <= 0;
}

static void on_lost(void *arg, uint32_t rank)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = rk_agent_rank(agent, rank);

    if (!r || r->exited)
        return;
    r->clients--;
    if (is_broken(r)) {
        rk_modexes_ended(agent->modexes, rank);
        tell_lost(agent, r, true);
    }
}

static void on_aborted(void *arg, uint32_t rank, int code, const char *text)
{
    struct rk_agent *agent = arg;
    struct rk_rank *r = rk_agent_rank(agent, rank);
    struct rk_packer p = {0};

    /* It may be gone when xrun's answer comes. */
    rk_leftovers_note(agent->leftovers);
    if (agent->wire && r) {
        rk_pack_u32(&p, rank);
        rk_pack_u32(&p, (uint32_t)r->pid);
        rk_pack_u32(&p, (uint32_t)code);
        rk_pack_string(&p, text);
        rk_wire_send(agent->wire, RK_MSG_ABORT, &p);
    }
}

static void on_log(void *arg, uint32_t rank, int stream, const char *text)
{
    struct rk_agent *agent = arg;
    struct rk_packer p = {0};

    if (!agent->wire || rk_outputs_log(agent->outputs, rank, stream, text))
        return;
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, (uint32_t)stream);
    rk_pack_bytes(&p, text, strlen(text));
    rk_wire_send(agent->wire, RK_MSG_LOG, &p);
}

/* PMI-1's clients are not counted among PMIx's: no stand-in could leave for them. */
static void on_pmi1_joined(void *arg, uint32_t local)
{
    struct rk_agent *agent = arg;

    (void)local;
    tell_joined(agent);
}

static void on_pmi1_aborted(void *arg, uint32_t local, int code, const char *text)
{
    struct rk_agent *agent = arg;

    on_aborted(agent, agent->ranks[local].rank, code, text);
}

static void on_pmi1_stranded(void *arg, uint32_t local)
{
    on_pmi1_aborted(arg, local, 1, "it has ended, and others wait for it in MPI_Init");
}

static void on_pmi1_answer(void *arg, void *token, struct rk_unpacker *answer)
{
    struct rk_agent *agent = arg;

    rk_pmi1_errand_done(agent->pmi1, (uint32_t)(uintptr_t)token, answer);
}

static void on_pmi1_errand(void *arg, uint32_t local, enum rk_errand what, struct rk_packer *payload)
{
    struct rk_agent *agent = arg;

    if (what == RK_ERRAND_SPAWN)
        rk_outputs_share(agent->outputs);
    rk_errands_send(agent->errands, what, agent->ranks[local].rank, payload, on_pmi1_answer, agent,
                    (void *)(uintptr_t)local);
}

/* What ranks of PMI-1 put travels as a fence of all hosts that have ranks. */
static void on_pmi1_exchange(void *arg, bool lost, const void *blob, size_t len)
{
    struct rk_agent *agent = arg;

    rk_fences_enter(agent->fences, RK_FENCE_PMI1, lost, NULL, 0, blob, len, agent->pmi1);
}

/* It may not have been reaped yet. */
static bool has_ended(const struct rk_rank *r)
{
    siginfo_t info = {.si_pid = 0};

    return r->exited || is_broken(r) ||
           (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid);
}

static void on_fence(void *arg, const uint32_t *ranks, uint32_t nranks, bool broken, const void *data,
                     size_t len, void *token)
{
    struct rk_agent *agent = arg;
    /* PMIx ends fences of one host itself, unless one of those who take part is gone. */
    bool lost = broken || rk_fences_local(agent->fences, ranks, nranks);

    for (uint32_t i = 0; i < agent->nlocal && nranks == 0; i++)
        lost = lost || has_ended(&agent->ranks[i]);
    for (uint32_t i = 0; i < nranks; i++) {
        const struct rk_rank *r = rk_agent_rank(agent, ranks[i]);
        lost = lost || (r && has_ended(r));
    }
    rk_fences_enter(agent->fences, RK_FENCE_PMIX, lost, ranks, nranks, data, len, token);
}

static void on_fence_done(void *arg, void *token, int status, const void *data, size_t len)
{
    struct rk_agent *agent = arg;

    /* MPICH 5's ranks end when they hear that, and leave their segments. */
    if (token == agent->pmi1 && status)
        rk_leftovers_note(agent->leftovers);
    if (token == agent->pmi1)
        rk_pmi1_exchanged(agent->pmi1, status != 0, data, len);
    else
        rk_server_fence_done(agent->server, token, status, data, len);
}

static void on_modex(void *arg, uint32_t rank, uint32_t timeout_s, void *token)
{
    struct rk_agent *agent = arg;

    /* Those of this host PMIx finds itself. */
    if (agent->job.host_of[rank] == agent->node)
        rk_server_modex_done(agent->server, token, RK_FOUND_NEVER, NULL, 0);
    else
        rk_modexes_ask(agent->modexes, agent->job.host_of[rank], rank, timeout_s, token);
}

static void on_modex_answer(void *arg, void *token, enum rk_found found, const void *data, size_t len)
{
    struct rk_agent *agent = arg;

    rk_server_modex_done(agent->server, token, found, data, len);
}

static void on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct rk_agent *agent = arg;
    const struct rk_rank *r = rk_agent_rank(agent, rank);

    if (!r || !agent->server || (r->exited && !r->connected))
        rk_modexes_found(agent->modexes, id, false, NULL, 0);
    else
        rk_server_look_up(agent->server, rank, id);
    if (r && agent->server && has_ended(r))
        rk_server_settle(agent->server, id);
}

/* The answer may be on its way. */
static void on_modex_ended(void *arg, uint32_t id)
{
    struct rk_agent *agent = arg;

    rk_server_settle(agent->server, id);
}

static void on_looked_up(void *arg, uint32_t id, bool found, const void *data, size_t len)
{
    struct rk_agent *agent = arg;

    rk_modexes_found(agent->modexes, id, found, data, len);
}

/* xrun passes it on to all hosts. */
static void on_raised(void *arg, const struct rk_notice *notice)
{
    struct rk_agent *agent = arg;
    struct rk_packer p = {0};

    if (agent->nused < 2 || !agent->wire)
        return;
    rk_notice_pack(notice, &p);
    rk_wire_send(agent->wire, RK_MSG_NOTICE, &p);
}

static void on_errand_done(void *arg, void *token, struct rk_unpacker *answer)
{
    struct rk_agent *agent = arg;

    rk_server_errand_done(agent->server, token, answer);
}

static void on_errand(void *arg, enum rk_errand what, uint32_t rank, struct rk_packer *payload, void *token)
{
    struct rk_agent *agent = arg;

    if (what == RK_ERRAND_SPAWN)
        rk_outputs_share(agent->outputs);
    rk_errands_send(agent->errands, what, rank, payload, on_errand_done, agent, token);
}

static bool on_ended(void *arg, uint32_t rank)
{
    const struct rk_rank *r = rk_agent_rank(arg, rank);

    return r && has_ended(r);
}

static const struct rk_server_events server_events = {.connected = on_connected,
                                                      .finalized = on_finalized,
                                                      .lost = on_lost,
                                                      .aborted = on_aborted,
                                                      .log = on_log,
                                                      .fence = on_fence,
                                                      .modex = on_modex,
                                                      .looked_up = on_looked_up,
                                                      .raised = on_raised,
                                                      .errand = on_errand,
                                                      .ended = on_ended};
static const struct rk_modex_ops modex_ops = {on_modex_answer, on_asked, on_modex_ended};

/* ------------------------------------------------------------------ the start */

static void refuse(struct rk_agent *agent, int code, const char *text)
{
    struct rk_packer p = {0};

    if (!agent->wire)
        return;
    rk_pack_u32(&p, agent->node);
    rk_pack_u32(&p, (uint32_t)code);
    rk_pack_string(&p, text);
    rk_wire_send(agent->wire, RK_MSG_REFUSED, &p);
}

static void say_started(struct rk_agent *agent, uint64_t init, uint64_t nspace, uint64_t ranks)
{
    const struct {
        const char *name;
        uint64_t ns;
    } phase[] = {{"PMIx server", init}, {"namespace", nspace}, {"ranks", ranks}};
    struct rk_packer p = {0};

    rk_pack_u32(&p, agent->node);
    rk_pack_u32(&p, 3);
    for (int i = 0; i < 3; i++) {
        rk_pack_string(&p, phase[i].name);
        rk_pack_u64(&p, phase[i].ns);
    }
    rk_wire_send(agent->wire, RK_MSG_STARTED, &p);
}

static rank_status_t open_server(struct rk_agent *agent, uint64_t *init_ns, uint64_t *register_ns)
{
    struct rk_server_job job = {.id = agent->job.id,
                                .host = agent->job.hosts[agent->node],
                                .size = agent->job.size,
                                .nlocal = agent->nlocal,
                                .folder = rk_leftovers_folder(agent->leftovers),
                                .oversubscribed = agent->seats.oversubscribed,
                                .topology = agent->topology,
                                .origin = &agent->job.origin};
    struct rk_job_map map = {0};
    struct rk_server_app *apps = calloc(agent->job.napps, sizeof(*apps));
    uint32_t *local = calloc(agent->nlocal ? agent->nlocal : 1, sizeof(*local));
    rank_status_t st = local && apps ? rk_job_map_make(&agent->job, &map) : RANK_ERR_NO_MEMORY;

    for (uint32_t i = 0; apps && i < agent->job.napps; i++)
        apps[i] = (struct rk_server_app){agent->job.apps[i].first, agent->job.apps[i].n};
    job.apps = apps;
    job.napps = agent->job.napps;

    for (uint32_t i = 0; !st && i < agent->nlocal; i++)
        local[i] = agent->ranks[i].rank;
    job.local = local;
    job.nhosts = map.n;
    job.hosts = map.hosts;
    job.ranks_of = (const char *const *)map.ranks;
    job.runs = map.runs;
    if (!st)
        st = rk_server_open(agent->base, &job, &server_events, agent, &agent->server, init_ns,
                            register_ns);
    rk_job_map_clear(&map);
    free(local);
    free(apps);
    return st;
}

static rank_status_t open_pmi1(struct rk_agent *agent)
{
    static const struct rk_pmi1_ops alone = {.joined = on_pmi1_joined,
                                             .aborted = on_pmi1_aborted,
                                             .stranded = on_pmi1_stranded,
                                             .errand = on_pmi1_errand},
                                    several = {.joined = on_pmi1_joined,
                                               .aborted = on_pmi1_aborted,
                                               .exchange = on_pmi1_exchange,
                                               .stranded = on_pmi1_stranded,
                                               .errand = on_pmi1_errand};
    const struct rk_pmi1_job job = {.id = agent->job.id,
                                    .size = agent->job.size,
                                    .local = agent->nlocal,
                                    .keys = agent->job.origin.keys,
                                    .node_of = agent->nused > 1 ? agent->job.host_of : NULL};

    return rk_pmi1_open(agent->base, &job, agent->nused > 1 ? &several : &alone, agent, &agent->pmi1);
}

static uint32_t count_seats(const struct rk_agent *agent)
{
    uint32_t n = 0;

    while (agent->seats.cpus && agent->seats.cpus[n])
        n++;
    return n;
}

static rank_status_t prepare_job(struct rk_agent *agent)
{
    rank_status_t st = rk_fences_open(agent->tree, &agent->job, agent->node, on_fence_done, agent,
                                      &agent->fences);

    if (!st)
        st = rk_errands_open(agent->tree, agent->node, &agent->errands);
    return st ? st : rk_modexes_open(agent->base, agent->tree, agent->node, &modex_ops, agent, &agent->modexes);
}

/* Where there are several hosts xrun cannot look for itself whether each can hold its ranks. */
static bool check_limits(const struct rk_agent *agent, char *text, size_t len)
{
    uint64_t nofile; /* the user's, which ranks shall have, is that of xrun's host */
    char why[768];

    if (agent->setup->nodes == 1 ||
        rk_limits_check((int)agent->nlocal, agent->job.input == RK_INPUT_ALL ? 2 : 0, &nofile, why,
                        sizeof(why)))
        return true;
    snprintf(text, len, "host %s: %s", agent->job.hosts[agent->node], why);
    return false;
}

/* Of the first rank here. */
static const char *program_of_first(const struct rk_agent *agent)
{
    return rk_job_app_of(&agent->job, agent->ranks[0].rank)->program;
}

static void on_alone(void *arg, bool over, const char *text)
{
    struct rk_agent *agent = arg;
    struct rk_packer p = {0};

    if (!agent->wire)
        return;
    rk_pack_u32(&p, agent->node);
    rk_pack_u32(&p, over);
    rk_pack_string(&p, text);
    rk_wire_send(agent->wire, RK_MSG_ALONE, &p);
}

/*
 * Have the table of open files as large as it will be, while there is one thread. The kernel doubles it when it is
 * full, and if threads share it waits each time until no processor may still look at the old one: 10 ms.
 */
static void widen_file_table(const struct rk_agent *agent)
{
    int most = 64 + 8 * (int)agent->nlocal, fd;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && (rlim_t)most >= lim.rlim_cur)
        most = (int)lim.rlim_cur - 1;
    fd = fcntl(agent->exits, F_DUPFD_CLOEXEC, most);
    if (fd >= 0)
        close(fd);
}

static void run_job(struct rk_agent *agent)
{
    uint64_t init_ns = 0, register_ns = 0, t;
    char text[1024] = "";
    int code = 1;
    rank_status_t st = prepare_job(agent);

    agent->phase = RK_AGENT_RUNNING;
    rk_keeper_serves(agent->job.id);
    if (agent->nlocal == 0) { /* it only passes on what others say */
        rk_agent_check_done(agent);
        return;
    }
    if (!st && !check_limits(agent, text, sizeof(text))) {
        code = RK_EXIT_USAGE;
        st = RANK_ERR_SYSTEM;
    }
    if (!st)
        st = rk_leftovers_create(agent->job.id, &agent->leftovers);
    widen_file_table(agent);
    if (!st)
        st = open_server(agent, &init_ns, &register_ns);
    if (st && !text[0])
        snprintf(text, sizeof(text), "the PMIx server on %s did not start", agent->host);
    if (!st)
        st = open_pmi1(agent);
    t = rk_clock_ns();
    agent->watch = rk_watch_open(agent);
    if (!st)
        st = rk_ranks_start(agent, &code, text, sizeof(text));
    if (!st && !agent->plain)
        st = rk_singletons_watch(agent->base, agent->job.size, agent->nlocal, program_of_first(agent),
                                 agent->ranks[0].pid, on_alone, agent, &agent->singletons);
    if (!st) {
        say_started(agent, init_ns, register_ns, rk_clock_ns() - t);
        rk_account_placed(agent);
    } else {
        refuse(agent, code, text);
        rk_agent_end(agent, 0);
    }
    rk_ranks_reap(agent);
}

/* ------------------------------------------------------------------- messages */

/* No more agents come from below. Who else came is told above. */
static void shut_door(struct rk_agent *agent)
{
    uint32_t strangers = rk_branches_strangers(agent->branches);
    struct rk_packer p = {0};

    rk_branches_shut_door(agent->branches);
    if (!strangers || !agent->wire)
        return;
    rk_pack_u32(&p, agent->node);
    rk_pack_u32(&p, strangers);
    rk_wire_send(agent->wire, RK_MSG_STRANGERS, &p);
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

static bool take_died(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), by_signal = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || rank >= agent->job.size)
        return false;
    if (agent->server && agent->job.host_of[rank] != agent->node)
        rk_server_tell_death(agent->server, rank, by_signal != 0);
    return true;
}

static bool take_other_died(struct rk_agent *agent, struct rk_unpacker *u)
{
    const char *job = rk_unpack_string(u);
    uint32_t rank = rk_unpack_u32(u), by_signal = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || !job)
        return false;
    if (agent->server)
        rk_server_tell_other(agent->server, job, rank, by_signal != 0);
    return true;
}

static bool take_lost(struct rk_agent *agent, struct rk_unpacker *u)
{
    uint32_t top = rk_unpack_u32(u);

    if (!rk_unpack_string(u) || !rk_unpack_done(u))
        return false;
    for (uint32_t node = 0; agent->modexes && node < agent->setup->nodes; node++) {
        if (!rk_tree_below(agent->tree, top, node))
            continue;
        rk_modexes_lost(agent->modexes, node);
        rk_fences_ended(agent->fences, node);
    }
    return true;
}

static bool take_notice(struct rk_agent *agent, struct rk_unpacker *u)
{
    struct rk_notice notice;

    if (!rk_notice_unpack(u, agent->job.size, &notice))
        return false;
    if (agent->server && agent->job.host_of[notice.rank] != agent->node)
        rk_server_tell(agent->server, &notice);
    return true;
}

static bool take_number(struct rk_agent *agent, uint32_t kind, uint32_t number)
{
    if (kind == RK_MSG_OUTPUT_TAKEN) {
        rk_outputs_taken(agent->outputs, number);
        return true;
    }
    if (number > 64)
        return false;
    rk_watch_signal(agent->watch, (int)number);
    signal_ranks(agent, (int)number);
    return true;
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
        run_job(agent);
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
    case RK_MSG_NOTICE:
        return take_notice(agent, u);
    case RK_MSG_END:
        number = rk_unpack_u32(u);
        sig = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || sig > 64)
            return false;
        agent->end_signal = (int)sig;
        take_end(agent, number);
        return true;
    case RK_MSG_SIGNAL:
    case RK_MSG_OUTPUT_TAKEN:
        number = rk_unpack_u32(u);
        return rk_unpack_done(u) && take_number(agent, kind, number);
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

    if (agent->fences)
        rk_fences_lost(agent->fences, node);
    /* xrun knows whether it was done. */
    tell_of_node(agent, RK_MSG_LOST, node, why);
    rk_branches_lost(agent->branches, node);
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

static void open_branches(struct rk_agent *agent)
{
    uint32_t first, n = rk_tree_children(agent->tree, &first);
    char text[1024] = "";

    if (n && rk_branches_open(agent->base, agent->tree, agent->setup, RK_NODE_FRONT, &branch_ops, agent,
                              &agent->branches, text, sizeof(text)))
        tell_of_node(agent, RK_MSG_FAILED, first, text);
}

static void on_drained(void *arg)
{
    struct rk_agent *agent = arg;

    if (agent->phase == RK_AGENT_DONE)
        leave_if_sent(agent);
    rk_agent_check_done(agent);
}

static const struct rk_tree_ops tree_ops = {on_message, on_step, on_child_gone, on_parent_gone,
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
    if (!agent->base || rk_tree_open(agent->base, setup->node, setup->nodes, setup->fanout,
                                     &tree_ops, agent, &agent->tree))
        return RANK_ERR_NO_MEMORY;
    if (rk_tree_add_parent(agent->tree, fd, remote))
        return RANK_ERR_NO_MEMORY;
    agent->wire = rk_tree_parent(agent->tree);
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
    event_base_dispatch(agent.base);
    rk_watch_close(agent.watch);
    /* Should neither front end nor keeper have come to it. */
    if (agent.job.id && (!agent.wire || getppid() != keeper))
        rk_rundir_remove(agent.job.id);
    /* PMIx's server is not finalized: it owns nothing but memory of this process, and its end
     * must not depend on clients that were killed in mid-sentence. */
    return 0;
}
