/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeouts.h: define the time constants of the launcher that depend on each other.
 *
 * Each is derived from those it must exceed, or a _Static_assert states the order.
 * A constant that depends on no other stands in the file that uses it.
 */
#ifndef XR_LAUNCHER_JOB_TIMEOUTS_H
#define XR_LAUNCHER_JOB_TIMEOUTS_H

/* ------------------------------------------------- end of a job: TERM, then KILL */

/* Between TERM and KILL, unless --kill-grace gives it. All processes of one job use the same. */
#define XR_FAILURE_GRACE_MS 400
/* The same after a signal of the user: the program may save its data. */
#define XR_SIGNAL_GRACE_MS 2000
/* xrun waits this long after a failure for an earlier cause: on one host, on several. */
#define XR_CAUSE_LOCAL_MS 20
#define XR_CAUSE_HOSTS_MS 100
/* A failed job is gone within a second. */
_Static_assert(XR_CAUSE_LOCAL_MS < XR_CAUSE_HOSTS_MS, "failures of other hosts arrive later");
_Static_assert(XR_CAUSE_HOSTS_MS + XR_FAILURE_GRACE_MS < 1000, "a failed job must be gone within a second");
_Static_assert(XR_SIGNAL_GRACE_MS > XR_FAILURE_GRACE_MS, "an interrupted job gets more time than a failed one");

/* After a forced end xrun exits when the reader of its output makes no progress for this long. */
#define XR_SILENT_MS 1000
/* After the end xrun waits this long for the commands that started agents. */
#define XR_LAUNCHER_WAIT_MS 3000
/* A spawned xrun that lost its parent ends its job and its commands in this time. */
#define XR_CHILD_LEAVE_MS (XR_LAUNCHER_WAIT_MS + XR_SILENT_MS)
_Static_assert(XR_CHILD_LEAVE_MS > XR_FAILURE_GRACE_MS + XR_SILENT_MS, "a spawned xrun must be able to end its job");

/* ------------------------------------------------ agents that do not end their job */

/* The supervisor kills an agent that has lost its parent after this time. The agent ends its ranks before. */
#define XR_ORPHAN_MS 3000
/* Then it kills and reaps the agent's descendants for at most this long. */
#define XR_DESCENDANTS_MS 5000
/* A front end waits this long, from its TERM, for a supervisor to have ended all below it. */
#define XR_SUPERVISOR_MS (XR_ORPHAN_MS + XR_DESCENDANTS_MS + 1000)
/* A front end waits this long for the supervisor to exit. */
#define XR_SUPERVISOR_EXIT_MS (XR_SUPERVISOR_MS + 1000)
_Static_assert(XR_FAILURE_GRACE_MS < XR_ORPHAN_MS, "an agent must be able to end its ranks itself");
_Static_assert(XR_SUPERVISOR_MS > XR_ORPHAN_MS + XR_DESCENDANTS_MS, "the supervisor must be through before it is given up");

/* An agent acknowledges the end of its job in this time. One that starts many ranks does not read meanwhile. */
#define XR_END_FAILED_MS 10000 /* after a failure */
#define XR_END_FORCED_MS 3000  /* after a signal or a time-out */
#define XR_END_AT_ONCE_MS 1000 /* after the user's second signal */
_Static_assert(XR_END_AT_ONCE_MS < XR_END_FORCED_MS && XR_END_FORCED_MS < XR_END_FAILED_MS, "each demand is stricter");

/* ------------------------------------------------------------------- lost hosts */

