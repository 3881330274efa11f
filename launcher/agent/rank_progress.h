/*
 * rank_progress.h: the agent's eye on its ranks: who makes no progress, and what for.
 *
 * It makes the status board, looks at the ranks when asked or, with a heartbeat,
 * by itself, and tells the front end of stalls that begin and end. It has no
 * part in the job: without it all goes on as before.
 */
#ifndef RK_LAUNCHER_AGENT_RANK_PROGRESS_H
#define RK_LAUNCHER_AGENT_RANK_PROGRESS_H

#include "launcher/util/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rk_agent;
struct rk_watch;

/* Before the ranks are started; NULL without memory. */
struct rk_watch *rk_watch_open(struct rk_agent *agent);
/* NULL is fine. */
void rk_watch_close(struct rk_watch *watch);

/* The rank's variable that says where its slot is, as NAME=value; false: there is no board. */
bool rk_watch_variable(const struct rk_watch *watch, uint32_t slot, char *out, size_t len);

/* A message of RK_MSG_WATCH, _LOOK or _TRACE; false: it is none, or makes no sense. */
bool rk_watch_message(struct rk_watch *watch, uint32_t kind, struct rk_unpacker *u);
/* The process that the rank with this slot really is, behind a script. */
pid_t rk_watch_process(struct rk_watch *watch, uint32_t slot);
/* This signal goes to all ranks: those that it stops are not stalled. */
void rk_watch_signal(struct rk_watch *watch, int sig);
/* A child of the agent that is no rank has ended; true: it was one of ours. */
bool rk_watch_reaped(struct rk_watch *watch, pid_t pid);

/* stack_traces.c: stack traces of all ranks by a debugger. */
struct rk_traces;
/* For all ranks, within ms; the front end is told line by line, and of the end. NULL without
 * memory, and then nothing is told. */
struct rk_traces *rk_traces_start(struct rk_agent *agent, uint32_t ms);
void rk_traces_close(struct rk_traces *traces);
bool rk_traces_reaped(struct rk_traces *traces, pid_t pid);

#endif