/* TCP keepalive: the first probe after this idle time, then at this interval, this many unanswered. */
#define XR_KEEPALIVE_IDLE_S 2
#define XR_KEEPALIVE_INTERVAL_S 1
#define XR_KEEPALIVE_PROBES 4
/* A host without any answer for this long is lost. The kernel and the heartbeats agree on it. */
#define XR_LOST_AFTER_S (XR_KEEPALIVE_IDLE_S + XR_KEEPALIVE_INTERVAL_S * XR_KEEPALIVE_PROBES)
/* Period of heartbeats, by which silence is counted. */
#define XR_BEAT_S 1
/* Silence allowed to a busy sender: the table of a million ranks, a file system that is mounted on demand. */
#define XR_BUSY_S 120
/* While an agent is busy its silence does not count. Then its supervisor ends it when it was stopped for this long. */
#define XR_STOPPED_S XR_LOST_AFTER_S
_Static_assert(XR_LOST_AFTER_S >= 3 * XR_BEAT_S, "a lost heartbeat or two must not end a job");
_Static_assert(XR_BUSY_S > XR_LOST_AFTER_S, "a busy agent gets more time");

/* ------------------------------------------------------------------------ start */

/* The parent closes a connection without a handshake after this time, and earlier to make room for others. */
#define XR_HANDSHAKE_S 5
#define XR_HANDSHAKE_FAST_MS 500
/* A new agent reads its setup from standard input for at most this long. */
#define XR_SETUP_MS 30000
/* Then it tries to connect to its parent for at most this long, with each address for this long. */
#define XR_CONNECT_MS 20000
#define XR_CONNECT_BRIEF_MS 1000
/* xrun waits for all agents this long, unless --start-timeout gives it. */
#define XR_START_S 60
/* After this time xrun names the hosts that it waits for, and shows srun's messages. */
#define XR_START_SLOW_S 2
_Static_assert(XR_HANDSHAKE_FAST_MS < XR_HANDSHAKE_S * 1000, "");
_Static_assert(XR_HANDSHAKE_S * 1000 < XR_CONNECT_MS, "an agent must outlive a handshake that fails");
_Static_assert(XR_CONNECT_BRIEF_MS < XR_CONNECT_MS, "");
_Static_assert(XR_START_S * 1000 > XR_SETUP_MS + XR_CONNECT_MS, "an agent must report its own failure in time");
_Static_assert(XR_START_SLOW_S < XR_START_S, "");

/* --------------------------------------------------------------------------- ^Z */

/* Ranks that have not stopped this long after TSTP get STOP. */
#define XR_STOP_MS 200
/* xrun stops itself after its ranks. */
#define XR_STOP_SELF_MS (XR_STOP_MS + 50)

/* ---------------------------------------------------- --status, --heartbeat, traces */

/* xrun leaves out agents that have not answered a status request after this time. */
#define XR_STATUS_AGENTS_MS 2000
/* xrun --status waits this long for the answer; in the list of jobs this long for each. */
#define XR_STATUS_CLIENT_MS 8000
#define XR_STATUS_LIST_MS 1000
/* A status client sends its request in this time, and may stay this long in all. */
#define XR_STATUS_REQUEST_S 2
#define XR_STATUS_STAY_S 10
_Static_assert(XR_STATUS_AGENTS_MS < XR_STATUS_CLIENT_MS, "a client must outlive silent agents");
_Static_assert(XR_STATUS_CLIENT_MS < XR_STATUS_STAY_S * 1000, "a client gives up before its connection is closed");
_Static_assert(XR_STATUS_REQUEST_S < XR_STATUS_STAY_S, "");

/* A tool may take this long for the stack trace of a process, an agent this long for all. */
#define XR_TRACE_TOOL_MS 10000
#define XR_TRACE_AGENT_MS 30000
/* xrun waits this long for the traces of all agents. */
#define XR_TRACE_MS (XR_TRACE_AGENT_MS + 5000)
_Static_assert(XR_TRACE_TOOL_MS < XR_TRACE_AGENT_MS, "an agent traces several processes");

/* Without --heartbeat: a job that waits as a whole for this long is explained. */
#define XR_QUIET_MS 20000
/* Agents begin to watch at this age of a job. */
#define XR_QUIET_BEGIN_MS 10000
_Static_assert(XR_QUIET_BEGIN_MS <= XR_QUIET_MS, "agents must watch before there is something to explain");
/* A job that is about to be ended waits this long for a last report, in which ranks without progress for this long count. */
#define XR_LAST_REPORT_MS 500
#define XR_LAST_STALLED_MS 1000

#endif
